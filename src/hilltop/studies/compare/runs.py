"""Trains the cells of a study: what is finished is not repeated, what was stopped is resumed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import torch

from hilltop.checks import check_whole, pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.errors import HilltopError
from hilltop.inputs.features import Features, read_features
from hilltop.metrics.epochs import best_epoch, in_per_cent
from hilltop.studies.compare.study import Cell, Study
from hilltop.training import TrainConfig, resume, train
from hilltop.training.distributed import all_gather_object, place_in_world
from hilltop.training.run_folder import RunFolder

RESULT = "result.json"
Row = dict[str, float]


@dataclass(frozen=True)
class Result:
    """How a cell ended.

    Attributes:
        cell: What was trained.
        folder: Its run folder.
        last: Metrics of the last epoch; empty if the run failed.
        best: Metrics of the epoch with the highest mAP on the validation labels.
        error: Why it failed, or an empty text.
        seconds: How long it took, over all attempts that ended.
    """

    cell: Cell
    folder: Path
    last: Row = field(default_factory=dict)
    best: Row = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether there are metrics."""
        return not self.error


def run_study(
    study: Study,
    cells: Sequence[Cell],
    *,
    jobs: int = 1,
    say: Callable[[str], None] = print,
) -> list[Result]:
    """Train all cells that are not finished and return the results of all, in their order.

    A run that fails is recorded, with its reason, and the others go on; it is tried again the next
    time. Settings that differ from those of an earlier call stop everything before it begins.

    Args:
        study: The folder and the common settings.
        cells: What to train.
        jobs: How many runs at the same time, each in a process of its own if more than one.
        say: Takes one line for each run that ends.
    """
    check_whole("jobs", jobs, low=1)
    study.prepare(cells)
    earlier = [read_result(study, cell) for cell in cells]
    results = {result.cell: result for result in earlier if result and result.finished}
    waiting = [cell for cell in cells if cell not in results]
    done = len(cells) - len(waiting)
    if done:
        total = pluralize(len(cells), "run", "runs")
        say(f"{pluralize(done, f'of {total} is', f'of {total} are')} finished already")
    # What others begin with comes first.
    stages = [[cell for cell in waiting if (cell.method.pseudo_label is not None) == again]
              for again in (False, True)]  # fmt: skip
    for stage in filter(None, stages):
        for result in _ended(study, stage, min(jobs, len(stage))):
            results[result.cell] = result
            done += 1
            say(f"[{done:>{len(str(len(cells)))}}/{len(cells)}] {_line(result)}")
    return [results[cell] for cell in cells]


def read_result(study: Study, cell: Cell) -> Result | None:
    """Read how a cell ended, or None if it has not."""
    folder = study.run_folder(cell)
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Result(cell=cell, folder=folder, **values)
    except (ValueError, TypeError):
        raise data_error(
            path, "this is not a result of a run; delete it to run the cell again."
        ) from None


def _ended(study: Study, cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """Train cells and yield their results as they end."""
    if jobs == 1:
        with _held(study.base):
            for cell in cells:
                yield _run_cell(study, cell)
        return
    # A fresh interpreter for each process: forking one that runs threads of torch can hang.
    context = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // jobs)
    started = context.Value("i", 0)
    pool = ProcessPoolExecutor(
        jobs, context, initializer=_start, initargs=(threads, study.base, started)
    )
    try:
        pending: set[Future[Result]] = {pool.submit(_run_cell, study, cell) for cell in cells}
        while pending:
            ended, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
    except BrokenProcessPool:
        raise HilltopError(
            "A process that trained was ended from outside, perhaps because memory ran out;"
            " finished runs are kept, so call again, with fewer --jobs."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_kept: list[Features] = []  # of a worker process: features stay in memory between its runs


def _start(threads: int, base: TrainConfig, started: Synchronized[int]) -> None:
    """Set up a worker process; it ends with its parent, even if that is killed."""
    torch.set_num_threads(threads)
    with started.get_lock():
        number, started.value = started.value, started.value + 1
    _take_gpu(number)
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def follow() -> None:
        # Left alone, a worker would go on writing to a run that a new call resumes.
        wait_for([sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    if base.features is not None:
        _kept.append(read_features(base.features))


def _take_gpu(number: int) -> None:
    """Give each worker a GPU of its own, in turn; otherwise all would take the first one."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = given.split(",") if given else [str(at) for at in range(torch.cuda.device_count())]
    if visible:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[number % len(visible)]


@contextlib.contextmanager
def _held(base: TrainConfig) -> Iterator[None]:
    """Hold the features in memory, so that they are read once for all runs."""
    held = None if base.features is None else read_features(base.features)
    yield
    del held


def _run_cell(study: Study, cell: Cell) -> Result:
    """Train or resume one cell, with what it prints in its own folder, and record how it ended."""
    config, folder = study.config(cell), study.run_folder(cell)
    folder.mkdir(parents=True, exist_ok=True)
    begun = RunFolder(folder).config.is_file()
    all_gather_object([])  # of several processes none begins before all have looked
    if cell.method.pseudo_label is not None and not begun and place_in_world()[0] == 0:
        _take_first_stage(study, cell)
    began = time.perf_counter()
    error = ""
    with (
        (folder / "output.txt").open("a", encoding="utf-8") as output,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        try:
            if begun:
                resume(folder, calibrate=False)
            else:
                train(config, folder, calibrate=False)
        except HilltopError as problem:
            error = str(problem)
        except Exception as problem:  # a fault of ours must not take the other runs with it
            if place_in_world()[1] > 1:  # the other processes would wait for this one for ever
                raise
            error = f"{type(problem).__name__}: {problem}"
            traceback.print_exc()
    result = _result(cell, folder, error, time.perf_counter() - began)
    keys = ("last", "best", "error", "seconds")
    atomic_write(folder / RESULT, json.dumps({key: getattr(result, key) for key in keys}) + "\n")
    return result


def _take_first_stage(study: Study, cell: Cell) -> None:
    """Begin pseudo labels with the run that is their first stage, where it is there."""
    first, known = study.run_folder(cell.first_stage), read_result(study, cell.first_stage)
    aside = study.run_folder(cell) / "first"
    if known is None or not known.finished or aside.exists():
        return
    aside.mkdir()
    for path in first.iterdir():
        if path.is_file() and path.name not in (RESULT, "output.txt"):
            shutil.copy2(path, aside / path.name)


def _result(cell: Cell, folder: Path, error: str, seconds: float) -> Result:
    run = RunFolder(folder)
    if error:
        return Result(cell, folder, error=error, seconds=round(seconds, 3))
    rows: list[dict[str, Any]] = run.recorded()
    best = dict(best_epoch(rows))
    for state in folder.rglob(run.state.name):
        state.unlink(missing_ok=True)  # three times the size of the model, and of no more use
    return Result(cell, folder, rows[-1], best, seconds=round(seconds, 3))


def _line(result: Result) -> str:
    if not result.finished:
        return f"{result.cell}: failed: {result.error}"
    return (
        f"{result.cell}: mAP {in_per_cent(result.last)}"
        f" (best {in_per_cent(result.best)} in epoch {result.best['epoch']:.0f}),"
        f" {result.seconds:.1f} s"
    )


def failed_runs(results: Sequence[Result]) -> str:
    """One sentence about the runs that failed, or an empty text."""
    failed = [result for result in results if not result.finished]
    if not failed:
        return ""
    first = failed[0]
    total = pluralize(len(results), "run", "runs")
    return (
        f"{pluralize(len(failed), f'of {total} failed and is', f'of {total} failed and are')} tried"
        f" again the next time; the first is {first.cell}: {first.error}"
    )
