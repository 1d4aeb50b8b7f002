"""Shapes of label files: recognised and counted, damaged, or read as their answers tell."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels
from hilltop.data.formats import LabelSource, recognise
from hilltop.errors import OptionNeeded
from tests.data.formats.fuzz import survives

OPEN = ReadOptions(unlisted="unknown", zero="unknown", blank="unknown", minus_one="absent")
Counts = tuple[int, int, int]
"""Images, classes and labels."""
Shape = tuple[str, str, str, Counts]
"""The format, the name of the file, what is in there, and what is to be found."""
FolderShape = tuple[str, dict[str, str], Counts]


def lines(*records: Any) -> str:
    """Objects of JSON, one a line."""
    return "".join(f"{json.dumps(record)}\n" for record in records)


def counts_of(table: LabelTable) -> Counts:
    return len(table), len(table.classes), table.count(State.PRESENT)


def counts(path: Path, options: ReadOptions) -> Counts:
    return counts_of(read_labels(path, options=options))


def check_file(shape: Shape, folder: Path) -> None:
    """A file of this shape is recognised and counted."""
    format, name, content, expected = shape
    path = folder / name
    path.write_text(content)
    assert recognise(LabelSource(path, OPEN)).name == format
    assert counts(path, OPEN) == expected


def check_damaged(shape: Shape, folder: Path, count: int) -> None:
    """Damaged copies of the file end in a table or in a sentence."""
    format, name, content, _ = shape
    path = folder / name
    path.write_text(content)
    assert sum(survives(path, count, format, OPEN)) == count


def check_folder(shape: FolderShape, folder: Path, count: int) -> None:
    """A folder of this shape is recognised and counted, and one of its files may be damaged."""
    format, files, expected = shape
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert recognise(LabelSource(folder, OPEN)).name == format
    assert counts(folder, OPEN) == expected
    damaged = next(folder / name for name, content in files.items() if content)
    survives(folder, count, format, OPEN, file=damaged)


def read_as_told(path: Path, most: int = 3) -> tuple[LabelTable, list[str]]:
    """Read a file as a new user does: paste the command of each answer, and no more than that."""
    options, said = ReadOptions(), list[str]()
    for _ in range(most):
        try:
            return read_labels(path, options=options), said
        except OptionNeeded as error:
            said.append(str(error))
            words = shlex.split(str(error).rpartition(f"hilltop inspect {path} ")[2])
            pairs = dict(zip(words[::2], words[1::2], strict=True))
            named: dict[str, Any] = {key[2:].replace("-", "_"): one for key, one in pairs.items()}
            if "confidence_cut" in named:
                named["confidence_cut"] = float(named["confidence_cut"])
            options = ReadOptions(**named)
    pytest.fail(f"after {most} answers it is still not read: {said[-1]}")
