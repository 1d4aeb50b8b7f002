"""What separates the labels within one cell, found from the cells themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hilltop.data.formats.text.dialect import looks_numeric

JSON_TEXT = "JSON"
"""Stands for "every cell is a list in brackets" in place of a separator."""
ANGLES = "><"
"""Stands between names that each have angle brackets of their own: ``<c#><winforms>``."""
_ANGLED = re.compile(r"(<[^<>]+>)+")
_BRACKETS = re.compile(r"\[|\{\s*['\"\d}]|\(\s*['\"\d)]|set\(\)")
_FEWER = 1.5
"""So many times fewer parts than whole cells must there be, for parts to be the names."""
_ENOUGH = {",": 6, " ": 10}
"""Fewer different cells than this do not show whether their parts come back; names rarely have a
comma, but often a blank."""


@dataclass(frozen=True)
class Separator:
    """What separates labels within a cell.

    Attributes:
        mark: The separator; None if every cell is a single name.
        certain: Whether the cells leave no doubt; otherwise ``mark`` is the likely one.
        inferred: Whether it follows only from the parts coming back in other cells.
    """

    mark: str | None
    certain: bool = True
    inferred: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        words = {" ": "blanks", ",": "commas", ";": "semicolons", "|": "bars"}
        return words.get(self.mark or "", repr(self.mark))


def find_separator(cells: Iterable[str]) -> Separator:
    """Return what separates the labels within some cells."""
    words = list({cell.strip() for cell in cells} - {""})
    brackets = [_BRACKETS.match(word) is not None for word in words]
    if words and all(brackets):
        return Separator(JSON_TEXT)
    if words and all(_ANGLED.fullmatch(word) for word in words):
        return Separator(ANGLES)
    found = [mark for mark in ";|" if any(mark in word.strip(mark) for word in words)]
    found = found or [mark for mark in ";|" if any(mark in word[1:] for word in words)]
    if len(found) == 1:
        return Separator(found[0])
    likely = "," if any("," in word for word in words) else " "
    if found or any(brackets):
        return Separator(found[0] if found else likely, certain=False)
    if not any(likely in word or len(word.split()) > 1 for word in words):
        return Separator(None)
    if all(looks_numeric(word) for word in words):
        return Separator(likely)
    # Within a name a comma is followed by a blank.
    back = _parts_come_back(words, likely) or not any(" " in word for word in words)
    return Separator(likely, certain=back, inferred=back)


def likely_delimiter(found: Separator) -> str:
    """What to pass as ``--delimiter`` where it is not certain: names often have blanks in them."""
    return found.mark if found.mark and found.mark != " " else ";"


def _parts_come_back(words: Sequence[str], mark: str) -> bool:
    """Whether cells are combinations of far fewer parts, so that the parts are the names.

    Or whether most cells with a comma have a part that is a cell of its own elsewhere; parts of
    one name, such as "Smith, John", never are. How names are capitalised does not matter.
    """
    cells = {word.casefold() for word in words}
    split = [[part.strip() for part in cell.split(mark)] for cell in cells]
    parts = {part for cell in split for part in cell} - {""}
    if len(cells) >= _ENOUGH[mark] and _FEWER * len(parts) <= len(cells):
        return True
    several = [cell for cell in split if len(cell) > 1]
    alone = sum(any(part in cells for part in cell) for cell in several)
    return mark == "," and len(several) >= _ENOUGH[mark] and 2 * alone >= len(several)
