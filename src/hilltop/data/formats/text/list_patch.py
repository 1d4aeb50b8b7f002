"""Patches of files with all labels of an image in one cell: names are added, all else stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.json_text import dump_like
from hilltop.data.formats.text.sample import is_image_name, is_json_lines, is_label_name
from hilltop.data.formats.text.table_file import is_parquet
from hilltop.data.state import State

_ABSENT = "absent"
Join = Callable[[str, list[str]], str]


@dataclass(frozen=True)
class _Marking:
    """How labels are written on the lines: with absents beside them, and by number or name."""

    absents: bool
    numbers: bool


def patch_list_rows(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add names to the cells of the images; of an image in several rows, to the first."""
    source = LabelSource(original.path)
    if is_parquet(source):
        return
    if is_json_lines(source):
        yield from _patch_json_lines(original, changes)
        return
    text = CsvText(original.path)
    places = _places(original, text.names)
    if places is None:
        return
    # What separates names is worked out by the reader: a wrong guess does not read back.
    joins: list[Join] = [_join_json]
    marks = [original.options.delimiter] if original.options.delimiter else [";", "|", " ", ","]
    joins += [_joiner(mark) for mark in marks]
    for join in joins:
        yield Patched(_patch_cells(original, changes, *places, join), original.options)


def _places(original: Original, names: list[str]) -> tuple[str, str] | None:
    """Names of the columns with images and labels, as the reader finds them."""
    images = [name for name in names if is_image_name(name)]
    labels = [name for name in names if is_label_name(name)]
    image = original.options.image_column or (images[0] if len(images) == 1 else None)
    label = original.options.label_column or (labels[0] if len(labels) == 1 else None)
    return None if image is None or label is None else (image, label)


def _patch_cells(
    original: Original, changes: Sequence[Change], image: str, label: str, join: Join
) -> bytes:
    text = CsvText(original.path)
    image_at, label_at = text.names.index(image), text.names.index(label)
    absent_at = text.column(_ABSENT)
    if absent_at is None and of_state(changes, State.ABSENT):
        absent_at = text.add_column(_ABSENT, "")
    of_image = by_image(changes)
    for record in text.records:
        wanted = of_image.pop(record.cells[image_at], []) if record.cells else []
        if wanted:
            cells = list(record.cells)
            for place, state in ((label_at, State.PRESENT), (absent_at, State.ABSENT)):
                added = [change.class_name for change in of_state(wanted, state)]
                if added and place is not None:
                    cells[place] = join(cells[place], added)
            text.change(record, cells)
    return text.content()


def _join_json(cell: str, added: list[str]) -> str:
    try:
        before = json.loads(cell) if cell.strip() else []
    except ValueError:
        before = [cell]  # not a list of names: this guess is not read back and is passed over
    return json.dumps([*before, *added], ensure_ascii=False)


def _joiner(mark: str) -> Join:
    def join(cell: str, added: list[str]) -> str:
        # As the file does it: with or without a blank behind the mark.
        spaced = re.search(rf"{re.escape(mark)} ", cell) is not None and mark != " "
        parts = [cell.rstrip()] if cell.strip() else []
        return (f"{mark} " if spaced else mark).join([*parts, *added])

    return join


def _patch_json_lines(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    absents = bool(of_state(changes, State.ABSENT))
    for mark in (_Marking(absents, numbers=False), _Marking(absents, numbers=True)):
        lines = original.path.read_bytes().decode("utf-8").split("\n")
        of_image = by_image(changes)
        for at, line in enumerate(lines):
            if line.strip(" \r\ufeff"):
                lines[at] = _patch_line(original, line, of_image, mark)
        if of_image:
            return  # the image ids stand somewhere else
        yield Patched("\n".join(lines).encode(), original.options)


def _patch_line(
    original: Original, line: str, of_image: dict[str, list[Change]], mark: _Marking
) -> str:
    body = line.strip(" \r\ufeff")
    record = json.loads(body)
    places = _places(original, list(record))
    wanted = of_image.pop(str(record.get(places[0])), []) if places else []
    if places and wanted:
        for key, state in ((places[1], State.PRESENT), (_ABSENT, State.ABSENT)):
            chosen = of_state(wanted, state)
            added = [change.column if mark.numbers else change.class_name for change in chosen]
            before = record.get(key) or []
            if added:
                record[key] = [*(before if isinstance(before, list) else [before]), *added]
        new = dump_like(body, record)
    else:
        new = body
    if mark.absents and _ABSENT not in record:
        # The reader wants a key on every line or on none.
        empty = dump_like(body, {_ABSENT: []})[1:]
        new = f"{new[:-1].rstrip()}{', ' if ', ' in body or ': ' in body else ','}{empty}"
    return line.replace(body, new)
