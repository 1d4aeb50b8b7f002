"""A small PASCAL VOC data set with image sets and XML files that say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions, read_labels
from hilltop.errors import DataError

SETS = {
    "train": "2008_01\n2008_02\n",
    "val": "2008_03\n",
    "dog_train": "2008_01 -1\n2008_02  1\n",
    "dog_val": "2008_03  0\n",
    "train_train": "2008_01  0\n2008_02 -1\n",
    "train_val": "2008_03  1\n",
}
OBJECTS = {
    "2008_01": [("train", "1"), ("train", "1")],
    "2008_02": [("dog", "1"), ("dog", "0")],
    "2008_03": [("dog", "1"), ("train", "")],
}


def annotation(image: str, objects: list[tuple[str, str]]) -> str:
    items = "".join(
        f"<object><name> {name}\n</name><part><name>head</name></part>"
        + (f"<difficult>{hard}</difficult>" if hard else "")
        + "</object>"
        for name, hard in objects
    )
    return f"<annotation>\n<filename>{image}.jpg</filename>\n{items}\n</annotation>\n"


def make_devkit(folder: Path) -> Path:
    root = folder / "VOCdevkit" / "VOC2012"
    (root / "ImageSets" / "Main").mkdir(parents=True)
    (root / "Annotations").mkdir()
    for name, content in SETS.items():
        (root / "ImageSets" / "Main" / f"{name}.txt").write_text(content)
    for image, objects in OBJECTS.items():
        (root / "Annotations" / f"{image}.xml").write_text(annotation(image, objects))
    return root


def message(path: Path, format: str, options: ReadOptions) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format=format, options=options)
    return str(caught.value)
