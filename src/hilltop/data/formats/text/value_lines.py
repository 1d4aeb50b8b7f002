"""Lines of text with an image and a value for each class: 1, 0 or -1, with blanks or commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, by_image
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

VALUES = {"1": 1, "0": 0, "-1": -1}
"""What may stand for a class."""


@dataclass
class ValueLines:
    """Images and their values, line by line."""

    path: Path
    images: list[str] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def table(
        self,
        classes: Sequence[str],
        options: ReadOptions,
        *,
        minus_one: State | None,
        notes: Sequence[str],
        format: str,
    ) -> LabelTable:
        """Return the table.

        Args:
            classes: The class of each value.
            options: What 0 and, where the format leaves it open, -1 mean.
            minus_one: What -1 means; None leaves it open.
            notes: What was noticed.
            format: Name of the format.
        """
        values = np.array(self.values, dtype=np.int8).reshape(len(self.values), len(classes))
        state_of = self._meanings(values, options, minus_one)
        states = state_of[values + 1]
        row_of = {image: row for row, image in enumerate(dict.fromkeys(self.images))}
        rows = np.array([row_of[image] for image in self.images], dtype=np.int64)
        ids = pa.array(row_of, pa.string())
        line, column = (at.ravel() for at in np.indices(states.shape))
        return assemble(
            ids,
            classes,
            rows[line],
            column,
            states.ravel(),
            unlisted=State(int(state_of[1 if (values == 0).any() else 0])),
            source=self.path,
            line_of=lambda entry: self.lines[int(line[entry])],
            step=Step("read", {"file": str(self.path), "format": format}),
            notes=[*notes, *repetitions(ids, rows, line, column, states.ravel())],
        )

    def _meanings(
        self, values: npt.NDArray[np.int8], options: ReadOptions, minus_one: State | None
    ) -> npt.NDArray[np.int8]:
        """State of -1, 0 and 1."""
        negative = minus_one
        if options.minus_one is not None or (minus_one is None and (values == -1).any()):
            negative = options.need_minus_one(self.path)
        zero = State.UNKNOWN
        if options.zero or options.unlisted or (values == 0).any():
            zero = options.need_zero(self.path)
        return np.array([zero if negative is None else negative, zero, State.PRESENT], np.int8)


def parse_value_lines(
    path: Path, lines: Iterable[tuple[int, str]], classes: int | None, *, commas: bool = False
) -> ValueLines:
    """Read the lines, which all must have a value for each class.

    Args:
        path: The file, for messages.
        lines: The lines with their numbers; empty ones are passed over.
        classes: How many values a line has; None for as many as on the first.
        commas: Whether commas are between values instead of blanks.
    """
    errors = ErrorCollector(path)
    found = ValueLines(path)
    for number, text in lines:
        words = split_values(text, commas=commas)
        if not words:
            continue
        image, values = words[0], words[1:]
        wrong = next((word for word in values if word not in VALUES), None)
        classes = len(values) if classes is None else classes
        if wrong is not None or not image:
            got = "no name" if wrong is None else repr(wrong)[:40]
            errors.add(f"expected an image and then 1, 0 or -1, but got {got}.", line=number)
        elif len(values) != classes:
            wanted = pluralize(classes, "value", "values")
            errors.add(
                f"expected {wanted} behind the image, one for each class, but got {len(values)}.",
                line=number,
            )
        else:
            found.images.append(image)
            found.values.append([VALUES[word] for word in values])
            found.lines.append(number)
    errors.check()
    return found


def split_values(text: str, *, commas: bool) -> list[str]:
    """The words of a line."""
    if not text.strip():
        return []
    return [word.strip() for word in text.split(",")] if commas else text.split()


def patch_value_lines(
    lines: Sequence[str], changes: Sequence[Change], written: dict[State, str], *, commas: bool
) -> Iterator[str]:
    """Yield the lines with other values for some pairs; all else stays."""
    of_image = by_image(changes)
    for line in lines:
        words = split_values(line.lstrip("\ufeff"), commas=commas)
        for change in of_image.get(words[0], []) if words else []:
            line = _with_value(line, change.column + 1, written[change.state], commas=commas)
        yield line


def _with_value(line: str, place: int, value: str, *, commas: bool) -> str:
    """The line with another word at a place; between blanks, columns stay aligned."""
    if commas:
        cells = line.split(",")
        cells[place] = cells[place].replace(cells[place].strip(), value)
        return ",".join(cells)
    start, end = list(re.finditer(r"\S+", line))[place].span()
    before = line[:start]
    if len(value) > end - start and before.endswith("  "):
        before = before[:-1]
    elif len(value) < end - start:
        before += " "
    return before + value + line[end:]
