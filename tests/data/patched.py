"""Patches of label files: what two answers must do to their lines, and nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data import Ambiguous, LabelTable, ReadOptions, State, detect, patch, read
from hilltop.data.content import Source
from hilltop.data.format import Change, Patched

OPEN = ReadOptions(unlisted="unknown", zero="unknown", empty="unknown", minus_one="absent")
ANSWERS = (("b.jpg", "dog", State.PRESENT), ("a.jpg", "cow", State.ABSENT))
Answers = Sequence[tuple[str, str, State]]


@dataclass
class PatchCase:
    """A label file and what applying answers must do to its lines.

    Attributes:
        name: What is particular about it.
        format: Name of the format.
        text: The file.
        lines: Lines that go (-) and come (+).
        options: How it is read.
        absents: Whether "absent" can be said of a pair that was not a label.
        file: Its name.
        answers: What is answered.
    """

    name: str
    format: str
    text: str
    lines: list[str]
    options: ReadOptions = field(default_factory=lambda: ReadOptions(unlisted="unknown"))
    absents: bool = True
    file: str = "labels.csv"
    answers: Answers = ANSWERS


def check_patch(case: PatchCase, folder: Path) -> None:
    """Patch the file: it reads back as answered, and only the named lines change."""
    path = folder / case.file
    path.write_bytes(case.text.encode())
    patched = patched_file(path, case.answers, case.options, case.format)
    said = {(one.image, one.class_name, one.state) for one in patched.changes}
    assert all((*one,) in said for one in case.answers if one[2] == State.PRESENT)
    absents = [one for one in case.answers if one[2] == State.ABSENT]
    assert all(one in said for one in absents) == case.absents
    assert sorted(diff(case.text, patched.files[""].decode())) == sorted(case.lines)


def patched_file(
    path: Path, answers: Answers, options: ReadOptions, format: str | None = None
) -> Patched:
    """Apply answers; reading back is part of that."""
    source = Source(path, encoding=options.encoding)
    layout = detect(source, options, format=format)
    assert not isinstance(layout, Ambiguous), str(layout)
    table = read(source, layout)
    return patch(source, layout, table, changes_of(table, answers))


def changes_of(table: LabelTable, answers: Answers) -> list[Change]:
    """Answers as changes, ordered by image and class."""
    ids, dense = table.images.to_pylist(), table.dense()
    found = []
    for image, name, state in answers:
        row, column = ids.index(image), table.classes.index(name)
        found.append(Change(row, column, image, name, state, State(int(dense[row, column]))))
    return sorted(found, key=lambda one: (one.row, one.column))


def found_format(path: Path) -> str:
    """The format that a file or folder is recognised as."""
    found = detect(path, OPEN)
    if isinstance(found, Ambiguous):  # only a split or the like is open
        found = detect(path, OPEN.__class__(**{**OPEN.__dict__, **found.answers}))
    assert not isinstance(found, Ambiguous), str(found)
    return found.format


def diff(before: str, after: str) -> list[str]:
    """Lines that went (-) and came (+)."""
    lines = difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return [line for line in lines if line[0] in "+-"]
