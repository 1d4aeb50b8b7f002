"""What may be said when reading a label file, because the file leaves it open."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from hilltop.data.formats.source import read_class_codes, read_class_file
from hilltop.data.state import State
from hilltop.errors import OptionNeeded


@dataclass(frozen=True)
class ReadOptions:
    """What a file may leave open and only the user can say."""

    unlisted: Literal["unknown", "absent"] | None = None
    """What unlisted pairs mean, and zeros or blanks where a file has only one of the two."""
    zero: Literal["unknown", "absent"] | None = None
    """What 0 means: absent (a person looked) or unknown (nobody did)."""
    blank: Literal["unknown", "absent"] | None = None
    """What a blank cell means."""
    minus_one: Literal["unknown", "absent", "present"] | None = None
    """What -1 means."""
    classes: Path | None = None
    """File with one class name a line: the closed list of classes, in order, which selects columns
    and gives class numbers (from 0) their names."""
    split: str | None = None
    """Which part of a data set with several, such as train or val."""
    difficult: Literal["unknown", "present", "absent"] = "unknown"
    """VOC: what a class with only 'difficult' instances is."""
    confidence_cut: float | None = None
    """From this number on, a confidence or a count of votes means present; below it, unknown."""
    values: str | None = None
    """What other cells of a table mean, such as 2=absent,9=unknown or positive=present."""
    image_column: str | None = None
    """Name of the column with image ids, or its number, counted from 0; row-number where rows have
    no names."""
    label_column: str | None = None
    """Column that holds all labels, by name or number; several as genre,mood or 3:8."""
    delimiter: str | None = None
    """What separates labels within one cell."""
    class_columns: str | None = None
    """Columns that are classes: names with commas between, or numbers from 0 such as 5: or 3:8."""
    ignore_columns: str | None = None
    """Columns that are no classes, such as patient,sex,fold; names or numbers as above."""
    sheet: str | None = None
    """Which sheet of a workbook: its name or number, from 0; all reads those of one header."""
    encoding: str | None = None
    """How a text that is not UTF-8 is encoded, such as cp1252 or gb18030."""
    merge_names: bool = False
    """Make one class of names that differ only in case, blanks or underscores."""
    renames: Path | None = None
    """CSV file of new names with the columns class and rename, such as `inspect` writes."""
    none_class: str | None = None
    """Class that means: looked at, nothing there. All others are absent then, and it is dropped."""

    def need_unlisted(
        self, path: Path, what: str = "pairs that are not listed", **likely: str
    ) -> State:
        """Return the state of unlisted pairs, which the format leaves open.

        Args:
            path: The file, for the message.
            what: What the format leaves open.
            likely: Further options for the command line in the message.
        """
        if self.unlisted is None:
            raise OptionNeeded(
                f"{path}: this format does not say what {what} mean. Pass --unlisted unknown"
                " (nobody looked: assumed negative, may be corrected) or --unlisted absent"
                " (a person looked: confirmed), for example:"
                f" {ready_command(path, self, unlisted='unknown', **likely)}"
            )
        return State.parse(self.unlisted)

    def need_zero(self, path: Path) -> State:
        """Return the state that 0 stands for, where a file has zeros but no blanks."""
        said = self.zero or self.unlisted
        if said is None:
            raise OptionNeeded(
                f"{path}: this format does not say what zeros mean. Pass --zero absent (a person"
                " looked: confirmed) or --zero unknown (nobody looked: assumed negative, may be"
                f" corrected), for example: {ready_command(path, self, zero='unknown')}"
            )
        return State.parse(said)

    def need_minus_one(self, path: Path) -> State:
        """Return the state that -1 stands for."""
        if self.minus_one is None:
            raise OptionNeeded(
                f"{path}: -1 means 'absent' in some files and 'unknown' in others."
                " Pass --minus-one absent or --minus-one unknown."
            )
        return State.parse(self.minus_one)

    def class_list(self) -> list[str] | None:
        """Return the names in the class file, if one was given."""
        return None if self.classes is None else read_class_file(self.classes)

    def class_numbers(self) -> dict[str, int] | None:
        """Return the place of every name in the class file, and of the numbers that mean them."""
        names = self.class_list()
        if names is None or self.classes is None:
            return None
        codes = read_class_codes(self.classes) or {str(at): "" for at in range(len(names))}
        places = {name: at for at, name in enumerate(names)}
        if any(name.isdigit() for name in names):
            return places
        return {**{code: at for at, code in enumerate(codes)}, **places}


def option_words(options: ReadOptions, **further: str) -> list[str]:
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


def ready_command(path: Path, options: ReadOptions, **further: str) -> str:
    """Return a command line that says again what was said, and something more."""
    return shlex.join(["hilltop", "inspect", str(path), *option_words(options, **further)])
