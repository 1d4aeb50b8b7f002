"""NUS-WIDE in its original layout: a list of images, and for each concept a file of zeros and ones.

The folder holds ``Concepts81.txt``, ``Imagelist.txt`` and ``Groundtruth/AllLabels``; of the two
parts ``TrainImagelist.txt``, ``TestImagelist.txt`` and ``Groundtruth/TrainTestLabels``. Where
that is not so, they are looked for in all folders. The zeros are bare: nothing says whether a
person looked, so the user does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilltop.checks import pluralize
from hilltop.data.content import Source, read_class_file, read_lines, read_names
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.folders import (
    FolderTree,
    choose_split,
    files_in,
    need_folder,
)
from hilltop.data.format import (
    Format,
)
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import Layout

_CONCEPTS = "Concepts81.txt"
_LISTS = {"all": "Imagelist.txt", "train": "TrainImagelist.txt", "test": "TestImagelist.txt"}
_LABELS = {
    "all": ("AllLabels", "Labels_{}.txt"),
    "train": ("TrainTestLabels", "Labels_{}_Train.txt"),
    "test": ("TrainTestLabels", "Labels_{}_Test.txt"),
}
_ZERO, _ONE, _END = b"01\n"


def matches(source: Source) -> bool:
    """Whether there are a concept list, an image list and a folder of ground truth."""
    places = (source.path / "ConceptsList" / _CONCEPTS, source.path / _CONCEPTS)
    return any(path.is_file() for path in places) and bool(_splits(FolderTree(source.path)))


def read(source: Source, layout: Layout) -> LabelTable:
    """Read one split: all, train or test. Image ids keep the backslashes of the lists.

    A class list takes the place of the concept list, for example to read only some concepts.
    """
    need_folder(source)
    root = source.path
    tree = FolderTree(root)
    splits = _splits(tree)
    if not splits:
        raise data_error(
            root, "there is no Imagelist.txt with a folder Groundtruth/AllLabels beside it."
        )
    split = choose_split(root, splits, layout.split)
    classes = layout.classes or _concepts(tree)
    images = read_names(splits[split][0], "image")
    labels, pattern = files_in(splits[split][1]), _LABELS[split][1]
    errors = ErrorCollector(splits[split][1])
    columns = []
    for name in classes:
        path = labels.get(pattern.format(name))
        if path is None:
            errors.add(f"there is no file {pattern.format(name)!r} for concept {name!r}.")
        else:
            columns.append(_read_ones(path, len(images), errors.found))
    errors.check()
    rows = np.concatenate([*columns, np.empty(0, dtype=np.int64)])
    return LabelTable.from_coo(
        images,
        classes,
        rows,
        np.repeat(np.arange(len(classes)), [len(column) for column in columns]),
        State.PRESENT,
        unlisted=layout.unlisted,
        source=root,
        step=Step("read", {"file": str(root), "format": "nus", "split": split}),
    )


def _concepts(tree: FolderTree) -> Sequence[str]:
    path = tree.file(f"ConceptsList/{_CONCEPTS}", _CONCEPTS)
    if path is None:
        raise data_error(tree.root, f"there is no {_CONCEPTS} here or in ConceptsList. Add it.")
    return read_class_file(path)[0]


def _splits(tree: FolderTree) -> dict[str, tuple[Path, Path]]:
    """Image list and label folder of each split that is complete."""
    found = {}
    for split, name in _LISTS.items():
        images = tree.file(f"ImageList/{name}", name)
        labels = tree.folder(_LABELS[split][0])
        if images is not None and labels is not None:
            found[split] = images, labels
    return found


def _read_ones(path: Path, images: int, found: list[str]) -> npt.NDArray[np.int64]:
    """Numbers of the lines that hold a 1."""
    content = path.read_bytes()
    raw = np.frombuffer(content if content.endswith(b"\n") else content + b"\n", dtype=np.uint8)
    values = raw[::2]
    plain = len(raw) == 2 * images and bool((raw[1::2] == _END).all())
    if plain and bool(((values == _ZERO) | (values == _ONE)).all()):
        return np.flatnonzero(values == _ONE)
    return _read_slowly(path, images, found)


def _read_slowly(path: Path, images: int, found: list[str]) -> npt.NDArray[np.int64]:
    """Read line by line: for files with spaces around the numbers, and to say what is wrong."""
    errors = ErrorCollector(path, found)
    words = [text.strip() for _, text in read_lines(path)]
    while words and not words[-1] and len(words) > images:
        words.pop()
    for line, word in enumerate(words, 1):
        if word not in ("0", "1"):
            errors.add(f"expected 0 or 1, but got {word!r:.60}.", line=line)
    if len(words) != images:
        wanted = pluralize(images, "line", "lines")
        errors.add(
            f"expected {wanted}, one for each image in the list, but got {len(words)}."
            " Was the file cut off?"
        )
    return np.flatnonzero(np.array([word == "1" for word in words], dtype=bool))


FORMAT = Format(
    name="nus",
    summary="NUS-WIDE: a folder with Concepts81.txt, ImageList and Groundtruth.",
    matches=matches,
    read=read,
    splits=lambda source: _splits(FolderTree(source.path)),
    files=False,
    folders=True,
)
