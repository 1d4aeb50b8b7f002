"""Patches of tables with a row for each statement (long, Open Images), or a column for each class.

Tables with a column that lists all labels of an image are in ``lists.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hilltop.data import State
from hilltop.data.formats import long, openimages
from hilltop.data.formats.base import Source
from hilltop.data.formats.tabular import is_parquet
from hilltop.data.patches.base import Change, Original, Patched, by_image, of_state
from hilltop.data.patches.csv_text import CsvText

_STATE_WORDS = ("present", "absent", "unknown")


def patch_long(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Append a row for each change; a state column is added where absents call for one."""
    if is_parquet(Source(original.path)):
        return
    text = CsvText(original.path)
    image = text.column(original.options.image_column or long.IMAGE)
    name = text.column(original.options.label_column or long.CLASS)
    state = text.column(long.STATE)
    if image is None or name is None:
        return
    if state is None and of_state(changes, State.ABSENT):
        state = text.add_column(long.STATE, "present")
    words = _state_words(text, state, original)
    for change in changes:
        cells = [""] * len(text.names)
        cells[image], cells[name] = change.image, change.class_name
        if state is not None:
            cells[state] = words[change.state]
        text.append(cells)
    yield Patched(text.content(), original.options)


def patch_openimages(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Append a verified row for each change: Confidence 1 or 0."""
    if is_parquet(Source(original.path)):
        return
    text = CsvText(original.path)
    at = {name: text.names.index(name) for name in text.names}
    found = sorted({record.cells[at[openimages.LABEL]] for record in text.records if record.cells})
    codes = openimages.class_names(found, original.options.classes)[0]  # names back to codes
    code_of = {name: code for code, name in codes.items()}
    for change in changes:
        cells = [""] * len(text.names)
        cells[at[openimages.IMAGE]] = change.image
        cells[at[openimages.SOURCE]] = "verification"
        cells[at[openimages.LABEL]] = code_of[change.class_name]
        cells[at[openimages.CONFIDENCE]] = "1" if change.state == State.PRESENT else "0"
        text.append(cells)
    yield Patched(text.content(), original.options)


def patch_wide(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the cells of the pairs, in every row of an image that stands in several.

    Absent is -1, unless -1 means unknown in this file: then absents cannot be said.
    """
    if is_parquet(Source(original.path)):
        return
    text = CsvText(original.path)
    image = text.column(original.options.image_column or text.names[0]) or 0
    minus_one = original.options.minus_one
    absents = minus_one != "unknown"
    said = changes if absents else of_state(changes, State.PRESENT)
    if any(change.class_name not in text.names for change in said):
        return
    of_image = by_image(said)
    one = _one(text, image)
    for record in text.records:
        wanted = of_image.get(record.cells[image], []) if record.cells else []
        if wanted:
            cells = list(record.cells)
            for change in wanted:
                place = text.names.index(change.class_name)
                cells[place] = one if change.state == State.PRESENT else "-1"
            text.change(record, cells)
    new = absents and minus_one is None and bool(of_state(changes, State.ABSENT))
    options = replace(original.options, minus_one="absent") if new else original.options
    note = "-1 stands for confirmed absents; read the file with --minus-one absent." if new else ""
    yield Patched(text.content(), options, absents, note=note)


def _state_words(text: CsvText, state: int | None, original: Original) -> dict[State, str]:
    """How the file writes states: in words or, where it does so throughout, in numbers."""
    rows = [record.cells for record in text.records if record.cells]
    written = set() if state is None else {cells[state].strip().lower() for cells in rows}
    if not written or written & set(_STATE_WORDS):
        return {State.PRESENT: "present", State.ABSENT: "absent"}
    absent = "-1" if original.options.minus_one == "absent" else "absent"
    return {State.PRESENT: "1", State.ABSENT: absent}


def _one(text: CsvText, image: int) -> str:
    """How the file writes a one."""
    for record in text.records:
        for at, cell in enumerate(record.cells):
            if at != image and cell.strip().lower() in ("1", "1.0", "true"):
                return cell
    return "1"
