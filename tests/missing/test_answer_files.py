"""Plans and answers as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilltop.data import LabelTable
from hilltop.errors import DataError
from hilltop.missing import PlannedPairs, read_sampled_answers, write_planned_pairs

LABELS = LabelTable.from_lists(["1.jpg", "2.jpg", "3.jpg"], [["cat"], ["dog"], []])
HEADER = "image,class,answer,sampled_with\n"


def written(folder: Path, text: str, name: str = "answers.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_plan_comes_back_as_answers(tmp_path: Path) -> None:
    pairs = PlannedPairs(
        np.array([1, 2]), np.array([0, 1]), np.array([0.3, 0.01]), np.array([0.5, 0.02])
    )
    plan = tmp_path / "ask.csv"
    write_planned_pairs(pairs, LABELS, plan)
    assert plan.read_text() == (
        "image,class,probability,sampled_with\n2.jpg,cat,0.3,0.5\n3.jpg,dog,0.01,0.02\n"
    )
    header, *lines = plan.read_text().splitlines()
    said = "\n".join([f"{header},answer", f"{lines[0]},yes", f"{lines[1]},no"])
    answers = read_sampled_answers([written(tmp_path, said)], LABELS)
    assert answers.rows.tolist() == [1, 2]
    assert answers.present.tolist() == [True, False]
    assert answers.sampled_with.tolist() == [0.5, 0.02]


def test_every_file_is_a_sample_and_open_cells_are_passed_over(tmp_path: Path) -> None:
    first = written(tmp_path, f"{HEADER}1.jpg,dog,no,0.5\n2.jpg,cat,,0.5\n3.jpg,cat,unsure,0.5\n")
    second = written(tmp_path, f"{HEADER}3.jpg,cat,Yes,\n", "second.csv")
    answers = read_sampled_answers([first, second], LABELS)
    assert answers.batch.tolist() == [0, 1]
    assert np.isnan(answers.sampled_with).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,class\n", r"answers.csv, line 1: the column 'answer' is missing"),
        (f"{HEADER}9.jpg,cat,yes,0.5\n", r"line 2: image '9.jpg' is not in the labels"),
        (f"{HEADER}1.jpg,cow,yes,0.5\n", r"line 2: class 'cow'"),
        (f"{HEADER}1.jpg,cat,yess,0.5\n", r"yes, no or unsure, but got 'yess'. Did you mean 'yes'"),
        (f"{HEADER}1.jpg,cat,yes,1.5\n", r"line 2: sampled_with must be .* but got '1.5'"),
    ],
)
def test_faults_are_named_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_sampled_answers([written(tmp_path, text)], LABELS)
