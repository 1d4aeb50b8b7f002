"""Features instead of images: reading them, and serving them to the loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from hilltop.data.data_errors import data_error
from hilltop.data.formats import FORMATS, LabelSource
from hilltop.data.formats.source import read_lines
from hilltop.data.formats.text.table_file import read_parquet
from hilltop.inputs.image_files import ENDINGS

RowNumbers = npt.NDArray[np.int64]


class Features:
    """Image ids and one row of numbers for each of them."""

    def __init__(self, path: Path, images: pa.StringArray, values: npt.NDArray[Any]) -> None:
        """Check that there is one finite row of numbers for each id."""
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            raise data_error(
                path,
                "features must be a matrix of numbers, one row an image,"
                f" but are {values.dtype} of shape {values.shape}.",
            )
        if len(images) != len(values):
            raise data_error(
                path, f"there are {len(images)} ids for {len(values)} rows of features."
            )
        if len(images.unique()) != len(images):
            raise data_error(path, "some ids stand more than once.")
        self.path, self.images, self.values = path, images, values

    def find(self, images: pa.StringArray) -> pa.Int32Array:
        """Return the row of every image; null where there is none.

        Like an image file, a row is named with or without the ending of the file, and with or
        without the folders before it, where that leaves no doubt.
        """
        found = pc.index_in(images, value_set=self.images)
        for shorter in (_without_endings, _without_folders):
            if found.null_count:
                here = shorter(self.images)
                if len(here.unique()) == len(here):
                    found = pc.coalesce(found, pc.index_in(shorter(images), value_set=here))
        return found

    def rows_of(self, images: pa.StringArray) -> RowNumbers:
        """Return the row of every image, all of which must be there, see :meth:`find`."""
        found = self.find(images)
        if found.null_count:
            first = images.filter(pc.is_null(found))[0].as_py()
            raise data_error(
                self.path,
                f"there are no features for {found.null_count} of {len(images)} labelled images,"
                f" the first is {first!r}. Ids here look like {self.images[0].as_py()!r}.",
            )
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def read_features(path: Path) -> Features:
    """Read ``.npz`` (arrays ids and X), ``.npy`` (ids beside it) or Parquet (image, features).

    A label file that holds features too, such as ARFF or LIBSVM, will do: its ids are those of the
    labels in it.
    The ids of ``x.npy`` stand in ``x.ids.txt``, one a line, or in ``x.ids.npy``. While somebody
    holds the features of a file, reading it again returns the same ones, unless it has changed.
    """
    if not path.is_file():
        return _read(path)
    status = path.stat()
    stamp = (str(path.resolve()), status.st_mtime_ns, status.st_size)
    held = _HELD.get(stamp)
    if held is None:
        _HELD[stamp] = held = _read(path)
    return held


_HELD: WeakValueDictionary[tuple[str, int, int], Features] = WeakValueDictionary()


def _read(path: Path) -> Features:
    if path.suffix == ".npz":
        return _read_npz(path)
    if path.suffix == ".npy":
        return Features(path, _ids_beside(path), _load(path))
    if path.suffix == ".parquet":
        return _read_parquet(path)
    return _read_in_file(path)


class FeatureInputs:
    """Serves rows of features in batches; nothing about them is random."""

    def __init__(self, features: Features, images: pa.StringArray) -> None:
        """Arrange the features in the order of ``images``."""
        chosen = features.values[features.rows_of(images)]
        if not np.isfinite(chosen).all():
            row = int(np.flatnonzero(~np.isfinite(chosen).all(axis=1))[0])
            raise data_error(
                features.path, f"the features of {images[row].as_py()!r} are not finite."
            )
        self.values = torch.from_numpy(np.ascontiguousarray(chosen))

    @property
    def broken(self) -> list[tuple[str, str]]:
        """Features are whole or not there: none is broken."""
        return []

    def loader(
        self, plan: Sequence[Sequence[int]], epoch: int | None
    ) -> Iterator[tuple[RowNumbers, Tensor]]:
        """Yield the batches of ``plan``."""
        for rows in plan:
            chosen = np.asarray(rows, dtype=np.int64)
            yield chosen, self.values[torch.from_numpy(chosen)].float()


def _without_endings(images: pa.StringArray) -> pa.StringArray:
    endings = "|".join(ending.lstrip(".") for ending in ENDINGS)
    return pc.replace_substring_regex(images, rf"(?i)\.({endings})$", "")


def _without_folders(images: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(_without_endings(images), r"^.*/", "")


def _read_npz(path: Path) -> Features:
    content = _load(path)
    missing = {"ids", "X"} - set(content.files)
    if missing:
        raise data_error(
            path,
            f"there is no array {min(missing)!r}; the file holds {', '.join(content.files)}."
            " Expected ids and X.",
        )
    try:
        return Features(path, _as_ids(path, content["ids"]), content["X"])
    except (ValueError, OSError) as error:
        raise data_error(path, f"this file cannot be read: {error}.") from None


def _read_parquet(path: Path) -> Features:
    content = read_parquet(path)
    names = content.column_names
    if "image" not in names or len(names) < 2:
        raise data_error(path, f"expected a column image and features, but got {', '.join(names)}.")
    images = content.column("image").combine_chunks().cast(pa.string())
    others = [name for name in names if name != "image"]
    if len(others) == 1:
        lists = content.column(others[0]).combine_chunks()
        if not pa.types.is_nested(lists.type):
            raise data_error(path, f"column {others[0]!r} must hold lists of numbers.")
        flat = lists.flatten().to_numpy(zero_copy_only=False)
        if len(lists) == 0 or len(flat) % len(lists):
            raise data_error(path, f"the lists in column {others[0]!r} differ in length.")
        return Features(path, images, flat.reshape(len(lists), -1))
    columns = [content.column(name).to_numpy() for name in others]
    return Features(path, images, np.stack(columns, axis=1))


def _read_in_file(path: Path) -> Features:
    """Read the features of a label file whose format has them."""
    known = [name for name, format in FORMATS.items() if format.features is not None]
    source = LabelSource(path)
    for name in known if path.is_file() else []:
        format = FORMATS[name]
        if format.features is not None and format.fits(source):
            found = format.features(source)
            return Features(path, pa.array(found.images, pa.string()), found.values)
    raise data_error(
        path,
        "features are read from .npz, .npy or .parquet files, and from label files that hold them"
        f" too ({', '.join(known)}).",
    )


def _ids_beside(path: Path) -> pa.StringArray:
    text, binary = path.with_suffix(".ids.txt"), path.with_suffix(".ids.npy")
    if text.is_file():
        return pa.array([line for _, line in read_lines(text)], pa.string())
    if binary.is_file():
        return _as_ids(binary, _load(binary))
    raise data_error(path, f"its ids are missing: expected {text.name} or {binary.name} beside it.")


def _as_ids(path: Path, ids: npt.NDArray[Any]) -> pa.StringArray:
    if ids.ndim != 1 or ids.dtype.kind not in "Uiu":
        raise data_error(
            path, f"ids must be one row of text or whole numbers, but are {ids.dtype}."
        )
    return pa.array(ids.astype(str), pa.string())


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this file cannot be read: {reason}.") from None
