"""A matrix for features that a file holds beside labels, refused where it would not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilltop.data.data_errors import data_error

_MOST_BYTES = 4 << 30


def feature_matrix(path: Path, rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Return zeros; sparse features become dense.

    Raises:
        DataError: The matrix would need more than 4 GiB, or there are no features.
    """
    size = rows * columns * np.dtype(np.float32).itemsize
    if size > _MOST_BYTES:
        raise data_error(
            path,
            f"{rows:,} rows with {columns:,} features would take {size / (1 << 30):.1f} GiB of"
            " memory, more than the 4 that are allowed. Reduce the features first, for example"
            " with a random projection, and pass them as .npz.",
        )
    if not size:
        raise data_error(path, "there are no features beside the labels.")
    return np.zeros((rows, columns), dtype=np.float32)
