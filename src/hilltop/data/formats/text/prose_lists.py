"""Lists as people write them in a sentence: ``cat, dog and bird``, in several languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

_WORDS = ("and", "und", "et", "y", "e", "en", "og", "och", "oraz", "&")
"""What stands before the last name of a list."""
_FIT = 0.9
"""Share of the cells with several names that end so: labels with such a word in their name, as in
"Arts & Crafts, Food, Bars", stand anywhere in a list."""
_FEWEST = 2
_MARKS = re.compile(r"[;|\n\[{<]")
"""Lists with one of these are written in another way."""


def as_lists(cells: pa.Array) -> tuple[pa.Array, str | None]:
    """Cells with a comma before the last name where people wrote a word, and this word."""
    if cells.type != pa.string():
        return cells, None
    different = cells.dictionary_encode()
    words = different.dictionary.to_pylist()
    last = find_last_word(words)
    if last is None:
        return cells, None
    return pa.array(with_commas(words, last), pa.string()).take(different.indices), last


def find_last_word(cells: Iterable[str]) -> str | None:
    """Return the word before the last name, if cells with several names nearly all have it.

    Half of the names around it must be names elsewhere, too: "black and white" is one.

    Example:
        >>> find_last_word(["cat, dog and bird", "dog and cat", "bird", "salt and pepper"])
        'and'
        >>> find_last_word(["black and white", "red"]) is None
        True
    """
    words = {cell.strip().casefold() for cell in cells} - {""}
    if any(_MARKS.search(word) for word in words):
        return None
    lists = [_items(word) for word in words]
    return next((word for word in _WORDS if _closes(lists, word)), None)


def with_commas(cells: Sequence[str], word: str) -> list[str]:
    """Cells with a comma in place of the last word; one name with the word in it stays whole."""
    known = _known([_items(cell.casefold()) for cell in cells], word)
    return [_split(_items(cell), word, known) for cell in cells]


def _split(items: list[str], word: str, known: set[str]) -> str:
    parts = _apart(items[-1], word)
    several = len(items) > 1 or any(part.casefold() in known for part in parts)
    return ", ".join([*items[:-1], *parts] if several else items)


def _closes(lists: Sequence[list[str]], word: str) -> bool:
    """Whether lists end with the word and a name, which stands elsewhere, too."""
    ends = [items for items in lists if len(_apart(items[-1], word)) > 1 or _begins(items, word)]
    several = [items for items in lists if len(items) > 1 or items in ends]
    inside = any(len(_apart(item, word)) > 1 for items in lists for item in items[:-1])
    if len(ends) < _FEWEST or len(ends) < _FIT * len(several) or inside:
        return False
    if word == "&" and not any(len(items) > 1 for items in lists):
        return False  # It separates all names, as a mark does.
    known = _known(lists, word)
    shown = [items for items in ends if any(part in known for part in _apart(items[-1], word))]
    return 2 * len(shown) >= len(ends)


def _known(lists: Sequence[list[str]], word: str) -> set[str]:
    """Names that stand somewhere without the word."""
    whole = {item for items in lists for item in items[:-1]}
    return whole | {items[-1] for items in lists if _apart(items[-1], word) == [items[-1]]}


def _begins(items: Sequence[str], word: str) -> bool:
    """Whether a comma stands before the word, too."""
    return len(items) > 1 and items[-1].casefold().startswith(f"{word} ")


def _apart(item: str, word: str) -> list[str]:
    parts = re.split(rf"(?:^|\s+){re.escape(word)}\s+", item, flags=re.IGNORECASE)
    return [part for part in parts if part]


def _items(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(",") if part.strip()] or [""]
