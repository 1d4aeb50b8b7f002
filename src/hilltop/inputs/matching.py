"""Whether labels and inputs fit: rows without an image or features, and images without a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data import read_labels
from hilltop.data.data_errors import data_error
from hilltop.inputs.features import read_features
from hilltop.inputs.image_files import find_images, list_images

Rows = npt.NDArray[np.int64]


def matching_rows(
    images: pa.StringArray, source: Path, *, allow_missing: bool, say: Callable[[str], None]
) -> Rows:
    """Return the rows of labels that have an input; say what has no counterpart, once.

    Args:
        images: Image ids of the labels.
        source: A folder of images, or a file of features.
        allow_missing: Go on without rows that have no input.
        say: Takes a sentence for the user.

    Raises:
        DataError: Rows have no input and that is not allowed, or none has one.
    """
    found = _checked(images, source, allow_missing=allow_missing, say=say)
    return np.flatnonzero(~np.asarray(pc.is_null(found)))


def labelled_inputs(
    labels: Path, source: Path, *, allow_missing: bool, say: Callable[[str], None]
) -> pa.StringArray:
    """Return the names of the inputs of the images in a label file, as the source spells them."""
    table = read_labels(labels, unlisted="unknown", minus_one="unknown")
    found: pa.StringArray = _checked(table.images, source, allow_missing=allow_missing, say=say)
    return found.drop_null()


def _checked(
    images: pa.StringArray, source: Path, *, allow_missing: bool, say: Callable[[str], None]
) -> pa.StringArray:
    """The name of each image's input, null where there is none and that is allowed."""
    found, names, note = _find(images, source)
    if note:
        say(f"{source}: {note}")
    missing = images.filter(pc.is_null(found))
    kinds = ("image", "images") if source.is_dir() else ("row", "rows")
    if len(missing):
        what = "image" if source.is_dir() else "row of features"
        rows = pluralize(len(images), "labelled image", "labelled images")
        have = pluralize(len(missing), f"of {rows} has", f"of {rows} have")
        text = f"{have} no {what} here, the first is {missing[0].as_py()!r}."
        if len(missing) == len(images):
            raise data_error(source, f"{text} Names here look like {names[0].as_py()!r}.")
        if not allow_missing:
            raise data_error(source, f"{text} Go on without such rows with --allow-missing.")
        say(f"{source}: {text} Such rows are left out.")
    unused = names.filter(pc.invert(pc.is_in(names, found)))
    if len(unused):
        have = f"{pluralize(len(unused), *kinds)} {'has' if len(unused) == 1 else 'have'}"
        say(f"{source}: {have} no labels, the first is {unused[0].as_py()!r}.")
    return found


def _find(images: pa.StringArray, source: Path) -> tuple[pa.StringArray, pa.StringArray, str]:
    """The name of each image's input, null where there is none, all names, and what to say."""
    if source.is_dir():
        names = list_images(source)
        return find_images(source, images), names, ""
    features = read_features(source)
    rows, note = features.match(images)
    return features.images.take(rows), features.images, note
