"""One folder for each class with its images; an image in several folders has several labels.

The name of the image is its identity: ``cat/a.jpg`` and ``dog/a.jpg`` are one image of two labels.
Links to images count like images.
"""

from __future__ import annotations

import re
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.folders import (
    IMAGE_ENDINGS,
    choose_split,
    folders_in,
    image_files_in,
    need_folder,
)
from hilltop.data.format import Format
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Layout

_SPLIT = re.compile(r"(train|training|val|valid|validation|test|testing)\d*", re.IGNORECASE)
_FEWEST_CLASSES = 2


def matches(source: Source) -> bool:
    """Whether there are images in at least two folders, and none beside these folders."""
    if not source.is_folder:
        return False
    splits = _splits(source.path)
    parts = list(splits.values()) or [source.path]
    inside = folders_in(source.path)
    if not splits and inside and all(_SPLIT.fullmatch(name) for name in inside):
        return False  # Pictures by split, not by class.
    classes = [len(_classes(part)) for part in parts]
    apart = not any(image_files_in(part) for part in parts)
    return apart and min(classes) > 0 and max(classes) >= _FEWEST_CLASSES


def read(source: Source, layout: Layout) -> LabelTable:
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


FORMAT = Format(
    name="class_folders",
    summary="A folder for each class with its images; an image may be in several.",
    matches=matches,
    read=read,
    splits=lambda source: _splits(source.path),
    general=True,
    folders=True,
    file_names=True,
)
