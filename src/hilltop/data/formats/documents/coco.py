"""COCO instances JSON: images, categories, and annotations that join them.

COCO's files do not say whether a class without an annotation was looked for, so unlisted pairs are
open and the user settles them. LVIS, which adds confirmed absents, lives in ``lvis.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.documents.coco_parts import (
    NEGATIVE,
    annotation_edits,
    annotation_records,
    coco_image_name,
    has_parts,
    image_record,
    parse_parts,
    write_parts,
)
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.formats.text.json_text import first_value, members, replace_spans
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State


def fits(source: LabelSource) -> bool:
    """Whether this is JSON with COCO's three lists."""
    return has_parts(source)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a COCO file; any annotation of a class, crowd or not, makes it present.

    Image ids are the file names, or the numeric ids where there is no file name.
    """
    parsed = parse_parts(source, options, coco_image_name)
    parsed.errors.check()
    skipped = sum(NEGATIVE in image for image in parsed.images)
    return assemble(
        parsed.names,
        parsed.classes,
        parsed.rows,
        parsed.columns,
        State.PRESENT,
        unlisted=options.need_unlisted(source.path),
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "coco"}),
        notes=[
            f"{NEGATIVE} of {pluralize(skipped, 'image', 'images')} were not read; the format lvis"
            " reads them."
        ]
        if skipped
        else [],
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write one annotation for each present pair.

    Sizes and boxes are not known to a table. They are written as zeros, because readers such as
    pycocotools and detectron2 look the keys up; an area of 0 and the mark of a crowd, which
    detectors leave out, say that there is no box.
    """
    check_expressible(
        table, path, lossy, states=(State.PRESENT,), unlisted=(State.ABSENT, State.UNKNOWN)
    )
    images = [image_record(number, name) for number, name in enumerate(table.images.to_pylist(), 1)]
    categories = [
        {"id": number, "name": name, "supercategory": ""}
        for number, name in enumerate(table.classes, 1)
    ]
    write_parts(path, images, annotation_records(table), categories)


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add annotations without extent; only "present" can be said. Boxes and all else stay."""
    text = original.path.read_bytes().decode("utf-8")
    parts = dict(members(text, first_value(text)))
    ids = {coco_image_name(image): image["id"] for image in parts["images"].value}
    edits = annotation_edits(text, parts, ids, changes)
    yield Patched(replace_spans(text, edits).encode(), original.options, absents=False)


FORMAT = Format(
    name="coco",
    summary="COCO instances JSON: images, annotations and categories.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
    file_names=True,
    boxes=True,
)
