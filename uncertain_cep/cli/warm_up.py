"""``uncertain-cep warm-up``: compile kernels before they are needed."""

from __future__ import annotations

import time

import click

from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import announced_kernels, note, working

__all__ = ["warm_up"]


@click.command("warm-up", cls=HelpfulCommand)
@click.option(
    "--all", "every", is_flag=True, help="Compile for every kind of pattern, not only for sequences."
)
def warm_up(every: bool) -> None:
    """Compile kernels, so that no later command has to.

    Compiled kernels are kept, also after Ctrl-C.
    """
    from uncertain_cep import warming

    groups = list(warming.GROUPS if every else ("joins",))
    announced_kernels()
    for number, group in enumerate(groups, 1):
        started = time.monotonic()
        with working(f"kernels of {group} ({number} of {len(groups)})"):
            warming.warm_up([group])
        note(f"kernels of {group}: {time.monotonic() - started:.1f} s")
