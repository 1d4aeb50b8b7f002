"""Multi-hot lists such as ``path 0 1 0 0``: an image and a value for each class, without names.

The zeros are bare: nothing says whether a person looked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hilltop.checks import pluralize
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
from hilltop.data.public.class_file import (
    class_names,
    kept_class_names,
    numbered_names,
    write_class_names,
)
from hilltop.data.public.value_lines import (
    VALUES,
    ValueLines,
    parse_value_lines,
    patch_value_lines,
)
from hilltop.data.tables.words import names_a_column

_FEWEST_VALUES = 2


def matches(source: Source) -> bool:
    """Whether the first line is an image and two values or more, separated by spaces."""
    words = source.head.lstrip().partition("\n")[0].split()
    return (
        len(words) > _FEWEST_VALUES
        and "," not in words[0]
        and words[0] not in VALUES
        and not names_a_column(words[0])
        and all(word in VALUES for word in words[1:])
    )


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find out which values occur."""
    layout = plain_layout("multi_hot", options, classes)
    return _lines(source).find_meanings(layout, options)


def _lines(source: Source) -> ValueLines:
    found = parse_value_lines(source.path, source.lines, None)
    if not found.values:
        raise data_error(source.path, "the file is empty. Expected an image and values on a line.")
    return found


def read(source: Source, layout: Layout) -> LabelTable:
    """Read a list; classes are named by the class list, by the file beside it, or numbered."""
    names, notes = class_names(source.path, layout)
    found = _lines(source)
    width = len(found.values[0])
    if names is not None and len(names) != width:
        raise data_error(
            source.path,
            f"there are {pluralize(width, 'value', 'values')} behind an image, but"
            f" {pluralize(len(names), 'class name', 'class names')}.",
            line=found.lines[0],
        )
    if width > len(found.images) > 1:
        notes = [
            *notes,
            f"{len(found.images)} rows of {width} values: rows must be images. Is it transposed?",
        ]
    return found.table(names or numbered_names(width), layout, notes)


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write 1 for present and 0 for the rest; names other than numbers go to a file beside it."""
    said = (State.ABSENT, State.UNKNOWN)
    check_lossless(table, path, lossy, states=(State.PRESENT,), unlisted=said)
    images = table.images.to_pylist()
    check_names(path, "image", images, without=" ,")
    if len(table.classes) < _FEWEST_VALUES or not images:
        raise data_error(
            path, "this format cannot express a table without images or with fewer than 2 classes."
        )
    if any(image in VALUES or names_a_column(image) for image in images):
        raise data_error(path, "this format cannot express images that are called like a column.")
    write_class_names(path, table.classes, used=len(table.classes))
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for row, image in enumerate(images):
            states = table.dense([row])[0].tolist()
            values = ("1" if state == State.PRESENT else "0" for state in states)
            file.write(f"{image} {' '.join(values)}\n")
    return Layout(
        "multi_hot",
        unlisted=table.unlisted,
        classes=table.classes,
        values=(("1", "present"), ("0", table.unlisted.name.lower())),
    )


def patch(original: Original, changes: Sequence[Change]) -> Patched:
    """Change the values of the pairs; absents can be said where 0 or -1 means them."""
    source, layout = original.source, original.layout
    written = {State.PRESENT: "1"}
    for word in ("0", "-1"):
        state = layout.state_of(word)
        if state is not None:
            written.setdefault(state, word)
    said = list(changes)
    if State.ABSENT not in written:
        said = without_absents(changes, layout.unlisted)
    lines = patch_value_lines(source.text.split("\n"), said, written)
    files = {"": "\n".join(lines).encode(source.encoding), **kept_class_names(original)}
    return Patched(files, layout, said)


FORMAT = Format(
    name="multi_hot",
    summary="A text with an image and 0 or 1 for each class on every line, separated by spaces.",
    matches=matches,
    detect=detect,
    read=read,
    write=write,
    patch=patch,
)
