"""Scores and targets as the metrics read them: a few columns at a time, checked, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.machine import usable_cores

Floats = npt.NDArray[np.float64]
T = TypeVar("T")

# Neighbouring columns share cache lines; more of them would need more memory in every thread.
_COLUMNS_AT_ONCE = 8
_ENTRIES_WORTH_A_THREAD = 400_000


class Column(NamedTuple):
    """One class: the scores of its known entries, and which of them are present."""

    number: int
    scores: npt.NDArray[np.floating[Any]]
    present: npt.NDArray[np.bool_]


class ScoredTargets:
    """Scores with the targets they are judged by, ready to be read column by column.

    Args:
        scores: ``(N, C)`` array or tensor of any floating dtype; higher means more likely.
        targets: ``(N, C)``, 1 for present, 0 for absent, NaN for unknown.
        known: ``(N, C)`` of bool; False leaves an entry out, like a NaN target.
        class_names: Names for messages; without them classes are called by their number.
    """

    def __init__(
        self,
        scores: Any,
        targets: Any,
        known: Any = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        """Check shapes; values are checked when a column is read."""
        self._scores = _sliceable(scores)
        self._targets = _sliceable(targets)
        self._known = None if known is None else _sliceable(known)
        if len(self._scores.shape) != 2:
            raise ArgumentError(
                "scores must have two dimensions, images and classes,"
                f" but got the shape {tuple(self._scores.shape)}."
            )
        self.images, self.classes = (int(size) for size in self._scores.shape)
        check_same_shape("targets", self._targets.shape, "scores", self._scores.shape)
        if self._known is not None:
            check_same_shape("known", self._known.shape, "scores", self._scores.shape)
        if class_names is not None and len(class_names) != self.classes:
            raise ArgumentError(
                f"class_names must have one name for each of {self.classes} classes,"
                f" but got {len(class_names)}."
            )
        names = range(self.classes) if class_names is None else class_names
        self.names = tuple(map(str, names))

    @property
    def on_device(self) -> bool:
        """Whether scores and targets are tensors on a device, where they can be measured."""
        parts = [self._scores, self._targets, *([] if self._known is None else [self._known])]
        return all(getattr(part, "is_cpu", True) is False for part in parts)

    def tensors(self, block: slice) -> tuple[Any, Any, Any]:
        """Return scores, targets and known of some classes, where they are."""
        known = None if self._known is None else self._known[:, block]
        return self._scores[:, block], self._targets[:, block], known

    def refuse(self, number: int, value: float) -> NoReturn:
        """Raise because of a target of a class that cannot be."""
        raise ArgumentError(f"Class {self.names[number]!r}: {wrong_target(value)}")

    def each_class(self, measure: Callable[[Column], T]) -> list[T]:
        """Apply ``measure`` to every class, in threads, and return the results in order."""
        entries = self.images * self.classes
        # Every worker holds copies of its columns: together they stay well below the scores.
        workers = max(
            1, min(usable_cores(), self.classes // 16, 1 + entries // _ENTRIES_WORTH_A_THREAD)
        )
        columns = max(1, min(_COLUMNS_AT_ONCE, self.classes // (8 * workers)))
        blocks = [slice(at, at + columns) for at in range(0, self.classes, columns)]

        def run(block: slice) -> list[T]:
            return [measure(column) for column in self._columns(block)]

        if workers == 1:
            return [result for block in blocks for result in run(block)]
        with ThreadPoolExecutor(workers) as pool:
            return [result for results in pool.map(run, blocks) for result in results]

    def _columns(self, block: slice) -> Iterator[Column]:
        scores = np.array(_array(self._scores[:, block]).T, order="C", copy=True)
        if scores.dtype not in (np.float32, np.float64):
            scores = scores.astype(np.float32 if scores.dtype.kind == "f" else np.float64)
        # Targets become masks at once: as numbers they may be twice as large as the scores.
        targets = _array(self._targets[:, block])
        present = np.ascontiguousarray((targets == 1).T)
        known = np.isnan(targets) if targets.dtype.kind == "f" else np.zeros(targets.shape, bool)
        np.logical_not(known, out=known)
        if self._known is not None:
            known &= _array(self._known[:, block]).astype(bool)
        self._check_targets(block, targets, known)
        for offset, number in enumerate(range(self.classes)[block]):
            there = known[:, offset]
            row, is_present = scores[offset], present[offset]
            if not there.all():
                row, is_present = row[there], is_present[there]
            if np.isnan(row).any():
                raise ArgumentError(f"Class {self.names[number]!r}: scores contain NaN.")
            yield Column(number, row, is_present)

    def _check_targets(
        self, block: slice, targets: npt.NDArray[Any], known: npt.NDArray[np.bool_]
    ) -> None:
        if targets.dtype == bool:
            return
        wrong = (targets != 0) & (targets != 1) & known
        if wrong.any():
            row, offset = np.argwhere(wrong)[0]
            self.refuse(range(self.classes)[block][offset], float(targets[row, offset]))


def wrong_target(value: float) -> str:
    """Say what targets of metrics may be, for a value that they may not have."""
    message = f"metrics need targets of 0, 1 or NaN, but got {value!r}."
    if value == -1:
        message += " If -1 means absent, use 0; if it means unknown, use NaN."
    return message


def _sliceable(values: Any) -> Any:
    """Leave tensors and arrays where they are (memory-mapped ones too); convert the rest."""
    if hasattr(values, "detach"):
        return values.detach()
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def _array(part: Any) -> npt.NDArray[Any]:
    if hasattr(part, "cpu"):
        part = part.cpu()
        return np.asarray((part.float() if str(part.dtype) == "torch.bfloat16" else part).numpy())
    return np.asarray(part)
