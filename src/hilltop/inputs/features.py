"""Features instead of images: reading them, and serving them to the loop."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor

from hilltop.checks import pluralize
from hilltop.data.array_files import (
    check_memory,
    free_memory,
    read_npy,
    read_npz,
    read_npz_texts,
    read_parquet_table,
)
from hilltop.data.content import Source, read_lines
from hilltop.data.data_errors import data_error
from hilltop.data.format import plain_layout
from hilltop.data.formats import FORMATS
from hilltop.data.layout import ReadOptions
from hilltop.inputs.backbone import Backbone
from hilltop.inputs.image_files import ENDINGS
from hilltop.models import input_rows

RowNumbers = npt.NDArray[np.int64]
_BLOCK_NUMBERS = 1 << 22
_MEMORY_SHARE = 4
"""Features in a Parquet file that would take more than one part in so many of the free memory are
moved to a temporary file."""


class Features:
    """Image ids and one row of numbers for each of them."""

    def __init__(
        self,
        path: Path,
        images: pa.StringArray,
        values: npt.NDArray[Any],
        backbone: Mapping[str, Any] | None = None,
        images_folder: str | None = None,
    ) -> None:
        """Check that there is one finite row of numbers for each id.

        ``backbone`` names the network that made them, see :class:`hilltop.inputs.Backbone`, and
        ``images_folder`` where the images were.
        """
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
        if not len(values):
            raise data_error(path, "there is not one row of features.")
        if not values.shape[1]:
            raise data_error(path, "there is not one feature in a row.")
        if len(images.unique()) != len(images):
            raise data_error(path, "some ids stand more than once.")
        # torch knows only the byte order of the machine.
        native = values.dtype.newbyteorder("=")
        self.path, self.images = path, images
        self.values = values if values.dtype == native else values.astype(native)
        self.backbone, self.images_folder = backbone, images_folder

    def find(self, images: pa.StringArray) -> pa.Int32Array:
        """Return the row of every image; null where there is none. See :meth:`match`."""
        return self.match(images)[0]

    def match(self, images: pa.StringArray) -> tuple[pa.Int32Array, str]:
        """Return the row of every image, null where there is none, and what was not exact.

        An image that has no row of its very name is matched with a row that differs only in case
        and slashes, or by what one of the two names leaves out: the ending of the file, or folders
        before it. ``train/a.jpg`` never matches ``val/a.jpg``, nor ``a.png`` ``a.jpg``.

        Raises:
            DataError: Several rows match one image, or several images one row.
        """
        found = pc.index_in(images, value_set=self.images)
        if not found.null_count:
            return found, ""
        rows = found.to_pylist()
        known: dict[str, list[tuple[int, _Name]]] = {}
        for row, image in enumerate(self.images.to_pylist()):
            name = _Name.of(image)
            known.setdefault(name.stem, []).append((row, name))
        taken = {row: at for at, row in enumerate(rows) if row is not None}
        inexact: list[tuple[str, str]] = []
        for at, image in enumerate(images.to_pylist()):
            if rows[at] is not None:
                continue
            name = _Name.of(image)
            fitting = name.best(known.get(name.stem, []))
            if len(fitting) > 1:
                several = " and ".join(repr(self.images[row].as_py()) for row in fitting[:3])
                raise data_error(self.path, f"image {image!r} matches {several}. Name it in full.")
            if fitting:
                first = taken.setdefault(fitting[0], at)
                if first != at:
                    raise data_error(
                        self.path,
                        f"images {images[first].as_py()!r} and {image!r} both match the row"
                        f" {self.images[fitting[0]].as_py()!r}. Name them as the features do.",
                    )
                rows[at] = fitting[0]
                inexact.append((image, self.images[fitting[0]].as_py()))
        note = ""
        if inexact:
            match = pluralize(len(inexact), "image name matches", "image names match")
            one, other = inexact[0]
            note = (
                f"{match} a row of features only without folders, endings or case, such as {one!r}"
                f" and {other!r}."
            )
        return pa.array(rows, pa.int32()), note

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
    The ids of ``x.npy`` stand in ``x.ids.txt``, one a line, or in ``x.ids.npy``; its numbers stay
    on disk until they are used. So do those of a Parquet file that takes much of the memory, in a
    temporary file. While somebody holds the features of a file, reading it again returns the same
    ones, unless it has changed.
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
        return Features(path, _ids_beside(path), read_npy(path, mapped=True))
    if path.suffix == ".parquet":
        return _read_parquet(path)
    return _read_in_file(path)


class FeatureInputs:
    """Serves rows of features in batches; nothing about them is random."""

    def __init__(self, features: Features, images: pa.StringArray) -> None:
        """Arrange the features in the order of ``images``."""
        rows, values = features.rows_of(images), features.values
        if not np.array_equal(rows, np.arange(len(values))):
            if isinstance(values, np.memmap):
                check_memory(features.path, len(rows) * values[0].nbytes)
            values = values[rows]
        step = max(1, _BLOCK_NUMBERS // values.shape[1])
        for first in range(0, len(values), step):
            chosen = values[first : first + step]
            sound = np.abs(chosen) <= np.finfo(np.float32).max  # NaN is not; heads are in 32 bits
            if not sound.all():
                row = int(np.flatnonzero(~sound.all(axis=1))[0])
                large = " in 32 bits" if np.isfinite(chosen[row]).all() else ""
                name = images[first + row].as_py()
                raise data_error(features.path, f"the features of {name!r} are not finite{large}.")
        with warnings.catch_warnings():  # nobody writes to a file that is read
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            self.values = torch.from_numpy(np.ascontiguousarray(values))
        self.backbone, self.images_folder = features.backbone, features.images_folder

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
            yield chosen, input_rows(self.values, torch.from_numpy(chosen))


@dataclass(frozen=True)
class _Name:
    """The parts of an image id, without regard to case: folders, name and ending of the file."""

    folders: tuple[str, ...]
    stem: str
    ending: str

    @staticmethod
    def of(image: str) -> _Name:
        """Take an id apart."""
        if "://" in image:
            image = unquote(re.split("[?#]", image)[0]).partition("://")[2]
        parts = image.strip().replace("\\", "/").casefold().split("/")
        stem, dot, ending = parts[-1].rpartition(".")
        known = bool(dot) and f".{ending}" in ENDINGS
        folders = tuple(part for part in parts[:-1] if part not in ("", "."))
        return _Name(folders, stem if known else parts[-1], ending if known else "")

    def best(self, rows: Sequence[tuple[int, _Name]]) -> list[int]:
        """The rows whose names match, those with the same folders and ending before others."""
        found = [(row, other) for row, other in rows if self.matches(other)]
        for same in ("folders", "ending"):
            alike = [one for one in found if getattr(one[1], same) == getattr(self, same)]
            found = alike or found
        return [row for row, _ in found]

    def matches(self, other: _Name) -> bool:
        """Whether two ids differ by nothing but what one of them leaves out."""
        shorter = min(len(self.folders), len(other.folders))
        same = (
            self.folders[len(self.folders) - shorter :]
            == other.folders[len(other.folders) - shorter :]
        )
        either = self.ending == other.ending or not self.ending or not other.ending
        return self.stem == other.stem and same and either


def _read_npz(path: Path) -> Features:
    ids, values = read_npz(path, ("ids", "X"))
    told = read_npz_texts(path, ("backbone", "images"))
    known = "backbone" in told
    backbone = Backbone.from_json(path, told["backbone"]).as_dict() if known else None
    return Features(path, _as_ids(path, ids), values, backbone, told.get("images"))


def _read_parquet(path: Path) -> Features:
    try:
        about = pq.ParquetFile(path)
        names = about.schema_arrow.names
        groups = (about.metadata.row_group(at) for at in range(about.num_row_groups))
        mapped = sum(one.total_byte_size for one in groups) > free_memory() // _MEMORY_SHARE
        ids = ["image"] if mapped and "image" in names else None
        content = read_parquet_table(path, ids)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this is not a whole Parquet file: {reason}.") from None
    if names.count("image") != 1 or len(names) < 2:
        raise data_error(path, f"expected a column image and features, but got {', '.join(names)}.")
    images = _parquet_ids(path, content.column("image"))
    others = [name for name in names if name != "image"]
    if len(set(others)) < len(others):
        raise data_error(path, "two columns have the same name.")
    if ids is None:
        return Features(path, images, _numbers(path, content.select(others)))
    return Features(path, images, _in_temporary_file(path, about, others))


def _numbers(path: Path, content: pa.Table) -> npt.NDArray[Any]:
    """One column of lists, or a column for each feature, as rows."""
    if content.num_columns == 1:
        return _matrix(path, content.column(0), content.column_names[0])
    return np.stack([column.to_numpy() for column in content.columns], axis=1)


def _in_temporary_file(path: Path, file: pq.ParquetFile, names: list[str]) -> npt.NDArray[Any]:
    """The numbers of a file that memory has no room for; the system removes them at the end."""
    width, kind, rows = 0, np.dtype(np.float32), 0
    with tempfile.TemporaryFile() as held:
        for batch in file.iter_batches(columns=names):
            values = _numbers(path, pa.Table.from_batches([batch]))
            if not rows:
                width, kind = values.shape[1], values.dtype
            if values.shape[1] != width:
                raise data_error(
                    path,
                    f"the lists in column {names[0]!r} differ in length: row {rows + 1} has"
                    f" {values.shape[1]} numbers, the first row has {width}.",
                )
            held.write(np.ascontiguousarray(values, dtype=kind).data)
            rows += len(values)
        held.flush()
        return np.memmap(held, kind, mode="r", shape=(rows, width))


def _parquet_ids(path: Path, column: pa.ChunkedArray) -> pa.StringArray:
    if column.null_count:
        raise data_error(path, f"column 'image' has {column.null_count} blank cells.")
    try:
        return column.combine_chunks().cast(pa.string())
    except pa.ArrowException:
        raise data_error(path, f"column 'image' must hold text, but holds {column.type}.") from None


def _matrix(path: Path, column: pa.ChunkedArray, name: str) -> npt.NDArray[Any]:
    """Lists of one length as rows; a longer one must not push its end into the next row."""
    lists = column.combine_chunks()
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(lists.type) for is_kind in kinds):
        raise data_error(path, f"column {name!r} must hold lists of numbers.")
    lengths = pc.list_value_length(lists).fill_null(-1).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != lengths[0]) if len(lengths) else np.zeros(0, dtype=int)
    if len(wrong) or not len(lengths) or lengths[0] < 1:
        row = int(wrong[0]) if len(wrong) else 0
        found = int(lengths[row]) if len(lengths) else 0
        held = "is blank" if found < 0 else f"has {found} numbers"
        raise data_error(
            path,
            f"the lists in column {name!r} differ in length: row {row + 1} {held}, the first row"
            f" has {max(0, int(lengths[0])) if len(lengths) else 0}. All must have the same, at"
            " least one.",
        )
    flat = lists.flatten()
    if flat.null_count:
        raise data_error(
            path, f"the lists in column {name!r} have {flat.null_count} blank numbers."
        )
    values: npt.NDArray[Any] = flat.to_numpy(zero_copy_only=False)
    return values.reshape(len(lists), -1)


def _read_in_file(path: Path) -> Features:
    """Read the features of a label file whose format has them."""
    known = [name for name, format in FORMATS.items() if format.features is not None]
    source = Source(path)
    for name in known if path.is_file() else []:
        format = FORMATS[name]
        if format.features is not None and format.recognises(source):
            found = format.features(source, plain_layout(name, ReadOptions()))
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
        return _as_ids(binary, read_npy(binary))
    raise data_error(path, f"its ids are missing: expected {text.name} or {binary.name} beside it.")


def _as_ids(path: Path, ids: npt.NDArray[Any]) -> pa.StringArray:
    if ids.ndim != 1 or ids.dtype.kind not in "Uiu":
        raise data_error(
            path, f"ids must be one row of text or whole numbers, but are {ids.dtype}."
        )
    try:
        return pa.array(ids.astype(str), pa.string())
    except (ValueError, pa.ArrowException):
        raise data_error(path, "its ids hold text that is not Unicode.") from None
