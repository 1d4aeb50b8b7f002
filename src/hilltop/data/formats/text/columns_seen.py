"""What to say of a file that no format fits: what it holds, what it is nearest to, a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import cell_kind
from hilltop.data.formats.text.column_roles import Sample, likely_image
from hilltop.data.formats.text.json_shapes import flat, is_label_list, records_in
from hilltop.data.formats.text.known_names import ROW_NUMBER, is_label_name
from hilltop.data.formats.text.sample import first_records, is_json_lines, peek_columns
from hilltop.data.formats.text.separators import find_separator
from hilltop.data.formats.text.wide_cells import is_class_like
from hilltop.errors import DataError

_SHOWN = 12
_LONGEST = 20
_LINE = 60
_ALWAYS = (
    "What is always read: a CSV file with a line for each image, its name in the column image and"
    " its labels in the column labels, such as 'a.jpg,cat;dog'."
)


def describe_content(source: LabelSource) -> str:
    """Say what a file holds, the nearest kind of file and a command, as far as they are known."""
    return describe_columns(source) or _describe_records(source) or _describe_text(source)


def describe_columns(source: LabelSource) -> str | None:
    """Return the columns seen, the nearest kind of table and a command; None for no table."""
    sample, options = peek_columns(source), source.options or ReadOptions()
    if len(sample) < 2:
        return None
    image = options.image_column or likely_image(sample)
    classes = [name for name in sample if name != image and _is_class(name, sample[name])]
    if sum(_are_fractions(cells) for cells in sample.values()) > 1 and not classes:
        return (
            f"Columns: {_listed(sample)}. Fractions are scores, not labels: make 1 and 0 of them"
            " by a threshold of your own first."
        )
    kind, further = _nearest(sample, image, classes)
    command = _command(source, image, further)
    return f"Columns: {_listed(sample)}. It is nearest to {kind}, for example: {command}"


def _describe_records(source: LabelSource) -> str | None:
    """The same for objects of JSON: their keys."""
    records = _records(source)
    if not records:
        return None
    keys = dict.fromkeys(key for record in records for key in record)
    sample = {key: [record.get(key) for record in records] for key in keys}
    scalars = {
        key: [value if isinstance(value, str | int | float) else None for value in values]
        for key, values in sample.items()
    }
    lists = [key for key in keys if any(is_label_list(value) and value for value in sample[key])]
    named = [key for key in keys if is_label_name(key)]
    image = (source.options or ReadOptions()).image_column or likely_image(scalars)
    label = [*named, *lists, *(key for key in keys if key != image)][:1]
    if not label:
        return None
    command = _command(source, image, {"label_column": label[0]})
    return f"Keys of its records: {_listed(sample)}. For example: {command}"


def _records(source: LabelSource) -> list[dict[str, Any]]:
    if source.head.lstrip()[:1] not in ("[", "{"):
        return []
    found = first_records(source) if is_json_lines(source) else []
    if not found:
        try:
            content = source.json
        except DataError:
            return []
        found = records_in(content) or ([content] if isinstance(content, dict) else [])
    return [flat(dict(record)) for record in found[:50] if isinstance(record, dict)]


def _describe_text(source: LabelSource) -> str:
    line = next((line for line in source.head.split("\n") if line.strip()), "")
    if not line:
        return f"It is empty, or no text. {_ALWAYS}"
    if "\0" in line or "\ufffd" in line:
        return f"It is no text. {_ALWAYS}"
    return f"It begins with {line.strip()[:_LINE]!r}. {_ALWAYS}"


def _command(source: LabelSource, image: str, further: dict[str, str]) -> str:
    options = source.options or ReadOptions()
    return ready_command(
        source.path,
        options,
        unlisted=options.unlisted or "unknown",
        **({} if options.image_column else {"image_column": image}),
        **further,
    )


def _listed(sample: Sample) -> str:
    shown = [f"{name} ({_example(cells)})" for name, cells in list(sample.items())[:_SHOWN]]
    more = f" and {len(sample) - _SHOWN} more" if len(sample) > _SHOWN else ""
    return f"{', '.join(shown)}{more}"


def _nearest(sample: Sample, image: str, classes: list[str]) -> tuple[str, dict[str, str]]:
    others = [name for name in sample if name != image]
    named = [name for name in others if is_label_name(name)]
    if len(classes) > 1 and not named:
        chosen = {} if image == ROW_NUMBER and len(classes) == len(sample) else classes
        return (
            "a table with a column for each class",
            {"class_columns": ",".join(chosen)} if chosen else {},
        )
    label = (named or sorted(others, key=lambda name: len(set(map(str, sample[name])))))[0]
    separator = find_separator(str(cell) for cell in sample[label] if cell is not None)
    unclear = {} if separator.certain or not separator.mark else {"delimiter": separator.mark}
    return "a table with one column of labels", {"label_column": label, **unclear}


def _is_class(name: str, cells: Sequence[Any]) -> bool:
    return is_class_like(name, np.array([cell_kind(cell) for cell in cells]))


def _are_fractions(cells: Sequence[Any]) -> bool:
    """Whether cells are numbers between 0 and 1, and not just these two."""
    try:
        numbers = [float(cell) for cell in cells if cell is not None and str(cell).strip()]
    except ValueError:
        return False
    return bool(numbers) and all(0 <= one <= 1 for one in numbers) and not set(numbers) <= {0, 1}


def _example(cells: Sequence[Any]) -> str:
    text = next((str(cell) for cell in cells if cell is not None and str(cell).strip()), "blank")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
