"""A queue as a value and as a table that other tools read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.audit.find.candidate_index import Ints
from hilltop.data import LabelTable
from hilltop.data.files import atomic_write
from hilltop.data.small_files import format_rows

Floats = npt.NDArray[np.float64]
QUEUE_COLUMNS = ("image", "class", "probability")
SAMPLED_WITH = "sampled_with"
"""A further column of random samples: the probability with which a pair was drawn."""
LABELLED = "labelled"
"""A further column of queues by image: whether the pair is a label now."""


@dataclass(frozen=True)
class Queue:
    """Pairs in the order in which to ask.

    Attributes:
        rows: Image numbers in the label table.
        columns: Class numbers.
        probabilities: Probability that the label is missing; for labels, that it is wrong.
        sampled_with: Of a random sample: with which probability each pair was drawn.
        labelled: Image by image: which pairs are labels now; an answer "no" strikes them.
    """

    rows: Ints
    columns: Ints
    probabilities: npt.NDArray[np.float32]
    sampled_with: Floats | None = None
    labelled: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.rows)


def write_queue(queue: Queue, labels: LabelTable, path: Path, *, drawn: str | None = None) -> None:
    """Write a queue as CSV, completely or not at all.

    Args:
        queue: The pairs.
        labels: The labels that they belong to.
        path: The file.
        drawn: When a sample was drawn; a further column, for the copy that the audit keeps.
    """
    further: dict[str, list[str]] = {}
    if queue.sampled_with is not None:
        further[SAMPLED_WITH] = [f"{share:.6g}" for share in queue.sampled_with]
    if queue.labelled is not None:
        further[LABELLED] = ["yes" if one else "no" for one in queue.labelled]
    if drawn:
        further["drawn"] = [drawn] * len(queue)
    rows = []
    names = labels.images.take(pa.array(queue.rows)).to_pylist()
    for at, (name, column, prob) in enumerate(
        zip(names, queue.columns.tolist(), queue.probabilities.tolist(), strict=True)
    ):
        more = [cells[at] for cells in further.values()]
        rows.append([name, labels.classes[column], f"{prob:.6g}", *more])
    atomic_write(path, format_rows([*QUEUE_COLUMNS, *further], rows))
