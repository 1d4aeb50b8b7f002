"""Lists such as ``path 0 1 0 0``: an image and a value for each class, without names of classes.

Blanks or commas are between the values. The zeros are bare: nothing says whether a person looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, of_state
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.express import check_expressible, check_names
from hilltop.data.formats.text.names_beside import (
    keep_names_beside,
    names_of_classes,
    numbered_names,
    write_names_beside,
)
from hilltop.data.formats.text.value_lines import (
    VALUES,
    parse_value_lines,
    patch_value_lines,
    split_values,
)
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_FEWEST_VALUES = 2
_FIT = 0.8
"""Share of lines that must have the form, so that a few damaged ones are reported by the reader."""


def fits(source: LabelSource) -> bool:
    """Whether the first line and nearly all others are a name and as many values each."""
    lines = source.head.split("\n")
    lines = [line for line in lines[:-1] or lines if line.strip()]
    if not lines:
        return False
    commas = _has_commas(lines[0])
    width = len(split_values(lines[0], commas=commas))
    good = [_has_values(line, width, commas) for line in lines]
    return width > _FEWEST_VALUES and good[0] and sum(good) >= _FIT * len(good)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a list; classes are named by ``options.classes``, by the file beside it, or numbered."""
    lines = [(number, line) for number, line in read_lines(source.path) if line.strip()]
    if not lines:
        raise data_error(source.path, "the file is empty. Expected an image and values on a line.")
    commas = _has_commas(lines[0][1])
    if _is_unnamed([text for _, text in lines], commas):
        lines = [
            (at, f"{row}{',' if commas else ' '}{text}") for row, (at, text) in enumerate(lines)
        ]
    names, notes = names_of_classes(source.path, options)
    found = parse_value_lines(source.path, lines, None, commas=commas)
    width = len(found.values[0])
    if width > len(found.images) > 1:
        turned = (
            f"{len(found.images)} rows of {width} values: rows must be images. Is it turned over?"
        )
        notes = [*notes, turned]
    if not width:
        raise data_error(source.path, "expected 1, 0 or -1 behind the image.", line=lines[0][0])
    if names is not None and len(names) != width:
        raise data_error(
            source.path,
            f"there are {pluralize(width, 'value', 'values')} behind an image, but"
            f" {pluralize(len(names), 'class name', 'class names')}.",
            line=lines[0][0],
        )
    return found.table(
        names or numbered_names(width),
        options,
        minus_one=None,
        notes=notes,
        format="zero_one_list",
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write 1 for present and 0 for the rest; names other than numbers go to a file beside it."""
    said = (State.ABSENT, State.UNKNOWN)
    check_expressible(table, path, lossy, states=(State.PRESENT,), unlisted=said)
    images = table.images.to_pylist()
    check_names(path, "image", images, without=" ,")
    if len(table.classes) < _FEWEST_VALUES or not images:
        raise data_error(
            path, "this format cannot express a table without images or with fewer than 2 classes."
        )
    write_names_beside(path, table.classes, used=len(table.classes))
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for row, image in enumerate(images):
            states = table.dense([row])[0].tolist()
            values = ("1" if state == State.PRESENT else "0" for state in states)
            file.write(f"{image} {' '.join(values)}\n")


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change zeros to ones; absents can be said where -1 means them."""
    absents = original.options.minus_one == "absent"
    said = changes if absents else of_state(changes, State.PRESENT)
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    commas = _has_commas(next(line for line in lines if line.strip()))
    if _is_unnamed(lines, commas):
        return
    written = {State.PRESENT: "1", State.ABSENT: "-1"}
    patched = patch_value_lines(lines, said, written, commas=commas)
    yield Patched(
        "\n".join(patched).encode(),
        original.options,
        absents=absents,
        beside=keep_names_beside(original),
    )


def _has_commas(line: str) -> bool:
    return "," in line


def _is_unnamed(lines: Sequence[str], commas: bool) -> bool:
    """Whether lines have values alone: the first word is one, too, and comes back."""
    first = [words[0] for words in (split_values(line, commas=commas) for line in lines) if words]
    return all(word in VALUES for word in first) and len(set(first)) < len(first)


def _has_values(line: str, width: int, commas: bool) -> bool:
    words = split_values(line, commas=commas)
    return len(words) == width and bool(words[0]) and all(word in VALUES for word in words[1:])


FORMAT = Format(
    name="zero_one_list",
    summary="An image and 0 or 1 for each class on every line, with blanks or commas between.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
)
