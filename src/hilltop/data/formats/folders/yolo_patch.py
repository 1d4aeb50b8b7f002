"""A YOLO data set with some labels changed: boxes and segments that are there stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from hilltop.data.formats.folders.yolo_layout import IMAGES, LABELS, YoloFolder, find_yolo
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, by_image
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.folder_files import choose_split, new_folder, write_lines
from hilltop.data.state import State

WHOLE_IMAGE = "0.5 0.5 1 1"
"""The box of an object of which nobody said where it is."""
_SPLIT = "train"
Names = Callable[[YoloFolder, str, ReadOptions], dict[int, str]]


def patch_yolo(
    original: Original, changes: Sequence[Change], out: Path, names: Names
) -> ReadOptions:
    """Write the split that was read, with labels added or taken out; return how to read it.

    Args:
        original: The data set.
        changes: Labels that come are present; others go, with all their lines.
        out: A folder that is new or empty.
        names: Gives the name of every class number.
    """
    found = find_yolo(LabelSource(original.path, original.options))
    split = choose_split(original.path, found.splits, original.options.split)
    files, listed = found.label_files(split), found.image_names(split)
    named = names(found, split, original.options)
    stem_of = {listed.get(stem, stem): stem for stem in files}
    wanted = by_image(changes)
    with new_folder(out) as root:
        folder = root / LABELS / _SPLIT
        folder.mkdir(parents=True)
        content = {"path": ".", "train": f"{_SPLIT}.txt", "names": named}
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        (root / "data.yaml").write_text(text, encoding="utf-8")
        images = original.table.images.to_pylist()
        write_lines(root / f"{_SPLIT}.txt", (f"./{IMAGES}/{_SPLIT}/{name}" for name in images))
        for image in images:
            stem = stem_of[image]
            lines = [line for _, line in read_lines(files[stem])]
            write_lines(folder / f"{stem}.txt", _changed(lines, wanted.get(image, []), named))
    return replace(original.options, split=None, classes=None)


def _changed(lines: list[str], changes: Sequence[Change], named: dict[int, str]) -> list[str]:
    number = {name: at for at, name in named.items()}
    gone = {number[one.class_name] for one in changes if one.state != State.PRESENT}
    kept = [line for line in lines if not line.split() or int(line.split()[0]) not in gone]
    new = [one for one in changes if one.state == State.PRESENT]
    return [*kept, *(f"{number[one.class_name]} {WHOLE_IMAGE}" for one in new)]
