"""Scores and targets as the metrics read them: a few columns at a time, checked, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_same_shape, invalid_targets_message
from hilltop.errors import ArgumentError

Floats = npt.NDArray[np.float64]
T = TypeVar("T")

# Neighbouring columns share cache lines; more of them would need more memory in every thread.
_COLUMNS_AT_ONCE = 8
_ENTRIES_WORTH_A_THREAD = 100_000


class Column(NamedTuple):
    """One class: the scores of its known entries, and which of them are present."""

    number: int
    scores: npt.NDArray[np.floating[Any]]
    present: npt.NDArray[np.bool_]


class Judged:
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
        names = map(str, range(self.classes)) if class_names is None else class_names
        self.names = tuple(names)

    def each_class(self, measure: Callable[[Column], T]) -> list[T]:
        """Apply ``measure`` to every class, in threads, and return the results in order."""
        starts = range(0, self.classes, _COLUMNS_AT_ONCE)
        entries = self.images * self.classes
        workers = min(_cpus(), len(starts), 1 + entries // _ENTRIES_WORTH_A_THREAD)

        def run(start: int) -> list[T]:
            return [measure(column) for column in self._columns(start)]

        if workers <= 1:
            return [result for start in starts for result in run(start)]
        with ThreadPoolExecutor(workers) as pool:
            return [result for results in pool.map(run, starts) for result in results]

    def _columns(self, start: int) -> Iterator[Column]:
        scores = _transposed(self._scores, start)
        if scores.dtype not in (np.float32, np.float64):
            scores = scores.astype(np.float32 if scores.dtype.itemsize <= 2 else np.float64)
        targets = _transposed(self._targets, start)
        known = None if self._known is None else _transposed(self._known, start).astype(bool)
        for offset, (row, target) in enumerate(zip(scores, targets, strict=True)):
            number = start + offset
            mask = _known_entries(target, None if known is None else known[offset])
            if mask is not None:
                row, target = row[mask], target[mask]
            self._check(number, row, target)
            yield Column(number, row, target == 1)

    def _check(self, number: int, scores: npt.NDArray[Any], targets: npt.NDArray[Any]) -> None:
        if targets.dtype != bool:
            wrong = targets[(targets != 0) & (targets != 1)]
            if wrong.size:
                value = float(wrong[0])
                reason = (
                    f"metrics need targets of 0, 1 or NaN, but got {value:g}."
                    if 0 < value < 1
                    else invalid_targets_message(value).replace("observed=", "known=")
                )
                raise ArgumentError(f"Class {self.names[number]!r}: {reason}")
        if np.isnan(scores).any():
            raise ArgumentError(f"Class {self.names[number]!r}: scores contain NaN.")


def _known_entries(
    targets: npt.NDArray[Any], known: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.bool_] | None:
    """Mask of the entries that count, or None if all of them do."""
    there: npt.NDArray[np.bool_] | None = known
    if targets.dtype.kind == "f":
        there = ~np.isnan(targets)
        if known is not None:
            there &= known
    return None if there is None or there.all() else there


def _sliceable(values: Any) -> Any:
    """Leave tensors and arrays where they are (memory-mapped ones too); convert the rest."""
    if hasattr(values, "detach"):
        return values.detach()
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def _transposed(values: Any, start: int) -> npt.NDArray[Any]:
    """Copy some columns into contiguous rows of their own."""
    part = values[:, start : start + _COLUMNS_AT_ONCE]
    if hasattr(part, "cpu"):
        part = part.cpu()
        part = (part.float() if str(part.dtype) == "torch.bfloat16" else part).numpy()
    return np.array(part.T, order="C", copy=True)


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
