"""JSON and XML that nobody vouches for: parsed safely, and edited without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, AnyStr
from xml.etree import ElementTree as ET
from xml.parsers import expat

from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector

_MOST_BYTES = 1 << 30
NOT_XML = "\ufffe\uffff"
"""Characters, besides control characters, that XML cannot hold."""


def parse_xml(source: Source, root: str, errors: ErrorCollector) -> ET.Element | None:
    """Return the outermost element, which must be called ``root``; what is wrong goes to errors."""
    if len(source.raw) > _MOST_BYTES:
        errors.add("this XML has more than 1 GiB, which is not read. Export it in parts.")
        return None
    try:
        element = ET.fromstring(source.raw, ET.XMLParser(target=_Builder()))
    except ET.ParseError as error:
        line, column = error.position
        reason = str(error).partition(":")[0]
        errors.add(f"this is not valid XML: {reason} at column {column + 1}.", line=line)
        return None
    except (ValueError, LookupError) as error:
        errors.add(f"this XML cannot be read: {error}.")
        return None
    if element.tag.rpartition("}")[2] != root:
        errors.add(f"expected the element {root!r}, but got {element.tag!r}.")
        return None
    return element


class _Builder(ET.TreeBuilder):
    """Refuses a document type before any of its entities is read."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("it has a document type, which could hide entities; remove it")


@dataclass
class Element:
    """An element and where it stands in the bytes of a file.

    Attributes:
        tag: Its name.
        attributes: Its attributes.
        start: Where it begins.
        inner_end: Where its closing tag begins; ``end`` of an element that has none.
        end: Where it ends.
        children: The elements in it.
        text: The text in it, without that of its children.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    inner_end: int = 0
    end: int = 0
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def is_closed_at_once(self) -> bool:
        """Whether it is written as ``<tag/>``."""
        return self.inner_end == self.end

    def find(self, tag: str) -> Element | None:
        """The first element of that name in it."""
        return next((child for child in self.children if child.tag == tag), None)


def element_tree(content: bytes) -> Element:
    """Return the outermost element of a file that has been read as XML before."""
    parser = expat.ParserCreate()
    open_: list[Element] = [Element("", {}, 0)]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, parser.CurrentByteIndex)
        open_[-1].children.append(element)
        open_.append(element)

    def end(tag: str) -> None:
        element = open_.pop()
        at = parser.CurrentByteIndex
        element.inner_end = at
        element.end = content.index(b">", at) + 1 if content.startswith(b"</", at) else at

    def text(data: str) -> None:
        open_[-1].text += data

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.Parse(content, True)
    return open_[0].children[0]


def with_line(content: bytes, start: int, end: int) -> tuple[int, int]:
    """The part of a file with its indentation and line end, where it stands on lines of its own."""
    before = content.rfind(b"\n", 0, start) + 1
    behind = content.find(b"\n", end)
    if behind >= 0 and not content[before:start].strip() and not content[end:behind].strip():
        return before, behind + 1
    return start, end


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


def replace_spans(text: AnyStr, edits: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """Put new text, or bytes, in the place of some parts, given by start and end."""
    parts: list[AnyStr] = []
    at = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += [text[at:start], new]
        at = end
    parts.append(text[at:])
    return text[:0].join(parts)


def replace_word(line: str, place: int, value: str) -> str:
    """Put another word at a place of a line; columns stay aligned."""
    start, end = list(re.finditer(r"\S+", line))[place].span()
    before = line[:start]
    if len(value) > end - start and before.endswith("  "):
        before = before[:-1]
    elif len(value) < end - start:
        before += " "
    return before + value + line[end:]


def is_text(*values: Any) -> bool:
    """Whether values are texts, not empty and valid Unicode."""
    try:
        return all(isinstance(one, str) and bool(one.encode()) for one in values)
    except UnicodeEncodeError:
        return False


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
