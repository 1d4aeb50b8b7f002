"""Changes some labels of a table and leaves all else alone, wherever the table is stored."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.documents import (
    Edit,
    dump_like,
    elements,
    first_value,
    members,
    replace_spans,
    replace_word,
)
from hilltop.data.format import Change, FilePatch, Patched, without_absents
from hilltop.data.label_table import State
from hilltop.data.layout import JSON_LISTS, MULTI_HOT, ROW_NUMBER, Layout
from hilltop.data.tables.cells import (
    PARQUET_SUFFIXES,
    SHEET_SUFFIXES,
    Record,
    Table,
    codes_of,
    csv_records,
    is_list,
    parse_labels,
    parse_list,
    read_cells,
)
from hilltop.data.tables.read import open_table
from hilltop.data.tables.words import canonical, cell_states
from hilltop.errors import MissingExtra

_BOM = "\ufeff"


class CsvText:
    """The rows of a text.

    Args:
        path: The file, for messages.
        text: The whole file.
        separator: What separates its cells.
        comments: Number of lines before the table.
    """

    def __init__(self, path: Path, text: str, separator: str, comments: int = 0) -> None:
        """Split the text into rows; a quoted cell may hold line ends."""
        self.separator = separator
        self._start = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        first = text[: text.find("\n") + 1] or "\r" * ("\r" in text) or "\n"
        self.line_end = "\r\n" if first.endswith("\r\n") else first[-1]
        self.records = list(csv_records(path, text, separator, comments))
        below = sum(len(record.raw) for record in self.records)
        self._before = text[: len(text) - below]
        self._by_row = {record.row: record for record in self.records}

    def set_cell(self, row: int, column: int, text: str) -> None:
        """Put another text into a cell."""
        record = self._by_row[row]
        if self.separator == " " and text.split() == [text] and column < len(record.cells):
            record.raw = replace_word(record.raw, column, text)
            return
        body = record.raw.rstrip("\r\n")
        spans = cell_spans(body, self.separator)
        while len(spans) <= column:
            body += self.separator
            spans = cell_spans(body, self.separator)
        start, end = spans[column]
        old = body[start:end]
        bare = old.strip()
        quoted = bare.startswith('"')
        # What is around a cell without quotes stays, so it is not put there once more.
        new = self._quoted(text if quoted else text.strip(), quoted)
        around = old.partition(bare) if bare else (old, "", "")
        if not bare and new:
            around = ("", "", "")
        body = f"{body[:start]}{around[0]}{new}{around[2]}{body[end:]}"
        record.raw = body + record.raw[len(record.raw.rstrip("\r\n")) :]
        while len(record.cells) <= column:
            record.cells.append("")
        record.cells[column] = text

    def append(self, cells: list[str]) -> None:
        """Add a row at the end."""
        if self.records and not self.records[-1].raw.endswith(("\n", "\r")):
            self.records[-1].raw += self.line_end
        line = self.separator.join(self._quoted(cell, False) for cell in cells)
        row = self.records[-1].row + 1 if self.records else 1
        self.records.append(Record(row, list(cells), f"{line}{self.line_end}"))

    def text(self) -> str:
        """The whole file."""
        return self._start + self._before + "".join(record.raw for record in self.records)

    def _quoted(self, text: str, quoted: bool) -> str:
        if quoted or any(mark in text for mark in (self.separator, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text


def cell_spans(body: str, separator: str) -> list[tuple[int, int]]:
    """Start and end of every cell of a row, quotes included.

    Example:
        >>> [('a,"b,""c"",d"'[start:end]) for start, end in cell_spans('a,"b,""c"",d"', ",")]
        ['a', '"b,""c"",d"']
    """
    spans, start, at, inside = [], 0, 0, False
    while at < len(body):
        mark = body[at]
        if inside and body.startswith('""', at):
            at += 1  # a quote within the cell
        elif mark == '"' and (inside or not body[start:at].strip()):
            inside = not inside
        elif mark == separator and not inside:
            spans.append((start, at))
            start = at + 1
        at += 1
    return [*spans, (start, len(body))]


Cell = str | list[str]


@dataclass
class _Edits:
    """New cells by row and column, rows at the end, and columns at the end."""

    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    rows: list[dict[int, Cell]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)


class _TablePatch:
    """One table with the cells that are to change."""

    def __init__(self, asked: FilePatch) -> None:
        self.asked, self.layout, self.changes = asked, asked.layout, asked.changes
        self.table = open_table(asked.source, asked.layout)
        self.edits = _Edits()
        self.notes: list[str] = []
        self.absents = True
        self.further: dict[int, str] = {}
        self.rows_of = self._rows_by_image()

    def _rows_by_image(self) -> dict[str, list[int]]:
        wanted = {change.image for change in self.changes}
        if self.layout.image_column == ROW_NUMBER:
            return {image: [int(image)] for image in wanted}
        ids = self.table.distinct(self.table.index(self.layout.image_column or ""))
        place = {word: code for code, word in enumerate(ids.dictionary.to_pylist())}
        codes = codes_of(ids)
        return {image: np.flatnonzero(codes == place[image]).tolist() for image in wanted}

    def said(self) -> list[Change]:
        """The changes that the table can express."""
        if self.absents:
            return list(self.changes)
        return without_absents(self.changes, self.layout.unlisted)

    # Wide

    def wide(self) -> None:
        """Put the word for the new state into the cells of the pairs."""
        words = self._state_words([self.table.index(name) for name in self.layout.label_columns])
        words = self._with_absent(words)
        for change in self.said():
            at = self.table.index(self._column_of(change))
            if change.state not in words:
                raise self._refused(f"nothing in it says {change.state.name.lower()}")
            for row in self.rows_of[change.image]:
                self.edits.cells[row, at] = words[change.state]

    def _column_of(self, change: Change) -> str:
        names = [self.table.names[self.table.index(name)] for name in self.layout.label_columns]
        if change.class_name in names:
            return self.layout.label_columns[names.index(change.class_name)]
        codes = {at: code for code, at in self.layout.codes}
        if codes.get(change.column) in names:
            return codes[change.column]
        if all(name.startswith("column ") for name in names):
            return self.layout.label_columns[change.column]
        raise self._refused(f"it has no column for {change.class_name!r}")

    def _state_words(self, columns: Sequence[int]) -> dict[State, str]:
        """How the file writes each state: the commonest word for it."""
        counts = dict[State, dict[str, int]]()
        for at in columns:
            found = self.table.counts(at)
            for cell, state in cell_states(found, self.layout.values, None).items():
                if state is not None:
                    seen = counts.setdefault(state, {})
                    seen[cell] = seen.get(cell, 0) + found[cell]
        words = {State.PRESENT: "1"}
        for word in ("", "0", "-1"):
            meaning = self.layout.state_of(word)
            if meaning is not None:
                words.setdefault(meaning, word)
        words.update(
            {state: max(seen, key=lambda cell: seen[cell]) for state, seen in counts.items()}
        )
        return words

    def _with_absent(self, words: dict[State, str]) -> dict[State, str]:
        """The words with one for absent: -1 or 0, if that has no other meaning in the file."""
        if State.ABSENT in words or all(one.state != State.ABSENT for one in self.changes):
            return words
        known = dict(self.layout.values)
        if words[State.PRESENT].lower() == "present":
            return {**words, State.ABSENT: "absent"}
        mark = next((one for one in ("-1", "0") if one not in known), None)
        if mark is None:
            self.absents = False
            return words
        option = {"-1": "--minus-one absent", "0": "--zero absent"}[mark]
        self.notes.append(f"{mark} means confirmed absent; read the file with {option}.")
        more = {mark: "absent"} if mark == "-1" else dict.fromkeys(("0", "no", "false"), "absent")
        self.layout = replace(self.layout, values=(*self.layout.values, *more.items()))
        return {**words, State.ABSENT: mark}

    # Long

    def long(self) -> None:
        """Change the state of a pair, empty its cell, or add a row."""
        table, layout = self.table, self.layout
        label = table.index(layout.label_columns[0])
        names = table.distinct(label)
        place = {word: code for code, word in enumerate(names.dictionary.to_pylist())}
        codes = codes_of(names)
        state = None if layout.state_column is None else table.index(layout.state_column)
        words = {State.PRESENT: ""}
        if state is None:
            self.absents = layout.unlisted == State.ABSENT
        else:
            words = self._with_absent(self._state_words([state]))
        for change in self.said():
            calls = self._calls(change)
            rows = [
                row
                for row in self.rows_of[change.image]
                if any(codes[row] == place.get(word, -1) for word in calls)
            ]
            if state is not None:
                self._set_state(change, rows, state, label, words, calls)
            elif change.state == State.PRESENT:
                self._add_row(change, {label: calls[0]})
            else:
                for row in rows:
                    self.edits.cells[row, label] = ""

    def _set_state(
        self,
        change: Change,
        rows: Sequence[int],
        state: int,
        label: int,
        words: Mapping[State, str],
        calls: Sequence[str],
    ) -> None:
        if change.state not in words:
            if change.state != self.layout.unlisted:
                raise self._refused(f"nothing in it says {change.state.name.lower()}")
            for row in rows:
                self.edits.cells[row, label] = ""
            return
        for row in rows:
            self.edits.cells[row, state] = words[change.state]
        if not rows:
            self._add_row(change, {label: calls[0], state: words[change.state]})

    def _add_row(self, change: Change, cells: dict[int, Cell]) -> None:
        if self.layout.image_column == ROW_NUMBER:
            raise self._refused("its rows have no names")
        image = self.table.index(self.layout.image_column or "")
        self.edits.rows.append({image: change.image, **self.further, **cells})

    # Lists

    def lists(self) -> None:
        """Add names to the cells of the images, and take others out."""
        layout, table = self.layout, self.table
        labels = [table.index(name) for name in layout.label_columns]
        places = {State.PRESENT: labels}
        for state, name in (
            (State.ABSENT, layout.absent_column),
            (State.UNKNOWN, layout.unknown_column),
        ):
            if name is not None:
                places[state] = [table.index(name)]
        wants = {change.state for change in self.changes}
        if State.ABSENT in wants - {layout.unlisted} and State.ABSENT not in places:
            nameless = layout.header_row is None and layout.separator is not None
            if "absent" in table.names or layout.ragged or nameless or len(labels) > 1:
                self.absents = False
            else:
                self.edits.columns.append("absent")
                places[State.ABSENT] = [len(table.names)]
                self.layout = replace(layout, absent_column="absent")
                kept = tuple(name for name in self.layout.ignored if name != "absent")
                self.layout = replace(self.layout, ignored=kept)
        said = self.said()
        if layout.delimiter is None and len(labels) == 1 and not is_list(table.columns[labels[0]]):
            self._separate([one for one in said if one.state == State.PRESENT], labels[0])
        for change in said:
            self._change_lists(change, self.rows_of[change.image], places)

    def _separate(self, new: Sequence[Change], at: int) -> None:
        """Choose what stands between two labels of a cell where so far each held but one."""
        names = [*self.table.counts(at), *(one.class_name for one in new)]
        mark = next((mark for mark in ";|," if not any(mark in name for name in names)), None)
        wanted = Counter(one.image for one in new)
        struck = {one.image for one in self.changes if one.was == State.PRESENT != one.state}
        full = any(
            count + bool(self._text(self.rows_of[image][0], at) and image not in struck) > 1
            for image, count in wanted.items()
        )
        if full and mark is not None:
            self.layout = replace(self.layout, delimiter=mark)
            self.notes.append(
                f"a cell may hold several labels now; read the file with --delimiter '{mark}'."
            )

    def _change_lists(
        self, change: Change, rows: Sequence[int], places: Mapping[State, Sequence[int]]
    ) -> None:
        calls = self._calls(change)
        for state, columns in places.items():
            if state == change.state:
                continue
            for row in rows:
                for at in columns:
                    self._edit_list(row, at, remove=calls)
        if change.state == self.layout.unlisted and change.state not in places:
            return
        if change.state not in places:
            raise self._refused(f"nothing in it says {change.state.name.lower()}")
        columns = places[change.state]
        if len(columns) == 1:
            self._edit_list(rows[0], columns[0], add=calls[0])
            return
        free = [(row, at) for row in rows for at in columns if not self._text(row, at).strip()]
        if not free:
            raise self._refused(
                f"row {self.table.row_of(rows[0])} has no empty cell for {change.class_name!r}"
            )
        self.edits.cells[free[0]] = calls[0]

    def _calls(self, change: Change) -> list[str]:
        """What cells call a class: by number where the file has numbers for it, else by name."""
        codes = [code for code, at in self.layout.codes if at == change.column]
        if codes and self._uses_codes():  # where names are numbers too, they may be other classes
            return [*codes, *({change.class_name} - {*dict(self.layout.codes)})]
        return [change.class_name, *codes]

    def _uses_codes(self) -> bool:
        known = set(dict(self.layout.codes))
        for name in self.layout.label_columns:
            at = self.table.index(name)
            if is_list(self.table.columns[at]):
                if len(self.table.columns[at].flatten()):
                    return known.issuperset(self.table.columns[at].flatten().to_pylist())
                continue
            for cell in self.table.counts(at):
                words = parse_list(cell) or cell.replace(self.layout.delimiter or " ", " ").split()
                if words:
                    return set(words) <= known
        return False

    def _cell(self, row: int, at: int) -> Cell | None:
        if (row, at) in self.edits.cells:
            return self.edits.cells[row, at]
        if at >= len(self.table.columns):
            return None
        value: Cell | None = self.table.columns[at][row].as_py()
        return value

    def _text(self, row: int, at: int) -> str:
        value = self._cell(row, at)
        return value if isinstance(value, str) else ""

    def _edit_list(self, row: int, at: int, *, add: str = "", remove: Sequence[str] = ()) -> None:
        value = self._cell(row, at)
        if value is None and self._typed_lists(at):
            value = []
        if isinstance(value, list):
            new: Cell = [name for name in value if name.strip() not in remove]
            new = [*new, add] if add else new
        else:
            value = (value or "").strip()  # a text keeps the spaces around its cells
            new = self._joined(value, add, remove)
        if new != value and (new or value):
            self.edits.cells[row, at] = new

    def _typed_lists(self, at: int) -> bool:
        label = self.table.columns[self.table.index(self.layout.label_columns[0])]
        return is_list(self.table.columns[at] if at < len(self.table.columns) else label)

    def _joined(self, cell: str, add: str, remove: Sequence[str]) -> str:
        mark = self.layout.delimiter
        if mark == JSON_LISTS:
            return self._json_cell(cell, add, remove)
        if mark is None or mark == MULTI_HOT:
            if add and cell.strip():
                raise self._refused("a cell holds one label, and there is one already")
            return add or ("" if cell.strip() in remove else cell)
        parts = cell.split(mark)
        if remove and any(part.strip() in remove for part in parts):
            kept = [part for part in parts if part.strip() not in remove]
            cell = mark.join(kept).strip()
        if not add:
            return cell
        if mark in add:
            raise self._refused(f"{add!r} holds the delimiter {mark!r}")
        body = cell.rstrip()
        if not body:
            return add
        numbers = [int(part) for part in body.split() if part.isdecimal()] if mark == " " else []
        if add.isdecimal() and body.split() == [*map(str, sorted(numbers))]:
            return " ".join(map(str, sorted([*numbers, int(add)])))  # as they were: ascending
        ended = body.endswith(mark.strip() or mark) and mark.strip() != ""
        spaced = f"{mark} " in cell and mark != " "
        return f"{body}{'' if ended else mark}{' ' if spaced else ''}{add}"

    def _json_cell(self, cell: str, add: str, remove: Sequence[str]) -> str:
        before: list[Any] = []
        if cell.strip():
            try:
                before = list(json.loads(cell))
            except ValueError:
                before = list(parse_labels(cell.strip()) or ())
        python = cell.strip() and '"' not in cell and "'" in cell
        new = [one for one in before if str(one) not in remove]
        if new == before and not add:
            return cell
        numbers = bool(before) and all(isinstance(one, int) for one in before)
        if add:
            new.append(int(add) if numbers and add.isdigit() else add)
        return str(new) if python else json.dumps(new, ensure_ascii=False)

    def _refused(self, why: str) -> Any:
        return self.asked.refused(f"this file cannot be changed in place: {why}.")


def patch_table(asked: FilePatch, *, further: Mapping[str, str] | None = None) -> Patched:
    """Change some labels of a table; all other cells, columns and rows stay as they are.

    Args:
        asked: The table as it was read, and what changes.
        further: Other cells of rows that are added, by column.
    """
    asked.check_plain()
    if asked.layout.delimiter == MULTI_HOT:
        raise asked.refused("lists of 0 and 1 in cells are read, but not changed.")
    patch = _TablePatch(asked)
    patch.further = {patch.table.index(name): cell for name, cell in (further or {}).items()}
    {"wide": patch.wide, "long": patch.long}.get(asked.layout.shape, patch.lists)()
    content = _store(asked.source)(asked.source, patch.layout, patch.table, patch.edits)
    return Patched({"": content}, patch.layout, patch.said(), tuple(patch.notes))


_Store = Callable[[Source, Layout, Table, _Edits], bytes]


def _store(source: Source) -> _Store:
    if source.suffix in SHEET_SUFFIXES:
        return _store_sheet
    if source.suffix in PARQUET_SUFFIXES:
        return _store_parquet
    return _store_json if source.head.lstrip()[:1] in ("{", "[") else _store_text


def _store_text(source: Source, layout: Layout, table: Table, edits: _Edits) -> bytes:
    read = read_cells(source, separator=layout.separator, sheet=None)
    comments = 0 if read is None else len(read.comments)
    text = CsvText(source.path, source.text, layout.separator or ",", comments)
    place = {at: table.places[at] for at in range(len(table.places))}
    width = max((len(record.cells) for record in text.records), default=0)
    for number, name in enumerate(edits.columns):
        place[len(table.places) + number] = width + number
        if layout.header_row is None:
            raise data_error(source.path, "a file without column names cannot take a new column.")
        for record in text.records:
            if record.row == layout.header_row:
                text.set_cell(record.row, width + number, name)
            elif any(cell.strip() for cell in record.cells) and record.row not in layout.skip_rows:
                text.set_cell(record.row, width + number, "")
    for (row, at), cell in edits.cells.items():
        text.set_cell(table.row_of(row), place[at], str(cell))
    for cells in edits.rows:
        new = [""] * max(width, max(place[at] for at in cells) + 1)
        for at, cell in cells.items():
            new[place[at]] = str(cell)
        text.append(new)
    encoding = source.encoding
    return text.text().encode(encoding)


def _store_sheet(source: Source, layout: Layout, table: Table, edits: _Edits) -> bytes:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtra("Changing a spreadsheet", error.name, "xlsx") from None
    if source.suffix not in (".xlsx", ".xlsm"):
        raise data_error(
            source.path,
            f"{source.suffix} files are read, but not changed. Save it as .xlsx, or pass --format.",
        )
    with zipfile.ZipFile(io.BytesIO(source.raw)) as archive:
        if any(name.startswith(("xl/drawings", "xl/media")) for name in archive.namelist()):
            raise data_error(
                source.path,
                "this workbook holds pictures or charts, which would be lost. Save the sheet alone"
                " as .xlsx or .csv.",
            )
    book = load_workbook(io.BytesIO(source.raw), keep_vba=source.suffix == ".xlsm")
    sheet = book[layout.sheet] if layout.sheet in book.sheetnames else book.worksheets[0]
    place = {at: number + 1 for at, number in enumerate(table.places)}

    def put(row: int, column: int, cell: Cell) -> None:
        written = sheet.cell(row=row, column=column)
        text = str(cell)
        written.value = int(text) if text in ("0", "1", "-1") else text or None
        if isinstance(written.value, str):
            written.data_type = "s"  # a name that begins with = is no formula

    for number, name in enumerate(edits.columns):
        place[len(table.places) + number] = sheet.max_column + 1
        put(layout.header_row or 1, sheet.max_column + 1, name)
    for (row, at), cell in edits.cells.items():
        put(table.row_of(row), place[at], cell)
    last = table.row_of(len(table) - 1) if len(table) else layout.header_row or 0
    for number, cells in enumerate(edits.rows, max(last, sheet.max_row) + 1):
        for at, cell in cells.items():
            put(number, place[at], cell)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _store_parquet(source: Source, layout: Layout, table: Table, edits: _Edits) -> bytes:
    content = pq.read_table(pa.BufferReader(source.raw))
    names = [*table.names, *edits.columns]
    by_column: dict[int, dict[int, Cell]] = {}
    for (row, at), cell in edits.cells.items():
        by_column.setdefault(at, {})[table.row_of(row) - 1] = cell
    changed = {*by_column, *(at for row in edits.rows for at in row)}
    inner = [
        at for at in changed if at < len(table.names) and content.schema.names.count(names[at]) != 1
    ]
    if inner:
        raise data_error(source.path, f"the nested column {names[inner[0]]!r} cannot be changed.")
    if edits.rows:
        rows = [{names[at]: cell for at, cell in cells.items()} for cells in edits.rows]
        new = {
            field.name: pa.array(
                [_typed(row.get(field.name), field.type) for row in rows], field.type
            )
            for field in content.schema
        }
        content = pa.concat_tables([content, pa.table(new, schema=content.schema)])
    for at, cells in by_column.items():
        if at < len(table.names):
            number = content.schema.get_field_index(names[at])
            field = content.schema.field(number)
            values = content.column(number).to_pylist()
            for row, cell in cells.items():
                values[row] = _typed(cell, field.type)
            content = content.set_column(number, field, pa.array(values, field.type))
    for at, name in enumerate(edits.columns, len(table.names)):
        lists = [by_column.get(at, {}).get(row, []) for row in range(len(content))]
        content = content.append_column(name, pa.array(lists, pa.list_(pa.string())))
    stored = io.BytesIO()
    pq.write_table(content, stored)
    return stored.getvalue()


def _typed(cell: Cell | None, kind: pa.DataType) -> Any:
    """A cell as a column of this type holds it."""
    if isinstance(cell, list):
        return [_typed(one, kind.value_type) for one in cell]
    if cell is None or (cell == "" and not pa.types.is_string(kind)):
        return None
    if pa.types.is_integer(kind):
        return int(cell)
    if pa.types.is_floating(kind):
        return float(cell)
    if pa.types.is_boolean(kind):
        return canonical(cell) in ("1", "true")
    return cell


def _store_json(source: Source, layout: Layout, table: Table, edits: _Edits) -> bytes:
    changed: dict[int, dict[str, Cell]] = {}
    names = [*table.names, *edits.columns]
    for (row, at), cell in edits.cells.items():
        changed.setdefault(table.row_of(row), {})[names[at]] = cell
    text = source.text
    spans: list[Edit] = []
    if source.head.lstrip().startswith("["):
        start = first_value(text)
        found = list(elements(text, start))
        records = {at: (span.start, span.end) for at, span in enumerate(found, 1)}
    else:
        records, at = {}, 0
        for number, line in enumerate(text.split("\n"), 1):
            body = line.strip(" \t\r\ufeff")
            records[number] = at + line.index(body), at + line.index(body) + len(body)
            at += len(line) + 1
    for row, values in changed.items():
        spans += [_key_edit(text, records[row], name, cell) for name, cell in values.items()]
    text = replace_spans(text, spans)
    for new_row in edits.rows:
        record = {names[at]: cell for at, cell in new_row.items()}
        if source.head.lstrip().startswith("["):
            raise data_error(source.path, "a JSON list of rows cannot take further rows.")
        text = text if text.endswith("\n") or not text else f"{text}\n"
        text += json.dumps(record, ensure_ascii=False) + "\n"
    return text.encode(source.encoding)


def _key_edit(text: str, record: tuple[int, int], name: str, cell: Cell) -> Edit:
    """The change of a value by its key, which may be a path of keys with dots between."""
    start, end = record
    keys = dict(members(text, start))
    while name not in keys and "." in name and name.split(".", 1)[0] in keys:
        outer, name = name.split(".", 1)
        start, end = keys[outer].start, keys[outer].end
        keys = dict(members(text, start))
    like = text[start:end]
    if name not in keys:
        new = dump_like(like, {name: cell})[1:-1].strip()
        between = ", " if ", " in like or ": " in like else ","
        return end - 1, end - 1, f"{between if keys else ''}{new}"
    old = keys[name]
    style = text[old.start : old.end] if "\n" in like else like
    return old.start, old.end, dump_like(style, _like(old.value, cell))


def _like(old: Any, cell: Cell) -> Any:
    """A cell as a value of the type that the file has."""
    if isinstance(cell, list):
        numbers = isinstance(old, list) and bool(old) and all(isinstance(one, int) for one in old)
        if isinstance(old, str) and len(cell) == 1:
            return cell[0]
        return [int(one) if numbers and one.isdigit() else one for one in cell]
    number = {"0": 0, "1": 1, "-1": -1, "false": 0, "true": 1}.get(cell.lower())
    if isinstance(old, int | float) and number is not None:
        return number if number < 0 else type(old)(number)
    return cell
