"""LVIS JSON: COCO's lists, and for each image the classes that were confirmed absent.

By LVIS's own definition a class is judged only on some images: annotated classes are present, those
in ``neg_category_ids`` are absent, and all other pairs are unknown. ``not_exhaustive_category_ids``
says that more instances may be there, which changes nothing about presence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.documents.coco_parts import (
    NEGATIVE,
    CocoParts,
    JsonObject,
    annotation_edits,
    annotation_records,
    category_ids,
    coco_image_name,
    has_negatives,
    has_parts,
    image_record,
    is_id,
    parse_parts,
    write_parts,
)
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.express import check_expressible, with_listed_absents
from hilltop.data.formats.text.json_text import (
    append_elements,
    elements,
    first_value,
    members,
    replace_spans,
)
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_PARTIAL = "not_exhaustive_category_ids"


def fits(source: LabelSource) -> bool:
    """Whether this is JSON with COCO's three lists and images that list confirmed absents."""
    return has_parts(source) and has_negatives(source)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read an LVIS file; unlisted pairs are unknown unless the user says otherwise.

    Image ids are the file names; LVIS v1 has none, there the end of ``coco_url`` serves.
    """
    parsed = parse_parts(source, options, lvis_image_name)
    rows, columns = _negatives(parsed)
    parsed.errors.check()
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
    table = with_listed_absents(table)
    check_expressible(
        table, path, lossy, states=(State.PRESENT, State.ABSENT), unlisted=(State.UNKNOWN,)
    )
    images = []
    for row, name in enumerate(table.images.to_pylist()):
        entries = slice(table.indptr[row], table.indptr[row + 1])
        absent = table.columns[entries][table.states[entries] == State.ABSENT] + 1
        record = image_record(row + 1, name)
        images.append({**record, NEGATIVE: absent.tolist(), _PARTIAL: []})
    counts = table.counts_by_class(State.PRESENT).tolist()
    categories = [
        _category(number, name, count)
        for number, (name, count) in enumerate(zip(table.classes, counts, strict=True), 1)
    ]
    write_parts(path, images, annotation_records(table), categories)


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add annotations without extent, and absents to ``neg_category_ids``."""
    text = original.path.read_bytes().decode("utf-8")
    parts = dict(members(text, first_value(text)))
    ids = {lvis_image_name(image): image["id"] for image in parts["images"].value}
    edits = annotation_edits(text, parts, ids, changes)
    category = category_ids(parts)
    of_image = by_image(of_state(changes, State.ABSENT))
    for image in elements(text, parts["images"].start):
        wanted = of_image.get(lvis_image_name(image.value), [])
        if wanted:
            negatives = dict(members(text, image.start))[NEGATIVE]
            new = [category[change.class_name] for change in wanted]
            edits.append(append_elements(text, negatives, new))
    yield Patched(replace_spans(text, edits).encode(), original.options)


def lvis_image_name(image: JsonObject) -> Any:
    """The id of an image in the table: its file name, or the end of its address."""
    url = image.get("coco_url")
    if "file_name" not in image and isinstance(url, str):
        return url.rpartition("/")[2]
    return coco_image_name(image)


def _negatives(parsed: CocoParts) -> tuple[list[int], list[int]]:
    rows, columns = [], []
    for row, image in enumerate(parsed.images):
        for key in (NEGATIVE, _PARTIAL):
            listed = image.get(key, [] if key == _PARTIAL else None)
            place = f"record {row + 1} of 'images'"
            if not isinstance(listed, list):
                parsed.errors.add(
                    f"{place} must have a list {key!r}. Add it, if only an empty one."
                )
                continue
            for category in listed:
                if not is_id(category) or category not in parsed.column_of:
                    known = pluralize(len(parsed.column_of), "category", "categories")
                    parsed.errors.add(
                        f"{place}: {category!r:.60} in {key!r} is not among the {known}."
                    )
                elif key == NEGATIVE:
                    rows.append(row)
                    columns.append(parsed.column_of[category])
    return rows, columns


def _category(number: int, name: str, count: int) -> JsonObject:
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
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
    file_names=True,
    boxes=True,
)
