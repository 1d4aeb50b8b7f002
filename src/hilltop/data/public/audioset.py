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
from hilltop.data.files import atomic_write
from hilltop.data.format import (
    Change,
    Format,
    Original,
    Patched,
    added,
    by_image,
    check_lossless,
    check_names,
    plain_layout,
    struck,
    without_absents,
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
_SEGMENT_SECONDS = 10
_INDEX = ["index", "mid", "display_name"]


@dataclass(frozen=True)
class _Segment:
    line: int
    video: str
    start: str
    labels: list[str]


def matches(source: Source) -> bool:
    """Whether AudioSet's header stands among the first lines."""
    return source.is_file and _HEADER.search(source.head) is not None


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


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write ten seconds for each image."""
    said = (State.ABSENT, State.UNKNOWN)
    check_lossless(table, path, lossy, states=(State.PRESENT,), unused_classes=False, unlisted=said)
    images = table.images.to_pylist()
    check_names(path, "image", images, without=' ,"')
    check_names(path, "class", table.classes, without=',"')
    lines = ["# YTID, start_seconds, end_seconds, positive_labels"]
    for row, image in enumerate(images):
        labels = ",".join(table.labels_of(row))
        lines.append(f'{image}, 0.000, {_SEGMENT_SECONDS}.000, "{labels}"')
    atomic_write(path, "\n".join(lines) + "\n")
    return Layout("audioset", unlisted=table.unlisted, classes=table.classes, image_column=_VIDEO)


def patch(original: Original, changes: Sequence[Change]) -> Patched:
    """Add labels to the segments, and take wrong ones out."""
    source, layout = original.source, original.layout
    codes = {at: code for code, at in layout.codes}
    said = without_absents(changes, layout.unlisted)
    of_image = by_image(said)
    segments = _segments(source)
    lines = source.text.split("\n")
    for segment, image in zip(segments, _ids(segments, layout), strict=True):
        wanted = of_image.get(image, [])
        if wanted:
            gone = {
                word for one in struck(wanted) for word in (one.class_name, codes.get(one.column))
            }
            new = [codes.get(one.column, one.class_name) for one in added(wanted)]
            kept = [label for label in segment.labels if label not in gone]
            at = segment.line - 1
            lines[at] = _with_labels(lines[at], [*kept, *new])
    return Patched({"": "\n".join(lines).encode(source.encoding)}, layout, said)


def _with_labels(text: str, labels: Sequence[str]) -> str:
    """The line with other labels, in quotes."""
    match = _ROW.fullmatch(text.lstrip("\ufeff"))
    assert match is not None  # it was read before
    quoted = match[4] is not None
    start, end = match.span(4 if quoted else 5)
    joined = ",".join(labels)
    return match.string[:start] + (joined if quoted else f'"{joined}"') + match.string[end:]


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
    write=write,
    patch=patch,
)
