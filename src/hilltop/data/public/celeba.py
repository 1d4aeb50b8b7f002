"""CelebA's attribute file: how many images, the names of the classes, then 1 or -1 for each.

Every image was judged for every class, so -1 is absent by the meaning of the format. Zeros are not
part of it; where they occur, the user says what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.format import (
    Change,
    Format,
    Original,
    Patched,
    check_lossless,
    check_names,
    plain_layout,
    without_absents,
)
from hilltop.data.label_table import LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.public.class_file import class_names, numbered_names
from hilltop.data.public.value_lines import (
    VALUES,
    ValueLines,
    parse_value_lines,
    patch_value_lines,
)
from hilltop.data.tables.words import image_candidates

_WRITTEN = {State.PRESENT: "1", State.ABSENT: "-1"}
_HEADER_LINES = 2


def matches(source: Source) -> bool:
    """Whether a number, names, and an image with a value for each name stand on three lines."""
    lines = source.head.splitlines()
    if len(lines) <= _HEADER_LINES or not _is_count(lines[0]):
        return False
    names, words = lines[1].split(), lines[2].split()
    return (
        bool(names)
        and (len(words) == len(names) + 1 or (_is_heading(names) and len(words) > 2))
        and all(word in VALUES for word in words[1:])
        and not all(name in VALUES for name in names)
    )


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find out which values occur; -1 is absent unless the user says otherwise."""
    layout = plain_layout("celeba", options, classes)
    return _lines(source, layout)[1].find_meanings(layout, options, minus_one=State.ABSENT)


def read(source: Source, layout: Layout) -> LabelTable:
    """Read the file."""
    names, found, notes = _lines(source, layout)
    said = int(source.lines[0][1])
    if said != len(found.images):
        notes.append(
            f"the first line says {said:,} images, but the file has {len(found.images):,}."
        )
    table = found.table(names, layout, notes)
    return table if layout.classes is None else table.with_classes(layout.classes)


def _lines(source: Source, layout: Layout) -> tuple[Sequence[str], ValueLines, list[str]]:
    """The names of the classes, the values of every image, and what to note."""
    lines = source.lines
    if len(lines) < _HEADER_LINES or not _is_count(lines[0][1]) or not lines[1][1].strip():
        raise data_error(
            source.path,
            "expected the number of images on the first line and the names of the classes on the"
            " second, separated by spaces.",
            line=1,
        )
    names: Sequence[str] | None = lines[1][1].split()
    notes: list[str] = []
    if names is not None and _is_heading(names):
        names, notes = class_names(source.path, layout)
    width = None if names is None else len(names)
    found = parse_value_lines(source.path, lines[_HEADER_LINES:], width)
    names = names or numbered_names(len(found.values[0]) if found.values else 0)
    return names, found, notes


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write 1 for present and -1 for absent; an unknown pair can only be left out as absent."""
    said = (State.PRESENT, State.ABSENT)
    check_lossless(table, path, lossy, states=said, unlisted=(State.ABSENT,))
    images = table.images.to_pylist()
    check_names(path, "image", images, without=" ")
    check_names(path, "class", table.classes, without=" ")
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(f"{len(images)}\n{' '.join(table.classes)}\n")
        for row, image in enumerate(images):
            states = table.dense([row])[0].tolist()
            values = (" 1" if state == State.PRESENT else "-1" for state in states)
            file.write(f"{image} {' '.join(values)}\n")
    return Layout("celeba", unlisted=State.ABSENT, values=(("1", "present"), ("-1", "absent")))


def patch(original: Original, changes: Sequence[Change]) -> Patched:
    """Change the values of the pairs; all else stays."""
    source, layout = original.source, original.layout
    written = _WRITTEN
    said = list(changes)
    if layout.state_of("-1") not in (None, State.ABSENT):
        written = {State.PRESENT: "1", layout.unlisted: "-1"}
        said = without_absents(changes, layout.unlisted)
    lines = source.text.split("\n")
    head, body = lines[:_HEADER_LINES], lines[_HEADER_LINES:]
    patched = patch_value_lines(body, said, written)
    text = "\n".join([*head, *patched])
    return Patched({"": text.encode(source.encoding)}, layout, said)


def _is_heading(names: Sequence[str]) -> bool:
    """Whether the second line names the columns of images and values, and not the classes."""
    return len(names) == 2 and bool(image_candidates(names[:1]))


def _is_count(line: str) -> bool:
    return line.strip().isascii() and line.strip().isdigit() and len(line.strip()) < 10


FORMAT = Format(
    name="celeba",
    summary="CelebA attributes: a count, the class names, then an image and 1 or -1 for each.",
    matches=matches,
    detect=detect,
    read=read,
    write=write,
    patch=patch,
)
