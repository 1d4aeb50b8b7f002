"""LVIS JSON: COCO's lists, and for each image the classes that were confirmed absent.

By LVIS's own definition a class is judged only on some images: annotated classes are present, those
in ``neg_category_ids`` are absent, and all other pairs are unknown. ``not_exhaustive_category_ids``
says that more instances may be there, which changes nothing about presence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.formats import coco
from hilltop.data.formats.base import Format, ReadOptions, Source
from hilltop.data.formats.express import check_expressible
from hilltop.data.label_table import LabelTable, State, Step

_PARTIAL = "not_exhaustive_category_ids"


def fits(source: Source) -> bool:
    """Whether this is JSON with COCO's three lists and images that list confirmed absents."""
    return coco.has_parts(source) and coco.has_negatives(source)


def read(source: Source, options: ReadOptions) -> LabelTable:
    """Read an LVIS file; unlisted pairs are unknown unless the user says otherwise.

    Image ids are the file names; LVIS v1 has none, there the end of ``coco_url`` serves.
    """
    parsed = coco.parse(source, options, name_of)
    rows, columns = _negatives(parsed)
    parsed.faults.check()
    states = [State.PRESENT] * len(parsed.rows) + [State.ABSENT] * len(rows)
    return assemble(
        parsed.names,
        parsed.classes,
        parsed.rows + rows,
        parsed.columns + columns,
        np.array(states, dtype=np.int8),
        unlisted=State.parse(options.unlisted or "unknown"),
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "lvis"}),
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write present pairs as annotations without extent, and absent ones as negatives.

    Categories carry the counts and frequency groups that LVIS's evaluation looks up.
    """
    check_expressible(
        table, path, lossy, states=(State.PRESENT, State.ABSENT), unlisted=(State.UNKNOWN,)
    )
    images = []
    for row, name in enumerate(table.images.to_pylist()):
        entries = slice(table.indptr[row], table.indptr[row + 1])
        absent = table.columns[entries][table.states[entries] == State.ABSENT] + 1
        record = coco.image_record(row + 1, name)
        images.append({**record, coco.NEGATIVE: absent.tolist(), _PARTIAL: []})
    counts = table.counts_by_class(State.PRESENT).tolist()
    categories = [
        _category(number, name, count)
        for number, (name, count) in enumerate(zip(table.classes, counts, strict=True), 1)
    ]
    coco.write_parts(path, images, coco.annotation_records(table), categories)


def name_of(image: coco.Record) -> Any:
    """The id of an image in the table: its file name, or the end of its address."""
    url = image.get("coco_url")
    if "file_name" not in image and isinstance(url, str):
        return url.rpartition("/")[2]
    return coco.name_of(image)


def _negatives(parsed: coco.Parsed) -> tuple[list[int], list[int]]:
    rows, columns = [], []
    for row, image in enumerate(parsed.images):
        for key in (coco.NEGATIVE, _PARTIAL):
            listed = image.get(key, [] if key == _PARTIAL else None)
            place = f"record {row + 1} of 'images'"
            if not isinstance(listed, list):
                parsed.faults.add(
                    f"{place} must have a list {key!r}. Add it, if only an empty one."
                )
                continue
            for category in listed:
                if not coco.is_id(category) or category not in parsed.column_of:
                    known = pluralize(len(parsed.column_of), "category", "categories")
                    parsed.faults.add(
                        f"{place}: {category!r:.60} in {key!r} is not among the {known}."
                    )
                elif key == coco.NEGATIVE:
                    rows.append(row)
                    columns.append(parsed.column_of[category])
    return rows, columns


def _category(number: int, name: str, count: int) -> coco.Record:
    # LVIS: rare is at most 10 images, common at most 100.
    group = "r" if count <= 10 else "c" if count <= 100 else "f"
    return {
        "id": number,
        "name": name,
        "synset": "",
        "synonyms": [name],
        "def": "",
        "image_count": count,
        "instance_count": count,
        "frequency": group,
    }


FORMAT = Format(
    name="lvis",
    summary="LVIS JSON: COCO's lists, and confirmed absents in neg_category_ids.",
    fits=fits,
    read=read,
    write=write,
)
