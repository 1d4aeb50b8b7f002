"""JSON as text: where each value stands, so that one can be changed and all others left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


Edit = tuple[int, int, str]
"""Start and end of a part of a text, and what is to stand there."""


@dataclass(frozen=True)
class Span:
    """A value and where it stands."""

    value: Any
    start: int
    end: int


def members(text: str, start: int) -> Iterator[tuple[str, Span]]:
    """Yield the keys of the object that begins at ``start``, with their values."""
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        value, end = _DECODER.raw_decode(text, at)
        yield key, Span(value, at, end)
        at = _behind_comma(text, end)


def elements(text: str, start: int) -> Iterator[Span]:
    """Yield the elements of the list that begins at ``start``."""
    at = _skip(text, start + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield Span(value, at, end)
        at = _behind_comma(text, end)


def first_value(text: str) -> int:
    """Where the outermost value begins."""
    return _skip(text, 1 if text.startswith("\ufeff") else 0)


def replace_spans(text: str, edits: Iterable[Edit]) -> str:
    """Put new text in the place of some parts, given by start and end."""
    parts, at = [], 0
    for start, end, new in sorted(edits):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def edit_elements(
    text: str, array: Span, new: list[Any], gone: Callable[[Any], bool] = lambda _: False
) -> Edit:
    """Return the change that takes elements out of a list and adds others in the same style.

    Args:
        text: The file.
        array: The list.
        new: Elements to add.
        gone: Whether an element is taken out.
    """
    spans = list(elements(text, array.start))
    kept = [at for at, span in enumerate(spans) if not gone(span.value)]
    if not spans:
        inner = ", ".join(json.dumps(value, ensure_ascii=False) for value in new)
        return array.start, array.end, f"[{inner}]"
    like = spans[-1]
    between = text[spans[-2].end : like.start] if len(spans) > 1 else ", "
    style = text[like.start : like.end]
    written = [dump_like(style, value, _indent(text, like.start)) for value in new]
    if len(kept) == len(spans):
        return like.end, like.end, "".join(f"{between}{value}" for value in written)
    parts = [text[array.start : spans[0].start]]
    for number, at in enumerate(kept):
        if number:
            parts.append(text[spans[at - 1].end : spans[at].start])
        parts.append(text[spans[at].start : spans[at].end])
    parts += [f"{between if kept or number else ''}{value}" for number, value in enumerate(written)]
    parts.append(text[spans[-1].end : array.end])
    return array.start, array.end, "".join(parts)


def dump_like(like: str, value: Any, indent: str = "") -> str:
    """Write a value in the style of another: line breaks, spaces, and escapes.

    Args:
        like: How such a value is written in the file.
        value: What to write.
        indent: What its first line is indented by.
    """
    ascii_only = like.isascii() and "\\u" in like
    if "\n" in like:
        found = re.search(r"\n([ \t]+)", like)
        deeper = found[1].removeprefix(indent) if found else "  "
        text = json.dumps(value, ensure_ascii=ascii_only, indent=deeper or "  ")
        return text.replace("\n", f"\n{indent}")
    compact = re.search(r'[":]\s*[:,] ', like) is None and '": ' not in like
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(value, ensure_ascii=ascii_only, separators=separators)


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line if not line.strip() else ""


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None  # it matches nothing, too
    return found.end()


def _behind_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
