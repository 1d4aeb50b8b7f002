"""Files with one row an image and a column of all its labels: reading and writing any of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.files import replacing
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.arrow_files import write_arrow
from hilltop.data.formats.text.cell_values import ONE, OTHER, ZERO, are_bits, cell_kind
from hilltop.data.formats.text.column_roles import Sample, resolve_column
from hilltop.data.formats.text.dialect import looks_like_file, looks_numeric
from hilltop.data.formats.text.express import check_expressible, check_lines
from hilltop.data.formats.text.json_lines import JsonLines
from hilltop.data.formats.text.json_shapes import is_object_list
from hilltop.data.formats.text.known_names import (
    LABEL_NAMES,
    PART_NAMES,
    is_class_name,
    is_label_name,
    is_no_class_name,
    is_place_name,
    is_rank_name,
    is_species_name,
)
from hilltop.data.formats.text.label_cells import ImageRows, lists_of, table_from_cells
from hilltop.data.formats.text.list_text import names_in_text
from hilltop.data.formats.text.sample import is_json_lines
from hilltop.data.formats.text.separators import ANGLES, JSON_TEXT, find_separator
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

LABELS = "labels"
_SHOWN = 6
_MOST_ANSWERS = 5
_FEWEST_BACK = 1.5
_FRACTIONS = re.compile(r"^\[\s*-?\d+\.\d*[,\s].*\d\.\d*[1-9]|^\[(\s*-?\d+\.\d+\s*,){3}")
"""A list of measures, such as a box."""
_DECIMAL = re.compile(r"[0-9]*(,[0-9]+)?", re.ASCII)
_FURTHER = {State.ABSENT: "absent", State.UNKNOWN: "unknown"}


def open_rows(source: LabelSource) -> ImageRows:
    """Return the columns of a CSV, JSON lines or Parquet file."""
    return JsonLines(source.path) if is_json_lines(source) else TableFile(source)


def find_label_column(rows: ImageRows, image: str, options: ReadOptions) -> str:
    """Return the column of labels: as the user says, by its name, or by what it holds."""
    if options.label_column is not None:
        return resolve_column(rows.path, options.label_column, rows.names)
    sample = rows.sample()
    found = label_candidates(sample, image)
    if len(found) == 1:
        return found[0]
    others = found or [name for name in rows.names if name != image]
    command = ready_command(
        rows.path,
        options,
        label_column=others[0] if others else "NAME",
        unlisted=options.unlisted or "unknown",
    )
    raise OptionNeeded(
        f"{rows.path}: which column holds the labels of an image? Pass --label-column with one of"
        f" {', '.join(others)}, for example: {command}"
    )


def label_candidates(sample: Sample, image: str) -> list[str]:
    """Columns that may hold all labels: by name, else those whose parts come back in many rows."""
    names = [name for name in sample if name != image]
    known = [name for name in names if is_label_name(name)]
    known = known or [name for name in names if is_object_list(name)]
    species = [name for name in names if is_species_name(name) and _is_filled(sample[name])]
    if species and not any(_is_filled(sample[name]) for name in known):
        known = []  # A column of tags that nobody filled in.
    if known:
        exact = [name for name in known if name.strip().lower() in LABEL_NAMES]
        return exact if len(exact) == 1 else known
    bits = [name for name in names if are_bits(sample[name])]
    if bits:
        return bits
    single = [name for name in names if is_class_name(name)]
    if species and any(map(is_rank_name, names)):
        single = []  # The class of animals, such as mammals; and half of a name is no species.
        species = [name for name in species if name.strip().lower() != "species"] or species
    if single:  # One class a row, and an image in several rows; names rather than numbers.
        words = [name for name in single if not _are_numbers(sample[name])]
        return words or single
    names = [name for name in names if not is_place_name(name)]
    lists = [name for name in names if name not in species and _holds_labels(sample[name])]
    decimals = [name for name in lists if _are_decimals(sample[name])]
    if len(decimals) > 1:  # 0,98 and 1,5: shares, where a comma is the decimal point
        lists = [name for name in lists if name not in decimals]
    if lists or species or not _are_files(sample.get(image, ())):
        return lists or species
    words = [name for name in names if _comes_back(sample[name])]
    return words if len(words) == 1 else []


def are_sightings(sample: Sample, image: str, binary: Sequence[str]) -> bool:
    """Whether a row is an animal that was seen, so that zeros and ones beside it are no classes.

    Images stand in several rows, or there is hardly a column of zeros and ones.
    """
    images = sample.get(image, ())
    named = any(is_species_name(name) for name in sample if name not in binary)
    return named and (len(set(map(str, images))) < len(images) or len(binary) <= 1)


def _is_filled(cells: Sequence[Any]) -> bool:
    return any(cell is not None and cell != "" for cell in cells)


def _are_numbers(cells: Sequence[Any]) -> bool:
    words = [str(cell) for cell in cells if cell is not None and str(cell).strip()]
    return all(map(looks_numeric, words))


def _are_decimals(cells: Sequence[Any]) -> bool:
    words = [str(cell).strip() for cell in cells if cell is not None and str(cell).strip()]
    return all(_DECIMAL.fullmatch(word) for word in words)


def _are_files(cells: Sequence[Any]) -> bool:
    words = [str(cell) for cell in cells if cell is not None]
    return bool(words) and all(map(looks_like_file, words))


def _comes_back(cells: Sequence[Any]) -> bool:
    """Whether cells are single words of which there are few, such as the class of a box."""
    words = [str(cell).strip() for cell in cells if cell is not None and str(cell).strip()]
    return (
        _FEWEST_BACK * len(set(words)) <= len(words) == len(cells)
        and len(set(words)) < len(words)
        and not {word.lower() for word in words} <= PART_NAMES
        and not any(map(looks_numeric, words))
        and not any(map(looks_like_file, words))
        and all(cell_kind(word) == OTHER for word in words)
    )


def _holds_labels(cells: Sequence[Any]) -> bool:
    """Whether cells of text are lists of few different parts, none of which is long."""
    words = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    if any(word.startswith("{") for word in words):
        return False
    if any(_FRACTIONS.search(word) for word in words):
        return False
    separator = find_separator(words)
    return bool(words) and separator.certain and separator.mark is not None


def holds_name_lists(name: str, cells: Sequence[Any]) -> bool:
    """Whether all cells are lists in brackets and some hold words: labels, whatever the name."""
    words = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    if is_place_name(name) or not words or not all(word.startswith(("[", "<")) for word in words):
        return False
    if find_separator(words).mark not in (JSON_TEXT, ANGLES):
        return False
    names = [one for word in words for one in names_in_text(word) or [word]]
    return bool(names) and not all(map(looks_numeric, names))


def pick_column(
    rows: ImageRows, named: str | None, known: Callable[[str], bool], flag: str, what: str
) -> str:
    """Return the column that the user named, else the only one with a known name."""
    if named is not None:
        return named
    fitting = [name for name in rows.names if known(name)]
    if len(fitting) == 1:
        return fitting[0]
    raise OptionNeeded(
        f"{rows.path}: which column holds the {what}?"
        f" Pass {flag} with one of {', '.join(fitting or rows.names)}."
    )


def read_list_rows(rows: ImageRows, image: str, options: ReadOptions, *, format: str) -> LabelTable:
    """Read the label column, and columns of absent and unknown classes if there are any."""
    label = find_label_column(rows, image, options)
    columns = {State.PRESENT: label}
    for state, name in _FURTHER.items():
        if name in rows.names and name not in (label, image):
            columns[state] = name
    if options.label_column is None:
        rows.notes += _unread(rows.sample(), {image, *columns.values()})
    return table_from_cells(rows, image, columns, options, format=format)


def _unread(sample: Sample, read: set[str]) -> list[str]:
    """Say which other columns hold yes and no, since they may say more of the labels."""
    kinds = {name: {cell_kind(cell) for cell in cells} for name, cells in sample.items()}
    found = [
        name
        for name, seen in kinds.items()
        if name not in read and {ONE, ZERO} <= seen and not is_no_class_name(name)
        if len({str(cell) for cell in sample[name]}) <= _MOST_ANSWERS
    ]
    if not found:
        return []
    hold = pluralize(len(found), "column holds", "columns hold")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return [
        f"{hold} yes and no, or 1 and 0, but {'is' if len(found) == 1 else 'are'} not read:"
        f" {', '.join(found[:_SHOWN])}{more}. --class-columns reads such columns as classes."
    ]


def write_list_rows(table: LabelTable, path: Path, lossy: bool, *, image_column: str) -> None:
    """Write one row an image, as the ending of the file says."""
    said = (State.UNKNOWN, State.ABSENT)
    check_expressible(table, path, lossy, unused_classes=False, unlisted=said)
    lists = {LABELS: lists_of(table, State.PRESENT)}
    for state, name in _FURTHER.items():
        if state != table.unlisted and (table.states == state).any():
            lists[name] = lists_of(table, state)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        _write_json_lines(pa.table({image_column: table.images, **lists}), path)
        return
    check_lines(table, path, classes=False)
    cells = lists
    if suffix != ".parquet":
        as_text = _delimited if _delimiter_is_clear(table, lists) else _json_text
        cells = {name: as_text(column) for name, column in lists.items()}
    write_arrow(pa.table({image_column: table.images, **cells}), path)


def _write_json_lines(content: pa.Table, path: Path) -> None:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for batch in content.to_batches(max_chunksize=1 << 14):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            records = (dict(zip(content.column_names, cells, strict=True)) for cells in rows)
            file.writelines(f"{encode(record)}\n" for record in records)


def _delimiter_is_clear(table: LabelTable, lists: dict[str, pa.ListArray]) -> bool:
    """Whether names joined by ``;`` are read back as they are, without being told how."""
    unclear = re.compile(r"[;|\n\r]|^\[|^\s|\s$")
    if any(unclear.search(name) for name in table.classes):
        return False
    several = any(pc.any(pc.greater(cells.value_lengths(), 1)).as_py() for cells in lists.values())
    return several or not any("," in name or len(name.split()) > 1 for name in table.classes)


def _delimited(lists: pa.ListArray) -> pa.Array:
    return pc.binary_join(lists, ";")


def _json_text(lists: pa.ListArray) -> pa.Array:
    cells = (json.dumps(names, ensure_ascii=False) if names else "" for names in lists.to_pylist())
    return pa.array(cells, pa.string())
