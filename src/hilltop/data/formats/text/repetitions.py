"""What to say of images that stand in more than one row of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.state import State


def repetitions(
    images: pa.Array,
    image_of_row: npt.NDArray[np.int64],
    rows: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    states: npt.NDArray[Any] | State,
) -> list[str]:
    """Say how many images stand in several rows, and how many of these differ in their labels.

    Args:
        images: Image ids.
        image_of_row: Image number of each row of the file.
        rows: Row of the file of each entry.
        columns: Class number of each entry.
        states: State of each entry, or of all.
    """
    repeated = np.bincount(image_of_row, minlength=len(images)) > 1
    if not repeated.any():
        return []
    # Rows with the same entries have the same sum of random numbers, one for each kind of entry.
    kinds, kind = np.unique(columns * 4 + states, return_inverse=True)
    _, first = np.unique(rows * len(kinds) + kind, return_index=True)
    numbers = np.random.default_rng(0).integers(1 << 60, size=len(kinds), dtype=np.uint64)
    sums = np.zeros(len(image_of_row), dtype=np.uint64)
    np.add.at(sums, rows[first], numbers[kind[first]])
    lowest = np.full(len(images), np.iinfo(np.uint64).max)
    highest = np.zeros(len(images), dtype=np.uint64)
    np.minimum.at(lowest, image_of_row, sums)
    np.maximum.at(highest, image_of_row, sums)
    differ = np.flatnonzero(repeated & (lowest != highest))
    stand = pluralize(int(repeated.sum()), "image id stands", "image ids stand")
    text = f"{stand} in more than one record; the labels are merged."
    if len(differ):
        example = images[int(differ[0])].as_py()
        have = pluralize(len(differ), "of them has", "of them have")
        text += f" {have} different labels there, the first is {example!r}."
    return [text]
