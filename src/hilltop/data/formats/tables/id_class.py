"""Tables with an image and a class in one cell: ``a.jpg_Fish,264918 937`` or ``ID_7_any,0``.

Contests ask for predictions so and give the labels in the same shape: every image stands there once
for each class. Beside it is 1 or 0, or a mask, and nothing where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_codes import cell_meaning
from hilltop.data.formats.text.cell_values import KINDS, ONE, OTHER, cell_kinds
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.known_names import is_place_name
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.formats.text.sample import peek_columns
from hilltop.data.formats.text.table_file import TableFile, is_binary
from hilltop.data.formats.text.wide_cells import cell_states
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_FEWEST_ROWS = 3
_MOST_CLASSES = 200


def fits(source: LabelSource) -> bool:
    """Whether there are two columns, the first with every image once for each of a few classes."""
    options = source.options or ReadOptions()
    sample = peek_columns(source)
    if len(sample) != 2 or options.label_column or options.class_columns:
        return False
    (_, ids), (name, cells) = sample.items()
    if not is_place_name(name) and OTHER in {cell_meaning(options).kind(one) for one in cells}:
        return False
    return _is_product([str(one) for one in ids])


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read 1 or a mask as present; what 0, -1 and blanks mean is said by the options."""
    table = TableFile(source)
    if len(table.names) != 2:
        raise data_error(source.path, "expected two columns: an image with a class, and a value.")
    joined, value = table.names
    parts = [one.rpartition("_") for one in table.text(joined).to_pylist()]
    kinds = cell_kinds(table.column(value), cell_meaning(options))
    if is_place_name(value):
        kinds = np.where(kinds == OTHER, ONE, kinds).astype(np.int8)
    counts = np.bincount(kinds, minlength=KINDS)
    state_of, unlisted = cell_states(source.path, options, counts, False)
    names = list(dict.fromkeys(image for image, _, _ in parts))
    images = pa.array(names, pa.string())
    classes = options.class_list() or list(dict.fromkeys(name for _, _, name in parts))
    row_of = {image: row for row, image in enumerate(names)}
    place = options.class_numbers() or {name: at for at, name in enumerate(classes)}
    wrong = [at for at, (image, _, name) in enumerate(parts) if not image or name not in place]
    table.report(wrong, f"column {joined!r} must hold an image, '_' and a known class.")
    table.report(
        np.flatnonzero(kinds == OTHER).tolist(),
        f"column {value!r} holds something else than 1, 0, -1 and blank.",
    )
    rows = np.array([row_of[image] for image, _, _ in parts], dtype=np.int64)
    columns = np.array([place[name] for _, _, name in parts], dtype=np.int64)
    states = state_of[kinds]
    line = np.arange(len(rows))
    return assemble(
        images,
        classes,
        rows,
        columns,
        states,
        unlisted=unlisted,
        source=source.path,
        line_of=lambda entry: table.line_of(int(entry)),
        step=Step("read", {"file": str(source.path), "format": "id_class"}),
        notes=[
            f"an image and a class stand in one cell of {joined!r}, with '_' between them.",
            *repetitions(images, rows, line, columns, states),
        ],
    )


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the values of the pairs: 1, or 0 where it means absent; masks cannot be drawn."""
    if is_binary(LabelSource(original.path)):
        return
    text = CsvText(original.path)
    if len(text.names) != 2 or is_place_name(text.names[1]):
        return
    absents = (original.options.zero or original.options.unlisted) == "absent"
    said = changes if absents else of_state(changes, State.PRESENT)
    wanted = {f"{one.image}_{one.class_name}": one.state == State.PRESENT for one in said}
    for name, record in text.images(text.names[0]):
        if name in wanted:
            text.change(record, [name, "1" if wanted[name] else "0"])
    yield Patched(text.content(), original.options, absents)


def _is_product(ids: Sequence[str]) -> bool:
    """Whether ids are images with the same classes behind each, but for the last one."""
    of_image: dict[str, set[str]] = {}
    for one in ids:
        image, _, name = one.strip().rpartition("_")
        of_image.setdefault(image, set()).add(name)
    groups = [*of_image.values()]
    if "" in of_image or len(ids) < _FEWEST_ROWS or len(groups) < 2:
        return False
    first = groups[0]
    same = all(one == first for one in groups[:-1]) and groups[-1] <= first
    return same and 1 < len(first) <= _MOST_CLASSES and "" not in first


FORMAT = Format(
    name="id_class",
    summary="CSV with an image and a class in one cell, and 0, 1 or a mask beside: a.jpg_Fish.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold masks or scores"),
    patch=patch,
)
