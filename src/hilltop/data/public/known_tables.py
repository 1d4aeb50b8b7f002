"""Open Images and AudioSet: CSV files of which the columns, and what they mean, are known.

Open Images has a row for each image and class. Confidence 1 is present, Confidence 0 was checked
and is absent, and a pair without a row is unknown. Fractions come from machines; the user has to
say where to cut. AudioSet has a row for each segment of a video, ``YTID, start, end, "/m/x,/m/y"``,
below comment lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hilltop.data.content import Source
from hilltop.data.format import FilePatch, Format, Patched
from hilltop.data.label_table import State
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.tables.infer import detect_as
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import open_table, read_table

IMAGE, SOURCE, LABEL, CONFIDENCE = "ImageID", "Source", "LabelName", "Confidence"
_BOX = "XMin"
_SEGMENTS = re.compile(
    r"^#?\s*YTID\s*,\s*start_seconds\s*,\s*end_seconds\s*,\s*positive_labels", re.MULTILINE
)


def matches_openimages(source: Source) -> bool:
    """Whether the four columns of Open Images are there."""
    names = [cell.strip(' "\r') for cell in source.head.partition("\n")[0].split(",")]
    return {IMAGE, SOURCE, LABEL, CONFIDENCE} <= set(names)


def detect_openimages(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find out whether confidences are fractions, and what the classes are called."""
    return detect_as(
        "openimages",
        source,
        options,
        "long",
        classes=classes,
        separator=",",
        header_row="1",
        image_column=IMAGE,
        label_columns=LABEL,
        state_column=CONFIDENCE,
        delimiter="none",
        zero=options.zero or "absent",
        unlisted=options.unlisted or "unknown",
    )


def patch_openimages(asked: FilePatch) -> Patched:
    """Change the confidence of a pair, or append a verified row: Confidence 1 or 0."""
    if _BOX in open_table(asked.source, asked.layout).names:
        raise asked.refused("a file of boxes is read, but not changed.")
    said = asked.without_absents() if asked.layout.unlisted == State.ABSENT else asked
    return patch_table(said, further={SOURCE: "verification"})


def matches_audioset(source: Source) -> bool:
    """Whether AudioSet's header stands among the first lines."""
    return _SEGMENTS.search(source.head) is not None


def detect_audioset(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the names of the classes below the header, which is a comment."""
    header = _SEGMENTS.search(source.head)
    if header is None:
        return None
    return detect_as(
        "audioset",
        source,
        options,
        "list_column",
        classes=classes,
        separator=",",
        header_row=str(source.head.count("\n", 0, header.start()) + 1),
        label_columns="positive_labels",
        delimiter=",",
    )


OPEN_IMAGES = Format(
    name="openimages",
    summary="Open Images CSV: ImageID, Source, LabelName, Confidence; image labels or boxes.",
    matches=matches_openimages,
    detect=detect_openimages,
    read=read_table,
    patch=patch_openimages,
)
AUDIOSET = Format(
    name="audioset",
    summary="AudioSet segments: a video, start, end and its labels on every line.",
    matches=matches_audioset,
    detect=detect_audioset,
    read=read_table,
    patch=patch_table,
)
