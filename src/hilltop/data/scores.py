"""ScoreTable: what a model says of (image, class) pairs, joined to labels by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hilltop.checks import check_same_shape, pluralize
from hilltop.data.data_errors import data_error
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
    """

    images: pa.StringArray
    classes: tuple[str, ...]
    values: Values

    def __post_init__(self) -> None:
        """Check that names and values fit together."""
        expected = (len(self.images), len(self.classes))
        check_same_shape("values", self.values.shape, "images and classes", expected)

    def save(self, path: Path | str) -> None:
        """Write ``path``, a .npy file, and the names beside it in ``path.names.parquet``."""
        target = Path(path)
        np.save(target, self.values)
        metadata = {b"classes": json.dumps(self.classes).encode()}
        names = pa.table({"image": self.images}).replace_schema_metadata(metadata)
        pq.write_table(names, _names_path(target))

    @classmethod
    def load(cls, path: Path | str) -> ScoreTable:
        """Read what :meth:`save` wrote; the values stay on disk until they are used."""
        source = Path(path)
        for file in (source, _names_path(source)):
            if not file.is_file():
                raise data_error(
                    file, "there is no such file; scores are a .npy file and its names."
                )
        try:
            names = pq.read_table(_names_path(source))
            classes = tuple(json.loads(names.schema.metadata[b"classes"]))
            images = names.column("image").combine_chunks()
            values = np.load(source, mmap_mode="r", allow_pickle=False)
            return cls(images, classes, values)
        except (pa.ArrowException, ValueError, KeyError, TypeError, OSError) as error:
            raise data_error(source, f"these scores cannot be read: {error}.") from None

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


def _names_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.names.parquet")


def _positions(kind: tuple[str, str], here: pa.Array, wanted: pa.Array) -> Places:
    found = pc.index_in(wanted.cast(pa.string()), value_set=here)
    if found.null_count:
        first = wanted.filter(pc.is_null(found))[0].as_py()
        raise DataError(
            f"There are no scores for {pluralize(found.null_count, *kind)}, such as {first!r}."
        )
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
