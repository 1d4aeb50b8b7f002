"""What a format is: how labels of one kind of file are recognised, read, written and patched."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilltop.data.data_errors import data_error
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patch
from hilltop.data.formats.source import LabelSource
from hilltop.data.label_table import LabelTable


class Priority(enum.IntEnum):
    """How much a fit says. Of formats that fit, the highest is taken; equals are asked about."""

    GENERAL = 0
    """Any file of this shape, such as a table of zeros and ones."""
    SPECIFIC = 1
    """A file with the fixed names of a known layout."""
    EXACT = 2
    """A file with marks of its own, which a reader of the plain layout would pass over."""


@dataclass(frozen=True)
class Handoff:
    """What goes to another tool beside the labels.

    Attributes:
        files: The file of each image within the folder of images; the id where none is known.
        folder: The folder of images, if it is known.
        likely: By row, classes whose label is probably missing, with the probability.
        prefix: What stands before a file where the other tool fetches it, such as the address of
            a server; the tool's own way to files in a folder without it.
    """

    files: Sequence[str]
    folder: Path | None
    likely: Mapping[int, Sequence[tuple[str, float]]]
    prefix: str | None = None


@dataclass(frozen=True)
class InFile:
    """Features that stand in one file with the labels.

    Attributes:
        images: The ids of the rows, the same as those of the labels.
        values: A row of numbers for each of them.
    """

    images: Sequence[str]
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class ReadOnly:
    """A ``write`` that refuses.

    Attributes:
        what: What such files hold that a table does not, as the beginning of a sentence.
    """

    what: str

    def __call__(self, table: LabelTable, path: Path, lossy: bool) -> None:
        """Say why, and what to write instead."""
        raise data_error(
            path, f"{self.what}, which a table of labels lacks. Write another format, such as wide."
        )


@dataclass(frozen=True)
class Format:
    """One way to write labels down: all that is known of it. ``registry.py`` finds every one.

    Attributes:
        name: What ``--format`` calls it.
        summary: One line.
        priority: Which format is taken where several fit.
        fits: Whether the content looks like this format.
        read: Reads a table.
        write: Writes a table; the last argument is ``lossy``: leave out what cannot be expressed.
        patch: Proposes the file with some pairs changed and all else left alone, the best proposal
            first; None where a file is written anew.
        patch_folder: Writes a folder with some labels changed and all else left alone, and returns
            how to read it; only present labels come, and others go.
        hand_off: Writes a table with likely missing labels beside the known ones, and returns the
            files; None where the format has no place for them.
        instructions: What to do in the other tool with what was handed over, in words.
        features: Reads the features that such a file holds beside the labels; None where it holds
            none.
        folders: Whether a folder can be read.
        file_names: Whether images are named by their files, endings included.
        boxes: Whether files of others say where objects are, which a table does not hold.
        suffixes: Endings of files that are written in this format unless another one is named.
    """

    name: str
    summary: str
    priority: Priority
    fits: Callable[[LabelSource], bool]
    read: Callable[[LabelSource, ReadOptions], LabelTable]
    write: Callable[[LabelTable, Path, bool], None]
    patch: Patch | None = None
    patch_folder: Callable[[Original, Sequence[Change], Path], ReadOptions] | None = None
    hand_off: Callable[[LabelTable, Path, Handoff], list[Path]] | None = None
    instructions: Callable[[Handoff], str] | None = None
    features: Callable[[LabelSource], InFile] | None = None
    folders: bool = False
    file_names: bool = False
    boxes: bool = False
    suffixes: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether tables can be written in it."""
        return not isinstance(self.write, ReadOnly)
