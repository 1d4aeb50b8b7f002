"""What a patch is: the content of a label file with some pairs changed and all else left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data.formats.options import ReadOptions
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State


@dataclass(frozen=True)
class Change:
    """One pair that is to be present or absent from now on."""

    row: int
    column: int
    image: str
    class_name: str
    state: State


@dataclass(frozen=True)
class Original:
    """A label file as it was audited."""

    path: Path
    options: ReadOptions
    table: LabelTable


@dataclass(frozen=True)
class Patched:
    """A proposal for the new file, which counts only if it reads back as it should.

    Attributes:
        content: The file.
        options: How to read it.
        absents: Whether it says which pairs are absent.
        beside: Further files by what is added to the name of the first.
        note: What the user has to know.
    """

    content: bytes
    options: ReadOptions
    absents: bool = True
    beside: Mapping[str, bytes] = field(default_factory=dict)
    note: str = ""


Patch = Callable[[Original, Sequence[Change]], Iterable[Patched]]
"""Proposes new files, the best first; none if this file is of a kind that it cannot change."""


def by_image(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """The changes of each image."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.image, []).append(change)
    return found


def of_state(changes: Sequence[Change], state: State) -> list[Change]:
    """The changes to one state."""
    return [change for change in changes if change.state == state]
