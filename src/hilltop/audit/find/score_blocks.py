"""Logits of some rows at a time, from memory or from a file of scores that need not fit into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data import LabelTable
from hilltop.data.scores import Places, ScoreTable, Values
from hilltop.errors import DataError

LogitBlocks = Callable[[int, int], Tensor]
"""Gives the logits of the rows from a first one to before a last one."""

_CLOSEST = 1e-6  # as everywhere that scores become logits


@dataclass(frozen=True)
class Scored:
    """Images with logits that never saw their labels.

    Attributes:
        logits: The logits, in the order of ``rows``.
        rows: Image numbers in the label table.
        features: What the logits come from, if it is there.
        version: Changes with the file that logits are read from, if there is one.
    """

    logits: LogitBlocks
    rows: Places
    features: Tensor | None = None
    version: str = ""


def blocks_of(logits: Tensor) -> LogitBlocks:
    """Serve logits that are in memory."""
    return lambda first, last: logits[first:last]


def score_blocks(scores: ScoreTable, labels: LabelTable) -> LogitBlocks:
    """Serve the logits of probabilities, in the order of a table, reading some rows at a time.

    Raises:
        DataError: Scores are missing, or when they are read, not probabilities.
    """
    rows, columns = scores.positions(labels.images, labels.classes)
    in_order = np.array_equal(rows, np.arange(len(rows)))
    all_columns = np.array_equal(columns, np.arange(len(scores.classes)))

    def serve(first: int, last: int) -> Tensor:
        if in_order:
            chosen = _rows(scores.values, first, last)
        else:
            chosen = np.asarray(scores.values[rows[first:last]])
        if not all_columns:
            chosen = chosen[:, columns]
        return _logits(chosen, labels, first)

    return serve


def _rows(values: Values, first: int, last: int) -> Values:
    """Consecutive rows; of a file, through a map of their own, so that its memory is given back."""
    if not _is_whole_file(values):
        return values[first:last]
    assert isinstance(values, np.memmap)
    width = values.shape[1]
    start = values.offset + first * width * values.itemsize
    shape = (last - first, width)
    name: Any = values.filename
    mapped: npt.NDArray[Any] = np.memmap(name, values.dtype, mode="r", offset=start, shape=shape)
    return mapped


def _is_whole_file(values: Values) -> bool:
    """Whether this is a map of all that a file holds; a part of one has the offset of the whole."""
    if not isinstance(values, np.memmap) or values.filename is None or not values.size:
        return False
    size = Path(values.filename).stat().st_size
    return values.flags.c_contiguous and values.offset + values.nbytes == size


def _logits(scores: Values, labels: LabelTable, first: int) -> Tensor:
    half = scores.dtype == np.float16  # which torch converts ten times faster
    probs = torch.from_numpy(np.array(scores, dtype=None if half else np.float32)).float().numpy()
    lowest, highest = (probs.min(), probs.max()) if probs.size else (0.0, 1.0)
    if not (lowest >= 0 and highest <= 1):  # NaN fails too
        row, column = np.argwhere(~((probs >= 0) & (probs <= 1)))[0]
        raise DataError(
            f"The score of {labels.images[first + int(row)].as_py()!r} for"
            f" {labels.classes[column]!r} is {probs[row, column]:g}, but scores must be"
            " probabilities between 0 and 1."
        )
    # A probability of 0 or 1 would be an infinite logit, which nothing could calibrate.
    return torch.from_numpy(probs).clamp_(_CLOSEST, 1 - _CLOSEST).logit_()


def label_block(
    labels: LabelTable, rows: Places | slice
) -> tuple[Tensor, Tensor | None, npt.NDArray[np.bool_]]:
    """Targets, what a person confirmed (None if no absents), and which pairs are open.

    Open are pairs that are unknown, and those of a joined table that nobody looked for: these have
    the target NaN.
    """
    chosen = np.arange(len(labels))[rows] if isinstance(rows, slice) else rows
    targets, observed = labels.batch(chosen)
    # Where nobody said "absent", the losses are spared a mask that would change nothing.
    confirmed = bool((observed & (targets == 0)).any())
    seen = torch.from_numpy(observed) if confirmed else None
    return torch.from_numpy(targets), seen, ~observed
