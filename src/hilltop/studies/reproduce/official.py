"""Labels of the paper's data sets, read once from their own files and kept as one table a part.

Images without a label take no part, as in the paper: 82,081 and 40,137 images of COCO remain.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data import LabelTable, State, drop_positives, read_labels, write_labels
from hilltop.data.files import atomic_write
from hilltop.data.folders import FolderTree
from hilltop.data.small_files import read_json
from hilltop.errors import ArgumentError, DataError
from hilltop.inputs.image_files import find_images, missing_images
from hilltop.studies.compare import Level
from hilltop.studies.compare.level import NAMED
from hilltop.studies.reproduce.dataset_files import (
    DATA_SETS,
    DatasetFiles,
    Search,
    Split,
    data_title,
    find_data,
)
from hilltop.studies.reproduce.source import Source
from hilltop.training.config import TrainConfig

_DONE = "layout.json"
_LABELS = "official"  # folder of the tables


def official_sources(
    groups: Sequence[Sequence[str]],
    root: Path,
    out: Path,
    base: TrainConfig,
    *,
    unnamed: Collection[str] = (),
    open_images: str = "boxes",
    whatever_is_there: bool = False,
) -> dict[str, Source]:
    """Find and read the data sets that tables and figures need.

    Where one of them needs several data sets, those that are there are enough. A data set that an
    earlier call trained on in ``out`` still gives its numbers, even if its images are gone.

    Args:
        groups: For each table or figure, the short names of its data sets.
        root: Where they lie.
        out: Where the labels are kept, in a folder for each data set.
        base: How runs are trained.
        unnamed: Those of them that are not looked for, even if they are there.
        open_images: Which labels of Open Images: boxes or labels.
        whatever_is_there: Do without data sets of which nothing is there, as long as there is one.

    Raises:
        DataError: Something is missing; all of it is named at once.
    """
    if not root.is_dir():
        raise DataError(f"--root: there is no folder {str(root)!r}.")
    names = list(dict.fromkeys(name for group in groups for name in group))
    tree = FolderTree(root)
    found = {
        name: Search(name, tree)
        if name in unnamed
        else find_data(name, tree, open_images=open_images)
        for name in names
    }
    _check_all_there(groups, found, out, whatever_is_there)
    sources: dict[str, Source] = {}
    faults: list[str] = []
    for name, search in found.items():
        try:
            if search.layout is not None:
                sources[name] = _source(name, search.layout, out, base)
            elif _was_trained_on(out / name):
                about = f"{search.title} was trained on earlier and is not there now."
                sources[name] = _from_tables(name, about, out / name, base, None)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    return sources


def _check_all_there(
    groups: Sequence[Sequence[str]], found: Mapping[str, Search], out: Path, optional: bool
) -> None:
    """Raise with everything that is missing: of what was begun, and where nothing is there."""
    known = {name for name in found if found[name].layout or _was_trained_on(out / name)}
    wanted = [name for name in found if found[name].begun and name not in known]
    for group in groups if not (optional and known) else ():
        if not any(name in known for name in group):
            wanted += group
    missing = [line for name in dict.fromkeys(wanted) for line in found[name].missing]
    if missing:
        head = "Before anything can be trained, this has to be there:"
        raise DataError("\n".join([head, *missing]))


def _was_trained_on(folder: Path) -> bool:
    """Whether there are runs; a plan that was only stated leaves labels alone."""
    return (folder / _DONE).is_file() and any(
        path.is_dir() and path.name != _LABELS for path in folder.iterdir()
    )


def _source(name: str, layout: DatasetFiles, out: Path, base: TrainConfig) -> Source:
    folder = out / name
    done = folder / _DONE
    parts = {"train": layout.train, "val": layout.val, **layout.reduced}
    signature = {part: _signature(split) for part, split in parts.items()}
    kept = read_json(done, "Delete it to prepare anew.") if done.is_file() else {}
    if kept.get("files") != signature:
        kept = {"files": signature, "left_out": _prepare(layout, folder)}
        atomic_write(done, json.dumps(kept, indent=2) + "\n")
    labels = f"Labels {layout.train.path}, judged by {layout.val.path}."
    about = " ".join(filter(None, [labels, layout.note, *kept["left_out"]]))
    return _from_tables(name, about, folder, base, layout.images)


def _from_tables(
    name: str, about: str, folder: Path, base: TrainConfig, images: Path | None
) -> Source:
    """A data set whose labels were prepared; without images it is only read."""
    config = dataclasses.replace(
        base,
        labels=_table(folder, "train"),
        val_labels=_table(folder, "val"),
        images=images,
        format=None,
    )
    reduced = {
        level: Level(level, title, labels=_table(folder, level))
        for level, (title, _) in NAMED.items()
        if _table(folder, level).is_file()
    }
    return Source(
        name=data_title(name),
        about=about,
        base=config,
        reduced=reduced,
        pictures=images,
        folder=name,
        only_read=images is None,
        paper_sizes=DATA_SETS[name].sizes,
    )


def _table(folder: Path, part: str) -> Path:
    return folder / _LABELS / f"{part}.parquet"


def _signature(split: Split) -> list[Any]:
    """What tells whether a label file is the one that was read."""
    status = split.path.stat()
    where = [split.prefix, split.flat]  # ids lead to the images, which may have been moved
    return [str(split.path.resolve()), status.st_size, int(status.st_mtime), *where]


def _prepare(layout: DatasetFiles, folder: Path) -> list[str]:
    """Write the labels of every part, and return what was left out, in words."""
    (folder / _LABELS).mkdir(parents=True, exist_ok=True)
    val = _read(layout.val, folder)  # first: released lists go by its classes, which are sound then
    every = [_read(layout.train, folder), val]
    tables = [_labelled(table) for table in every]
    said = [_left_out("Left out, because no label is given", every, tables)]
    if layout.partial:
        here = [_there(layout.images, table) for table in tables]
        said.append(_left_out("Not there and left out", tables, here))
        tables = _with_shared_classes(here)
    faults = [
        str(missing_images(layout.images, absent.to_pylist(), len(table)))
        for table in tables
        if len(absent := table.images.filter(find_images(layout.images, table.images).is_null()))
    ]
    if faults:
        raise DataError("\n".join(faults))
    parts = dict(zip(("train", "val"), tables, strict=True))
    for level, split in layout.reduced.items():
        table = _read(split, folder).with_classes(tables[0].classes)
        # The released lists leave labels out, so what they do not list is unknown.
        parts[level] = drop_positives(table, 0, seed=0).table
    for part, table in parts.items():
        write_labels(table, _table(folder, part), format="hilltop")
    return list(filter(None, said))


def _read(split: Split, folder: Path) -> LabelTable:
    """Labels of a part, with ids that lead to the images."""
    options = split.options
    if split.format == "paper_list":
        options = dataclasses.replace(options, classes=_class_names(split, folder))
    table = read_labels(split.path, format=split.format, options=options)
    ids = pc.replace_substring(table.images, "\\", "/")  # NUS-WIDE was made on Windows
    if split.flat:
        ids = pc.replace_substring_regex(ids, "^.*/", "")
    ids = pc.binary_join_element_wise(split.prefix, ids, "")
    return dataclasses.replace(table, images=ids)


def _class_names(split: Split, folder: Path) -> Path:
    """A file with the names that the numbers of a released list stand for."""
    if isinstance(split.names, Path):
        # The lists number COCO's classes in the order of their ids.
        categories = json.loads(split.names.read_text(encoding="utf-8"))["categories"]
        names = [item["name"] for item in sorted(categories, key=lambda item: int(item["id"]))]
    else:
        names = [str(number) for number in range(split.names or 0)]
    path = folder / _LABELS / "classes.txt"
    atomic_write(path, "".join(f"{name}\n" for name in names))
    return path


def _labelled(table: LabelTable) -> LabelTable:
    return table.select(np.flatnonzero(table.labels_per_image()))


def _there(folder: Path, table: LabelTable) -> LabelTable:
    found = find_images(folder, table.images)
    rows = np.flatnonzero(np.asarray(found.is_valid()))
    if not len(rows):
        raise DataError(f"{folder}: none of the {len(table):,} images with labels is there.")
    return table.select(rows)


def _with_shared_classes(tables: Sequence[LabelTable]) -> list[LabelTable]:
    """Both parts with the classes that have a label in each; others cannot be learned or judged."""
    used = np.all([table.counts_by_class(State.PRESENT) > 0 for table in tables], axis=0)
    if not used.any():
        raise ArgumentError("No class has a label among both training and test images.")
    return [_labelled(table.only_classes(used)) for table in tables]


def _left_out(why: str, before: Sequence[LabelTable], after: Sequence[LabelTable]) -> str:
    counts = [len(one) - len(other) for one, other in zip(before, after, strict=True)]
    if not any(counts):
        return ""
    train, val = (pluralize(count, "image", "images") for count in counts)
    return f"{why}: {train} of training and {val} of test."
