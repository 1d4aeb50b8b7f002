"""What a patch is: a label file with some pairs changed and all else left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hilltop.data.content import Source
from hilltop.data.label_table import LabelTable
from hilltop.data.layout import Layout
from hilltop.data.state import State


@dataclass(frozen=True)
class Change:
    """One pair that has another state from now on.

    Attributes:
        row: Number of the image.
        column: Number of the class.
        image: Its id.
        class_name: Its name.
        state: The new state.
        was: The state before.
    """

    row: int
    column: int
    image: str
    class_name: str
    state: State
    was: State = State.UNKNOWN


@dataclass(frozen=True)
class Original:
    """A label file as it was read.

    Attributes:
        source: The file or folder.
        layout: Its layout.
        table: Its labels.
    """

    source: Source
    layout: Layout
    table: LabelTable


@dataclass(frozen=True)
class Patched:
    """A file or folder with some pairs changed.

    Attributes:
        files: Content of each file by its path below the new folder; of a single file, by "".
            Further files beside a single file are named by what is added to its name.
        layout: How to read it.
        changes: The changes that it expresses.
        notes: What the user has to know.
        images: Under which ids the images are read back, if other than before.
    """

    files: Mapping[str, bytes]
    layout: Layout
    changes: Sequence[Change]
    notes: Sequence[str] = ()
    images: Sequence[str] | None = field(default=None)


Patch = Callable[[Original, Sequence[Change]], Patched]
"""Changes some pairs of a file and leaves all else alone.

Raises:
    DataError: The file is of a kind that cannot be changed so.
"""


def without_absents(changes: Iterable[Change], unlisted: State) -> list[Change]:
    """The changes for a format that cannot say "absent": labels come, and wrong ones go.

    Args:
        changes: All changes.
        unlisted: What a pair is that the format does not list.
    """
    found = []
    for one in changes:
        if one.state == State.PRESENT or one.state == unlisted:
            found.append(one)
        elif one.was == State.PRESENT:
            found.append(replace(one, state=unlisted))
    return found


def by_image(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """The changes of each image."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.image, []).append(change)
    return found


def added(changes: Iterable[Change]) -> list[Change]:
    """The changes that make a label present."""
    return [change for change in changes if change.state == State.PRESENT]


def struck(changes: Iterable[Change]) -> list[Change]:
    """The changes that take a label away."""
    return [change for change in changes if change.was == State.PRESENT != change.state]
