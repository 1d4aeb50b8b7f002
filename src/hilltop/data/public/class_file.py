"""Names of classes that a list knows by number: from ``--classes``, or a file beside the list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hilltop.data.content import read_class_file
from hilltop.data.files import atomic_write, check_no_folder
from hilltop.data.format import Original, check_names
from hilltop.data.layout import Layout

BESIDE = ".classes.txt"
"""What is added to the name of a list for the file with the names of its classes."""


def class_names(path: Path, layout: Layout) -> tuple[Sequence[str] | None, list[str]]:
    """The names of the classes, if there are any, and what to note about them."""
    if layout.classes is not None:
        return layout.classes, []
    beside = path.with_name(f"{path.name}{BESIDE}")
    if not beside.is_file():
        return None, []
    return read_class_file(beside)[0], [f"the class names are those of {beside.name}."]


def numbered_names(count: int) -> list[str]:
    """Names of classes that have none: their numbers."""
    return [str(number) for number in range(count)]


def write_class_names(path: Path, classes: Sequence[str], *, used: int) -> None:
    """Write the names, unless they are just the numbers of the classes that the list shows.

    Args:
        path: The list.
        classes: All names.
        used: How many classes a reader of the list alone would find.
    """
    check_no_folder(path)
    beside = path.with_name(f"{path.name}{BESIDE}")
    # An old file of names must not rename the classes of a new list.
    if list(classes) != numbered_names(used) or beside.exists():
        check_names(path, "class", classes, without="")
        atomic_write(beside, "".join(f"{name}\n" for name in classes))


def kept_class_names(original: Original) -> dict[str, bytes]:
    """The file of class names goes along, because the reader looks for it beside the list."""
    path = original.source.path
    beside = path.with_name(f"{path.name}{BESIDE}")
    if original.layout.classes is not None or not beside.is_file():
        return {}
    return {BESIDE: beside.read_bytes()}
