"""Lists of names as text within a cell: JSON, and lists, sets and arrays as Python prints them."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from hilltop.data.formats.text.json_shapes import object_names

_ARRAY = re.compile(r"\[\s*(?:(?:'[^']*'|\"[^\"]*\"|[-+.\w]+)(?:\s+|(?=\]))){2,}\]")
_WORD = re.compile(r"'([^']*)'|\"([^\"]*)\"|([-+.\w]+)")
_BRACES = re.compile(r"\{[^{}:'\"]*\}")
"""A list as databases print it: ``{cat,dog}``."""
_POINT = re.compile(r"-?\d+\.")


def names_in_text(cell: str) -> list[str] | None:
    """The names in a list, set or object that stands in a cell as text; None if it is none.

    Whole numbers become text. Of an object such as ``{'NORM': 80.0}`` the keys are the names, of
    ``{"cat": true, "dog": false}`` those that are true, of one such as ``{"/m/05hgj": "Novel"}``
    the values; of objects in a list, what names them.

    Example:
        >>> names_in_text('["cat", "dog"]'), names_in_text("['cat' 'dog']"), names_in_text("{3, 5}")
        (['cat', 'dog'], ['cat', 'dog'], ['3', '5'])
    """
    if _BRACES.fullmatch(cell):
        return [part.strip() for part in cell[1:-1].split(",") if part.strip()]
    if _ARRAY.fullmatch(cell):
        # numpy leaves out the commas, and Python would join the words to one.
        parts = ("".join(found) for found in _WORD.findall(cell))
        return [part[:-1] if _POINT.fullmatch(part) else part for part in parts]
    try:
        names = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            names = ast.literal_eval(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    if not isinstance(names, list | tuple | set | dict):
        return None
    if isinstance(names, dict) and names and all(map(_is_flag, names.values())):
        names = [name for name, value in names.items() if value]
    if isinstance(names, dict) and names and all(isinstance(x, str) for x in names.values()):
        names = list(names.values())
    if isinstance(names, list) and names and all(isinstance(part, dict) for part in names):
        names = object_names(names)
    found = sorted(names, key=str) if isinstance(names, set) else list(names)
    try:
        words = [_word(name) for name in found]
        "".join(words).encode()
    except (ValueError, TypeError):
        return None
    return words


def _is_flag(value: Any) -> bool:
    """Whether a value says that something is there or not; 0.0 and 1.0 may be shares."""
    return type(value) in (bool, int) and value in (0, 1)


def _word(name: Any) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, bool):
        return str(int(name))
    if isinstance(name, float) and name in (0.0, 1.0, -1.0):
        return str(int(name))
    if type(name) is int:
        return str(name)
    raise TypeError
