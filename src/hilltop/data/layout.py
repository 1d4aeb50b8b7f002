"""How a label file is laid out: what the user said, what was found, and what is still open.

:class:`ReadOptions` holds what the user said, :class:`Layout` everything that a reader needs to
know, and :class:`Ambiguous` the questions that stand between the two.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from hilltop.checks import did_you_mean
from hilltop.data.label_table import State
from hilltop.deprecation import warn_renamed
from hilltop.errors import AmbiguousInputError, ArgumentTypeError

_Options = TypeVar("_Options")
Unsure = Literal["unknown", "absent"]
NO_DELIMITER = "none"
"""What ``--delimiter`` is called where a cell holds one label."""
JSON_LISTS = "json"
"""What it is called where cells are lists in brackets."""
MULTI_HOT = "multi-hot"
"""What it is called where cells are lists with a 0 or 1 for each class."""
ROW_NUMBER = "row-number"
"""What ``--image-column`` is called where rows have no names: their numbers, from 0."""


RENAMED_OPTIONS = {
    "blank": "empty",
    "confidence_cut": "label_threshold",
    "label_column": "label_columns",
    "renames": "class_map",
    "none_class": "background_class",
}
"""Old names of options, with their new ones."""


def _renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options under their new names; old names are taken with a warning."""
    for name in given:
        if name in RENAMED_OPTIONS:
            warn_renamed(name, RENAMED_OPTIONS[name], stacklevel=4)
    return {RENAMED_OPTIONS.get(name, name): value for name, value in given.items()}


def _with_old_names(kind: type[_Options]) -> type[_Options]:
    plain = kind.__init__

    @functools.wraps(plain)
    def init(self: _Options, *args: Any, **given: Any) -> None:
        plain(self, *args, **_renamed(given))

    kind.__init__ = init  # type: ignore[assignment]
    return kind


@_with_old_names
@dataclass(frozen=True)
class ReadOptions:
    """What a file may leave open and only the user can say."""

    unlisted: Unsure | None = None
    """What unlisted pairs mean, and zeros or empty cells where a file has only one of the two."""
    zero: Unsure | None = None
    """What 0 and "no" mean: absent (a person looked) or unknown (nobody did)."""
    empty: Unsure | None = None
    """What an empty cell means."""
    minus_one: Literal["unknown", "absent", "present"] | None = None
    """What -1 means."""
    classes: Path | None = None
    """File with one class name per line: the closed list of classes, in order. It selects columns
    and gives class numbers (from 0) their names."""
    split: str | None = None
    """Which part of a data set with several, such as train or val."""
    difficult: Literal["unknown", "present", "absent"] = "unknown"
    """VOC: what a class with only 'difficult' instances is."""
    label_threshold: float | None = None
    """From this number on, a confidence or a count of votes means present; below it, unknown."""
    values: str | None = None
    """What other cells of a table mean, such as 2=absent,9=unknown or positive=present; * stands
    for all others. In cells of labels, nan=empty or nan=label."""
    image_column: str | None = None
    """Name of the column with image ids, or its number from 0; row-number if rows have no ids."""
    label_columns: str | None = None
    """Column or columns that hold labels, by name or number from 0: tags, "genre,mood" or 3:."""
    class_columns: str | None = None
    """Columns that are classes: names separated by commas, or numbers from 0 such as 5: or 3:8."""
    ignore_columns: str | None = None
    """Columns that are no classes, such as patient,sex,fold; names or numbers as above."""
    state_column: str | None = None
    """Column that says for each image and class whether it is present; none if there is none."""
    delimiter: str | None = None
    """What separates labels within a cell: a character, space, newline, json for lists in brackets,
    multi-hot for lists of 0 and 1, or none for one label per cell."""
    separator: str | None = None
    """What separates the cells of a text file: a character, tab or space."""
    header_row: str | None = None
    """Number of the row with the column names, from 1; none if there is no such row."""
    skip_rows: str | None = None
    """Rows to leave out, such as 1-2,40 (numbers from 1); none to leave out no row."""
    sheet: str | None = None
    """Which sheet of a workbook: its name, or its number from 0."""
    encoding: str | None = None
    """How a text that is not UTF-8 is encoded, such as cp1252 or gb18030."""
    merge_names: bool = False
    """Merge class names that differ only in case, spaces, underscores or Unicode spelling."""
    class_map: Path | None = None
    """CSV file of new class names with the columns class and rename, as `inspect` writes it."""
    background_class: str | None = None
    """Class that means "looked at, nothing there": all others are absent then; it is dropped."""


def read_options(given: Mapping[str, Any], base: ReadOptions | None = None) -> ReadOptions:
    """Return options from keywords; old names are taken with a warning.

    Raises:
        ArgumentTypeError: There is no such option.
    """
    known = {field.name for field in fields(ReadOptions)}
    named: dict[str, Any] = {}
    for name, value in _renamed(given).items():
        if name not in known:
            raise ArgumentTypeError(
                f"There is no option {name!r} for reading labels.{did_you_mean(name, known)}"
            )
        named[name] = Path(value) if name in ("classes", "class_map") and value else value
    if isinstance(cut := named.get("label_threshold"), str):
        try:
            named["label_threshold"] = float(cut)
        except ValueError:
            raise ArgumentTypeError(f"label_threshold must be a number, but got {cut!r}.") from None
    if base is not None and not isinstance(base, ReadOptions):
        raise ArgumentTypeError(f"options must be ReadOptions, but are {type(base).__name__}.")
    return replace(base or ReadOptions(), **named)


@dataclass(frozen=True)
class Question:
    """One thing that a file leaves open.

    Attributes:
        text: A sentence that says what is open, what was seen, and which option settles it.
        answers: Options with likely answers, for a command to try.
    """

    text: str
    answers: Mapping[str, str | bool]


@dataclass(frozen=True)
class Ambiguous:
    """What has to be said before a file can be read; all of it at once.

    Attributes:
        path: The file.
        questions: What is open.
        options: What the user has said already.
        format: The format that the user named, if any.
    """

    path: Path
    questions: Sequence[Question]
    options: ReadOptions
    format: str | None = None

    def __str__(self) -> str:
        """Return all questions in sentences."""
        return f"{self.path}: {' '.join(question.text for question in self.questions)}"

    @property
    def answers(self) -> dict[str, str | bool]:
        """Options that would settle everything, with likely values."""
        return {name: value for one in self.questions for name, value in one.answers.items()}

    def words(self) -> list[str]:
        """The options of a command that says again what was said, and answers the questions."""
        named = [] if self.format is None else ["--format", self.format]
        return [*option_words(self.options, **self.answers), *named]

    def error(self) -> AmbiguousInputError:
        """The error for callers that need a table."""
        return AmbiguousInputError(str(self), self)


def ask(
    path: Path, text: str, options: ReadOptions | None = None, **answers: str | bool
) -> AmbiguousInputError:
    """Return the error for one question."""
    return Ambiguous(path, [Question(text, answers)], options or ReadOptions()).error()


def unlisted_question(what: str = "pairs that are not listed") -> Question:
    """The question what a file means by not listing a pair."""
    return Question(
        f"This format does not say what {what} mean: pass --unlisted unknown (nobody may have"
        " looked: assumed negative, may be corrected) or --unlisted absent (a person looked and it"
        " is not there).",
        {"unlisted": "unknown"},
    )


def option_words(options: ReadOptions, **further: str | bool) -> list[str]:
    """The words of a command line that say how labels are read.

    Example:
        >>> option_words(ReadOptions(unlisted="unknown", merge_names=True))
        ['--unlisted', 'unknown', '--merge-names']
    """
    said: dict[str, Any] = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if getattr(options, field.name) != field.default
    }
    words = []
    for name, value in {**said, **further}.items():
        option = f"--{name.replace('_', '-')}"
        if str(value).startswith("-"):  # as a word of its own it would be taken for an option
            words.append(f"{option}={value}")
        else:
            words += [option] if value is True else [option, str(value)]
    return words


def command(words: Iterable[str], ambiguous: Ambiguous) -> str:
    """Return a command to paste: its first words, then all options.

    Example:
        >>> open_ = Ambiguous(Path("a.csv"), [unlisted_question()], ReadOptions())
        >>> command(["hilltop", "inspect", "a.csv"], open_)
        'hilltop inspect a.csv --unlisted unknown'
    """
    return shlex.join([*words, *ambiguous.words()])


@dataclass(frozen=True)
class Layout:
    """Where the labels of a file stand and what its cells mean: all that a reader has to know.

    Columns are given by name, or by number from 0 where a name is not unique.

    Attributes:
        format: Name of the format.
        unlisted: State of pairs that the file does not list.
        classes: The closed list of classes, if there is one.
        codes: Numbers or codes that stand for a class of that list, with its place.
        image_column: Column of the image ids.
        label_columns: Columns of labels, or of classes in a wide table.
        state_column: Column that says whether a pair is present, in a long table.
        absent_column: Column that lists absent classes, as ``convert`` writes it.
        unknown_column: Column that lists unknown classes.
        delimiter: What separates labels in a cell; None for one label per cell.
        values: What cells mean, by their text in lower case.
        words: Which of these values the file holds, to describe it.
        threshold: From which number on a value means present.
        header_row: Row with the column names, from 1; None without one.
        skip_rows: Rows that are left out, from 1.
        ragged: Whether rows may differ in length.
        ignored: Columns that hold no labels.
        separator: What separates the cells of a text.
        sheet: Name of the sheet of a workbook.
        encoding: Encoding of a text.
        split: Part of a data set.
        difficult: What a class with only difficult instances is (VOC).
    """

    format: str
    unlisted: State = State.UNKNOWN
    classes: tuple[str, ...] | None = None
    codes: tuple[tuple[str, int], ...] = ()
    image_column: str | None = None
    label_columns: tuple[str, ...] = ()
    state_column: str | None = None
    absent_column: str | None = None
    unknown_column: str | None = None
    delimiter: str | None = None
    values: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    threshold: float | None = None
    header_row: int | None = None
    skip_rows: tuple[int, ...] = ()
    ragged: bool = False
    ignored: tuple[str, ...] = ()
    separator: str | None = None
    sheet: str | None = None
    encoding: str = "utf-8"
    split: str | None = None
    difficult: State = State.UNKNOWN

    def meaning(self, text: str) -> str | None:
        """What a cell means, by its text: a state, ``empty`` or ``label``; None if that is open."""
        return dict(self.values).get(text)

    def state_of(self, text: str) -> State | None:
        """The state that a value stands for."""
        word = self.meaning(text)
        return None if word is None else State.parse(word)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without those that are not set."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("unlisted", "difficult"):
            content[name] = content[name].name.lower()
        defaults = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in content.items() if value != defaults.get(name)}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Layout:
        """Return the layout that :meth:`to_json` wrote."""
        named = dict(content)
        for name in ("unlisted", "difficult"):
            if name in named:
                named[name] = State.parse(named[name])
        for name in ("classes", "label_columns", "words", "skip_rows", "ignored"):
            if named.get(name) is not None:
                named[name] = tuple(named[name])
        for name in ("codes", "values"):
            named[name] = tuple((key, value) for key, value in named.get(name, ()))
        return Layout(**named)

    def describe(self) -> str:
        """Say in one sentence where the labels stand."""
        parts = [f"format {self.format}"]
        if not self.encoding.startswith("utf-8"):
            parts.append(f"encoding {self.encoding}")
        if self.sheet is not None:
            parts.append(f"sheet {self.sheet!r}")
        if self.header_row is not None:
            parts.append(f"header in row {self.header_row}")
        elif self.image_column is not None and self.separator is not None:
            parts.append("no header row")
        if self.skip_rows:
            parts.append(f"rows left out: {row_words(self.skip_rows)}")
        if self.image_column == ROW_NUMBER:
            parts.append("rows without names, numbered from 0")
        elif self.image_column is not None:
            parts.append(f"image names in {self.image_column!r}")
        parts += self._labels()
        if self.ignored:
            parts.append(f"columns not read: {_shown(self.ignored)}")
        if self.split is not None:
            parts.append(f"split {self.split!r}")
        return "; ".join(parts)

    def _labels(self) -> list[str]:
        if not self.label_columns:
            return []
        if self.format == "wide":
            words = self.words or ("0", "", "-1")
            said = [
                f"{word or 'empty'} is {s}"
                for word, s in self.values
                if word in words and word != "1"
            ]
            if self.threshold is not None:
                said.append(f"present from {self.threshold:g} on")
            count = len(self.label_columns)
            return [
                f"{count} class {'column' if count == 1 else 'columns'}:"
                f" {_shown(self.label_columns)}",
                *said,
            ]
        where = f"labels in {_shown([repr(name) for name in self.label_columns])}"
        if self.delimiter is None:
            where += ", one per cell"
        elif self.delimiter in (JSON_LISTS, MULTI_HOT):
            where += f", lists in brackets{' of 0 and 1' if self.delimiter == MULTI_HOT else ''}"
        else:
            where += f" separated by {self.delimiter!r}"
        state = [] if self.state_column is None else [f"their state in {self.state_column!r}"]
        return [where, *state, f"unlisted is {self.unlisted.name.lower()}"]


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6])
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown


def row_words(rows: Sequence[int]) -> str:
    """Row numbers as ``--skip-rows`` takes them: ``1-3,8``."""
    words: list[str] = []
    start = last = None
    for row in [*sorted(rows), None]:
        if start is not None and row != (last or 0) + 1:
            words.append(str(start) if start == last else f"{start}-{last}")
            start = None
        if row is not None and start is None:
            start = row
        last = row
    return ",".join(words)
