"""Extra scores: those of another model for the same images, read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.data_errors import data_error
from hilltop.data.scores import read_scores
from hilltop.data.small_files import read_cells

_CLOSEST = 1e-6


def read_extra_scores(
    path: Path, images: pa.Array, classes: tuple[str, ...], *, names: Mapping[str, str]
) -> npt.NDArray[np.float32]:
    """Read extra scores as logits for some images and classes; NaN where there are none.

    Args:
        path: What :func:`~hilltop.data.scores.read_scores` reads. Scores that all lie between 0
            and 1 are probabilities, others logits.
        images: Image ids.
        classes: Class names.
        names: Our name for classes that are called something else there. Where several of theirs
            are one of ours, such as breeds of dogs, the highest score counts.

    Raises:
        DataError: The file cannot be read, or is about none of the images or classes.
    """
    table = read_scores(path)
    rows = pc.index_in(images, value_set=table.images).fill_null(-1).to_numpy()
    theirs: dict[str, list[int]] = {}
    for place, name in enumerate(table.classes):
        theirs.setdefault(names.get(name, name), []).append(place)
    known = [column for column, name in enumerate(classes) if name in theirs]
    if (rows < 0).all() or not known:
        what = "images" if (rows < 0).all() else "classes; name them with --extra-names"
        raise data_error(path, f"these scores are about none of the {what}.")
    there = table.values[rows[rows >= 0]]
    columns = [np.fmax.reduce(there[:, theirs[classes[one]]], axis=1) for one in known]
    given = np.stack(columns, axis=1)
    given = given.astype(np.float32)
    if np.isinf(given).any() or np.isnan(given).all():
        raise data_error(path, "scores of these images and classes must be finite numbers.")
    if np.nanmin(given) >= 0 and np.nanmax(given) <= 1:
        clipped = np.clip(given, _CLOSEST, 1 - _CLOSEST)
        given = np.log(clipped) - np.log1p(-clipped)
    values = np.full((len(rows), len(classes)), np.nan, dtype=np.float32)
    values[np.ix_(rows >= 0, known)] = given
    return values


def read_names(path: Path | None) -> dict[str, str]:
    """Read a CSV file of two columns, a class of the extra scores and our name for it."""
    if path is None:
        return {}
    found = {}
    for line, cells in read_cells(path):
        if len(cells) != 2:
            raise data_error(path, f"expected their name and ours, but got {cells!r}.", line=line)
        found[cells[0]] = cells[1]
    return found
