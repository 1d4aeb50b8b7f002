"""What to say of a file that no format fits: what it holds, what it is nearest to, a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_codes import coded_columns, describe_values, odd_cells
from hilltop.data.formats.text.cell_values import OTHER, are_bits, cell_kind
from hilltop.data.formats.text.column_roles import Sample, likely_image
from hilltop.data.formats.text.dialect import is_labels_alone, looks_like_file, looks_numeric
from hilltop.data.formats.text.json_shapes import flat, is_label_list, records_in
from hilltop.data.formats.text.known_names import (
    ROW_NUMBER,
    is_label_name,
    is_place_name,
    is_species_name,
)
from hilltop.data.formats.text.sample import first_records, is_json_lines, peek_columns
from hilltop.data.formats.text.separators import find_separator, likely_delimiter
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
    if not source.is_spreadsheet and not source.dialect.header and _names_images(sample):
        return (
            f"Columns: {_listed(sample)}. Its first line names images, which stand in rows here:"
            " turn the table over, so that each image has a row and each class a column."
        )
    image = options.image_column or likely_image(sample)
    classes = [name for name in sample if name != image and _is_class(name, sample[name])]
    coded = coded_columns(sample, image)
    odd = odd_cells({name: sample[name] for name in coded})
    if len(coded) >= max(2, len(classes)) and odd and not any(map(is_label_name, sample)):
        # Among the first rows: the whole file is counted once the columns are known.
        among = () if options.class_columns else list(sample)
        told = describe_values(source.path, options, coded, odd, named_among=among)
        return f"Columns: {_listed(sample)}. In its first rows, {told}"
    if all(name == image or is_place_name(name) for name in sample):
        return (
            f"Columns: {_listed(sample)}. They say where something is, but not what it is: add a"
            " column with the class of each row."
        )
    kind, further = _nearest(sample, image, classes)
    command = _command(source, image, further)
    return f"Columns: {_listed(sample)}. It is nearest to {kind}, for example: {command}"


def _names_images(sample: Sample) -> bool:
    """Whether the first cells of several columns name files, and those below hold 1 and 0."""
    return (
        sum(
            looks_like_file(str(cells[0])) and all(cell_kind(cell) != OTHER for cell in cells[1:])
            for cells in sample.values()
            if len(cells) > 1
        )
        > 1
    )


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
    lists = [key for key in lists if not is_place_name(key)]
    label = [*named, *lists, *(key for key in keys if key != image)][:1]
    if not label:
        return None
    if "images" in keys and "caption" in str(sample.get("annotations"))[:_LINE]:
        return "These are captions: sentences, not labels."
    command = _command(source, image, {"label_column": label[0]})
    tried = (source.options or ReadOptions()).label_column is not None
    return f"Keys of its records: {_listed(sample)}." + f" For example: {command}" * (not tried)


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


_BINARY = {
    "\ufffd\ufffd\x11\u0871\x1a\ufffd": "an old Excel workbook (.xls). Save it as .xlsx or CSV",
    "\ufffdHDF": "an HDF5 file. Save its labels as .npy or CSV",
    "SQLite format 3": "an SQLite database. Export its table as CSV",
    "%PDF": "a PDF. Export its table as CSV",
    "<html": "a web page. Open it in a spreadsheet program, and save its table as .xlsx or CSV",
    "<!doctype html": "a web page; was an address fetched that asks to log in?",
    "version https://git-lfs": "a pointer of Git LFS to a file. Fetch it with: git lfs pull",
}
"""How files of others begin once what is no text is replaced, and what to do with them."""


_ENDINGS = {".ods": "an OpenDocument spreadsheet", ".numbers": "a spreadsheet of Numbers"}


def _describe_text(source: LabelSource) -> str:
    if source.suffix in (".pkl", ".pickle", ".pt", ".pth"):
        return (
            "It is a file of Python objects, which may run a program when it is opened, so it is"
            " not. Save the labels as CSV or .npy where it was made."
        )
    if source.suffix in _ENDINGS:
        return f"It is {_ENDINGS[source.suffix]}. Save it as .xlsx or CSV."
    for start, what in _BINARY.items():
        if source.head.lower().startswith(start.lower()):
            return f"It is {what}."
    line = next((line for line in source.head.split("\n") if line.strip()), "")
    if not line:
        return f"It is empty, or no text. {_ALWAYS}"
    if "\0" in line or "\ufffd" in line:
        return f"It is no text. {_ALWAYS}"
    lines = [one for one in source.head.split("\n") if one.strip()]
    if is_labels_alone(lines):
        command = _command(source, ROW_NUMBER, {})
        return f"Its lines seem to be labels without names of images, for example: {command}"
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
    named = [name for name in others if is_label_name(name) or are_bits(sample[name])]
    if len(classes) > 1 and not named:
        chosen = {} if image == ROW_NUMBER and len(classes) == len(sample) else classes
        return (
            "a table with a column for each class",
            {"class_columns": ",".join(chosen)} if chosen else {},
        )
    named = named or [name for name in others if is_species_name(name)]
    label = (named or sorted(others, key=lambda name: _unlikely(name, sample[name])))[0]
    separator = find_separator(str(cell) for cell in sample[label] if cell is not None)
    unclear = (
        {}
        if separator.certain or not separator.mark
        else {"delimiter": likely_delimiter(separator)}
    )
    return "a table with one column of labels", {"label_column": label, **unclear}


def _unlikely(name: str, cells: Sequence[Any]) -> tuple[bool, bool, int]:
    """By what columns are ordered, those that may hold labels first: words, and few of them."""
    words = [str(cell) for cell in cells if cell is not None and str(cell).strip()]
    numbers = not words or all(map(looks_numeric, words))
    return is_place_name(name), numbers, len(set(words))


def _is_class(name: str, cells: Sequence[Any]) -> bool:
    return is_class_like(name, np.array([cell_kind(cell) for cell in cells]))


def _example(cells: Sequence[Any]) -> str:
    text = next((str(cell) for cell in cells if cell is not None and str(cell).strip()), "blank")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
