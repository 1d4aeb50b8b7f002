"""Names of classes that a list knows by number: from ``--classes``, or a file beside the list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hilltop.data.files import atomic_write, check_no_folder
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Original
from hilltop.data.formats.source import read_class_file
from hilltop.data.formats.text.express import check_names

_BESIDE = ".classes.txt"


def names_of_classes(path: Path, options: ReadOptions) -> tuple[list[str] | None, list[str]]:
    """The names of the classes, if there are any, and what to note about them."""
    if options.classes is not None:
        return options.class_list(), []
    beside = _beside(path)
    if not beside.is_file():
        return None, []
    return read_class_file(beside), [f"the class names are those of {beside.name}."]


def numbered_names(count: int) -> list[str]:
    """Names of classes that have none: their numbers."""
    return [str(number) for number in range(count)]


def write_names_beside(path: Path, classes: Sequence[str], *, used: int) -> None:
    """Write the names, unless they are just the numbers of the classes that the list shows.

    Args:
        path: The list.
        classes: All names.
        used: How many classes a reader of the list alone would find.
    """
    check_no_folder(path)
    beside = _beside(path)
    # An old file of names must not rename the classes of a new list.
    if list(classes) != numbered_names(used) or beside.exists():
        check_names(path, "class", classes, without="")
        atomic_write(beside, "".join(f"{name}\n" for name in classes))


def keep_names_beside(original: Original) -> dict[str, bytes]:
    """The file of class names goes along, because the reader looks for it beside the list."""
    beside = _beside(original.path)
    if original.options.classes is not None or not beside.is_file():
        return {}
    return {_BESIDE: beside.read_bytes()}


def _beside(path: Path) -> Path:
    return path.parent / f"{path.name}{_BESIDE}"
