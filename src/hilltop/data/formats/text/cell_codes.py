"""Cells with values of their own (votes, shares, codes): what the user says of them, and asking."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hilltop.checks import pluralize
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.text.cell_values import (
    ONE,
    OTHER,
    SAID_ABSENT,
    SAID_UNKNOWN,
    CellMeaning,
    cell_kind,
    cell_number,
)
from hilltop.data.formats.text.known_names import is_no_class_name, is_place_name
from hilltop.errors import OptionNeeded

_KINDS = {"present": ONE, "absent": SAID_ABSENT, "unknown": SAID_UNKNOWN}
_MOST_CODES = 8
_MOST_CODE = 999
_LONGEST = 20
_SHOWN = 5
_NOT = ("no", "neg", "abs", "without", "nein", "-")
_YES = ("pos", "pres", "yes", "with", "def", "+")


def cell_meaning(options: ReadOptions) -> CellMeaning:
    """Return what the user said of cells.

    Raises:
        OptionNeeded: The codes are not written as they should be, or the cut is not above 0.
    """
    codes = {}
    for pair in next(csv.reader([options.values or ""]), []):
        word, _, state = (part.strip().lower() for part in pair.rpartition("="))
        if state not in _KINDS or not word:
            raise OptionNeeded(
                "--values expects pairs such as 2=absent,9=unknown, with present, absent or unknown"
                f" behind each, but got {pair!r}."
            )
        codes[word] = _KINDS[state]
        number = cell_number(word)
        if number is not None:
            codes[f"{number:g}"] = _KINDS[state]
    if options.confidence_cut is not None and not options.confidence_cut > 0:
        raise OptionNeeded(
            f"--confidence-cut must be greater than 0, but got {options.confidence_cut!r}."
        )
    return CellMeaning(options.confidence_cut, codes)


def coded_columns(sample: Mapping[str, Sequence[Any]], image: str) -> list[str]:
    """Columns that share a few values which are no 1 and 0, so that these are codes or votes."""
    found = {
        name: {str(cell).strip().lower() for cell in cells if cell is not None} - {""}
        for name, cells in sample.items()
        if name != image and not is_no_class_name(name) and not is_place_name(name)
    }
    found = {name: words for name, words in found.items() if words and _are_values(words)}
    numeric = [name for name, words in found.items() if all(map(_is_number, words))]
    groups = [numeric, *([name for name in found if found[name] <= one] for one in found.values())]
    best = max(groups, key=len)
    return best if len(best) > 1 else []


def describe_values(
    path: Path,
    options: ReadOptions,
    columns: Sequence[str],
    cells: Counter[str],
    *,
    named_among: Sequence[str] = (),
) -> str:
    """Say which cells are none of 1, 0, -1 and blank, with counts and the likely command.

    Args:
        path: The file.
        options: What the user said.
        columns: The columns that hold them.
        cells: How often each such value occurs, as far as was looked.
        named_among: All columns, where the command has to name those that hold the values.
    """
    shown = ", ".join(
        f"{word!r:.30} in {pluralize(count, 'cell', 'cells')}"
        for word, count in cells.most_common(_SHOWN)
    )
    more = f" and {len(cells) - _SHOWN} other values" if len(cells) > _SHOWN else ""
    further = {"class_columns": _column_words(columns, named_among)} if named_among else {}
    command = ready_command(path, options, **further, **_likely(cells))
    return (
        f"{pluralize(len(columns), 'column holds', 'columns hold')} {shown}{more}, which"
        " are none of 1, 0, -1 and blank. If they are votes or confidences, --confidence-cut says"
        " from which number on they mean present (below it unknown); if they are codes, --values"
        f" says what each means, for example: {command}"
    )


def _column_words(columns: Sequence[str], among: Sequence[str]) -> str:
    """Columns for a command: by name, or many that follow each other by number."""
    start = list(among).index(columns[0])
    if len(columns) > _SHOWN and list(among[start : start + len(columns)]) == list(columns):
        return f"{start}:{start + len(columns)}"
    return ",".join(map(_quoted, columns))


def odd_cells(columns: Mapping[str, Sequence[Any]]) -> Counter[str]:
    """How often each value occurs that is none of 1, 0, -1 and blank."""
    return Counter(
        str(cell).strip()
        for cells in columns.values()
        for cell in cells
        if cell_kind(cell) == OTHER
    )


def _likely(cells: Counter[str]) -> dict[str, str]:
    numbers = [number for number in map(cell_number, cells) if number is not None]
    if len(numbers) == len(cells) and not _are_codes(numbers):
        fractions = any(number < 1 for number in numbers)
        return {"confidence_cut": "0.5" if fractions else "1"}
    return {"values": ",".join(_quoted(f"{word}={_state(word)}") for word in cells)}


def _are_codes(numbers: Sequence[float]) -> bool:
    """Whether numbers are those of questionnaires: 2 for no, and 9, 99 or so for missing."""
    return set(numbers) <= {2.0, 3.0, 8.0, 9.0, 88.0, 99.0, 999.0} and max(numbers) != 3.0


def _state(word: str) -> str:
    low = word.lower()
    if low == "2" or (low.startswith(_NOT) and "mention" not in low and low != "none"):
        return "absent"
    return "present" if low.startswith(_YES) else "unknown"


def _quoted(word: str) -> str:
    return f'"{word}"' if "," in word else word


def _are_values(words: set[str]) -> bool:
    """Whether the different cells of a column can be codes, votes or shares."""
    numbers = [number for number in map(cell_number, words) if number is not None]
    shares = len(numbers) == len(words) and all(0 <= number <= 1 for number in numbers)
    few = len(words) <= _MOST_CODES and all(abs(number) <= _MOST_CODE for number in numbers)
    return shares or (few and not any(len(word) > _LONGEST for word in words))


def _is_number(word: str) -> bool:
    return cell_number(word) is not None
