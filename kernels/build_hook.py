"""Compiles the kernels for all machines like this one, and puts them into the wheel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROJECT = Path(__file__).resolve().parents[1]

WARM_UP = """
import json, sys
from confidence import compiled, kernel_cache, stored
from uncertain_cep.warming import GROUPS, warm_up

names, read = [], stored.read_entry

def noted(name):
    data = read(name)
    if data is not None:
        names.append(name)
    return data

stored.read_entry = noted
chosen = sys.argv[1].split(",") if sys.argv[1] else list(GROUPS)
warm_up(chosen)
names += map(kernel_cache.name_of_mark, (*chosen, compiled.private_parts().part))
print(json.dumps([str(kernel_cache.cache_folder() / name) for name in dict.fromkeys(names)]))
"""


class KernelsHook(BuildHookInterface[Any]):
    """Fills the wheel, and names the Python and the platform that it is for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's
        """Compile everything; ``UNCERTAIN_CEP_KERNELS`` may name some groups, separated by commas."""
        groups = os.environ.get("UNCERTAIN_CEP_KERNELS", "")
        self._warmed_up(groups)
        # What only other kernels call is part of their code by now: a second time it is not asked for.
        files = self._warmed_up(groups)
        for file in files:
            build_data["force_include"][file] = f"uncertain_cep_kernels/compiled/{Path(file).name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp{sys.version_info.major}{sys.version_info.minor}-none-{platform}"

    def _warmed_up(self, groups: str) -> list[str]:
        """Return the files that a process read to have everything compiled."""
        sys.path.insert(0, str(PROJECT))
        from confidence.kernel_cache import portable_processor

        environment = os.environ | {
            "PYTHONPATH": str(PROJECT),
            "NUMBA_CPU_NAME": portable_processor(),
            "NUMBA_CPU_FEATURES": "",
        }
        command = [sys.executable, "-c", WARM_UP, groups]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        files: list[str] = json.loads(done.stdout.splitlines()[-1])
        return files
