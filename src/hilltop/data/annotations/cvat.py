"""CVAT for images 1.1 or for video 1.1: one XML file with tags and shapes, or tracks of these.

A tag, box, polygon or any other shape makes its label present. The task's list of labels is the
list of classes. Document types and entities are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.documents import NOT_XML, element_tree, parse_xml, replace_spans, with_line
from hilltop.data.files import replacing
from hilltop.data.folders import choose_split
from hilltop.data.format import (
    FilePatch,
    Format,
    Patched,
    check_names,
    check_present_only,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Layout

_DIGITS, _MOST_FRAMES = 9, 1_000_000
_ROOT = re.compile(r"(?:<\?xml[^>]*\?>|<!--.*?-->|\s)*<annotations[\s>]", re.DOTALL)


def matches(source: Source) -> bool:
    """Whether this is XML whose outermost element is ``annotations``."""
    return _ROOT.match(source.head) is not None


def read(source: Source, layout: Layout) -> LabelTable:
    """Read all images, or those of the subset that ``layout.split`` names."""
    errors = ErrorCollector(source.path)
    root = parse_xml(source, "annotations", errors)
    errors.check()
    assert root is not None  # else there were errors
    if root.find("track") is not None and root.find("image") is not None:
        raise data_error(source.path, "it holds images and tracks of a video. Export them apart.")
    if root.find("track") is not None:
        return _read_video(source, root, layout)
    images = root.findall("image")
    if layout.split is not None:
        subsets = {image.get("subset") or "default" for image in images}
        split = choose_split(source.path, subsets, layout.split)
        images = [image for image in images if (image.get("subset") or "default") == split]
    collector = Collector(source.path, layout.classes or _class_list(root))
    for number, image in enumerate(images, 1):
        name = image.get("name") or ""
        if not name:
            collector.errors.add(f"image {number} has no name.")
            continue
        row = collector.image(name, once=True)
        for shape in image:
            label = shape.get("label")
            if label is None:
                collector.errors.add(f"image {name!r:.60}: a {shape.tag!r:.20} has no label.")
            else:
                collector.label(row, label, State.PRESENT)
    collector.errors.check()
    return collector.table(unlisted=layout.unlisted, format="cvat")


def _read_video(source: Source, root: ET.Element, layout: Layout) -> LabelTable:
    """Read the tracks of a video: a label is present in all frames in which its shape is inside.

    Frames are called as CVAT calls them in an export with images: ``frame_000000``.
    """
    collector = Collector(source.path, layout.classes or _class_list(root))
    shapes: list[tuple[int, str]] = []
    for track in root.findall("track"):
        label = track.get("label")
        for shape in track:
            number = shape.get("frame", "")
            if label is None or not number.isdecimal() or len(number) >= _DIGITS:
                collector.errors.add(f"track {track.get('id')!r:.20} has no label or frame.")
            elif shape.get("outside") != "1":
                shapes.append((int(number), label))
    for frame in _frames(root, [frame for frame, _ in shapes]):
        collector.image(f"frame_{frame:06d}")
    for frame, label in shapes:
        collector.label(collector.image(f"frame_{frame:06d}"), label, State.PRESENT)
    collector.errors.check()
    note = "images are the frames of a video, frame_000000 and so on."
    return collector.table(unlisted=layout.unlisted, notes=[note], format="cvat")


def _frames(root: ET.Element, seen: Sequence[int]) -> Sequence[int]:
    """All frames of the task, as far as it says how many there are."""
    words = [root.findtext(f"meta//{name}") or "" for name in ("start_frame", "stop_frame")]
    if all(word.isdecimal() and len(word) < _DIGITS for word in words):
        return range(int(words[0]), min(int(words[1]), int(words[0]) + _MOST_FRAMES) + 1)
    return sorted(set(seen))


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a tag for each label, and the list of classes, as CVAT imports it.

    Sizes, which a table does not know, are left out: readers take them from the pictures then,
    and stop at zeros.
    """
    check_present_only(table, path, lossy)
    images = table.images.to_pylist()
    check_names(path, "image", images, without=NOT_XML)
    check_names(path, "class", table.classes, without=NOT_XML)
    root = ET.Element("annotations")
    ET.SubElement(root, "version").text = "1.1"
    task = ET.SubElement(ET.SubElement(root, "meta"), "task")
    labels = ET.SubElement(task, "labels")
    for name in table.classes:
        label = ET.SubElement(labels, "label")
        ET.SubElement(label, "name").text = name
        ET.SubElement(label, "attributes")
    for row, name in enumerate(images):
        image = ET.SubElement(root, "image", id=str(row), name=name)
        for present in table.labels_of(row):
            ET.SubElement(image, "tag", label=present, source="manual")
    ET.indent(root, "  ")
    with replacing(path) as temporary:
        ET.ElementTree(root).write(temporary, encoding="utf-8", xml_declaration=True)
    return Layout("cvat", unlisted=table.unlisted)


def patch(asked: FilePatch) -> Patched:
    """Add tags to the images, and take out all tags and shapes of labels that were wrong."""
    said, content = asked.without_absents(), asked.source.raw
    if asked.source.is_packed or asked.source.encoding not in ("utf-8", "utf-8-sig"):
        raise asked.refused("only plain UTF-8 files can be changed in place.")
    root = element_tree(content)
    if root.find("track") is not None:
        raise asked.refused("the tracks of a video are read, but not changed.")
    split = asked.layout.split
    edits: list[tuple[int, int, bytes]] = []
    for image in root.children:
        if image.tag != "image":
            continue
        if split is not None and (image.attributes.get("subset") or "default") != split:
            continue
        wanted = said.of(image.attributes.get("name", ""))
        gone = wanted.struck
        for shape in image.children:
            if shape.attributes.get("label") in gone:
                edits.append((*with_line(content, shape.start, shape.end), b""))
        tags = [f'<tag label={quoteattr(name)} source="manual"></tag>' for name in wanted.added]
        new = "".join(f"{tag}\n" for tag in tags).encode()
        if new and image.is_closed_at_once:
            edits.append((image.end - len(b"/>"), image.end, b">\n" + new + b"</image>"))
        elif new:
            edits.append((image.inner_end, image.inner_end, new))
    return said.patched(replace_spans(content, edits))


def _class_list(root: ET.Element) -> list[str] | None:
    """The labels of the task, project or job, if they are listed."""
    meta = root.find("meta")
    found = [] if meta is None else meta.findall(".//labels/label/name")
    names = [(name.text or "").strip() for name in found]
    return list(dict.fromkeys(name for name in names if name)) or None


FORMAT = Format(
    name="cvat",
    summary="CVAT for images 1.1: an XML file with tags and shapes of every image.",
    matches=matches,
    read=read,
    write=write,
    patch=patch,
    begins="<",
    file_names=True,
    boxes=True,
)
