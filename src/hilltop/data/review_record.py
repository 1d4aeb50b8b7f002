"""What a review said: kept beside the file of labels that it was written to.

A review asks for the pairs that look most like labels. Once they are labels, all that looks like
one is one, as if hardly any had ever been lost; so how labels were lost is judged without them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.data_errors import data_error
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.small_files import format_rows, unmark_cell

Ints = npt.NDArray[np.int64]
AnswerWord = Literal["present", "absent", "unsure"]
Mode = Literal["ranked", "random", "ruling"]
Outcome = Literal["present", "absent", "unsure", "disputed"]
PROVENANCE_COLUMNS = (
    "image",
    "class",
    "answer",
    "reviewer",
    "time",
    "probability",
    "mode",
    "outcome",
    "comment",
)
"""Names of the columns of a file of records; those of version 0.1 have no comment."""
_WORDS = {"answer": get_args(AnswerWord), "mode": get_args(Mode), "outcome": get_args(Outcome)}
_NOT_OURS = "these are not the answers of a review; move the file away if it is not ours"


@dataclass(frozen=True)
class ReviewRecord:
    """What one reviewer said of one pair, and what all answers to it amount to.

    Attributes:
        image: Image id.
        class_name: Class.
        answer: What the reviewer said.
        reviewer: Who.
        time: When, in ISO format, UTC.
        probability: What the audit thought of the pair, if it had a view.
        mode: Whether the pair was shown by rank, or as one of a random sample, or whether the
            answer is an adjudicator's ruling.
        outcome: What the answers of all reviewers amount to.
        comment: What the reviewer wrote about the pair.

    Example:
        >>> cells = ["a", "dog", "present", "Ann", "2026-01-31", "0.75", "ranked", "present", ""]
        >>> record = ReviewRecord.parse(cells)
        >>> record.reviewer, record.probability, record.format() == tuple(cells)
        ('Ann', 0.75, True)
    """

    image: str
    class_name: str
    answer: AnswerWord
    reviewer: str
    time: str
    probability: float | None
    mode: Mode
    outcome: Outcome
    comment: str = ""

    @classmethod
    def parse(cls, cells: Sequence[str]) -> ReviewRecord:
        """Return the record that the cells of a line say.

        Raises:
            ValueError: There are too few or too many, or one of them cannot be what it stands for.
        """
        if len(cells) == len(PROVENANCE_COLUMNS) - 1:
            cells = [*cells, ""]
        if len(cells) != len(PROVENANCE_COLUMNS):
            raise ValueError(f"expected {len(PROVENANCE_COLUMNS)} cells, but got {len(cells)}")
        said = dict(zip(PROVENANCE_COLUMNS, cells, strict=True))
        for column, words in _WORDS.items():
            if said[column] not in words:
                known = ", ".join(words)
                raise ValueError(f"{column} must be one of {known}, but got {said[column]!r}")
        image, name, answer, reviewer, time, prob, *rest = map(unmark_cell, cells)
        probability = float(prob) if prob else None
        return cls(image, name, answer, reviewer, time, probability, *rest)  # type: ignore[arg-type]  # checked above

    def format(self) -> tuple[str, ...]:
        """Return the cells of its line."""
        probability = "" if self.probability is None else f"{self.probability:.6g}"
        cells = dict(zip(PROVENANCE_COLUMNS, astuple(self), strict=True)) | {
            "probability": probability
        }
        return tuple(cells.values())


def provenance_path(labels: Path) -> Path:
    """Where the records stand that a file of labels was corrected by."""
    return labels.parent / f"{labels.name}.provenance.csv"


def read_provenance(labels: Path) -> list[ReviewRecord]:
    """Return the records that a file of labels was corrected by; none if there are none."""
    path = provenance_path(labels)
    if not path.is_file():
        return []
    try:
        reader = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
        if tuple(next(reader, ())) not in (PROVENANCE_COLUMNS, PROVENANCE_COLUMNS[:-1]):
            raise data_error(
                path, f"{_NOT_OURS}; expected the columns {', '.join(PROVENANCE_COLUMNS)}."
            )
        return [_parse(path, cells, reader.line_num) for cells in reader]
    except (ValueError, csv.Error) as error:
        raise data_error(path, f"{_NOT_OURS}: {error}.") from None


def write_provenance(records: Iterable[ReviewRecord]) -> str:
    """Return the text of a file of records, each of them once."""
    return format_rows(PROVENANCE_COLUMNS, sorted({record.format() for record in records}))


def with_answers(table: LabelTable, records: Sequence[ReviewRecord]) -> LabelTable:
    """Return the labels with the absents of a review that their format could not write down.

    Only unknown pairs change: where the file says something, somebody may have changed it since.
    """
    rows, columns = _places(table, records, ("absent",))
    images, place = np.unique(rows, return_inverse=True)
    unknown = table.dense(images)[place, columns] == State.UNKNOWN
    if not unknown.any():
        return table
    step = Step("with_answers", {"absents": int(unknown.sum())})
    return table.with_states(rows[unknown], columns[unknown], State.ABSENT, step=step)


def before_review(table: LabelTable, records: Sequence[ReviewRecord]) -> LabelTable | None:
    """Return the labels as they were before a review: what it settled is unknown.

    None if there was no review, or no label before it, since nothing follows from that.

    Records of pairs that the table does not have change nothing.
    """
    rows, columns = _places(table, records, ("present", "absent"))
    if not len(rows):
        return None
    step = Step("before_review", {"answers": len(rows)})
    before = table.with_states(rows, columns, State.UNKNOWN, step=step)
    return before if before.count(State.PRESENT) else None


def _places(
    table: LabelTable, records: Sequence[ReviewRecord], outcomes: Sequence[Outcome]
) -> tuple[Ints, Ints]:
    """Rows and columns of the pairs that came out so, if the table has them."""
    column_of = {name: number for number, name in enumerate(table.classes)}
    settled = {
        (record.image, column_of[record.class_name])
        for record in records
        if record.outcome in outcomes and record.class_name in column_of
    }
    pairs = sorted(settled)
    images = pa.array([image for image, _ in pairs], pa.string())
    rows = pc.index_in(images, value_set=table.images).fill_null(-1).to_numpy().astype(np.int64)
    columns = np.array([column for _, column in pairs], dtype=np.int64)
    return rows[rows >= 0], columns[rows >= 0]


def _parse(path: Path, cells: Sequence[str], line: int) -> ReviewRecord:
    try:
        return ReviewRecord.parse(cells)
    except ValueError as error:
        raise data_error(path, f"{_NOT_OURS}: {error}.", line=line) from None
