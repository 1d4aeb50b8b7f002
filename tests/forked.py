"""Processes forked from one that has imported everything, so that starting them costs nothing.

They do what ``python -m hilltop ...`` and ``torchrun script.py ...`` do, without importing torch
again for each. Where the start itself is tested, :mod:`tests.processes` starts real ones.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.processes import HANGING_S

_IMPORTED = [
    "hilltop.training.stages",
    "lightning_fabric",
    "hilltop.cli.main",
    "torch.distributed.fsdp",
]


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code, negative for a signal.
        output: What it printed.
        errors: What it printed to stderr.
    """

    code: int | None
    output: str
    errors: str


def run_forked(*words: object, processes: int = 1) -> str:
    """Run a module (``-m``, name) or script with its words to a good end; return its output."""
    ended = fork(*words, processes=processes)
    assert [one.code for one in ended] == [0] * processes, "\n".join(one.errors for one in ended)
    return "".join(one.output for one in ended)


def fork(*words: object, processes: int = 1) -> list[Ended]:
    """Run a module or script with its words in one process or several ranks, to the end of all."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{rank}") for rank in range(processes)]
        port = _free_port()
        started = [
            _start(context, [str(word) for word in words], file, _ranks(rank, processes, port))
            for rank, file in enumerate(files)
        ]
        _wait_for(started)
        texts = [[file.with_suffix(end).read_text() for end in (".out", ".err")] for file in files]
        return [Ended(one.exitcode, *text) for one, text in zip(started, texts, strict=True)]


def _wait_for(started: Sequence[BaseProcess]) -> None:
    """Wait for all; where one fails, the others would wait for it for ever, so they are ended."""
    running = {process.sentinel: process for process in started}
    while running:
        ended = [running.pop(one) for one in wait(list(running), HANGING_S)]
        for process in ended:
            process.join()
        if not ended or any(process.exitcode for process in ended):
            for process in running.values():
                process.kill()


def _start(
    context: ForkServerContext, words: list[str], file: Path, environment: dict[str, str]
) -> BaseProcess:
    process = context.Process(target=_work, args=(words, file, environment))
    process.start()
    return process


def _work(words: list[str], file: Path, environment: dict[str, str]) -> None:
    """In the new process: be the program."""
    os.environ.update(environment)
    for number, end in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(file.with_suffix(end), os.O_CREAT | os.O_WRONLY), number)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2)
    )
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def _ranks(rank: int, processes: int, port: int) -> dict[str, str]:
    """What torchrun tells a rank; nothing where there is only one."""
    if processes == 1:
        return {}
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "MASTER_PORT": port}
    numbers |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), processes)
    texts = {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "tests"}
    return {**texts, **{name: str(number) for name, number in numbers.items()}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
