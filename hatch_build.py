"""Compiles the loss kernel into the wheel, where there is a C compiler.

Without one the package installs all the same and computes the same losses with torch alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Not -ffast-math: the kernel relies on NaN being NaN and on the order of its roundings.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-shared", "-fPIC"]

SOURCES = ["kernel.c", "count_kernel.c"]


class KernelBuildHook(BuildHookInterface[Any]):
    """Adds ``_kernel.so`` to wheels and editable installs."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as made for this platform if that worked."""
        folder = Path(self.root, "src", "hilltop", "losses", "engine")
        library = folder / "_kernel.so"
        library.unlink(missing_ok=True)
        problem = compile_kernel([folder / name for name in SOURCES], library)
        if problem:
            self.app.display_warning(f"Hilltop installs without its fast kernel: {problem}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(str(library.relative_to(self.root)))


def compile_kernel(sources: list[Path], library: Path) -> str:
    """Compile for every CPU level in one file or, where that is not supported, for one.

    Returns:
        An empty string, or why it was not possible.
    """
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if sys.platform == "win32" or shutil.which(compiler[0]) is None:
        return "there is no C compiler."
    said = ""
    for extra in ([], ["-DHILLTOP_ONE_TARGET"]):
        command = [*compiler, *FLAGS, *extra, *map(str, sources), "-lm", "-o", str(library)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode == 0:
            return ""
        said = finished.stderr
    return f"the C compiler failed.\n{said}"
