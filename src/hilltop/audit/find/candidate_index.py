"""The candidates of an audit by class, in memory: 8 bytes for each, so that any page is at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable
from hilltop.data.array_files import check_parquet
from hilltop.data.data_errors import data_error

Ints = npt.NDArray[np.int64]
_SEED = 20_240_607  # fixed, so that every start and every reviewer sees the same sample
_COLUMNS = ("image", "class", "probability", "rank")


@dataclass(frozen=True)
class CandidateIndex:
    """Candidates grouped by class, within a class in the order of their ranks.

    Attributes:
        rows: Image number of each candidate, in the label table.
        probabilities: Probability of each that its label is missing.
        starts: Class ``c`` has the candidates ``starts[c]:starts[c + 1]``.
    """

    rows: npt.NDArray[np.int32]
    probabilities: npt.NDArray[np.float32]
    starts: Ints

    @classmethod
    def read(cls, folder: AuditFolder, labels: LabelTable) -> CandidateIndex:
        """Read the candidates of an audit.

        Raises:
            DataError: The file is damaged, or names images or classes that were not audited.
        """
        return cls.read_file(folder.candidates, labels)

    @classmethod
    def read_file(cls, path: Path, labels: LabelTable) -> CandidateIndex:
        """Read candidates, or labels that may be wrong, from a file of an audit."""
        table = _read(path)
        rows = _numbers(path, table, "image", labels.images)
        columns = _numbers(path, table, "class", pa.array(labels.classes, pa.string()))
        rank = table.column("rank").to_numpy()
        if len(rank) and (rank[1:] < rank[:-1]).any():
            by_rank = np.argsort(rank, kind="stable")
            rows, columns = rows[by_rank], columns[by_rank]
            table = table.take(pa.array(by_rank))
        small = columns.astype(np.uint16 if len(labels.classes) < 1 << 16 else np.uint32)
        order = np.argsort(small, kind="stable")  # 16 bits: sorted by radix, in linear time
        counts = np.bincount(columns, minlength=len(labels.classes))
        probabilities = table.column("probability").to_numpy().astype(np.float32, copy=False)
        return cls(
            rows=rows[order],
            probabilities=probabilities[order],
            starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        )

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.rows)

    def count(self, column: int) -> int:
        """Number of candidates of a class."""
        return int(self.starts[column + 1] - self.starts[column])

    def expected(self, column: int) -> float:
        """Number of missing labels of a class that the probabilities add up to."""
        chosen = slice(self.starts[column], self.starts[column + 1])
        return float(self.probabilities[chosen].sum(dtype=np.float64))

    def class_rows(self, column: int) -> npt.NDArray[np.int32]:
        """Image numbers of a class, the most probable first."""
        return self.rows[self.starts[column] : self.starts[column + 1]]

    def class_probabilities(self, column: int) -> npt.NDArray[np.float32]:
        """Probabilities of a class, in the same order."""
        return self.probabilities[self.starts[column] : self.starts[column + 1]]

    def columns(self) -> npt.NDArray[np.int32]:
        """Class number of every candidate."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    def place(self, column: int, row: int) -> int | None:
        """Place of an image among the candidates of a class; None if it is not one."""
        found = np.flatnonzero(self.class_rows(column) == row)
        return int(found[0]) if len(found) else None

    def sample_order(self, column: int) -> Ints:
        """Places of a class in an order drawn at random: any beginning of it is a fair sample."""
        return np.random.default_rng([_SEED, column]).permutation(self.count(column))

    def images(self) -> Ints:
        """Numbers of all images that occur, ascending."""
        return np.unique(self.rows).astype(np.int64)


def _read(path: Path) -> pa.Table:
    try:
        names = pq.read_schema(path).names
        missing = [name for name in _COLUMNS if name not in names]
        if missing:
            raise data_error(
                path, f"the column {missing[0]!r} is missing. Run `hilltop audit` again."
            )
        words = ["image", "class"]
        check_parquet(path)
        table = pq.read_table(path, columns=list(_COLUMNS), read_dictionary=words)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"the candidates cannot be read: {reason}.") from None
    if any(column.null_count for column in table.columns):
        raise data_error(path, "some cells are empty. Run `hilltop audit` again.")
    return table


def _numbers(path: Path, table: pa.Table, name: str, known: pa.Array) -> npt.NDArray[np.int32]:
    """Number of every cell of a column in a list of names."""
    column = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return np.empty(0, dtype=np.int32)
    number_of = pc.index_in(column.chunk(0).dictionary.cast(pa.string()), value_set=known)
    # A dictionary may hold words that no cell uses; only used ones must be known.
    numbers = number_of.fill_null(-1).to_numpy(zero_copy_only=False)
    parts = [numbers[chunk.indices.to_numpy(zero_copy_only=False)] for chunk in column.iterchunks()]
    found = np.concatenate(parts).astype(np.int32, copy=False)
    if len(found) and found.min() < 0:
        at = int(np.argmin(found))
        raise data_error(
            path,
            f"the {name} {column[at].as_py()!r} is not in labels.parquet."
            " Both files must come from one audit; run `hilltop audit` again.",
        )
    return found
