"""Answers from a table: a queue that came back with a column ``answer``."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hilltop.audit.decisions.incoming import check_reviewer
from hilltop.audit.decisions.store import Answer, DecisionStore, now
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.checks import did_you_mean
from hilltop.data import LabelTable
from hilltop.data.data_errors import data_error, unknown_class
from hilltop.data.review_record import AnswerWord
from hilltop.data.small_files import csv_text, parse_rows
from hilltop.errors import ArgumentError

NEEDED = ("image", "class", "answer")
WORDS: dict[str, AnswerWord] = {"yes": "present", "no": "absent", "unsure": "unsure"}
"""What a cell may say: whether the class is in the image."""


def import_answer_table(
    path: Path, labels: LabelTable, index: CandidateIndex, store: DecisionStore
) -> int:
    """Take in a CSV file with the columns image, class and answer; return how many were new.

    Cells without an answer are passed over. A file may be taken in twice.

    Args:
        path: The file; a column ``reviewer`` says who answered, else the file's name does.
        labels: The labels that were audited; a pair may be a candidate or one of them.
        index: The candidates.
        store: Where answers are kept.

    Raises:
        DataError: The file is not such a table, or is about another audit; then nothing is stored.
    """
    found = _Reader(path, labels, index).answers()
    before = len(store.read())
    store.add(found)
    return len(store.read()) - before


class _Reader:
    """Turns lines into answers."""

    def __init__(self, path: Path, labels: LabelTable, index: CandidateIndex) -> None:
        self._path, self._labels, self._index = path, labels, index
        self._column_of = {name: column for column, name in enumerate(labels.classes)}
        text = csv_text(path)
        rows = parse_rows(path, text, NEEDED)
        self._lines = [(line, cells) for line, cells in rows if cells["answer"]]
        self._digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        self._time = now()

    def answers(self) -> list[Answer]:
        row_of = {name: row for row, name in enumerate(self._labels.images.to_pylist())}
        for line, cells in self._lines:
            if cells["image"] not in row_of:
                raise data_error(
                    self._path, f"image {cells['image']!r} is not in this audit.", line=line
                )
        return [self._answer(line, cells, row_of[cells["image"]]) for line, cells in self._lines]

    def _answer(self, line: int, cells: dict[str, str], row: int) -> Answer:
        name, word = cells["class"], cells["answer"].strip().lower()
        if name not in self._column_of:
            raise data_error(self._path, unknown_class(name, self._column_of), line=line)
        if word not in WORDS:
            raise data_error(
                self._path,
                f"answer must be yes, no or unsure, but got {cells['answer']!r}."
                f"{did_you_mean(word, WORDS)}",
                line=line,
            )
        place = self._index.place(self._column_of[name], row)
        if place is None and name not in self._labels.labels_of(row):
            raise data_error(
                self._path,
                f"class {name!r} of image {cells['image']!r} is neither a label nor a candidate of"
                " this audit. Was the audit made anew? Write the queue again.",
                line=line,
            )
        try:
            reviewer = check_reviewer(cells.get("reviewer") or self._path.stem)
        except ArgumentError as error:
            raise data_error(self._path, str(error), line=line) from None
        probs = self._index.class_probabilities(self._column_of[name])
        return Answer(
            id=f"{self._digest}-{line}",
            action=f"{self._digest}-{line}",
            reviewer=reviewer,
            time=self._time,
            image=cells["image"],
            class_name=name,
            answer=WORDS[word],
            mode="ranked",
            probability=None if place is None else float(probs[place]),
        )
