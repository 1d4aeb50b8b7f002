"""Cells of zeros and ones: which kind of value each one is, however it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Kinds = npt.NDArray[np.int8]
ONE, ZERO, MINUS_ONE, BLANK, OTHER, SAID_ABSENT, SAID_UNKNOWN = range(7)
"""What a cell is; the last two are what the user said of cells that are none of the others."""
KINDS = 7
_NUMBERS = {1.0: ONE, 0.0: ZERO, -1.0: MINUS_ONE}
_YES = (
    *("true", "yes", "y", "t", "x", "on", "checked", "positive", "pos", "present"),
    *(
        "ja",
        "wahr",
        "oui",
        "vrai",
        "s\u00ed",
        "si",
        "sim",
        "vero",
        "verdadero",
        "verdadeiro",
        "tak",
    ),
    *("\u0434\u0430", "\u662f", "\u2713", "\u2714", "\u2611", "\u2705", "\u25cf"),
)
_NO = (
    *("false", "no", "n", "f", "off", "unchecked", "negative", "neg"),
    *("nein", "falsch", "non", "faux", "n\u00e3o", "nao", "falso", "nie"),
    *("\u043d\u0435\u0442", "\u5426", "\u2717", "\u2718", "\u2610", "\u274c"),
)
_WORDS = {
    **dict.fromkeys(_YES, ONE),
    **dict.fromkeys(_NO, ZERO),
    **dict.fromkeys(["", "nan", "na", "n/a", "null"], BLANK),
    **{"absent": SAID_ABSENT, "unknown": SAID_UNKNOWN, "uncertain": SAID_UNKNOWN},
}
"""What people, and spreadsheets of other languages, write for 1, 0 and nothing."""
_BITS = re.compile(r"[01]{4,}", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e-?\d{1,3})?\s*%?", re.ASCII)


@dataclass(frozen=True)
class CellMeaning:
    """What the user said of cells that are none of 1, 0, -1 and blank.

    Attributes:
        cut: From this number on a cell means present; below it, and above 0, unknown.
        codes: Kinds of further cells, by how they are written in lower case.
    """

    cut: float | None = None
    codes: Mapping[str, int] = field(default_factory=dict)

    def kind(self, value: Any) -> int:
        """Which kind of value one cell is."""
        if isinstance(value, str):
            word = value.strip().lower()
            if word in self.codes:
                return self.codes[word]
            if word in _WORDS:
                return _WORDS[word]
            number = cell_number(word)
            return OTHER if number is None else self._number(number)
        if value is None or value != value:
            return BLANK
        if not isinstance(value, int | float):
            return OTHER
        return self.codes.get(f"{float(value):g}", self._number(float(value)))

    def _number(self, number: float) -> int:
        if self.cut is None or number <= 0:
            return _NUMBERS.get(number, OTHER)
        return ONE if number >= self.cut else SAID_UNKNOWN


PLAIN = CellMeaning()
"""What cells are where the user said nothing."""


def cell_number(word: str) -> float | None:
    """The number that a cell is, with a point or a comma, or in per cent; None if it is none.

    Example:
        >>> cell_number("1,0"), cell_number("50%"), cell_number("cat")
        (1.0, 0.5, None)
    """
    if len(word) > 40 or _NUMBER.fullmatch(word.strip()) is None:
        return None
    number = float(word.strip().rstrip("% ").replace(",", "."))
    return number / 100 if word.strip().endswith("%") else number


def cell_kinds(column: pa.Array, meaning: CellMeaning = PLAIN) -> Kinds:
    """Which kind of value every cell of a column is."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        column = column.cast(pa.float64(), safe=False)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        column = column.cast(pa.string())
    else:
        return np.full(len(column), OTHER, dtype=np.int8)
    coded = column.dictionary_encode(null_encoding="encode")
    kinds = np.array(
        [meaning.kind(value) for value in coded.dictionary.to_pylist()] or [0], dtype=np.int8
    )
    codes: npt.NDArray[np.int64] = coded.indices.to_numpy(zero_copy_only=False)
    return kinds[codes]


def cell_kind(value: Any) -> int:
    """Which kind of value one cell is where the user said nothing."""
    return PLAIN.kind(value)


def own_names(columns: Mapping[str, Sequence[Any]]) -> set[str]:
    """Columns whose only word is part of their name, as surveys write an answer that was ticked.

    ``Animals [Cat]`` with the cells ``Cat`` and nothing is such a column; there must be several.
    """
    found = set()
    for name, cells in columns.items():
        words = {str(cell).strip().casefold() for cell in cells if cell is not None} - {""}
        word = words.pop() if len(words) == 1 else ""
        if len(word) > 1 and cell_kind(word) == OTHER and word in name.casefold():
            found.add(name)
    return found if len(found) > 1 else set()


def are_bits(cells: Sequence[Any]) -> bool:
    """Whether cells are texts of zeros and ones, all of one length: a value for each class."""
    words = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
    one_length = len({len(word) for word in words}) == 1 and len(set(words)) > 1
    return one_length and all(map(_BITS.fullmatch, words)) and "1" in "".join(words)
