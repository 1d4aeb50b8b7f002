"""AudioSet's segments: ``YTID, start, end, "/m/x,/m/y"`` below comment lines.

The id of a segment is its video, with the start second (``abc_30``) where a video stands more than
once. ``--classes`` takes the names from ``class_labels_indices.csv``, or is a list of class ids.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.data.assemble import Collector
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.files import atomic_write
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource, read_class_file, read_lines
from hilltop.data.formats.text.express import check_expressible, check_names
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_HEADER = re.compile(
    r"^#?\s*YTID\s*,\s*start_seconds\s*,\s*end_seconds\s*,\s*positive_labels", re.MULTILINE
)
_ROW = re.compile(
    r"\s*([^,\"\s]+)\s*,\s*([0-9]+(?:\.[0-9]+)?)\s*,\s*([0-9]+(?:\.[0-9]+)?)\s*,\s*"
    r"(?:\"([^\"]*)\"|([^,\"]*?))\s*",
    re.ASCII,
)
_SECONDS = re.compile(r"(.+)_([0-9]{1,6})", re.ASCII)
_SEGMENT_SECONDS = 10
_INDEX = ["index", "mid", "display_name"]


@dataclass(frozen=True)
class _Segment:
    line: int
    video: str
    start: str
    labels: list[str]


def fits(source: LabelSource) -> bool:
    """Whether AudioSet's header stands among the first lines."""
    return not source.is_folder and _HEADER.search(source.head) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the segments; only what is present is written in them."""
    names = None if options.classes is None else _names(options.classes)
    collector = Collector(source.path, None if names is None else list(names.values()))
    segments = _segments(source.path)
    for segment, image in zip(segments, _ids(segments), strict=True):
        row = collector.image(image, line=segment.line, once=True)
        for label in segment.labels:
            name = label if names is None else names.get(label, label)
            collector.label(row, name, State.PRESENT, line=segment.line)
    return collector.table(
        unlisted=options.need_unlisted(source.path), sort_classes=True, format="audioset"
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write ten seconds for each image, from the second that its id names, else from 0."""
    said = (State.ABSENT, State.UNKNOWN)
    check_expressible(
        table, path, lossy, states=(State.PRESENT,), unused_classes=False, unlisted=said
    )
    images = table.images.to_pylist()
    check_names(path, "image", images, without=' ,"')
    check_names(path, "class", table.classes, without=',"')
    videos = Counter(_split_id(image)[0] for image in images)
    lines = ["# YTID, start_seconds, end_seconds, positive_labels"]
    for row, image in enumerate(images):
        video, start = _split_id(image)
        if videos[video] < 2 or f"{video}_{start}" != image:
            video, start = image, 0
        labels = ",".join(table.labels_of(row))
        lines.append(f'{video}, {start}.000, {start + _SEGMENT_SECONDS}.000, "{labels}"')
    atomic_write(path, "\n".join(lines) + "\n")


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add labels to the segments; only "present" can be said."""
    classes = original.options.classes
    mids = {} if classes is None else {name: mid for mid, name in _names(classes).items()}
    segments = _segments(original.path)
    of_image = by_image(of_state(changes, State.PRESENT))
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    for segment, image in zip(segments, _ids(segments), strict=True):
        added = [mids.get(one.class_name, one.class_name) for one in of_image.pop(image, [])]
        if added:
            at = segment.line - 1
            lines[at] = _with_labels(lines[at], [*segment.labels, *added])
    yield Patched("\n".join(lines).encode(), original.options, absents=False)


def _with_labels(text: str, labels: Sequence[str]) -> str:
    """The line with other labels, in quotes."""
    match = _ROW.fullmatch(text.lstrip("\ufeff"))
    assert match is not None  # it was read before
    quoted = match[4] is not None
    start, end = match.span(4 if quoted else 5)
    joined = ",".join(labels)
    return match.string[:start] + (joined if quoted else f'"{joined}"') + match.string[end:]


def _segments(path: Path) -> list[_Segment]:
    errors = ErrorCollector(path)
    found = []
    for line, text in read_lines(path):
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


def _ids(segments: Sequence[_Segment]) -> list[str]:
    videos = Counter(segment.video for segment in segments)
    return [
        segment.video
        if videos[segment.video] == 1
        else f"{segment.video}_{segment.start.partition('.')[0]}"
        for segment in segments
    ]


def _split_id(image: str) -> tuple[str, int]:
    match = _SECONDS.fullmatch(image)
    return (image, 0) if match is None else (match[1], int(match[2]))


def _names(path: Path) -> dict[str, str]:
    """Names by class id: those of AudioSet's index, or the ids of a plain list themselves."""
    if not path.is_file() or not LabelSource(path).head.startswith(",".join(_INDEX)):
        return {name: name for name in read_class_file(path)}
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
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
)
