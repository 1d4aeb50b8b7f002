"""Processes that tests start, and how they are waited for.

No test depends on how fast the machine is: waiting ends when something has happened, or can no
longer happen because the process has ended. The one limit only keeps a test from hanging for ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HANGING_S = float(os.environ.get("HILLTOP_TEST_HANGING_S", "3600"))
"""What takes longer than this is taken to hang; a larger number suits an emulated machine."""
_ROOT = Path(__file__).parents[1]
_TORCHRUN = ("-m", "torch.distributed.run", "--standalone")


def start(*words: object, processes: int = 1, folder: Path | None = None) -> subprocess.Popen[str]:
    """Start Python with these words, as a user would, on one process or under torchrun."""
    runner = [*_TORCHRUN, f"--nproc-per-node={processes}"] if processes > 1 else []
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = os.pathsep.join([str(_ROOT), *filter(None, known)])
    return subprocess.Popen(
        [sys.executable, *runner, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait until a process has ended well, and return what it printed."""
    output, errors = process.communicate(timeout=HANGING_S)
    assert process.returncode == 0, errors
    return output


def run(*words: object, processes: int = 1, folder: Path | None = None) -> str:
    """Run Python with these words to a good end, and return what it printed."""
    return finish(start(*words, processes=processes, folder=folder))


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that a process does; its end is an end of waiting, too."""
    given_up = time.monotonic() + HANGING_S
    while process.poll() is None and not happened():
        assert time.monotonic() < given_up, "it hangs"
        time.sleep(0.005)
