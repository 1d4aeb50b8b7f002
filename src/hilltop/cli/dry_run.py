"""``--dry-run``: what a command will take, from the same command on a few of the images.

The command runs on more and more images, in a process of its own that writes to a temporary folder.
Seconds, memory and disk are then prolonged along a line. An audit of very many pairs, which fits
heads by blocks of classes, runs on some of the classes, too.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hilltop.checks import pluralize
from hilltop.data import LabelTable, State
from hilltop.errors import HilltopError

_FIRST_IMAGES, _GROWTH, _SHARE = 200, 4, 4
_ENOUGH_S = 10.0
"""By how much longer the last run must take than the first, or it has a quarter of the images."""
_BLOCK_IMAGES, _BLOCK_CLASSES = (10_000, 20_000), (100, 200)
_GIB = 1 << 30


class Command(Protocol):
    """A command of ours."""

    def run(self) -> dict[str, Any]:
        """Do it."""


@dataclass(frozen=True)
class Cost:
    """What a command takes.

    Attributes:
        seconds: Time of the processor, of all threads together, which does not change with other
            work on the machine.
        memory: Bytes of memory at most.
        disk: Bytes of what it writes.
    """

    seconds: float
    memory: float
    disk: float

    @property
    def _numbers(self) -> npt.NDArray[np.float64]:
        return np.array([self.seconds, self.memory, self.disk])

    def describe(self, out: Path) -> str:
        """Say it, and what there is of memory and disk."""
        from hilltop.data.array_files import free_memory

        there = next(folder for folder in out.resolve().parents if folder.is_dir())
        free = shutil.disk_usage(there).free
        words = (
            f"This will take about {_duration(self.seconds)} of one core,"
            f" {_size(self.memory)} of memory ({_size(free_memory())} are free)"
            f" and {_size(self.disk)} of disk ({_size(free)} are free)."
        )
        if self.memory > free_memory() or self.disk > free:
            words += " That is more than there is."
        return words


def prolong(points: list[tuple[tuple[float, ...], Cost]], whole: tuple[float, ...]) -> Cost:
    """Return the cost of the whole: linear in each size, and never less as a size grows.

    Args:
        points: Sizes and costs of runs, one more than sizes.
        whole: The sizes of the whole.

    Example:
        >>> runs = [((100.0,), Cost(3.0, 50.0, 10.0)), ((200.0,), Cost(4.0, 60.0, 20.0))]
        >>> prolong(runs, (1000.0,))
        Cost(seconds=12.0, memory=140.0, disk=100.0)
    """
    sizes = np.array([size for size, _ in points])
    costs = np.stack([cost._numbers for _, cost in points])
    slopes = np.linalg.solve(sizes[1:] - sizes[:1], costs[1:] - costs[:1])
    away = np.array(whole) - sizes[-1]
    found = costs[-1] + away @ np.maximum(slopes, 0.0)
    return Cost(*(round(float(one), 6) for one in found))


def cost_of_images(
    make: Callable[[int, Path], Command], total: int, *, few: bool = False
) -> tuple[Cost, int]:
    """Return what a command on so many images takes, and on how many it was measured.

    Args:
        make: Makes the command on some of the images, which writes into a folder.
        total: Number of images.
        few: Begin with few images however many there are: each takes as long as any other.
    """
    from hilltop.inputs.onnx_backbone import LEAST_IMAGES

    # As with all images, ONNX Runtime looks at them or not.
    constants = {"hilltop.inputs.backbone.LEAST_IMAGES": 0 if total >= LEAST_IMAGES else total + 1}
    points: list[tuple[tuple[float, ...], Cost]] = []
    images = min(total, _FIRST_IMAGES if few else max(_FIRST_IMAGES, total // 64))
    while True:
        points.append(((float(images),), measure(partial(make, images), constants=constants)))
        longer = points[-1][1].seconds - points[0][1].seconds
        if images == total:
            return points[-1][1], images
        if len(points) > 1 and (longer > _ENOUGH_S or images >= total / _SHARE):
            return prolong(points[-2:], (float(total),)), images
        images = min(total, _GROWTH * images, max(2 * images, -(-total // _SHARE)))


def cost_of_blocks(
    make: Callable[[LabelTable, Path], Command], table: LabelTable
) -> tuple[Cost, int]:
    """Return what an audit of very many pairs takes, and on how many images it was measured.

    Some of the images and classes are audited as if they were so many: what is done for a part of
    the pairs alone is done for the same part of them.
    """
    from hilltop.audit import run
    from hilltop.audit.find import ranking
    from hilltop.training import class_blocks

    pairs = len(table) * len(table.classes)
    few, classes = _BLOCK_IMAGES[0], _BLOCK_CLASSES[0]
    points: list[tuple[tuple[float, ...], Cost]] = []
    for images, width in ((few, classes), (few, _BLOCK_CLASSES[1]), (_BLOCK_IMAGES[1], classes)):
        part = some_of(table, images, width)
        size = len(part) * len(part.classes)
        share = size / pairs
        constants = {
            "hilltop.audit.run.WHOLE_PAIRS": 0,
            "hilltop.training.class_blocks.WHOLE_PAIRS": 0,
            "hilltop.audit.run.REPEATED_PAIRS": size if pairs <= run.REPEATED_PAIRS else 0,
            "hilltop.training.class_blocks.CORRECTED_PAIRS": class_blocks.CORRECTED_PAIRS * share,
            "hilltop.audit.find.ranking.COUNTED_PAIRS": ranking.COUNTED_PAIRS * share,
        }
        whole = {name: int(value) for name, value in constants.items()}
        cost = measure(partial(make, part), constants=whole)
        points.append(((float(len(part.classes)), float(size)), cost))
    return prolong(points, (float(len(table.classes)), float(pairs))), _BLOCK_IMAGES[1]


def some_of(table: LabelTable, images: int, classes: int | None = None) -> LabelTable:
    """Return the labels of images, and of classes, from all over a table."""
    rows = np.linspace(0, len(table) - 1, min(images, len(table))).astype(np.int64)
    chosen = table.select(rows)
    if classes is None or classes >= len(table.classes):
        return chosen
    common = np.argsort(table.counts_by_class(State.PRESENT), kind="stable")
    kept = common[np.linspace(0, len(common) - 1, classes).astype(np.int64)]
    return chosen.only_classes(np.isin(np.arange(len(table.classes)), kept))


def measure(make: Callable[[Path], Command], *, constants: Mapping[str, int] | None = None) -> Cost:
    """Run a command in a process of its own, and return what it took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command, inputs = make(folder), {path for path in folder.rglob("*") if path.is_file()}
        context = multiprocessing.get_context("spawn")
        mine, its = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(command, dict(constants or {}), its))
        process.start()
        its.close()
        try:
            found = mine.recv()
        except EOFError:
            raise HilltopError("The dry run was stopped from outside, maybe for memory.") from None
        finally:
            process.join()
        if isinstance(found, BaseException):
            raise found
        files = (path for path in folder.rglob("*") if path.is_file() and path not in inputs)
        seconds, memory = found
        return Cost(seconds, memory, float(sum(path.stat().st_size for path in files)))


def _run(command: Command, constants: dict[str, int], answer: Connection) -> None:
    for name, value in constants.items():
        module, _, attribute = name.rpartition(".")
        setattr(importlib.import_module(module), attribute, value)
    try:
        with contextlib.redirect_stdout(io.StringIO()), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            command.run()
    except Exception as error:  # the parent raises it
        answer.send(error)
        return
    mine, its = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = mine.ru_utime + mine.ru_stime + its.ru_utime + its.ru_stime
    answer.send((seconds, float(mine.ru_maxrss << 10)))


def tell(cost: Cost, out: Path, *, total: int, measured: int) -> dict[str, Any]:
    """Print what a command will take, and return it for ``--json``."""
    print(cost.describe(out))
    images = pluralize(total, "image")
    print(f"Measured on {measured:,} of {images}, and prolonged. Nothing was written.")
    return {"seconds": cost.seconds, "memory_bytes": cost.memory, "disk_bytes": cost.disk}


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{int(size > 60)}f} {unit}"
    return f"{seconds:.0f} seconds"


def _size(size: float) -> str:
    return f"{size / _GIB:.1f} GiB" if size >= _GIB / 10 else f"{size / (1 << 20):.0f} MiB"
