"""ScoreTable: what a model says of (image, class) pairs, from the files people have."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hilltop.checks import check_same_shape, pluralize
from hilltop.data.array_files import read_npy, read_npz, read_parquet_table
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing, sync_file
from hilltop.errors import DataError

Values = npt.NDArray[np.floating[Any]]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of images for classes; higher means more likely, usually probabilities.

    Attributes:
        images: Image ids, all different.
        classes: Class names, all different.
        values: ``(images, classes)``; may be memory-mapped.
        thresholds: What a score of each class must exceed to be a tag, where that is known.
    """

    images: pa.StringArray
    classes: tuple[str, ...]
    values: Values
    thresholds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check that names and values fit together."""
        expected = (len(self.images), len(self.classes))
        check_same_shape("values", self.values.shape, "images and classes", expected)

    def save(self, path: Path | str) -> None:
        """Write ``path``, a .npy file, and the names beside it in ``path.names.parquet``."""
        target, names = Path(path), self._names()
        with replacing(_names_path(target)) as beside, replacing(target) as values:
            np.save(values, self.values)
            pq.write_table(names, beside)
            sync_file(values)  # from here on nothing is left that could fail
            sync_file(beside)
            _remove_other_names(_names_path(target), names)

    @classmethod
    def create(
        cls,
        path: Path | str,
        images: pa.StringArray,
        classes: Sequence[str],
        *,
        dtype: npt.DTypeLike = np.float32,
    ) -> ScoreTable:
        """Make the files of scores that do not fit into memory; write to ``values`` to fill them.

        Example:
            >>> import tempfile
            >>> path = Path(tempfile.mkdtemp(), "scores.npy")
            >>> made = ScoreTable.create(path, pa.array(["a", "b"]), ["cat"], dtype="float16")
            >>> made.values[1] = 0.5
            >>> made.values.flush()
            >>> ScoreTable.load(path).values.tolist()
            [[0.0], [0.5]]
        """
        target, shape = Path(path), (len(images), len(classes))
        values = np.lib.format.open_memmap(target, mode="w+", dtype=np.dtype(dtype), shape=shape)
        made = cls(images, tuple(classes), values)
        with replacing(_names_path(target)) as beside:
            pq.write_table(made._names(), beside)
        return made

    def _names(self) -> pa.Table:
        """Names of images, and what else stands beside the values."""
        metadata = {b"classes": json.dumps(self.classes).encode()}
        if self.thresholds is not None:
            metadata[b"thresholds"] = json.dumps(self.thresholds).encode()
        return pa.table({"image": self.images}).replace_schema_metadata(metadata)

    @classmethod
    def load(cls, path: Path | str) -> ScoreTable:
        """Read what :meth:`save` wrote; the values stay on disk until they are used."""
        source = Path(path)
        if source.is_file() and source.suffix != ".npy":
            raise data_error(
                source,
                "scores are a .npy file with its names, such as hilltop predict writes with an"
                " --out that ends in .npy.",
            )
        if not source.is_file():
            raise data_error(source, "there is no such file; scores are a .npy file and its names.")
        if not _names_path(source).is_file():
            raise data_error(
                source,
                f"there are no names beside these scores, {_names_path(source).name}. Give a table"
                f" instead (.csv or .parquet): {TABLE}.",
            )
        try:
            names = read_parquet_table(_names_path(source))
            classes = _parse_list(names.schema.metadata[b"classes"], str)
            images = names.column("image").combine_chunks()
            known = names.schema.metadata.get(b"thresholds")
            thresholds = None if known is None else _parse_list(known, int | float)
            if thresholds is not None and len(thresholds) != len(classes):
                raise ValueError(f"{len(thresholds)} thresholds for {len(classes)} classes")
        except (
            pa.ArrowException, ValueError, KeyError, TypeError, OSError, RecursionError,
        ) as error:  # fmt: skip
            reason = str(error).partition("\n")[0].rstrip(".")
            raise data_error(
                _names_path(source), f"the names of scores cannot be read: {reason}."
            ) from None
        names = pa.array(classes, pa.string())
        return _checked(source, images, names, read_npy(source, mapped=True), thresholds)

    def aligned(self, images: pa.Array, classes: Sequence[str]) -> Values:
        """Return the scores in the order of other images and classes, all of which must be here."""
        rows, columns = self.positions(images, classes)
        if np.array_equal(columns, np.arange(len(self.classes))):
            return np.asarray(self.values[rows])
        return np.asarray(self.values[rows][:, columns])

    def positions(self, images: pa.Array, classes: Sequence[str]) -> tuple[Places, Places]:
        """Return the row of each of these images and the column of each of these classes."""
        rows = _positions(("image", "images"), self.images, images)
        here = pa.array(self.classes, pa.string())
        return rows, _positions(("class", "classes"), here, pa.array(classes))


def _parse_list(text: bytes, kind: Any) -> tuple[Any, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(one, kind) for one in found):
        raise ValueError(f"expected a list of {'texts' if kind is str else 'numbers'}")
    return tuple(found)


def _checked(
    path: Path,
    images: pa.Array,
    classes: pa.Array,
    values: Any,
    thresholds: tuple[float, ...] | None = None,
) -> ScoreTable:
    """Scores from a file, once names are different texts and there are numbers for each."""
    for kind, names in (("image", images), ("class", classes)):
        if not pa.types.is_string(names.type) or names.null_count:
            raise data_error(path, f"the {kind} names must be text, one each.")
        if len(names.unique()) < len(names):
            raise data_error(path, f"some {kind} names stand more than once.")
    shape = getattr(values, "shape", None)
    if shape != (len(images), len(classes)) or values.dtype.kind not in "fiu":
        kind = getattr(values, "dtype", type(values).__name__)
        raise data_error(
            path,
            f"expected numbers for {len(images)} images and {len(classes)} classes, as the names"
            f" say, but got {kind} of shape {shape}.",
        )
    return ScoreTable(images, tuple(classes.to_pylist()), values, thresholds)


def _remove_other_names(path: Path, names: pa.Table) -> None:
    """Remove names that new values must not stand beside, even if a kill comes between the two."""
    try:
        same = pq.read_table(path).equals(names, check_metadata=True)
    except (OSError, pa.ArrowException):
        same = False
    if not same:
        Path(os.path.realpath(path)).unlink(missing_ok=True)


def _names_path(path: Path) -> Path:
    return path.parent / f"{path.name}.names.parquet"


def _positions(kind: tuple[str, str], here: pa.Array, wanted: pa.Array) -> Places:
    found = pc.index_in(wanted.cast(pa.string()), value_set=here)
    if found.null_count:
        first = wanted.filter(pc.is_null(found))[0].as_py()
        raise DataError(
            f"There are no scores for {pluralize(found.null_count, *kind)}, such as {first!r}."
        )
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


TABLE = "a column of image ids, and a column of numbers for each class"
"""What a table of scores has."""


def read_scores(path: Path) -> ScoreTable:
    """Read scores.

    Args:
        path: ``.npy`` as written by predict or train, with its names beside it; ``.npz`` with
            ``ids``, ``classes`` and ``scores``; or a table, ``.csv``, ``.tsv`` or ``.parquet``: a
            column of image ids, and a column for each class. Blank cells are NaN.

    Raises:
        DataError: The file is none of these, or is damaged.
    """
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".csv", ".tsv", ".parquet"):
        return ScoreTable.load(path)
    if not path.is_file():
        raise data_error(path, "there is no such file.")
    if suffix == ".npz":
        ids, classes, values = read_npz(path, ("ids", "classes", "scores"))
        images, names = (pa.array(one.astype(str).tolist()) for one in (ids, classes))
        return _checked(path, images, names, values)
    return _from_columns(path, _columns(path, suffix))


def _columns(path: Path, suffix: str) -> pa.Table:
    try:
        if suffix == ".parquet":
            return read_parquet_table(path)
        parse = pacsv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",")
        first = pacsv.open_csv(path, parse_options=parse).schema.names[:1]
        # Ids that look like numbers are names, too: 007 is not 7.
        convert = pacsv.ConvertOptions(column_types=dict.fromkeys(first, pa.string()))
        return pacsv.read_csv(path, parse_options=parse, convert_options=convert)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this table of scores cannot be read: {reason}.") from None


def _from_columns(path: Path, table: pa.Table) -> ScoreTable:
    """The first column has ids, all others must be numbers."""
    if table.num_columns < 2:
        raise data_error(path, f"a table of scores has {TABLE}; this one has one column.")
    names, numbers = table.column_names, []
    if "tags" in names and "probabilities" in names:
        raise data_error(
            path,
            "these are tags, which say nothing of the other classes. Write scores of all of them:"
            " hilltop predict RUN --images DIR --out scores.npy",
        )
    for name, column in zip(names[1:], table.columns[1:], strict=True):
        kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_null)  # null: all blank
        if not any(is_kind(column.type) for is_kind in kinds):
            raise data_error(
                path, f"the column {name!r} is not of numbers; a table of scores has {TABLE}."
            )
        numbers.append(column.cast(pa.float64()).to_numpy())
    ids = table.column(0).cast(pa.string()).combine_chunks()
    return _checked(path, ids, pa.array(names[1:]), np.stack(numbers, axis=1))
