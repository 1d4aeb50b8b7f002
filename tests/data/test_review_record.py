"""The record of a review: what a line of its file may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReviewRecord, read_provenance
from hilltop.data.review_record import PROVENANCE_COLUMNS, provenance_path
from hilltop.errors import DataError

LINE = ("a.jpg", "dog", "present", "Ann", "2026-01-31", "0.75", "ranked", "disputed", "")


@pytest.mark.parametrize("probability", ["0.75", "", "1e-07", "0"])
def test_a_line_comes_back_as_it_was(probability: str) -> None:
    cells = (*LINE[:5], probability, *LINE[6:])
    assert ReviewRecord.parse(cells).format() == cells


def test_a_line_without_a_comment_is_of_an_earlier_version() -> None:
    assert ReviewRecord.parse(LINE[:-1]).format() == LINE


@pytest.mark.parametrize(
    ("place", "cell", "said"),
    [
        (2, "maybe", "answer must be one of present, absent, unsure, but got 'maybe'"),
        (2, "disputed", "answer must be one of present, absent, unsure, but got 'disputed'"),
        (5, "likely", "could not convert string to float: 'likely'"),
        (6, "", "mode must be one of ranked, random, ruling, but got ''"),
        (7, "Present", "outcome must be one of .*, but got 'Present'"),
    ],
)
def test_a_cell_that_says_something_else_is_named(
    tmp_path: Path, place: int, cell: str, said: str
) -> None:
    labels = tmp_path / "labels.csv"
    wrong = (*LINE[:place], cell, *LINE[place + 1 :])
    lines = [",".join(cells) for cells in (PROVENANCE_COLUMNS, LINE, wrong)]
    provenance_path(labels).write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=rf"provenance\.csv, line 3: .*: {said}\."):
        read_provenance(labels)
