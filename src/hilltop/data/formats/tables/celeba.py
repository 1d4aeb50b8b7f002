"""CelebA's attribute file: how many images, the names of the classes, then 1 or -1 for each.

Every image was judged for every class, so -1 is absent by the meaning of the format. Zeros are not
part of it; where they occur, the user says what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.class_order import in_class_order
from hilltop.data.formats.text.express import check_expressible, check_names
from hilltop.data.formats.text.known_names import is_image_name
from hilltop.data.formats.text.names_beside import names_of_classes, numbered_names
from hilltop.data.formats.text.value_lines import VALUES, parse_value_lines, patch_value_lines
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_WRITTEN = {State.PRESENT: "1", State.ABSENT: "-1"}
_HEADER_LINES = 2


def fits(source: LabelSource) -> bool:
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


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the file; -1 is absent unless ``options.minus_one`` says otherwise."""
    lines = read_lines(source.path)
    if len(lines) < _HEADER_LINES or not _is_count(lines[0][1]) or not lines[1][1].strip():
        raise data_error(
            source.path,
            "expected the number of images on the first line and the names of the classes on the"
            " second, with blanks between them.",
            line=1,
        )
    names: list[str] | None = lines[1][1].split()
    notes: list[str] = []
    if names is not None and _is_heading(names):
        names, notes = names_of_classes(source.path, options)
    width = None if names is None else len(names)
    found = parse_value_lines(source.path, lines[_HEADER_LINES:], width)
    names = names or numbered_names(len(found.values[0]) if found.values else 0)
    said = int(lines[0][1])
    differs = f"the first line says {said:,} images, but the file has {len(found.images):,}."
    absent = State.parse(options.minus_one or "absent")
    table = found.table(
        names,
        options,
        minus_one=absent,
        notes=notes if said == len(found.images) else [*notes, differs],
        format="celeba",
    )
    return in_class_order(table, options)


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write 1 for present and -1 for absent; an unknown pair can only be left out as absent."""
    said = (State.PRESENT, State.ABSENT)
    check_expressible(table, path, lossy, states=said, unlisted=(State.ABSENT,))
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


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the values of the pairs; all else stays."""
    if original.options.minus_one == "unknown":
        return
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    head, body = lines[:_HEADER_LINES], lines[_HEADER_LINES:]
    patched = patch_value_lines(body, changes, _WRITTEN, commas=False)
    yield Patched("\n".join([*head, *patched]).encode(), original.options)


def _is_heading(names: Sequence[str]) -> bool:
    """Whether the second line names the columns of images and values, and not the classes."""
    return len(names) == 2 and is_image_name(names[0])


def _is_count(line: str) -> bool:
    return line.strip().isascii() and line.strip().isdigit() and len(line.strip()) < 10


FORMAT = Format(
    name="celeba",
    summary="CelebA attributes: a count, the class names, then an image and 1 or -1 for each.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
)
