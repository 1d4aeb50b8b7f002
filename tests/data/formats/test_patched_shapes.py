"""Answers written into files as others have them: numbers, lists of Python, brackets, values."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions
from tests.data.formats.patched import PatchCase, check_patch

ZERO = ReadOptions(zero="absent", unlisted="unknown")
CASES = [
    PatchCase(
        "lists as Python prints them",
        "list_column",
        "image,labels,absent\na.jpg,\"['dog']\",\nb.jpg,['cow'],\n",
        [
            *("- a.jpg,\"['dog']\",\n", "+ a.jpg,['dog'],['cow']\n"),
            *("- b.jpg,['cow'],\n", "+ b.jpg,\"['cow', 'dog']\",\n"),
        ],
    ),
    PatchCase(
        "angle brackets",
        "list_column",
        "image,labels,absent\na.jpg,<dog>,\nb.jpg,<cow>,\n",
        ["- a.jpg,<dog>,\n", "+ a.jpg,<dog>,<cow>\n", "- b.jpg,<cow>,\n", "+ b.jpg,<cow><dog>,\n"],
    ),
    PatchCase(
        "an image and a class in one cell",
        "id_class",
        "ID,Label\na.jpg_cow,0\na.jpg_dog,1\nb.jpg_cow,1\nb.jpg_dog,0\n",
        ["- b.jpg_dog,0\n", "+ b.jpg_dog,1\n"],
        options=ReadOptions(zero="absent"),
    ),
    PatchCase(
        "a value in each row",
        "long_values",
        "image,tag,value,by\na.jpg,dog,1,Ann\nb.jpg,dog,0,Ann\nb.jpg,cow,1,Ann\n",
        ["+ a.jpg,cow,0,\n", "- b.jpg,dog,0,Ann\n", "+ b.jpg,dog,1,Ann\n"],
        options=ZERO,
    ),
    PatchCase(
        "columns of one label each",
        "label_columns",
        "image,label1,label2\na.jpg,dog,\nb.jpg,cow,\nc.jpg,cow,dog\n",
        ["- b.jpg,cow,\n", "+ b.jpg,cow,dog\n"],
        absents=False,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_are_written_as_the_file_writes_labels(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)


def test_answers_are_written_as_numbers_beside_a_number_alone(tmp_path: Path) -> None:
    names = tmp_path / "classes.txt"
    names.write_text("cow\ndog\n")
    case = PatchCase(
        "numbers",
        "list_column",
        "image,Target,absent\na.jpg,1,\nb.jpg,0,\nc.jpg,0 1,\n",
        ["- a.jpg,1,\n", "+ a.jpg,1,0\n", "- b.jpg,0,\n", "+ b.jpg,0 1,\n"],
        options=ReadOptions(unlisted="unknown", classes=names),
    )
    check_patch(case, tmp_path)
