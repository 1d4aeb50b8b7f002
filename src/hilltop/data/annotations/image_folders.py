"""Folders of images: one for each class, or one in which every image has a text file of tags.

Of class folders the name of the image is its identity: ``cat/a.jpg`` and ``dog/a.jpg`` are one
image of two labels. Links to images count like images.

Sidecar files are ``a.txt`` with ``solo, long hair`` beside ``a.jpg``: collections for training
image generators and many taggers keep labels so. Commas or line ends separate the tags. Where the
images are not there, an image is called by its text file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.folders import (
    IMAGE_ENDINGS,
    choose_split,
    files_in,
    folders_in,
    image_files_in,
    need_folder,
    new_folder,
    write_lines,
)
from hilltop.data.format import (
    Changes,
    FilePatch,
    Format,
    Patched,
    check_file_words,
    check_names,
    check_present_only,
    plain_layout,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions, unlisted_question
from hilltop.data.tables.words import FILE_ENDING

_SPLIT = re.compile(r"(train|training|val|valid|validation|test|testing)\d*", re.IGNORECASE)
_FEWEST_CLASSES = 2


def matches_class_folders(source: Source) -> bool:
    """Whether there are images in at least two folders, and none beside these folders."""
    splits = _splits(source.path)
    parts = list(splits.values()) or [source.path]
    inside = folders_in(source.path)
    if not splits and inside and all(_SPLIT.fullmatch(name) for name in inside):
        return False  # Pictures by split, not by class.
    classes = [len(_classes(part)) for part in parts]
    apart = not any(image_files_in(part) for part in parts)
    return apart and min(classes) > 0 and max(classes) >= _FEWEST_CLASSES


def read_class_folders(source: Source, layout: Layout) -> LabelTable:
    """Read the folders of one split, or of the only one; a folder's name is its class."""
    need_folder(source)
    splits = _splits(source.path)
    split = choose_split(source.path, splits, layout.split) if splits else None
    root = source.path if split is None else splits[split]
    classes = _classes(root)
    if not classes:
        raise data_error(
            root, f"there are no folders with images ({', '.join(IMAGE_ENDINGS)}) here."
        )
    _check_all_read(root)
    collector = Collector(source.path, layout.classes or list(classes))
    holders: dict[str, list[Path]] = {}
    for name, images in classes.items():
        for image, path in images.items():
            collector.label(collector.image(image), name, State.PRESENT)
            holders.setdefault(image, []).append(path)
    return collector.table(
        unlisted=layout.unlisted,
        notes=_notes(holders),
        format="class_folders",
        split=split,
    )


def _splits(root: Path) -> dict[str, Path]:
    """Folders of splits, if all folders here are called so and hold folders with images."""
    inside = folders_in(root)
    if not inside or not all(_SPLIT.fullmatch(name) for name in inside):
        return {}
    return {name: path for name, path in inside.items() if _classes(path)}


def _classes(root: Path) -> dict[str, dict[str, Path]]:
    """Images of each folder that has any, by its name."""
    found = {name: image_files_in(path) for name, path in folders_in(root).items()}
    return {name: images for name, images in found.items() if images}


def _check_all_read(root: Path) -> None:
    """Raise if pictures would be left out: those of other kinds, or deeper down."""
    errors = ErrorCollector(root)
    for name, folder in folders_in(root).items():
        for file, path in files_in(folder).items():
            if FILE_ENDING.search(file) and path.suffix.lower() not in IMAGE_ENDINGS:
                errors.add(
                    f"{name}/{file} is no image that is read ({', '.join(IMAGE_ENDINGS)}). Convert"
                    " it, or take it away."
                )
        for inner, below in folders_in(folder).items():
            if first := next(iter(image_files_in(below)), None):
                errors.add(
                    f"{name}/{inner}/{first} lies in a folder within that of a class. Put its"
                    " images into the folder of their class."
                )
    errors.check()


def _notes(holders: dict[str, list[Path]]) -> list[str]:
    """Say so if images of one name differ in size: then they are probably not one image."""
    differ = [
        image
        for image, paths in holders.items()
        if len(paths) > 1 and len({path.stat().st_size for path in paths}) > 1
    ]
    if not differ:
        return []
    names = pluralize(len(differ), "image name stands", "image names stand")
    return [
        f"{names} for files of different size in several folders, the first is {differ[0]!r};"
        " they are read as one image each. Rename those that are not."
    ]


CLASS_FOLDERS = Format(
    name="class_folders",
    summary="A folder for each class with its images; an image may be in several.",
    matches=matches_class_folders,
    read=read_class_folders,
    splits=lambda source: _splits(source.path),
    general=True,
    files=False,
    folders=True,
    file_names=True,
)


_SUFFIXES = (".txt", ".caption", ".tags")
_NUMBERS = re.compile(r"[0-9.\s-]+")
_PEEKED = 20


def matches_sidecar(source: Source) -> bool:
    """Whether most images of the folder, or of one in it, have a text file of words."""
    pairs = _pairs(source.path)
    images = sum(len(image_files_in(folder)) for folder in _places(source.path))
    if not images or 2 * len(pairs) <= images:
        return False
    heads = [Source(path).head.strip() for path in [*pairs.values()][:_PEEKED]]
    first = [head.partition("\n")[0] for head in heads if head]
    return bool(first) and not all(_NUMBERS.fullmatch(line) for line in first)


def detect_sidecar(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find what separates the tags of a line: what any line has, or nothing."""
    need_folder(source)
    layout = plain_layout("sidecar", options, classes)
    questions: list[Question] = []
    delimiter = options.delimiter
    if delimiter is None:
        files = _pairs(source.path).values()
        lines = [line for path in files for _, line in source.within(path).lines]
        marks = [mark for mark in (",", ";", "|") if any(mark in line for line in lines)]
        if len(marks) > 1:
            shown = " or ".join(map(repr, marks))
            questions.append(
                Question(f"Tags may be separated by {shown}. Pass --delimiter.", {"delimiter": ","})
            )
        delimiter = marks[0] if marks else None
    if options.unlisted is None:
        questions.append(unlisted_question())
    if questions:
        return Ambiguous(source.path, questions, options)
    return replace(layout, delimiter=None if delimiter == "none" else delimiter)


def read_sidecar(source: Source, layout: Layout) -> LabelTable:
    """Read the tags of every image; one without a text file is left out and counted."""
    need_folder(source)
    pairs = _pairs(source.path)
    if not pairs:
        raise data_error(source.path, "there are no text files of tags here.")
    collector = Collector(source.path, layout.classes)
    for image, path in pairs.items():
        row = collector.image(image)
        for number, line in source.within(path).lines:
            for tag in _tags(line, layout.delimiter):
                collector.label(row, tag, State.PRESENT, line=number, file=path)
    images = sum(len(image_files_in(folder)) for folder in _places(source.path))
    texts = [path for folder in _places(source.path) for path in _texts_in(folder).values()]
    alone = [path.name for path in texts if path not in pairs.values()]
    notes = []
    if images > len(pairs):
        have = pluralize(images - len(pairs), "image has", "images have")
        notes.append(f"{have} no text file of tags and is left out.")
    if alone:
        have = pluralize(len(alone), "text file has", "text files have")
        notes.append(f"{have} no image and is left out: {alone[0]!r} is first.")
    return collector.table(
        unlisted=layout.unlisted, sort_classes=True, notes=notes, format="sidecar"
    )


def write_sidecar(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a text file for each image into a new folder, to be put beside the images."""
    check_present_only(table, path, lossy, unused_classes=False)
    images = table.images.to_pylist()
    check_file_words(path, tuple(images), kind="image")
    check_names(path, "class", table.classes, without=",")
    stems = [Path(name).stem for name in images]
    if len(set(stems)) < len(stems) or not images:
        raise data_error(
            path,
            "this format cannot express a table without images, nor images that differ only in the"
            " ending.",
        )
    if not lossy and (stems != images or stems != sorted(stems)):
        raise data_error(
            path,
            "text files keep neither the endings nor the order of images. Pass --lossy to leave"
            " them out; beside the images, the files are read with their endings.",
        )
    with new_folder(path) as folder:
        for row, stem in enumerate(stems):
            write_lines(folder / f"{stem}.txt", [", ".join(table.labels_of(row))])
    several = any(len(table.labels_of(row)) > 1 for row in range(len(table)))
    return Layout(
        "sidecar",
        unlisted=table.unlisted,
        delimiter="," if several else None,
        classes=table.classes,
    )


def patch_sidecar(asked: FilePatch) -> Patched:
    """Add tags to the text files, and take wrong ones out; the images are not copied."""
    said, root, mark = asked.without_absents(), asked.source.path, asked.layout.delimiter
    pairs = _pairs(root)
    new: dict[str, bytes] = {}
    for image, path in pairs.items():
        wanted = said.of(image)
        inside = str(path.relative_to(root))
        file = asked.source.within(path)
        new[inside] = file.raw
        if wanted:
            new[inside] = _with_tags(file.text, wanted, mark).encode(file.encoding)
    files = {image: path.relative_to(root) for image, path in pairs.items()}
    names = [str(files[image].with_suffix("")) for image in asked.table.images.to_pylist()]
    return replace(said.patched(new), images=names)


def _with_tags(text: str, changes: Changes, mark: str | None) -> str:
    gone, names = changes.struck, changes.added
    lines = []
    for line in text.split("\n"):
        if gone & set(_tags(line, mark)):
            if mark is None:
                continue
            kept = [part for part in line.split(mark) if part.strip() not in gone]
            line = mark.join(kept).strip()
        lines.append(line)
    if not names:
        return "\n".join(lines)
    if mark is None:
        body = "\n".join(lines)
        return (body if body.endswith("\n") or not body else f"{body}\n") + "".join(
            f"{name}\n" for name in names
        )
    at = max((number for number, line in enumerate(lines) if line.strip()), default=0)
    before = [lines[at].rstrip()] if lines[at].strip() else []
    lines[at] = f"{mark} ".join([*before, *names])
    return "\n".join(lines)


def _tags(line: str, mark: str | None) -> list[str]:
    words = [word.strip() for word in (line.split(mark) if mark else [line])]
    return list(dict.fromkeys(word for word in words if word))


def _places(root: Path) -> list[Path]:
    """The folder, or those in it where it has no images itself."""
    return [root] if image_files_in(root) or not folders_in(root) else [*folders_in(root).values()]


def _pairs(root: Path) -> dict[str, Path]:
    """The text file of each image, or each text file by its name where there are no images."""
    found: dict[str, Path] = {}
    images = False
    for folder in _places(root):
        files = {
            f"{Path(name).stem}{path.suffix.lower()}": path
            for name, path in files_in(folder).items()
        }
        for name in image_files_in(folder):
            images = True
            stem = name.rpartition(".")[0]
            beside = (files.get(f"{one}{end}") for end in _SUFFIXES for one in (stem, name))
            path = next((path for path in beside if path), None)
            if path is not None and path in found.values():
                raise data_error(
                    root,
                    f"two images, {name!r} among them, would share the tags in {path.name}. Rename"
                    " one of them.",
                )
            if path is not None:
                found[name if folder == root else f"{folder.name}/{name}"] = path
    if images:
        return found
    for folder in _places(root):
        for name, path in _texts_in(folder).items():
            stem = name.rpartition(".")[0]
            found[stem if folder == root else f"{folder.name}/{stem}"] = path
    return found


def _texts_in(folder: Path) -> dict[str, Path]:
    return {
        name: path for name, path in files_in(folder).items() if path.suffix.lower() in _SUFFIXES
    }


SIDECAR = Format(
    name="sidecar",
    summary="A text file of tags for every image, separated by commas or line ends.",
    matches=matches_sidecar,
    detect=detect_sidecar,
    read=read_sidecar,
    write=write_sidecar,
    patch=patch_sidecar,
    files=False,
    folders=True,
    file_names=True,
)
