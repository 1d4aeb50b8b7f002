"""What a format is: how labels of one kind of file are recognised, read, written and patched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.content import Source, read_class_file
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.folders import choose_split
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions, unlisted_question
from hilltop.errors import AmbiguousInputError, DataError


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


BOX_NOTE = "Labels that were added have the box of the whole image."


class Changes(tuple[Change, ...]):
    """Changes of a file or of one image, with the names of the labels that come and go."""

    @property
    def added(self) -> list[str]:
        """Classes that become present."""
        return [one.class_name for one in self if one.state == State.PRESENT]

    @property
    def struck(self) -> set[str]:
        """Classes that were present and no longer are."""
        return {one.class_name for one in self if one.was == State.PRESENT != one.state}


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


@dataclass(frozen=True)
class FilePatch:
    """A label file as it was read, and the pairs that are to change in it.

    Attributes:
        source: The file or folder.
        layout: Its layout.
        table: Its labels.
        changes: What is to be said in it.
    """

    source: Source
    layout: Layout
    table: LabelTable
    changes: Changes

    def without_absents(self) -> FilePatch:
        """The same for a format that cannot say "absent": labels come, and wrong ones go."""
        said = without_absents(self.changes, self.layout.unlisted)
        return replace(self, changes=Changes(said))

    @cached_property
    def _by_image(self) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            found.setdefault(change.image, []).append(change)
        return found

    def of(self, image: str) -> Changes:
        """The changes of one image."""
        return Changes(self._by_image.get(image, ()))

    @property
    def text(self) -> str:
        """The text of the file, in which single places can be changed.

        Raises:
            DataError: The file is compressed.
        """
        self.check_plain()
        return self.source.text

    def check_plain(self) -> None:
        """Raise if the file is compressed, so that it cannot be changed in place."""
        if self.source.is_packed:
            raise self.refused("a compressed file cannot be changed in place. Unpack it first.")

    def refused(self, why: str) -> DataError:
        """The error for a file that cannot be changed so."""
        other = "" if "--format" in why else " Or write the labels anew with --format hilltop."
        return data_error(self.source.path, f"{why}{other}")

    def patched(
        self, content: str | bytes | Mapping[str, bytes], *, notes: Sequence[str] = ()
    ) -> Patched:
        """What is to be written: the text of the file, its bytes, or the files of a folder."""
        if isinstance(content, str):
            content = content.encode(self.source.encoding)
        files = {"": content} if isinstance(content, bytes) else content
        return Patched(files, self.layout, self.changes, notes)


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


def with_changes(table: LabelTable, changes: Sequence[Change], *, step: str) -> LabelTable:
    """Return the table with the changes made."""
    return table.with_states(
        [change.row for change in changes],
        [change.column for change in changes],
        [int(change.state) for change in changes],
        step=Step(step, {"changes": len(changes)}),
    )


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
        files: Whether a file can be read.
        folders: Whether a folder can be read.
        begins: Characters, of which a file begins with one; empty where it may be any.
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
    patch: Callable[[FilePatch], Patched] | None = None
    hand_off: Callable[[LabelTable, Path, Handoff], list[Path]] | None = None
    instructions: Callable[[Handoff], str] | None = None
    features: Callable[[Source, Layout], InFile] | None = None
    splits: Callable[[Source], Iterable[str]] | None = None
    general: bool = False
    files: bool = True
    folders: bool = False
    begins: str = ""
    file_names: bool = False
    boxes: bool = False
    suffixes: tuple[str, ...] = ()

    def recognises(self, source: Source) -> bool:
        """Whether a file or folder is unmistakably of this format."""
        if self.matches is None or not (self.folders if source.is_folder else self.files):
            return False
        if self.begins and not source.is_folder and source.start not in self.begins:
            return False
        return self.matches(source)

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
        split=options.split,
        difficult=State.parse(options.difficult),
        values=tuple(
            (word, said)
            for word, said in (("0", options.zero), ("-1", options.minus_one), ("", options.empty))
            if said is not None
        ),
        encoding=options.encoding or "utf-8",
    )


_MOST_NAME_BYTES = 200


def check_lossless(
    table: LabelTable,
    path: Path,
    lossy: bool,
    *,
    states: tuple[State, ...] = tuple(State),
    images_without_entries: bool = True,
    unused_classes: bool = True,
    unlisted: tuple[State, ...] = tuple(State),
) -> None:
    """Raise if the table says something that the format has no words for, unless ``lossy``.

    Args:
        table: What is to be written.
        path: Where to, for the message.
        lossy: Whether to leave it out instead.
        states: The states that can be listed.
        images_without_entries: Whether an image of which nothing is listed can be written.
        unused_classes: Whether a class that no entry mentions can be written.
        unlisted: What a reader can take pairs to be that are not written.
    """
    if lossy:
        return
    errors = ErrorCollector(path)
    for state in State:
        count = int(np.count_nonzero(table.states == state))
        if state not in states and count:
            errors.add(
                _lost(f"{pluralize(count, 'pair that is', 'pairs that are')} {state.name.lower()}")
            )
    silent = int(np.count_nonzero(np.diff(table.indptr) == 0))
    if silent and not images_without_entries:
        errors.add(_lost(f"{pluralize(silent, 'image', 'images')} of which nothing is listed"))
    unused = len(table.classes) - len(np.unique(table.columns))
    if unused and not unused_classes:
        errors.add(_lost(f"{pluralize(unused, 'class', 'classes')} that no image has"))
    beyond = int(table.not_looked_for().sum())
    if beyond:
        errors.add(_lost(f"that nobody looked for {pluralize(beyond, 'pair', 'pairs')}"))
    pairs = len(table) * len(table.classes) - len(table.states)
    if pairs and table.unlisted not in unlisted:
        unsaid = pluralize(pairs, "unlisted pair that is", "unlisted pairs that are")
        errors.add(_lost(f"{unsaid} {table.unlisted.name.lower()}"))
    errors.check()


def check_present_only(
    table: LabelTable, path: Path, lossy: bool, *, unused_classes: bool = True
) -> None:
    """Raise if a table says more than what is present, unless ``lossy``.

    For formats that list labels, of which a reader is told what all other pairs are.
    """
    said = (State.ABSENT, State.UNKNOWN)
    check_lossless(
        table,
        path,
        lossy,
        states=(State.PRESENT,),
        unlisted=said,
        unused_classes=unused_classes,
    )


def with_listed_absents(table: LabelTable) -> LabelTable:
    """Return the table with every absent pair listed and the others unknown.

    For formats in which a pair that is not listed is unknown: what was confirmed absent all the
    same has to be said pair by pair.
    """
    if table.unlisted != State.ABSENT:
        return table
    rows, columns = np.nonzero(table.dense() == State.ABSENT)
    step = Step("list_absents", {"pairs": len(rows)})
    return table.with_states(rows, columns, State.ABSENT, step=step, unlisted=State.UNKNOWN)


def check_names(path: Path, kind: str, names: Iterable[str], without: str) -> None:
    """Raise if a name cannot be written as one word of a text file.

    Such a name cannot be left out either, so ``lossy`` does not help.

    Args:
        path: Where to write, for the message.
        kind: What is named, for the message: image or class.
        names: The names.
        without: Characters that no name may hold, besides control characters and outer spaces.
    """
    errors = ErrorCollector(path)
    banned = re.compile(f"[\\x00-\\x1f\\x7f{re.escape(without)}]")
    for name in names:
        if name != name.strip() or banned.search(name):
            errors.add(
                f"this format cannot express the {kind} name {name!r}: line ends, outer spaces"
                f" and any of {without!r} are not possible. Rename it or write another format."
            )
    errors.check()


def check_file_words(path: Path, names: tuple[str, ...], *, kind: str = "class") -> None:
    """Raise if a name of this kind cannot be part of a file name."""
    check_names(path, kind, names, without='/\\:*?"<>|')
    errors = ErrorCollector(path)
    for name in names:
        if len(name.encode()) > _MOST_NAME_BYTES:
            errors.add(f"the {kind} name {name!r:.60} is too long for the name of a file.")
    errors.check()


def check_cells(table: LabelTable, path: Path) -> None:
    """Raise if a name cannot be a cell of a table: readers strip cells, and lines are rows."""
    errors = ErrorCollector(path)
    names = {"image": table.images, "class": pa.array(table.classes, pa.string())}
    for kind, column in names.items():
        odd = pc.or_(
            pc.match_substring_regex(column, "[\n\r\\x00]"),
            pc.not_equal(pc.utf8_trim_whitespace(column), column),
        )
        for name in column.filter(pc.or_(odd, pc.equal(column, ""))).to_pylist()[:3]:
            errors.add(
                f"a table cannot express the {kind} name {name!r}: it is empty, holds a line end,"
                " or begins or ends with a space. Rename it, or write Hilltop's own .parquet file."
            )
    errors.check()


def _lost(what: str) -> str:
    return (
        f"this format cannot express {what}."
        " Write another format, or pass --lossy to leave this out."
    )
