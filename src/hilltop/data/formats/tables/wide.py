"""Wide tables: one row an image, one column a class, and 1, 0, -1 or nothing in the cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilltop.data.assemble import assemble
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_codes import cell_meaning
from hilltop.data.formats.text.cell_values import BLANK, MINUS_ONE, ONE, OTHER, ZERO, own_names
from hilltop.data.formats.text.column_roles import find_image_column, image_candidates
from hilltop.data.formats.text.known_names import is_class_name
from hilltop.data.formats.text.label_lists import are_sightings, holds_name_lists
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.formats.text.sample import is_image_name, is_label_name, peek_columns
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.formats.text.totals import drop_footer
from hilltop.data.formats.text.wide_cells import (
    WideColumns,
    cell_states,
    find_classes,
    is_class_like,
)
from hilltop.data.formats.text.wide_write import patch_wide, write_wide
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_AGAINST_READERS = (
    "Where readers disagree, --zero unknown goes on: what one of them saw is present, and no 0 is"
    " taken for certain."
)


def fits(source: LabelSource) -> bool:
    """Whether columns beside that of the images hold nothing but 1, 0, -1 and blanks."""
    sample, options = peek_columns(source), source.options or ReadOptions()
    if len(sample) < 2 or options.label_column is not None:
        return False
    if options.class_columns or options.ignore_columns:
        return True
    images = [options.image_column] if options.image_column else image_candidates(sample)
    if not images and is_image_name(next(iter(sample))):
        images = list(sample)[:1]
    kind = cell_meaning(options).kind
    kinds = {name: np.array([kind(cell) for cell in cells]) for name, cells in sample.items()}
    for name in own_names(sample):
        kinds[name] = np.where(kinds[name] == OTHER, ONE, kinds[name])
    classes = [
        name
        for name in sample
        if name not in images[:1] and is_class_like(name, kinds[name]) and OTHER not in kinds[name]
    ]
    if not classes or not images:
        return False
    rest = [name for name in sample if name not in classes]
    if any(
        is_label_name(name) or is_class_name(name) or holds_name_lists(name, sample[name])
        for name in rest
    ):
        return False  # All labels stand in one column, and zeros and ones beside it are no classes.
    filled = [name for name in classes if (kinds[name] != BLANK).any()]
    if are_sightings(sample, images[0], filled):
        return False
    if not source.is_spreadsheet and not source.dialect.header:
        return len(filled) > 1  # A name and a number is a list of class numbers.
    if not is_image_name(images[0]) and any(_is_number(name) for name in classes):
        return False  # The first line is no header but data.
    return bool(filled)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a wide CSV, spreadsheet or Parquet file.

    1, 1.0 and true mean present. What 0, 0.0 and false, blanks (null, NaN) and -1 mean is left open
    by the format: ``--zero``, ``--blank`` and ``--minus-one`` say it; ``--unlisted`` is short for
    the first two where only one of them occurs. Nothing is asked for that does not occur. A column
    that mostly holds other values is no class; a few other values are errors.
    """
    table = TableFile(source)
    image = find_image_column(source.path, table.sample(), options)
    drop_footer(table, image)
    found = find_classes(table, image, options)
    images = table.text(image).dictionary_encode()
    rows = images.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    silent = len(rows) > 0 and len(found.classes) > len(found.cells)
    state_of, unlisted = cell_states(source.path, options, found.counts, silent)
    # Of an image that stands in several rows every cell counts, so that 1 and 0 contradict.
    repeated = np.bincount(rows, minlength=len(images.dictionary))[rows] > 1
    states = [state_of[kinds] for kinds in found.cells.values()]
    lines = [np.flatnonzero((state != unlisted) | repeated) for state in states]
    at = np.concatenate(lines)
    numbers = np.repeat([found.number[name] for name in found.cells], [len(line) for line in lines])
    entries = np.concatenate([state[line] for state, line in zip(states, lines, strict=True)])
    return assemble(
        images.dictionary,
        found.classes,
        rows[at],
        numbers,
        entries,
        unlisted=unlisted,
        source=source.path,
        line_of=lambda entry: table.line_of(int(at[entry])),
        step=_step(source, options, found),
        remedy=_AGAINST_READERS if state_of[ZERO] == State.ABSENT else "",
        notes=[
            *table.notes,
            *found.notes(),
            *repetitions(images.dictionary, rows, at, numbers, entries),
        ],
    )


def _step(source: LabelSource, options: ReadOptions, found: WideColumns) -> Step:
    """What was read; with -1, also how often each value stood there and what -1 was taken for."""
    details: dict[str, Any] = {"file": str(source.path), "format": "wide"}
    if found.counts[MINUS_ONE]:
        details["minus_one"] = options.minus_one
        details["raw_values"] = found.raw_values()
    return Step("read", details)


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdigit() or not text


FORMAT = Format(
    name="wide",
    summary="CSV, Excel or Parquet, a row for each image and a column for each class: 1, 0, -1.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write_wide,
    patch=patch_wide,
)
