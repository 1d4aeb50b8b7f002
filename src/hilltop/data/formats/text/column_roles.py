"""Which column of a table holds the images, and which are named by the user or by position."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hilltop.checks import did_you_mean
from hilltop.data.data_errors import data_error
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.text.cell_values import OTHER, are_bits, cell_kind
from hilltop.data.formats.text.dialect import looks_like_file
from hilltop.data.formats.text.known_names import (
    IMAGE_NAMES,
    ROW_NUMBER,
    is_class_name,
    is_image_name,
    is_label_name,
    is_species_name,
)
from hilltop.errors import OptionNeeded

Sample = Mapping[str, Sequence[Any]]
"""The first cells of every column."""
_MOST = 0.5
_MOST_WORDS = 3
_SLICE = re.compile(r"(-?\d*):(-?\d*)", re.ASCII)


def resolve_column(path: Path, named: str, names: Sequence[str]) -> str:
    """Return the column that the user named, or counted from 0.

    Raises:
        DataError: There is no such column.
    """
    if named in names:
        return named
    if named.isascii() and named.isdigit() and int(named) < len(names):
        return names[int(named)]
    raise data_error(
        path,
        f"there is no column {named!r}.{did_you_mean(named, names)}"
        f" The columns are {', '.join(names)}.",
    )


def resolve_columns(path: Path, said: str, names: Sequence[str]) -> list[str]:
    """Return the columns that the user named or counted: ``sex,age``, ``2``, ``5:`` or ``3:8``."""
    found: list[str] = []
    for word in next(csv.reader([said]), []):
        part = word.strip()
        bounds = None if part in names else _SLICE.fullmatch(part)
        if bounds is None:
            found.append(resolve_column(path, part, names))
        else:
            first, last = (int(text) if text else None for text in bounds.groups())
            found += names[first:last]
    return list(dict.fromkeys(found))


def find_image_column(path: Path, sample: Sample, options: ReadOptions) -> str:
    """Return the column that holds the image ids.

    Raises:
        OptionNeeded: Several could, or none.
    """
    names = list(sample)
    if options.image_column is not None:
        return resolve_image(path, options.image_column, names)
    if not names:
        raise data_error(path, "there is no column. Expected image ids and their labels.")
    candidates = image_candidates(sample)
    if len(candidates) == 1:
        return candidates[0]
    command = ready_command(path, options, image_column=likely_image(sample))
    raise OptionNeeded(
        f"{path}: which column holds the image ids? Pass --image-column with one of"
        f" {', '.join(candidates or names)}, or {ROW_NUMBER} where rows have no names, for"
        f" example: {command}"
    )


def resolve_image(path: Path, named: str, names: Sequence[str]) -> str:
    """Return the column of images that the user named or counted, or the rows' own numbers."""
    if named == ROW_NUMBER and named not in names:
        return ROW_NUMBER
    return resolve_column(path, named, names)


def likely_image(sample: Sample) -> str:
    """The first column that names images, one a row; the numbers of the rows where none does."""
    candidates = image_candidates(sample)
    if len(candidates) == 1:
        return candidates[0]
    known = [name for name in candidates if is_image_name(name)]
    named = [name for name in candidates if _are_ids(sample[name])]
    called = [name for name in candidates if re.search(r"[^A-Z]I[dD]$|[_ ]id$|UID$", name)]
    return [*named, *known, *called, ROW_NUMBER][0]


def image_candidates(sample: Sample) -> list[str]:
    """Columns that may hold the image ids: one alone where its name or its cells say so."""
    known = [name for name in sample if is_image_name(name)]
    if len(known) == 1:
        return known
    other = [
        name
        for name, cells in sample.items()
        if OTHER in map(cell_kind, cells)
        and not any(known(name) for known in (is_label_name, is_class_name, is_species_name))
        and not are_bits(cells)
    ]
    pool = known or other
    files = [name for name in pool if _share(sample[name], looks_like_file) > _MOST]
    if len(files) == 1:
        return files
    exact = [name for name in known if name.strip().lower() in IMAGE_NAMES]
    if len(exact) == 1:
        return exact
    names = list(sample)
    if known:
        return names[:1] if names[0] in known else known
    ids = [name for name in pool if _are_ids(sample[name])]
    if ids:
        return ids[:1] if ids[0] == names[0] else ids
    return [name for name in other if _share(sample[name], _is_sentence) <= _MOST]


def _is_sentence(word: str) -> bool:
    return len(word.split()) > _MOST_WORDS


def _are_ids(cells: Sequence[Any]) -> bool:
    """Whether no cell is blank or a list, none occurs twice and most are no sentences."""
    words = [str(cell).strip() for cell in cells if cell is not None]
    return (
        len(words) == len(cells)
        and len(set(words)) == len(words)
        and not any(not word or "," in word for word in words)
        and _share(words, lambda word: " " not in word) > _MOST
    )


def _share(cells: Sequence[Any], test: Any) -> float:
    words = [str(cell) for cell in cells if cell is not None and str(cell).strip()]
    return sum(map(test, words)) / len(words) if words else 0.0
