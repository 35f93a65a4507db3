"""The entry point of the command as a process of its own."""

from __future__ import annotations

import atexit
import os
import sys

from uncertain_cep.cli.commands import main

__all__ = ["run"]


def run() -> None:
    """Run the command, and end its process with its exit code.

    Threads of Arrow may still let go of a file that Python has opened. Where the interpreter is being taken
    down meanwhile, such a thread ends the process by ``terminate``, with exit code 134 behind a right answer.
    So what is registered to be done at the end is done, and the interpreter is left as it is.
    """
    codes: list[int] = []

    def end() -> None:
        if not codes:
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                # The interpreter says it, and has an exit code of its own for that.
                return
        os._exit(codes[0])

    # What is registered first is called last.
    atexit.register(end)
    try:
        main(prog_name="uncertain-cep")
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            codes.append(error.code or 0)
        raise
