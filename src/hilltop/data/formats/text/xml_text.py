"""XML that nobody vouches for: document types, entities and files of absurd size are refused."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from hilltop.data.data_errors import ErrorCollector

_MOST_BYTES = 1 << 30
NOT_XML = "\ufffe\uffff"
"""Characters, besides control characters, that XML cannot hold."""


def parse_xml(path: Path, root: str, errors: ErrorCollector) -> ET.Element | None:
    """Return the outermost element, which must be called ``root``; what is wrong goes to errors."""
    if path.stat().st_size > _MOST_BYTES:
        errors.add("this XML has more than 1 GiB, which is not read. Export it in parts.")
        return None
    try:
        element = ET.fromstring(path.read_bytes(), ET.XMLParser(target=_Builder()))
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
