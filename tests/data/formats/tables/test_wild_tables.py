"""Real excerpts of public label files: the first answer names the options, and counts are right."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.data import ReadOptions, State, read_labels
from hilltop.errors import OptionNeeded

WILD = Path("/work/shared/data/wild")
TABLES = ["planet_train.csv", "chexpert_train.csv", "hpa_train.csv", "roboflow_classes.csv"]
pytestmark = pytest.mark.skipif(not WILD.is_dir(), reason="the excerpts are not on this machine")


def expected(name: str) -> dict[str, str]:
    with (WILD / "expected.csv").open(newline="") as file:
        return next(row for row in csv.DictReader(file) if row["file"] == name)


@pytest.mark.parametrize("name", TABLES)
def test_the_command_in_the_first_answer_reads_the_file(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OptionNeeded) as caught:
        read_labels(WILD / name)
    command = shlex.split(str(caught.value).partition("for example: ")[2])
    assert command[:2] == ["hilltop", "inspect"]
    assert main([*command[1:], "--json"]) == 0
    said = capsys.readouterr().out
    wanted = expected(name)
    assert f'"images": {wanted["rows"]},' in said
    assert f'"present": {wanted["present"]},' in said
    assert f'"absent": {wanted["confirmed_absent"]},' in said


def test_numbers_are_named_by_the_class_file() -> None:
    options = ReadOptions(unlisted="unknown", classes=WILD / "hpa_classes.txt")
    table = read_labels(WILD / "hpa_train.csv", options=options)
    assert table.count(State.PRESENT) == int(expected("hpa_train.csv")["present"])
    assert table.labels_of(1) == ("Nuclear bodies",)
