"""XML with an element for each image: ``<image name="a.jpg"><tag>cat</tag></image>``.

Name and labels are attributes or elements within it, known by their names as columns are; the
posts of Stack Exchange (``<row Id="1" Tags="&lt;a&gt;&lt;b&gt;" />``) are written so, too.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree as ET

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.column_roles import find_image_column
from hilltop.data.formats.text.json_lines import JsonRecords
from hilltop.data.formats.text.known_names import is_image_name, is_label_name
from hilltop.data.formats.text.label_lists import read_list_rows
from hilltop.data.formats.text.xml_text import parse_xml
from hilltop.data.label_table import LabelTable

_START = re.compile(r"\ufeff?(?:<\?xml[^>]*\?>|<!--.*?-->|\s)*<([\w.-]+)[\s>]", re.DOTALL)
_OTHERS = ("annotations", "annotation", "labels", "svg", "html")
"""Outermost elements of files that other formats read, or nobody."""
_DEPTH = 3


def fits(source: LabelSource) -> bool:
    """Whether many elements of one name follow each other, with names and labels."""
    start = None if source.is_folder else _START.match(source.head)
    if start is None or start[1].lower() in _OTHERS:
        return False
    root = _first_look(source.head)
    if root is None:
        return False
    names = {name for record in _records(root)[:50] for name in record}
    return any(map(is_image_name, names)) and any(map(is_label_name, names))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of every element; those without any labels at all are counted and left out.

    An answer among the posts of Stack Exchange has no attribute of tags; a question without tags
    has an empty one.
    """
    start = _START.match(source.head)
    errors = ErrorCollector(source.path)
    root = parse_xml(source.path, start[1] if start else "", errors)
    errors.check()
    assert root is not None  # else there were errors
    records = _records(root)
    if not records:
        raise data_error(source.path, "expected an element for each image, with name and labels.")
    attributes = {name for element in _elements(root) for name in element.attrib}
    labels = [name for name in attributes if is_label_name(name)]
    kept = [one for one in records if any(name in one for name in labels)] if labels else records
    rows = JsonRecords(source.path, kept)
    if len(kept) < len(records):
        left = pluralize(len(records) - len(kept), "element has", "elements have")
        rows.notes.append(f"{left} no {labels[0]!r} and is left out.")
    image = find_image_column(source.path, rows.sample(), options)
    return read_list_rows(rows, image, options, format="xml_records")


def _first_look(head: str) -> ET.Element | None:
    """The outermost element as far as it can be seen; None if it is no XML to be trusted."""
    if "<!" in head.replace("<!--", "").replace("<![CDATA[", ""):
        return None
    parser: Any = ET.XMLPullParser(events=("start",))
    with contextlib.suppress(ET.ParseError, ValueError, LookupError):
        parser.feed(head.lstrip("\ufeff"))
    with contextlib.suppress(ET.ParseError):
        for event in parser.read_events():
            root: ET.Element = event[1]
            return root
    return None


def _elements(root: ET.Element) -> list[ET.Element]:
    """The elements that follow each other: those within the first one that has several alike."""
    for _ in range(_DEPTH):
        names = Counter(child.tag for child in root)
        name, count = names.most_common(1)[0] if names else ("", 0)
        if count > 1 or len(names) != 1:
            return root.findall(name) if name else []
        root = root[0]
    return []


def _records(root: ET.Element) -> list[dict[str, Any]]:
    return [_record(element) for element in _elements(root)]


def _record(element: ET.Element) -> dict[str, Any]:
    """Attributes by name; texts of elements by name, as a list where these are labels."""
    found: dict[str, Any] = dict(element.attrib)
    for child in element:
        name = child.tag.rpartition("}")[2]
        texts = [text for one in child.iter() if (text := (one.text or "").strip())]
        if is_label_name(name):
            found.setdefault(name, [])
            if isinstance(found[name], list):
                found[name] += texts
        else:
            found.setdefault(name, " ".join(texts))
    return found


FORMAT = Format(
    name="xml_records",
    summary="XML with an element for each image, its name and its labels; posts of Stack Exchange.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=ReadOnly("Such elements have names and attributes of their own"),
)
