"""What a format is: how labels of one kind of file are recognised, read, written and patched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilltop.data.content import Source, read_class_file
from hilltop.data.label_folders import choose_split
from hilltop.data.label_table import LabelTable
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions, unlisted_question
from hilltop.data.patching import Patch
from hilltop.data.state import State
from hilltop.errors import AmbiguousInputError


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


Detect = Callable[[Source, ReadOptions, Sequence[str] | None], Layout | Ambiguous | None]


@dataclass(frozen=True)
class Format:
    """One way to write labels down.

    Attributes:
        name: What ``--format`` calls it.
        summary: One line.
        matches: Whether the content is unmistakably of this format; None for tables, which are
            tried last.
        read: Reads a table by its layout.
        detect: Finds the layout; None for formats that leave open at most what unlisted pairs mean.
        unlisted: What unlisted pairs mean by definition of the format; None if that is open.
        write: Writes a table and returns its layout; the last argument is ``lossy``: leave out
            what cannot be expressed. None where a table lacks what such files hold.
        patch: Changes some pairs and leaves all else alone; None where that cannot be done.
        hand_off: Writes a table with likely missing labels beside the known ones, and returns the
            files; None where the format has no place for them.
        instructions: What to do in the other tool with what was handed over, in words.
        features: Reads the features that such a file holds beside the labels.
        splits: The parts of a data set, of which one is read.
        general: Whether it is tried only where no other format matches.
        folders: Whether a folder can be read.
        file_names: Whether images are named by their files, endings included.
        boxes: Whether files of others say where objects are, which a table does not hold.
        suffixes: Endings of files that are written in this format unless another one is named.
    """

    name: str
    summary: str
    matches: Callable[[Source], bool] | None
    read: Callable[[Source, Layout], LabelTable]
    detect: Detect | None = None
    unlisted: State | None = None
    write: Callable[[LabelTable, Path, bool], Layout] | None = None
    patch: Patch | None = None
    hand_off: Callable[[LabelTable, Path, Handoff], list[Path]] | None = None
    instructions: Callable[[Handoff], str] | None = None
    features: Callable[[Source, Layout], InFile] | None = None
    splits: Callable[[Source], Iterable[str]] | None = None
    general: bool = False
    folders: bool = False
    file_names: bool = False
    boxes: bool = False
    suffixes: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether tables can be written in it."""
        return self.write is not None

    def find_layout(
        self, source: Source, options: ReadOptions, classes: Sequence[str] | None = None
    ) -> Layout | Ambiguous | None:
        """Find the layout of a source that is known to be of this format."""
        if self.detect is not None:
            return self.detect(source, options, classes)
        layout = plain_layout(self.name, options, classes, unlisted=self.unlisted)
        questions: list[Question] = []
        if self.splits is not None and (found := [*self.splits(source)]):
            try:
                layout = replace(layout, split=choose_split(source.path, found, options.split))
            except AmbiguousInputError as error:
                if not isinstance(error.ambiguous, Ambiguous):
                    raise
                questions += error.ambiguous.questions
        if self.unlisted is None and options.unlisted is None:
            questions.append(unlisted_question())
        return Ambiguous(source.path, questions, options) if questions else layout


def plain_layout(
    name: str,
    options: ReadOptions,
    classes: Sequence[str] | None = None,
    *,
    unlisted: State | None = None,
) -> Layout:
    """The layout of a format whose places are fixed: what the user said, as it is."""
    codes: Mapping[str, int] = {}
    closed = None if classes is None else tuple(classes)
    if closed is None and options.classes is not None:
        closed, codes = read_class_file(options.classes)
    state = unlisted if options.unlisted is None else State.parse(options.unlisted)
    return Layout(
        format=name,
        unlisted=State.UNKNOWN if state is None else state,
        classes=closed,
        codes=tuple(codes.items()),
        image_column=options.image_column,
        label_columns=() if options.label_columns is None else (options.label_columns,),
        delimiter=options.delimiter,
        threshold=options.label_threshold,
        split=options.split,
        difficult=State.parse(options.difficult),
        values=tuple(
            (word, said)
            for word, said in (("0", options.zero), ("-1", options.minus_one), ("", options.empty))
            if said is not None
        ),
        encoding=options.encoding or "utf-8",
    )
