"""Two processes of a test: how torchrun starts them, and how each of them ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch.distributed as dist

import hilltop


def run_workers(worker: Path, *arguments: object) -> None:
    """Run a script on two processes, with the package and the tests that are under test here."""
    source = Path(hilltop.__file__).parents[1]
    folders = os.pathsep.join((str(Path.cwd()), str(source)))
    environment = {**os.environ, "PYTHONPATH": folders, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run([*command, str(worker), *map(str, arguments)], check=True, env=environment)


def leave() -> None:
    """End this rank once every rank has written its results.

    Gloo's threads now and then abort the teardown of the interpreter (torch 2.15: "terminate
    called without an active exception"), which torchrun reports as a failed rank.
    """
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
