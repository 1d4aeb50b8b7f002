"""Lines of text with an image and a value for each class: 1, 0 or -1, with spaces between."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.format import Change, by_image
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.tables.read import duplicate_ids
from hilltop.data.tables.words import find_meanings

VALUES = {"1": 1, "0": 0, "-1": -1}
"""What may stand for a class."""


@dataclass
class ValueLines:
    """Images and their values, line by line."""

    path: Path
    images: list[str] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def find_meanings(
        self, layout: Layout, options: ReadOptions, *, minus_one: State | None = None
    ) -> Layout | Ambiguous:
        """Say what 0 and -1 mean, or ask.

        Args:
            layout: The layout without meanings of values.
            options: What the user said.
            minus_one: What -1 means by definition of the format.
        """
        values = np.array(self.values, dtype=np.int8)
        counts = {word: int(np.count_nonzero(values == value)) for word, value in VALUES.items()}
        counts = {word: count for word, count in counts.items() if count}
        found = find_meanings(counts, options, {}, default_minus_one=minus_one)
        if found.questions:
            return Ambiguous(self.path, found.questions, options)
        kept = tuple((word, found.values[word]) for word in VALUES if word in found.values)
        unlisted = found.values.get("0", found.values.get("-1", "unknown"))
        return replace(
            layout,
            values=kept,
            unlisted=State.UNKNOWN if unlisted == "present" else State.parse(unlisted),
        )

    def table(self, classes: Sequence[str], layout: Layout, notes: Sequence[str]) -> LabelTable:
        """Return the table: the class of each value, and what values mean by the layout."""
        values = np.array(self.values, dtype=np.int8).reshape(len(self.values), len(classes))
        meaning = [layout.state_of(word) for word in ("-1", "0", "1")]
        state_of = np.array(
            [layout.unlisted if one is None else one for one in meaning], dtype=np.int8
        )
        states = state_of[values + 1]
        row_of = {image: row for row, image in enumerate(dict.fromkeys(self.images))}
        rows = np.array([row_of[image] for image in self.images], dtype=np.int64)
        ids = pa.array(row_of, pa.string())
        line, column = (at.ravel() for at in np.indices(states.shape))
        return LabelTable.from_coo(
            ids,
            classes,
            rows[line],
            column,
            states.ravel(),
            unlisted=layout.unlisted,
            source=self.path,
            line_of=lambda entry: self.lines[int(line[entry])],
            step=Step("read", {"file": str(self.path), "format": layout.format}),
            notes=[*notes, *duplicate_ids(ids, rows, line, column, states.ravel())],
        )


def parse_value_lines(
    path: Path, lines: Iterable[tuple[int, str]], classes: int | None
) -> ValueLines:
    """Read the lines, which all must have a value for each class.

    Args:
        path: The file, for messages.
        lines: The lines with their numbers; empty ones are passed over.
        classes: How many values a line has; None for as many as on the first.
    """
    errors = ErrorCollector(path)
    found = ValueLines(path)
    for number, text in lines:
        words = text.split()
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


def patch_value_lines(
    lines: Sequence[str], changes: Sequence[Change], written: dict[State, str]
) -> Iterator[str]:
    """Yield the lines with other values for some pairs; all else stays."""
    of_image = by_image(changes)
    for line in lines:
        words = line.lstrip("\ufeff").split()
        for change in of_image.get(words[0], []) if words else []:
            line = _with_value(line, change.column + 1, written[change.state])
        yield line


def _with_value(line: str, place: int, value: str) -> str:
    """The line with another word at a place; columns stay aligned."""
    start, end = list(re.finditer(r"\S+", line))[place].span()
    before = line[:start]
    if len(value) > end - start and before.endswith("  "):
        before = before[:-1]
    elif len(value) < end - start:
        before += " "
    return before + value + line[end:]
