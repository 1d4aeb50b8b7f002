"""AudioSet's segments: ``YTID, start, end, "/m/x,/m/y"`` below comment lines.

The id of a segment is its video or, with ``--image-column segment``, the video and the start second
(``abc_30``). ``--classes`` takes the names from ``class_labels_indices.csv``.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hilltop.data.content import Source, read_class_file, read_lines
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.format import (
    Format,
    plain_layout,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions, unlisted_question

_HEADER = re.compile(
    r"^#?\s*YTID\s*,\s*start_seconds\s*,\s*end_seconds\s*,\s*positive_labels", re.MULTILINE
)
_ROW = re.compile(
    r"\s*([^,\"\s]+)\s*,\s*([0-9]+(?:\.[0-9]+)?)\s*,\s*([0-9]+(?:\.[0-9]+)?)\s*,\s*"
    r"(?:\"([^\"]*)\"|([^,\"]*?))\s*",
    re.ASCII,
)
_VIDEO, _SEGMENT = "YTID", "segment"
_INDEX = ["index", "mid", "display_name"]


@dataclass(frozen=True)
class _Segment:
    line: int
    video: str
    start: str
    labels: list[str]


def matches(source: Source) -> bool:
    """Whether AudioSet's header stands among the first lines."""
    return _HEADER.search(source.head) is not None


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the names of the classes and how segments are called; ids of classes are codes."""
    questions = []
    image = options.image_column or _VIDEO
    videos = Counter(segment.video for segment in _segments(source))
    twice = next((video for video, count in videos.items() if count > 1), None)
    if options.image_column is None and twice is not None:
        questions.append(
            Question(
                f"Video {twice!r} has several segments. Pass --image-column segment to call them by"
                f" video and start second (abc_30), or --image-column {_VIDEO} to merge them.",
                {"image_column": _SEGMENT},
            )
        )
    if options.unlisted is None:
        questions.append(unlisted_question())
    if questions:
        return Ambiguous(source.path, questions, options)
    layout = plain_layout("audioset", replace(options, classes=None), classes)
    if options.classes is not None:
        names = _names(options.classes)
        codes = tuple((code, at) for at, code in enumerate(names))
        layout = replace(layout, classes=tuple(names.values()), codes=codes)
    return replace(layout, image_column=image)


def read(source: Source, layout: Layout) -> LabelTable:
    """Read the segments; only what is present is written in them."""
    classes = layout.classes or ()
    names = {code: classes[at] for code, at in layout.codes}
    collector = Collector(source.path, layout.classes)
    segments = _segments(source)
    for segment, image in zip(segments, _ids(segments, layout), strict=True):
        row = collector.image(image, line=segment.line, once=True)
        for label in segment.labels:
            collector.label(row, names.get(label, label), State.PRESENT, line=segment.line)
    return collector.table(unlisted=layout.unlisted, sort_classes=True, format="audioset")


def _segments(source: Source) -> list[_Segment]:
    errors = ErrorCollector(source.path)
    found = []
    for line, text in source.lines:
        if not text.strip() or text.lstrip().startswith("#") or _HEADER.match(text):
            continue
        match = _ROW.fullmatch(text)
        if match is None:
            errors.add(
                "expected a video, start, end and labels such as 'abc, 30.000, 40.000, \"/m/x\"',"
                f" but got {text!r:.60}.",
                line=line,
            )
            continue
        listed = (match[4] if match[4] is not None else match[5]).split(",")
        labels = [word.strip() for word in listed if word.strip()]
        found.append(_Segment(line, match[1], match[2], labels))
    errors.check()
    return found


def _ids(segments: Sequence[_Segment], layout: Layout) -> list[str]:
    if layout.image_column != _SEGMENT:
        return [segment.video for segment in segments]
    return [f"{segment.video}_{segment.start.partition('.')[0]}" for segment in segments]


def _names(path: Path) -> dict[str, str]:
    """Names by class id: those of AudioSet's index, or the ids of a plain list themselves."""
    if not path.is_file() or not Source(path).head.startswith(",".join(_INDEX)):
        return {name: name for name in read_class_file(path)[0]}
    try:
        rows = [row for row in csv.reader(line for _, line in read_lines(path)[1:]) if row]
    except csv.Error as error:
        raise data_error(path, f"this is not valid CSV: {error}.") from None
    if any(len(row) != len(_INDEX) or not row[1] or not row[2] for row in rows):
        raise data_error(path, f"expected {', '.join(_INDEX)} on every line.")
    names = {row[1]: row[2] for row in rows}
    if len(names) < len(rows) or len(set(names.values())) < len(names):
        raise data_error(path, "a class stands twice. Ids and names must differ.")
    return names


FORMAT = Format(
    name="audioset",
    summary="AudioSet segments: a video, start, end and its labels on every line.",
    matches=matches,
    detect=detect,
    read=read,
)
