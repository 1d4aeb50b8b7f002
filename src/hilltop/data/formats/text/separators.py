"""What separates the labels within one cell, found from the cells themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hilltop.data.formats.text.dialect import looks_like_file, looks_numeric

JSON_TEXT = "JSON"
"""Stands for "every cell is a list in brackets" in place of a separator."""
ANGLES = "><"
"""Stands between names that each have angle brackets of their own: ``<c#><winforms>``."""
HASHTAGS = "#tags"
"""Stands for "names are the words with a hash sign": ``What a day! #cat #dog``."""
HASHTAG = re.compile(r"(?<!\S)#[^\W\d_]\w*")
_TAGGED = 0.8
"""Share of captions with a hashtag, so that the others have none on purpose."""
_ANGLED = re.compile(r"(<[^<>]+>)+")
_BRACKETS = re.compile(r"\[|\{\s*['\"\d}]|\{[^{}:'\"]*\}$|\(\s*['\"\d)]|set\(\)")
RARE = ("+", "&", "/", "~", "^", "#")
"""What stands between names in some files and within names in others: parts must mix."""
LINE_END = "\n"
"""Stands between names in the cells of spreadsheets."""
_LONGEST = 60
_FEWEST = {",": 2, " ": 3}
"""So many cells of several parts, all of which are cells of their own, show what separates them."""
_FEWER = 1.5
"""So many times fewer parts than whole cells must there be, for parts to be the names."""
_ENOUGH = {",": 6, " ": 10}
"""Fewer different cells than this do not show whether their parts come back; names rarely have a
comma, but often a blank."""
_STRANGE = 1 / 3
"""Most of the cells with a blank that may have a word in common with others, so that they are
names of several words: "hot dog" beside "dog"."""


@dataclass(frozen=True)
class Separator:
    """What separates labels within a cell.

    Attributes:
        mark: The separator; None if every cell is a single name.
        certain: Whether the cells leave no doubt; otherwise ``mark`` is the likely one.
        inferred: Whether it follows only from the parts coming back in other cells.
        shared: Whether, though not certain, some parts are cells of their own or parts of others.
    """

    mark: str | None
    certain: bool = True
    inferred: bool = False
    shared: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """Return it in words."""
        words = {" ": "blanks", ",": "commas", ";": "semicolons", "|": "bars", "\n": "line ends"}
        words[HASHTAGS] = "hash signs, and words without one are no labels"
        return words.get(self.mark or "", repr(self.mark))

    @property
    def note(self) -> str:
        """What to say where it only follows from the cells."""
        if self.mark is None:
            return (
                "every cell is taken for a single name; --delimiter ' ' would part them at blanks."
            )
        return f"labels within a cell are separated by {self}."


def find_separator(cells: Iterable[str]) -> Separator:
    """Return what separates the labels within some cells."""
    words = list({cell.strip() for cell in cells} - {""})
    brackets = [_BRACKETS.match(word) is not None for word in words]
    if words and all(brackets):
        return Separator(JSON_TEXT)
    if words and all(_ANGLED.fullmatch(word) for word in words):
        return Separator(ANGLES)
    if _are_captions(words):
        return Separator(HASHTAGS, inferred=True)
    if words and all(word.startswith("#") for word in words) and not _are_hashtags(words):
        return Separator("#", inferred=True)
    if any(LINE_END in word for word in words):
        return Separator(LINE_END, certain=_are_lines(words), inferred=True)
    found = [mark for mark in ";|" if any(mark in word.strip(mark) for word in words)]
    found = found or [mark for mark in ";|" if any(mark in word[1:] for word in words)]
    if len(found) == 1:
        return Separator(found[0])
    likely = "," if any("," in word for word in words) else " "
    rare = [mark for mark in RARE if any(mark in word for word in words)]
    if not found and likely == " " and len(rare) == 1 and _mix(words, rare[0]):
        return Separator(rare[0], inferred=True)
    if found or any(brackets):
        return Separator(found[0] if found else likely, certain=False)
    if not any(likely in word or len(word.split()) > 1 for word in words):
        return Separator(None)
    if all(looks_numeric(word) for word in words):
        return Separator(likely)
    if likely == " " and _are_single_names(words):
        return Separator(None, inferred=True)
    # Within a name a comma is followed by a blank.
    back = _parts_come_back(words, likely) or not any(" " in word for word in words)
    return Separator(likely, certain=back, inferred=back, shared=_share_parts(words, likely))


def _are_captions(words: Sequence[str]) -> bool:
    """Whether most cells have hashtags, and most of these words beside them."""
    tagged = [word for word in words if HASHTAG.search(word)]
    more = [word for word in tagged if len(HASHTAG.sub(" ", word).split()) > 1]
    plain = not any(mark in word for word in words for mark in ";|")
    return plain and len(tagged) >= _TAGGED * len(words) and 2 * len(more) > len(tagged)


def _are_hashtags(words: Sequence[str]) -> bool:
    """Whether every word of the cells is a hashtag, so that blanks part them."""
    return all(HASHTAG.fullmatch(part) for word in words for part in word.split())


def _are_single_names(words: Sequence[str]) -> bool:
    """Whether most cells are one word, and those of several hardly share one with the others."""
    counts = Counter(part.casefold() for word in words for part in {*word.split()})
    several = [word.casefold().split() for word in words if len(word.split()) > 1]
    strange = sum(any(counts[part] > 1 for part in cell) for cell in several)
    enough = len(words) >= _ENOUGH[" "] and 2 * len(several) <= len(words)
    return enough and strange <= _STRANGE * len(several)


def likely_delimiter(found: Separator) -> str:
    """What to pass as ``--delimiter`` where it is not certain: names often have blanks in them."""
    return found.mark if found.mark and (found.mark != " " or found.shared) else ";"


def count_names(cells: Iterable[str], mark: str) -> int:
    """How many different names there are if a mark separates them."""
    return len({part.strip() for cell in cells for part in cell.split(mark)} - {""})


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
    if len(several) >= _FEWEST[mark] and all(part in cells for cell in several for part in cell):
        return True
    if all(part.startswith("#") for part in parts):
        return True
    alone = sum(any(part in cells for part in cell) for cell in several)
    return mark == "," and len(several) >= _ENOUGH[mark] and 2 * alone >= len(several)


def _share_parts(words: Sequence[str], mark: str) -> bool:
    """Whether most cells of several parts have one that is a cell, or part of another cell."""
    split = [{part.strip().casefold() for part in word.split(mark)} for word in words]
    counts = Counter(part for cell in split for part in cell)
    several = [cell for cell in split if len(cell) > 1]
    return 2 * sum(any(counts[part] > 1 for part in cell) for cell in several) >= len(several) > 0


def _mix(words: Sequence[str], mark: str) -> bool:
    """Whether parts come back in any order or alone, as labels do and parts of one name do not."""
    split = [[part.strip() for part in word.split(mark)] for word in words]
    several = [cell for cell in split if len(cell) > 1]
    counts = Counter(part for cell in split for part in set(cell))
    back = sum(count > 1 for count in counts.values())
    first = {cell[0] for cell in split}
    later = {part for cell in several for part in cell[1:]}
    alone = {cell[0] for cell in split if len(cell) == 1}
    mixed = bool(first & later) or bool(later & alone)
    named = all(part and not part.isdigit() for part in counts)
    return len(several) >= _FEWEST[" "] and mixed and named and 3 * back >= 2 * len(counts)


def _are_lines(words: Sequence[str]) -> bool:
    """Whether lines within cells are names, not rows that a missing quote has swallowed."""
    split = [[part.strip() for part in word.split(LINE_END)] for word in words]
    counts = Counter(part for cell in split for part in set(cell) if part)
    short = all(len(part) <= _LONGEST and not re.search(r"[,;|\t\"]", part) for part in counts)
    several = [cell for cell in split if len(cell) > 1]
    shared = sum(any(counts[part] > 1 for part in cell) for cell in several)
    return short and not any(map(looks_like_file, counts)) and 2 * shared >= len(several)
