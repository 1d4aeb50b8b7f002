"""Principal components of features, from which the review page learns while people answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hilltop.data.array_files import read_npz
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.scores import Places

if TYPE_CHECKING:
    from torch import Tensor

MAX_COMPONENTS = 128
MOST_IMAGES = 300_000
"""With more images than this the page does not learn: it would not fit into memory beside them."""
_SAMPLE_ROWS = 20_000


def pca(features: Tensor) -> npt.NDArray[np.float16]:
    """Project features on their principal components, each scaled to unit variance.

    Args:
        features: One row an image ``(N, F)``.

    Example:
        >>> import torch
        >>> pca(torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])).shape
        (3, 1)
    """
    import torch  # the review page, which reads components, does without it

    step = max(1, len(features) // _SAMPLE_ROWS)
    some = features[::step].double()
    mean, std = some.mean(dim=0), some.std(dim=0).clamp(min=1e-9)
    scaled = (some - mean) / std
    values, vectors = torch.linalg.eigh(scaled.T @ scaled / len(scaled))
    used = int((values > 1e-6 * values[-1].clamp(min=1e-12)).sum().clamp(max=MAX_COMPONENTS))
    chosen = vectors[:, -used:] / values[-used:].sqrt()
    parts = [(part.double() - mean) / std @ chosen for part in torch.split(features, 1 << 14)]
    found: npt.NDArray[np.float16] = torch.cat(parts).clamp(-1e4, 1e4).half().numpy()
    return found


def write_pca(features: Tensor, rows: Places, path: Path) -> None:
    """Write the components of images, if there are not too many of them.

    Args:
        features: One row for each of ``rows``.
        rows: Image numbers in the label table.
        path: The ``.npz`` file.
    """
    path.unlink(missing_ok=True)
    if len(features) <= MOST_IMAGES:
        with replacing(path) as temporary:
            np.savez(temporary, rows=rows, values=pca(features.float()))


def read_pca(path: Path, images: int) -> npt.NDArray[np.float32] | None:
    """Return the components of all images, 0 where an image has none; None without a file."""
    if not path.is_file():
        return None
    rows, values = read_npz(path, ("rows", "values"))
    sound = (
        rows.dtype.kind in "iu"
        and values.dtype.kind == "f"
        and rows.shape == values.shape[:1]
        and values.ndim == 2
        and values.shape[1] <= MAX_COMPONENTS
        and bool(((rows >= 0) & (rows < images)).all())
    )
    if not sound:
        raise data_error(path, "this file is damaged. Remove it, and the page does not learn.")
    found = np.zeros((images, values.shape[1]), dtype=np.float32)
    found[rows] = np.nan_to_num(values)
    return found
