"""Patches of label files: what two answers must do to their lines, and nothing else."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data import FORMATS, LabelTable, ReadOptions, State, read_labels
from hilltop.data.formats import Change, Original, Patched
from hilltop.errors import HilltopError

ANSWERS = (("b.jpg", "dog", State.PRESENT), ("a.jpg", "cow", State.ABSENT))


@dataclass
class PatchCase:
    """A label file and what applying ANSWERS must do to its lines.

    Attributes:
        name: What is particular about it.
        format: Name of the format.
        text: The file.
        lines: Lines that go (-) and come (+).
        options: How it is read.
        absents: Whether "absent" can be said.
        read_with: How the new file is read, if otherwise.
        file: Its name.
    """

    name: str
    format: str
    text: str
    lines: list[str]
    options: ReadOptions = field(default_factory=lambda: ReadOptions(unlisted="unknown"))
    absents: bool = True
    read_with: ReadOptions | None = None
    file: str = "labels.csv"


def check_patch(case: PatchCase, folder: Path) -> None:
    """Patch the file: one proposal reads back as it should, and only the named lines change."""
    path = folder / case.file
    path.write_bytes(case.text.encode())
    before = read_labels(path, format=case.format, options=case.options)
    patch = FORMATS[case.format].patch
    assert patch is not None
    proposals = [*patch(Original(path, case.options, before), changes_of(before))]
    good = [one for one in proposals if reads_as_answered(case, one, before, folder)]
    assert good, "no proposal says what was answered"
    assert good[0].absents == case.absents
    assert good[0].options == (case.read_with or case.options)
    assert sorted(diff(case.text, good[0].content.decode())) == sorted(case.lines)


def changes_of(table: LabelTable) -> list[Change]:
    """The answers as changes, ordered by image and class."""
    ids = table.images.to_pylist()
    places = [(ids.index(image), table.classes.index(name)) for image, name, _ in ANSWERS]
    both = zip(places, ANSWERS, strict=True)
    return sorted((Change(*place, *said) for place, said in both), key=lambda one: one.row)


def reads_as_answered(case: PatchCase, new: Patched, before: LabelTable, folder: Path) -> bool:
    """Whether a proposal reads back as the table with the answers in it."""
    expected = before.dense()
    for change in changes_of(before):
        if new.absents or change.state == State.PRESENT:
            expected[change.row, change.column] = change.state
    path = folder / f"new {case.file}" if case.format != "huggingface" else folder / case.file
    path.write_bytes(new.content)
    try:
        after = read_labels(path, format=case.format, options=new.options)
    except HilltopError:
        return False
    same = (after.classes, after.images) == (before.classes, before.images)
    return same and bool((after.dense() == expected).all())


def diff(before: str, after: str) -> list[str]:
    """Lines that went (-) and came (+)."""
    lines = difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return [line for line in lines if line[0] in "+-"]
