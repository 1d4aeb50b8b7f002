"""XML that nobody vouches for: document types, entities and files of absurd size are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
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


def edited(content: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return the bytes with other ones in the place of some parts, given by start and end."""
    parts, at = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += [content[at:start], new]
        at = end
    return b"".join([*parts, content[at:]])


def with_line(content: bytes, start: int, end: int) -> tuple[int, int]:
    """The part of a file with its indentation and line end, where it stands on lines of its own."""
    before = content.rfind(b"\n", 0, start) + 1
    behind = content.find(b"\n", end)
    if behind >= 0 and not content[before:start].strip() and not content[end:behind].strip():
        return before, behind + 1
    return start, end
