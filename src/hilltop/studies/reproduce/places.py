"""Where the parts of a data set lie, and what is missing of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data import ReadOptions
from hilltop.data.folders import FolderTree

COMPLETE_LABELS = ReadOptions(unlisted="absent")
"""All four data sets are taken to be complete, as in the paper: what is not listed is absent."""


@dataclass(frozen=True)
class Split:
    """Labels of one part of a data set.

    Attributes:
        path: The file or folder to read.
        format: Its format.
        options: What the format leaves open.
        prefix: What leads from the folder of images to those of this part.
        classes_of: A label file whose classes the numbers in this one stand for, in order.
        numbered: How many classes the numbers stand for, if they have no names.
        flat: Whether images lie in one folder, and not in those that ids name.
    """

    path: Path
    format: str
    options: ReadOptions = COMPLETE_LABELS
    prefix: str = ""
    classes_of: Path | None = None
    numbered: int | None = None
    flat: bool = False


@dataclass(frozen=True)
class Layout:
    """Where the parts of a data set lie.

    Attributes:
        data: Its short name, as recipes know it.
        images: The folder with its images.
        train: Complete training labels.
        val: Labels of the test images.
        reduced: Released training labels by the level that they were reduced to.
        partial: Whether images that are not there are left out, as in the paper, where many could
            no longer be had.
    """

    data: str
    images: Path
    train: Split
    val: Split
    reduced: Mapping[str, Split] = field(default_factory=dict)
    partial: bool = False


@dataclass(frozen=True)
class Search:
    """What was found of a data set below a folder.

    Attributes:
        layout: Its parts, or None if some are missing.
        missing: A sentence for each part that is missing, with where to get it.
        begun: Whether any part is there.
    """

    layout: Layout | None
    missing: tuple[str, ...]
    begun: bool


class Places:
    """Looks for parts below a folder, and notes those that are missing.

    Args:
        title: What the data set is called.
        tree: What lies below the folder.
        home: Where a part that is missing should lie.
    """

    def __init__(self, title: str, tree: FolderTree, home: Path | None = None) -> None:
        """Start with nothing found."""
        self.title, self.tree, self.home = title, tree, home or tree.root
        self.begun = False
        self.missing: list[str] = []

    def folder(self, name: str, what: str) -> Path:
        """A folder; ``what`` says in words what it is and where it comes from."""
        return self.need("folder", self.tree.folder(name), name, what)

    def file(self, names: list[str], what: str) -> Path:
        """The first of some files that is there."""
        return self.need("file", self.tree.file(*names), names[0], what)

    def need(self, kind: str, found: Path | None, name: str, what: str) -> Path:
        """Note that a part is there, or that it is missing."""
        self.begun = self.begun or found is not None
        if found is None:
            path = str(self.home / name)
            self.missing.append(f"{self.title}: there is no {kind} {path!r}: {what}.")
        return found or self.home / name

    def end(self, layout: Callable[[], Layout]) -> Search:
        """What came of it."""
        whole = None if self.missing else layout()
        return Search(whole, tuple(self.missing), self.begun)
