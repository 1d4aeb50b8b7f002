"""Patches of files with all labels of an image in one cell: names are added, all else stays."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.column_roles import find_image_column
from hilltop.data.formats.text.content import read_content
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.dialect import looks_numeric
from hilltop.data.formats.text.json_text import dump_like
from hilltop.data.formats.text.label_cells import ImageRows
from hilltop.data.formats.text.label_lists import find_label_column, open_rows
from hilltop.data.formats.text.sample import is_json_lines
from hilltop.data.formats.text.separators import RARE
from hilltop.data.formats.text.table_file import is_binary
from hilltop.data.state import State
from hilltop.errors import DataError

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
    if is_binary(source):
        return
    if is_json_lines(source):
        yield from _patch_json_lines(original, changes)
        return
    places = _places(original, open_rows(source))
    if places is None:
        return
    # What separates names is worked out by the reader: a wrong guess does not read back.
    joins: list[Join] = [_join_json, _join_python, _join_angles]
    marks = [original.options.delimiter] if original.options.delimiter else [*";|, \n", *RARE]
    joins += [_joiner(mark) for mark in marks]
    for join in joins:
        yield Patched(_patch_cells(original, changes, *places, join), original.options)


def _places(original: Original, rows: ImageRows) -> tuple[str, str] | None:
    """Names of the columns with images and labels, as the reader finds them."""
    options = original.options
    try:
        image = find_image_column(original.path, rows.sample(), options)
        return image, find_label_column(rows, image, options)
    except DataError:
        return None


def _patch_cells(
    original: Original, changes: Sequence[Change], image: str, label: str, join: Join
) -> bytes:
    text = CsvText(original.path)
    label_at = text.names.index(label)
    absent_at = text.column(_ABSENT)
    if absent_at is None and of_state(changes, State.ABSENT):
        absent_at = text.add_column(_ABSENT, "")
    of_image = by_image(changes)
    numbers = original.options.class_numbers() or {}
    codes = {at: word for word, at in numbers.items() if word.isdigit()}
    for name, record in text.images(image):
        wanted = of_image.pop(name, [])
        if wanted:
            cells = list(record.cells)
            for place, state in ((label_at, State.PRESENT), (absent_at, State.ABSENT)):
                added = [
                    _word(change, cells[label_at], codes) for change in of_state(wanted, state)
                ]
                if added and place is not None:
                    cells[place] = join(cells[place], added)
            text.change(record, cells)
    return text.content()


def _word(change: Change, cell: str, codes: Mapping[int, str]) -> str:
    """How a cell calls a class: by its number, where it has numbers."""
    return codes.get(change.column, change.class_name) if looks_numeric(cell) else change.class_name


def _join_json(cell: str, added: list[str]) -> str:
    try:
        before = json.loads(cell) if cell.strip() else []
    except ValueError:
        before = cell
    # What is no list of names makes a guess that is not read back, and so is passed over.
    before = before if isinstance(before, list) else [before]
    return json.dumps([*before, *added], ensure_ascii=False)


def _join_python(cell: str, added: list[str]) -> str:
    """A list as Python prints it: ``['cat', 'dog']``."""
    try:
        before = ast.literal_eval(cell) if cell.strip() else []
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        before = cell
    return str([*(before if isinstance(before, list) else [before]), *added])


def _join_angles(cell: str, added: list[str]) -> str:
    """Names with angle brackets of their own: ``<c#><winforms>``."""
    return cell + "".join(f"<{name}>" for name in added)


def _joiner(mark: str) -> Join:
    def join(cell: str, added: list[str]) -> str:
        # As the file does it: with or without a blank behind the mark.
        spaced = re.search(rf"{re.escape(mark)} ", cell) is not None and mark != " "
        parts = [cell.rstrip()] if cell.strip() else []
        return (f"{mark} " if spaced else mark).join([*parts, *added])

    return join


def _patch_json_lines(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    absents = bool(of_state(changes, State.ABSENT))
    places = _places(original, open_rows(LabelSource(original.path)))
    if places is None:
        return
    for mark in (_Marking(absents, numbers=False), _Marking(absents, numbers=True)):
        lines = read_content(original.path).decode("utf-8").split("\n")
        of_image = by_image(changes)
        for at, line in enumerate(lines):
            if line.strip(" \r\ufeff"):
                lines[at] = _patch_line(line, places, of_image, mark)
        if of_image:
            return  # the image ids stand somewhere else
        yield Patched("\n".join(lines).encode(), original.options)


def _patch_line(
    line: str, places: tuple[str, str], of_image: dict[str, list[Change]], mark: _Marking
) -> str:
    body = line.strip(" \r\ufeff")
    record = json.loads(body)
    wanted = of_image.pop(str(record.get(places[0])), [])
    if wanted:
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
