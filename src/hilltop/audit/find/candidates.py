"""Candidates: unlabelled pairs, ranked by the probability that their label is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from hilltop.audit.find.top_k import Keys, places_of, probabilities_of
from hilltop.data import LabelTable
from hilltop.data.files import replacing
from hilltop.data.small_files import FORMULA_PATTERN

_WRITE_ROWS = 1 << 18
_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("class", pa.string()),
        ("probability", pa.float32()),
        ("rank", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Candidates:
    """Unlabelled pairs, the most probable first.

    Attributes:
        keys: Probability and place of each.
        classes: Number of classes of the table they belong to.
    """

    keys: Keys
    classes: int

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.keys)

    def probabilities(self, part: slice = slice(None)) -> npt.NDArray[np.float32]:
        """Probabilities of some candidates that their label is missing."""
        return probabilities_of(self.keys[part])

    def rows(self, part: slice = slice(None)) -> npt.NDArray[np.int64]:
        """Image numbers of some candidates."""
        return places_of(self.keys[part]) // self.classes

    def columns(self, part: slice = slice(None)) -> npt.NDArray[np.int64]:
        """Class numbers of some candidates."""
        return places_of(self.keys[part]) % self.classes


def write_candidates(
    candidates: Candidates, labels: LabelTable, folder: Path, *, name: str = "candidates"
) -> None:
    """Write ``candidates.parquet`` and ``candidates.csv``, each completely or not at all."""
    with (
        replacing(folder / f"{name}.csv") as for_people,
        replacing(folder / f"{name}.parquet") as for_us,
        pq.ParquetWriter(for_us, _SCHEMA, compression="zstd") as table,
        pyarrow.csv.CSVWriter(for_people, _SCHEMA) as text,
    ):
        for part in _batches(candidates, labels):
            table.write_batch(part)
            text.write_batch(_marked(part))


def candidate_rows(candidates: Candidates, labels: LabelTable) -> pa.Table:
    """The candidates with the names of images and classes."""
    return pa.Table.from_batches(_batches(candidates, labels), _SCHEMA)


def _marked(part: pa.RecordBatch) -> pa.RecordBatch:
    """The names so that a spreadsheet does not run them."""
    for at in (0, 1):
        names = part.column(at)
        formulas = pc.match_substring_regex(names, FORMULA_PATTERN)
        marked = pc.binary_join_element_wise("'", names, "")
        part = part.set_column(at, _SCHEMA.field(at), pc.if_else(formulas, marked, names))
    return part


def _batches(candidates: Candidates, labels: LabelTable) -> Iterator[pa.RecordBatch]:
    names = pa.array(labels.classes, pa.string())
    for first in range(0, max(1, len(candidates)), _WRITE_ROWS):
        part = slice(first, min(first + _WRITE_ROWS, len(candidates)))
        yield pa.record_batch(
            [
                labels.images.take(pa.array(candidates.rows(part))),
                names.take(pa.array(candidates.columns(part))),
                pa.array(candidates.probabilities(part)),
                pa.array(np.arange(part.start + 1, part.stop + 1)),
            ],
            schema=_SCHEMA,
        )
