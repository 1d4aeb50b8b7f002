"""PASCAL VOC: image sets with 1, -1 or 0 for each image and class, and XML files of objects.

By VOC's own definition 1 is present, -1 is absent (every image was searched for every class) and 0
says that only "difficult" instances are there; what those count as is an option, unknown unless
said. An XML file names what is there and not what was searched for, so there unlisted pairs are
open and the user settles them. Document types and entities are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import numpy as np

from hilltop.checks import pluralize
from hilltop.data.content import Source, read_lines, read_names
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.documents import (
    NOT_XML,
    Element,
    element_tree,
    parse_xml,
    replace_spans,
    replace_word,
    with_line,
)
from hilltop.data.folders import (
    choose_split,
    files_in,
    folders_in,
    need_folder,
    new_folder,
    write_lines,
)
from hilltop.data.format import (
    BOX_NOTE,
    Changes,
    FilePatch,
    Format,
    Patched,
    check_file_words,
    check_lossless,
    check_names,
)
from hilltop.data.label_table import Collector, LabelTable, State, Step
from hilltop.data.layout import Layout, ask
from hilltop.errors import DataError

SETS = Path("ImageSets") / "Main"
ANNOTATIONS = "Annotations"
_SPLIT = "train"
_JPEG = ".jpg"
_VALUES = {State.PRESENT: "1", State.ABSENT: "-1", State.UNKNOWN: "0"}
_ROOT = re.compile(r"<annotation[\s>]")
_SAFE_NAME = re.compile(r"(\w[\w-]{0,99})(?:\.(?:jpg|jpeg|png))?", re.ASCII)


def matches_sets(source: Source) -> bool:
    """Whether there are image sets with a file for each class and split."""
    try:
        by_split = _class_files(files_in(_find_sets(source.path)))
    except DataError:
        # Several data sets lie side by side: the reader says so.
        return True
    return any(_has_values(path) for files in by_split.values() for path in files.values())


def read_sets(source: Source, layout: Layout) -> LabelTable:
    """Read one split; -1 is absent unless the layout says otherwise."""
    need_folder(source)
    folder = _find_sets(source.path)
    files = files_in(folder)
    by_split = _class_files(files)
    if not by_split:
        raise data_error(
            folder, "there are no files such as cat_train.txt for a class and a split."
        )
    split = choose_split(folder, by_split, layout.split)
    chosen = by_split[split]
    classes = _class_order(folder, list(chosen), layout.classes)
    images = read_names(files[f"{split}.txt"], "image") if f"{split}.txt" in files else None
    found: list[str] = []
    notes: list[str] = []
    columns: list[list[int]] = []
    for name in classes:
        listed, values = _read_class_file(chosen[name], found, layout.difficult)
        if not columns:
            images, notes = _with_values(images, listed)
        if not found:
            _check_same_images(chosen[name], images or [], listed, found)
        columns.append(values)
    ErrorCollector(folder, found).check()
    absent = layout.state_of("-1")
    absent = State.ABSENT if absent is None else absent
    states = np.array(columns, dtype=np.int8).reshape(len(classes), -1).T
    states = np.where(states < 0, absent, states)
    rows, numbers = np.indices(states.shape)
    return LabelTable.from_coo(
        images or [],
        classes,
        rows.ravel(),
        numbers.ravel(),
        states.ravel(),
        unlisted=absent,
        source=folder,
        step=Step("read", {"file": str(source.path), "format": "voc", "split": split}),
        notes=notes,
    )


def write_sets(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write the image sets of one split, ``train``, into a new folder.

    Images are listed without the ending .jpg, as in VOC. An unknown pair is written as 0, "only
    difficult instances", which is read as unknown again. With ``lossy`` this also holds for a table
    whose unlisted pairs are unknown.
    """
    check_lossless(table, path, lossy, unlisted=(State.ABSENT,))
    check_names(path, "image", table.images.to_pylist(), without="")
    check_file_words(path, table.classes)
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    images = table.images.to_pylist()
    if not lossy and _without_endings(images) != images:
        raise data_error(
            path,
            "this format lists images without the ending .jpg. Pass --lossy to leave it out.",
        )
    if not lossy and list(table.classes) != sorted(table.classes):
        raise data_error(
            path, "this format keeps no order of classes. Pass --lossy to sort them by name."
        )
    with new_folder(path) as root:
        _write_sets(table, root / SETS)
    return Layout("voc", unlisted=State.ABSENT, split=_SPLIT)


def patch_sets(asked: FilePatch) -> Patched:
    """Change the values of the pairs in the files of their classes; all other lines stay."""
    source, layout = asked.source, asked.layout
    folder = _find_sets(source.path)
    files = files_in(folder)
    by_split = _class_files(files)
    chosen = by_split[choose_split(folder, by_split, layout.split)]
    absent = layout.state_of("-1") in (None, State.ABSENT)
    said = asked if absent else asked.without_absents()
    new = {str(SETS / path.name): path.read_bytes() for path in files.values()}
    written = {State.PRESENT: "1", State.ABSENT: "-1"}
    if layout.difficult == State.UNKNOWN:
        written[State.UNKNOWN] = "0"
    for name, path in chosen.items():
        wanted = {one.image: one.state for one in said.changes if one.class_name == name}
        if wanted:
            lines = path.read_bytes().decode("utf-8").split("\n")
            for at, line in enumerate(lines):
                words = line.rsplit(None, 1)
                if len(words) == 2 and words[0].strip() in wanted:
                    lines[at] = replace_word(line, -1, written[wanted[words[0].strip()]])
            new[str(SETS / path.name)] = "\n".join(lines).encode()
    return said.patched(new)


def _write_sets(table: LabelTable, folder: Path) -> None:
    folder.mkdir(parents=True)
    images = _without_endings(table.images.to_pylist())
    dense = table.dense()
    write_lines(folder / f"{_SPLIT}.txt", images)
    for column, name in enumerate(table.classes):
        values = [_VALUES[State(state)] for state in dense[:, column].tolist()]
        lines = [f"{image} {value:>2}" for image, value in zip(images, values, strict=True)]
        write_lines(folder / f"{name}_{_SPLIT}.txt", lines)


def _without_endings(images: list[str]) -> list[str]:
    """Ids as VOC lists them: its tools append the ending .jpg themselves."""
    bare = [name[: -len(_JPEG)] if name.lower().endswith(_JPEG) else name for name in images]
    return bare if all(bare) and len(set(bare)) == len(bare) else images


def _has_values(path: Path) -> bool:
    """Whether the first line of a file is an image and 1, 0 or -1."""
    words = Source(path).head.partition("\n")[0].split()
    return len(words) >= 2 and words[-1] in _VALUES.values()


def _class_order(folder: Path, found: list[str], closed: tuple[str, ...] | None) -> Sequence[str]:
    if closed is None:
        return sorted(found)
    errors = ErrorCollector(folder)
    for name in found:
        if name not in closed:
            errors.add(unknown_class(name, closed))
    for name in closed:
        if name not in found:
            errors.add(f"there is no file for class {name!r} of the class list.")
    errors.check()
    return closed


def _read_class_file(path: Path, found: list[str], difficult: State) -> tuple[list[str], list[int]]:
    """Images of one class file and their states, with -1 left as it is."""
    errors = ErrorCollector(path, found)
    meaning = {"1": int(State.PRESENT), "0": int(difficult), "-1": -1}
    images, values = [], []
    for line, text in read_lines(path):
        words = text.rsplit(None, 1)
        if len(words) == 2 and words[1] in meaning:
            images.append(words[0].strip())
            values.append(meaning[words[1]])
        else:
            errors.add(
                f"expected an image and 1, 0 or -1, such as '2008_00008 -1', but got {text!r:.50}.",
                line=line,
            )
    return images, values


def _with_values(images: list[str] | None, listed: list[str]) -> tuple[list[str], list[str]]:
    """The images of a split that the files of classes list, and what to say of others."""
    if images is None:
        return listed, []
    known = set(listed)
    left = [name for name in images if name not in known]
    if not left or len(left) >= len(listed) or [one for one in images if one in known] != listed:
        return images, []
    have = pluralize(len(left), "image has", "images have")
    return listed, [
        f"{have} no line in the files of classes and is left out: {left[0]!r} is first."
    ]


def _check_same_images(path: Path, images: list[str], listed: list[str], found: list[str]) -> None:
    """Every class of a split must list the same images in the same order."""
    rule = "All files of a split must list the same images in the same order."
    errors = ErrorCollector(path, found)
    for line, (wanted, given) in enumerate(zip(images, listed, strict=False), 1):
        if wanted != given:
            errors.add(f"expected image {wanted!r}, but got {given!r}. {rule}", line=line)
            return
    if len(images) != len(listed):
        wanted = pluralize(len(images), "image", "images")
        errors.add(f"expected {wanted}, but got {len(listed)}. {rule}")


def matches_xml(source: Source) -> bool:
    """Whether the folder holds VOC's XML files."""
    try:
        root = _find_devkit(source.path)
    except DataError:
        return False
    files = _xml_files(root) or next(iter(_xml_parts(root).values()), {})
    return bool(files) and _ROOT.search(Source(next(iter(files.values()))).head) is not None


def read_xml(source: Source, layout: Layout) -> LabelTable:
    """Read a folder of XML files, or of a devkit the files of one split.

    In a bare folder image ids are the ``filename`` elements, or the names of the XML files where
    there is none. With ``ImageSets/Main/<split>.txt`` they are the names written there.
    """
    need_folder(source)
    found = _files_of(source, layout.split)
    collector = Collector(source.path, layout.classes)
    first: dict[str, Path] = {}
    for name, path in found.named:
        _read_file(path, name, first, collector, layout.difficult)
    return collector.table(
        unlisted=layout.unlisted,
        sort_classes=True,
        notes=found.notes,
        format="voc_xml",
        split=found.split,
    )


def write_xml(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write one XML file for each image into a new folder.

    An unknown pair is written as a "difficult" object, which is read as unknown again. Boxes are
    not known to a table and are written as zeros, because readers look them up.
    """
    check_lossless(
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
    return Layout("voc_xml", unlisted=table.unlisted, classes=table.classes)


def patch_xml(asked: FilePatch) -> Patched:
    """Add objects with the box of the whole image, and take out those of wrong labels."""
    said, source = asked.without_absents(), asked.source
    found = _files_of(source, asked.layout.split)
    new = {str(path.relative_to(source.path)): path.read_bytes() for path in found.lists}
    for name, path in found.named:
        content = path.read_bytes()
        root = element_tree(content)
        image = name or _element_text(root, "filename") or path.stem
        new[str(path.relative_to(source.path))] = _with_objects(content, root, said.of(image))
    return said.patched(new, notes=[BOX_NOTE] if said.changes.added else [])


class _Files(NamedTuple):
    """XML files by the image that a list names, the lists, the split, and what to note."""

    named: Sequence[tuple[str | None, Path]]
    lists: Sequence[Path] = ()
    split: str | None = None
    notes: Sequence[str] = ()


def _files_of(source: Source, split: str | None) -> _Files:
    """The files of a data set, or of one split of it."""
    root = _find_devkit(source.path)
    files, parts = _xml_files(root), _xml_parts(root)
    if not files and parts:
        split = choose_split(source.path, parts, split)
        return _Files([(None, path) for path in parts[split].values()], split=split)
    if not files:
        raise data_error(root, "there are no XML files here. Name the folder that holds them.")
    splits = _split_lists(files_in(root / SETS))
    if not splits:
        if parts:
            below = next(iter(parts))
            raise data_error(
                root,
                f"there are XML files here and in {below!r}. Name one of these folders.",
            )
        return _Files([(None, path) for path in files.values()])
    split = choose_split(root / SETS, splits, split)
    named, notes = _named_files(splits[split], files)
    return _Files(named, list(splits.values()), split, notes)


def _with_objects(content: bytes, root: Element, wanted: Changes) -> bytes:
    edits = [
        (*with_line(content, item.start, item.end), b"")
        for item in root.children
        if item.tag == "object" and _element_text(item, "name") in wanted.struck
    ]
    size = root.find("size")
    width, height = (
        (_element_text(size, tag) if size else "") or "0" for tag in ("width", "height")
    )
    first = next((item for item in root.children if item.tag == "object"), None)
    between = b"\n"
    if first is not None:
        between = content[content.rfind(b"\n", 0, first.start) : first.start]
        between = between if between.startswith(b"\n") and not between.strip() else b"\n"
    for name in wanted.added:
        item = (
            f"<object><name>{escape(name)}</name><pose>Unspecified</pose>"
            "<truncated>0</truncated><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>1</ymin>"
            f"<xmax>{width}</xmax><ymax>{height}</ymax></bndbox></object>"
        )
        edits.append((root.inner_end, root.inner_end, (between.decode() + item).encode()))
    if wanted.added:
        edits.append((root.inner_end, root.inner_end, b"\n"))
    return replace_spans(content, edits)


def _element_text(element: Element, tag: str) -> str:
    inner = element.find(tag)
    return "" if inner is None else inner.text.strip()


def _set_splits(source: Source) -> Iterable[str]:
    return [] if not source.is_folder else _class_files(files_in(_find_sets(source.path)))


def _xml_splits(source: Source) -> Iterable[str]:
    need_folder(source)
    root = _find_devkit(source.path)
    if not _xml_files(root):
        return _xml_parts(root)
    return _split_lists(files_in(root / SETS))


def _xml_files(root: Path) -> dict[str, Path]:
    """XML files by their name without the ending."""
    inside = root / ANNOTATIONS
    files = files_in(inside if inside.is_dir() else root)
    return {name[:-4]: path for name, path in files.items() if name.lower().endswith(".xml")}


def _xml_parts(root: Path) -> dict[str, dict[str, Path]]:
    """XML files by the folder they lie in, where the root has none: train, valid, annotations."""
    inside = {**folders_in(root), **folders_in(root / ANNOTATIONS)}
    found = {name: _xml_files(path) for name, path in inside.items()}
    return {name: files for name, files in found.items() if files}


def _named_files(
    wanted: Path, files: dict[str, Path]
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
    errors = ErrorCollector(wanted)
    for line, name in missing:
        errors.add(f"there is no XML file for image {name!r}.", line=line)
    errors.check()
    return named, []


def _read_file(
    path: Path, name: str | None, first: dict[str, Path], collector: Collector, difficult: State
) -> None:
    """Add the objects of one file; its errors go to those of the collector."""
    errors = ErrorCollector(path, collector.errors.found)
    root = parse_xml(Source(path), "annotation", errors)
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


def _find_devkit(path: Path) -> Path:
    """Return the folder of one data set: this one, or the only one in it.

    Raises:
        AmbiguousInputError: There are several, such as VOC2007 and VOC2012.
    """
    if (path / SETS).is_dir() or (path / ANNOTATIONS).is_dir():
        return path
    inside = [child for child in sorted(path.iterdir()) if (child / SETS).is_dir()]
    if len(inside) > 1:
        names = ", ".join(child.name for child in inside)
        raise ask(path, f"There are several data sets here: {names}. Name one of them.")
    return inside[0] if inside else path


def _find_sets(path: Path) -> Path:
    """Return the folder of image sets: in a devkit, in ``ImageSets``, or this one itself."""
    for inner in (path / SETS.name, path):
        if path.name in SETS.parts and inner.is_dir() and any(inner.glob("*_*.txt")):
            return inner
    return _find_devkit(path) / SETS


def _class_files(files: dict[str, Path]) -> dict[str, dict[str, Path]]:
    """Files by split and class, from names such as ``cat_train.txt``."""
    stems = {name.removesuffix(".txt"): path for name, path in files.items() if _is_list(name)}
    plain = {stem for stem in stems if "_" not in stem}
    found: dict[str, dict[str, Path]] = {}
    for stem, path in stems.items():
        name, _, split = stem.rpartition("_")
        if name and split and (split in plain or not plain):
            found.setdefault(split, {})[name] = path
    return found


def _split_lists(files: dict[str, Path]) -> dict[str, Path]:
    """Files that name the images of a split, such as ``train.txt``."""
    stems = {name.removesuffix(".txt"): path for name, path in files.items() if _is_list(name)}
    return {
        stem: path
        for stem, path in stems.items()
        if "_" not in stem or stem.rpartition("_")[2] not in stems
    }


def _is_list(name: str) -> bool:
    return name.endswith(".txt")


FORMAT = Format(
    name="voc",
    summary="PASCAL VOC image sets: a folder with ImageSets/Main/<class>_<split>.txt.",
    matches=matches_sets,
    read=read_sets,
    unlisted=State.ABSENT,
    write=write_sets,
    patch=patch_sets,
    splits=_set_splits,
    files=False,
    folders=True,
)
XML_FORMAT = Format(
    name="voc_xml",
    summary="PASCAL VOC XML: a folder with an XML file for each image.",
    matches=lambda source: matches_xml(source) and not matches_sets(source),
    read=read_xml,
    write=write_xml,
    patch=patch_xml,
    splits=_xml_splits,
    files=False,
    folders=True,
    boxes=True,
)
