"""PASCAL VOC's XML files: one for each image, with an ``object`` for each instance.

An XML file names what is there and not what was searched for, so unlisted pairs are open and the
user settles them. A class with only "difficult" instances is unknown unless the option says
otherwise. Document types and entities are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

from hilltop.checks import pluralize
from hilltop.data.assemble import Collector
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.folders.voc_layout import (
    ANNOTATIONS,
    SETS,
    find_devkit,
    split_lists,
)
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_names
from hilltop.data.formats.text.express import check_expressible, check_names
from hilltop.data.formats.text.folder_files import (
    choose_split,
    files_in,
    folders_in,
    need_folder,
    new_folder,
)
from hilltop.data.formats.text.xml_text import NOT_XML, parse_xml
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

_ROOT = re.compile(r"<annotation[\s>]")
_SAFE_NAME = re.compile(r"(\w[\w-]{0,99})(?:\.(?:jpg|jpeg|png))?", re.ASCII)


def fits(source: LabelSource) -> bool:
    """Whether the folder holds VOC's XML files."""
    if not source.is_folder:
        return False
    try:
        root = find_devkit(source.path)
    except DataError:
        return False
    files = _xml_files(root) or next(iter(_parts(root).values()), {})
    return bool(files) and _ROOT.search(LabelSource(next(iter(files.values()))).head) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a folder of XML files, or of a devkit the files of one split.

    In a bare folder image ids are the ``filename`` elements, or the names of the XML files where
    there is none. With ``ImageSets/Main/<split>.txt`` they are the names written there.
    """
    need_folder(source)
    root = find_devkit(source.path)
    files, part = _xml_files(root), None
    if not files and _parts(root):
        part = choose_split(source.path, _parts(root), options.split)
        files = _parts(root)[part]
    splits = split_lists(files_in(root / SETS))
    if not files:
        raise data_error(root, "there are no XML files here. Name the folder that holds them.")
    collector = Collector(source.path, options.class_list())
    notes: list[str] = []
    split = choose_split(root / SETS, splits, options.split) if splits else None
    named: list[tuple[str | None, Path]] = [(None, path) for path in files.values()]
    if split is not None:
        named, notes = _named_files(splits[split], files, collector.errors.found)
    unlisted = options.need_unlisted(source.path)
    first: dict[str, Path] = {}
    for name, path in named:
        _read_file(path, name, first, collector, State.parse(options.difficult))
    return collector.table(
        unlisted=unlisted, sort_classes=True, notes=notes, format="voc_xml", split=split or part
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write one XML file for each image into a new folder.

    An unknown pair is written as a "difficult" object, which is read as unknown again. Boxes are
    not known to a table and are written as zeros, because readers look them up.
    """
    check_expressible(
        table,
        path,
        lossy,
        states=(State.PRESENT, State.UNKNOWN),
        unused_classes=False,
        unlisted=(State.ABSENT, State.UNKNOWN),
    )
    images = table.images.to_pylist()
    check_names(path, "image", images, without=NOT_XML)
    check_names(path, "class", table.classes, without=NOT_XML)
    if not images:
        raise data_error(path, "this format cannot express a table without images.")
    with new_folder(path) as folder:
        for row, (image, name) in enumerate(zip(images, _file_names(images), strict=True)):
            root = _element(table, row, image, path.name)
            ET.indent(root, "\t")
            ET.ElementTree(root).write(folder / name, encoding="utf-8")


def _xml_files(root: Path) -> dict[str, Path]:
    """XML files by their name without the ending."""
    inside = root / ANNOTATIONS
    files = files_in(inside if inside.is_dir() else root)
    return {name[:-4]: path for name, path in files.items() if name.endswith(".xml")}


def _parts(root: Path) -> dict[str, dict[str, Path]]:
    """XML files by the folder they lie in, where the root has none: train, valid, annotations."""
    inside = {**folders_in(root), **folders_in(root / ANNOTATIONS)}
    found = {name: _xml_files(path) for name, path in inside.items()}
    return {name: files for name, files in found.items() if files}


def _named_files(
    wanted: Path, files: dict[str, Path], found: list[str]
) -> tuple[list[tuple[str | None, Path]], list[str]]:
    """The images of a split with their files; what stands in the list never becomes a path.

    Images without a file are counted and left out, unless they are most of the list.
    """
    names = read_names(wanted, "image")
    named: list[tuple[str | None, Path]] = [(name, files[name]) for name in names if name in files]
    missing = [(line, name) for line, name in enumerate(names, 1) if name not in files]
    if missing and len(missing) < len(named):
        have = pluralize(len(missing), "image has", "images have")
        first = missing[0][1]
        return named, [f"{have} no XML file and is left out, the first of them is {first!r}."]
    errors = ErrorCollector(wanted, found)
    for line, name in missing:
        errors.add(f"there is no XML file for image {name!r}.", line=line)
    return named, []


def _read_file(
    path: Path, name: str | None, first: dict[str, Path], collector: Collector, difficult: State
) -> None:
    """Add the objects of one file; its errors go to those of the collector."""
    errors = ErrorCollector(path, collector.errors.found)
    root = parse_xml(path, "annotation", errors)
    if root is None:
        return
    image = name or _text(root, "filename") or path.stem
    if image in first:
        errors.add(
            f"image {image!r} is described in {first[image].name} already. Keep one of them."
        )
        return
    first[image] = path
    row = collector.image(image)
    for label, state in _objects(root, difficult, errors):
        collector.label(row, label, state)


def _objects(
    root: ET.Element, difficult: State, errors: ErrorCollector
) -> Iterable[tuple[str, State]]:
    """Classes of an image; one instance that is not difficult makes its class present."""
    states: dict[str, State] = {}
    for number, item in enumerate(root.findall("object"), 1):
        if _text(item, "deleted") == "1":
            continue  # LabelMe keeps what was deleted.
        label, hard = _text(item, "name"), _text(item, "difficult") or "0"
        if not label:
            errors.add(f"object {number} has no name. Add one.")
        elif hard not in ("0", "1"):
            errors.add(f"object {number}: difficult must be 0 or 1, but got {hard!r:.60}.")
        elif hard == "0" or label not in states:
            states[label] = State.PRESENT if hard == "0" else difficult
    return states.items()


def _text(element: ET.Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _file_names(images: list[str]) -> list[str]:
    """Names for the files: those of the images where that is safe and keeps their order."""
    safe = [match for match in map(_SAFE_NAME.fullmatch, images) if match]
    names = [f"{match[1]}.xml" for match in safe]
    if len(safe) == len(images) and all(one < other for one, other in pairwise(names)):
        return names
    return [f"{number:08d}.xml" for number in range(1, len(images) + 1)]


def _element(table: LabelTable, row: int, image: str, folder: str) -> ET.Element:
    root = ET.Element("annotation")
    _add(root, folder=folder, filename=image)
    _add(ET.SubElement(root, "size"), width="0", height="0", depth="3")
    _add(root, segmented="0")
    for at in range(int(table.indptr[row]), int(table.indptr[row + 1])):
        if table.states[at] not in (State.PRESENT, State.UNKNOWN):
            continue
        item = ET.SubElement(root, "object")
        hard = "1" if table.states[at] == State.UNKNOWN else "0"
        _add(item, name=table.classes[table.columns[at]], pose="Unspecified", truncated="0")
        _add(item, difficult=hard)
        _add(ET.SubElement(item, "bndbox"), xmin="0", ymin="0", xmax="0", ymax="0")
    return root


def _add(parent: ET.Element, **children: str) -> None:
    for tag, text in children.items():
        ET.SubElement(parent, tag).text = text


FORMAT = Format(
    name="voc_xml",
    summary="PASCAL VOC XML: a folder with an XML file for each image.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    folders=True,
    boxes=True,
)
