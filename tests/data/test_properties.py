"""What must stay true of every label file, tried on made-up ones."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hilltop.data import (
    FORMATS,
    Ambiguous,
    LabelTable,
    Layout,
    ReadOptions,
    State,
    detect,
    patch,
    read,
    write_labels,
)
from hilltop.data.content import Source
from hilltop.data.format import Change
from hilltop.data.formats import write_files
from hilltop.data.tables.patch import CsvText
from hilltop.errors import DataError

MANY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    derandomize=True,
)
OPEN = ReadOptions(unlisted="unknown", zero="unknown", empty="unknown", minus_one="absent")
WORDS = [
    "cat",
    "dog",
    "red fox",
    "AC/DC",
    "null",
    "0001",
    "1",
    "0",
    "a;b",
    "x, y",
    "{1}",
    "[z]",
    "<c>",
]
CELLS = [
    *WORDS,
    "",
    "cat;dog",
    "cat, dog",
    "dog|cat",
    "yes",
    "no",
    "-1",
    "7 1",
    "nan",
    '["a", "b"]',
]
IDS = ["a.jpg", "b.jpg", "c", "7", "Total", "x y z", "d, e.jpg", "n"]
HEADERS = [
    ["image", "labels"],
    ["image", "class"],
    ["image", "cat", "dog"],
    ["file", "tags", "notes"],
    ["id", "name", "1", "0"],
    ["Photo", "Species 1", "Species 2"],
    ["image", "class", "state"],
]

cell = st.sampled_from(CELLS)


LISTS = [
    "cat",
    "dog",
    "red fox",
    "cat;dog",
    "cat, dog",
    "dog|cat",
    "",
    '["a", "b"]',
    "7 1",
    "cat;",
    "5",
]
VALUES = ["1", "0", "", "-1", "yes", "no", "x", "2", "cat"]
KINDS = {"lists": (HEADERS[:1], LISTS), "wide": (HEADERS[2:3], VALUES), "any": (HEADERS, CELLS)}


@st.composite
def rows_of_a_table(draw: st.DrawFn, kind: str | None = None) -> list[list[str]]:
    headers, words = KINDS[kind or draw(st.sampled_from(list(KINDS)))]
    header = draw(st.sampled_from(headers))
    few = st.sampled_from(draw(st.lists(st.sampled_from(words), min_size=1, max_size=2)))
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True))
    cells = st.lists(few, min_size=len(header) - 1, max_size=len(header) - 1)
    body = [[name, *draw(cells)] for name in ids]
    return [header, *body] if draw(st.integers(0, 3)) else body


@st.composite
def rows_and_more(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    kind = draw(st.sampled_from(list(KINDS)))
    rows = draw(rows_of_a_table(kind))
    words = st.sampled_from(KINDS[kind][1])
    new = [f"new{at}.jpg" for at in range(draw(st.integers(1, 4)))]
    return rows, [[name, *(draw(words) for _ in rows[0][1:])] for name in new]


def as_csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def said(table: LabelTable) -> dict[str, dict[str, State]]:
    """What a table says of each image, by the names of classes."""
    return {
        image: {name: State(int(state)) for name, state in zip(table.classes, row, strict=True)}
        for image, row in zip(table.images.to_pylist(), table.dense(), strict=True)
    }


def listed(table: LabelTable) -> dict[str, set[tuple[str, State]]]:
    """What a table lists of each image."""
    return {
        image: {(name, state) for state in State for name in table.labels_of(row, state)}
        for row, image in enumerate(table.images.to_pylist())
    }


def source_of(content: bytes) -> Source:
    return Source(Path("labels.csv"), content=content)


@MANY
@given(rows_of_a_table())
def test_every_row_is_read_or_named_in_an_error(rows: list[list[str]]) -> None:
    source = source_of(as_csv(rows))
    try:
        layout = detect(source, OPEN)
        if isinstance(layout, Ambiguous):
            return
        table = read(source, layout)
    except DataError:
        return
    left_out = {*layout.skip_rows, layout.header_row}
    names = {row[0].strip() for at, row in enumerate(rows, 1) if at not in left_out}
    if layout.format in ("wide", "list_column", "long", "paper_list") and (
        layout.image_column in ("image", "file", "id", "Photo", "column 0", None)
    ):
        assert names - {""} == set(table.images.to_pylist())
    assert not layout.skip_rows


@settings(MANY, max_examples=600)
@given(rows_and_more())
def test_more_rows_never_change_how_the_others_are_read(
    made: tuple[list[list[str]], list[list[str]]],
) -> None:
    rows, new = made
    tables = []
    for some in (rows, [*rows, *new]):
        source = source_of(as_csv(some))
        try:
            layout = detect(source, OPEN)
            assume(isinstance(layout, Layout))
            assert isinstance(layout, Layout)
            tables.append(listed(read(source, layout)))
        except DataError:
            assume(False)
    before, after = tables
    assert {image: after.get(image) for image in before} == before


@MANY
@given(rows_of_a_table(), rows_of_a_table())
def test_with_a_layout_nothing_is_inferred(rows: list[list[str]], others: list[list[str]]) -> None:
    source = source_of(as_csv(rows))
    try:
        layout = detect(source, OPEN)
    except DataError:
        assume(False)
    assume(isinstance(layout, Layout))
    assert isinstance(layout, Layout)
    # The same row reads the same among any others, or the reader stops.
    first = rows[1] if layout.header_row is not None and len(rows) > 1 else rows[0]
    header = rows[:1] if layout.header_row is not None else []
    alike = [row for row in others if len(row) == len(rows[0]) and row[0] != first[0]]
    try:
        alone = listed(read(source_of(as_csv([*header, first])), layout))
        among = listed(read(source_of(as_csv([*header, first, *alike])), layout))
    except DataError:
        assume(False)
    image = first[0].strip()
    assume(image in alone)
    assert among[image] == alone[image]


@MANY
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "0", "-1", "", "no", "yes", "x"]), st.sampled_from(["1", "0"])
        ),
        min_size=1,
        max_size=4,
    )
)
def test_the_meaning_of_zero_minus_one_and_empty_is_never_guessed(
    cells: list[tuple[str, str]],
) -> None:
    rows = [["image", "cat", "dog"], *([f"{n}.jpg", *pair] for n, pair in enumerate(cells))]
    words = {word for pair in cells for word in pair}
    found = detect(source_of(as_csv(rows)))
    open_ = words & {"0", "-1", "", "no"}
    assert isinstance(found, Ambiguous) == bool(open_)
    if isinstance(found, Ambiguous):
        assert all((repr(word) if word else "an empty cell") in str(found) for word in open_)


# Tables

names = st.one_of(
    st.sampled_from(
        [*WORDS, "nan", "total", "image", "labels", "Größe", "日本", "=1+1", "it's", 'q"q', "class"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=6),
)


@st.composite
def tables(draw: st.DrawFn) -> LabelTable:
    images = draw(st.lists(names, min_size=0, max_size=4, unique=True))
    classes = draw(st.lists(names, min_size=0, max_size=4, unique=True))
    unlisted = draw(st.sampled_from([State.UNKNOWN, State.ABSENT]))
    dense = draw(
        st.lists(
            st.lists(st.sampled_from(list(State)), min_size=len(classes), max_size=len(classes)),
            min_size=len(images),
            max_size=len(images),
        )
    )
    states = np.array(dense, dtype=np.int8).reshape(len(images), len(classes))
    rows, columns = np.nonzero(states != unlisted)
    return LabelTable.from_coo(
        images, classes, rows, columns, states[rows, columns], unlisted=unlisted
    )


ENDINGS = {
    "hilltop": [".parquet"],
    "wide": [".csv", ".tsv", ".xlsx", ".parquet"],
    "list_column": [".csv", ".jsonl", ".parquet", ".xlsx"],
    "long": [".csv", ".parquet", ".jsonl"],
    "huggingface": [".parquet"],
    "coco": [".json"],
    "lvis": [".json"],
    "label_studio": [".json"],
    "fiftyone": [".json"],
    "cvat": [".xml"],
    "paper_list": [".txt"],
    "multi_hot": [".txt"],
}
WRITTEN = [(name, ending) for name, endings in ENDINGS.items() for ending in endings]
WRITTEN += [(name, "") for name in ("yolo", "voc", "voc_xml", "sidecar")]


def test_every_format_that_is_written_is_tried() -> None:
    assert {name for name, _ in WRITTEN} == {name for name, one in FORMATS.items() if one.writes}


@pytest.mark.parametrize(("format", "ending"), WRITTEN)
@settings(MANY, max_examples=40)
@given(table=tables())
def test_writing_and_reading_gives_the_same_table_or_an_error(
    format: str, ending: str, table: LabelTable
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"labels{ending}"
        try:
            layout = write_labels(table, path, format=format)
        except DataError:
            return
        again = read(path, layout)
        assert again.classes == table.classes
        assert again.images.equals(table.images)
        assert again.dense().tolist() == table.dense().tolist()
        # Who reads it without being told how gets the same, a question, or an error.
        options = replace(OPEN, unlisted=table.unlisted.name.lower(), zero=None, empty=None)
        options = replace(
            options, minus_one="unknown" if table.unlisted == State.ABSENT else "absent"
        )
        if FORMATS[format].unlisted is not None:
            options = ReadOptions()  # the format itself says what is not listed
        try:
            found = detect(path, options, format=format)
            if isinstance(found, Layout):
                plain = read(path, found)
                for image, states in said(plain).items():
                    for name, state in said(again)[image].items():
                        assert states.get(name, plain.unlisted) == state
                assert set(plain.images.to_pylist()) == set(again.images.to_pylist())
        except DataError:
            pass


PATCHED = [one for one in WRITTEN if FORMATS[one[0]].patch is not None]


@pytest.mark.parametrize(("format", "ending"), PATCHED)
@settings(MANY, max_examples=40)
@given(table=tables(), data=st.data())
def test_a_patch_reads_back_equal_or_is_refused(
    format: str, ending: str, table: LabelTable, data: st.DataObject
) -> None:
    assume(len(table) and table.classes)
    dense = table.dense()
    pairs = st.tuples(
        st.integers(0, len(table) - 1),
        st.integers(0, len(table.classes) - 1),
        st.sampled_from([State.PRESENT, State.ABSENT]),
    )
    wanted = {(row, column): state for row, column, state in data.draw(st.lists(pairs, max_size=3))}
    changes = [
        Change(
            row,
            column,
            table.images[row].as_py(),
            table.classes[column],
            state,
            State(int(dense[row, column])),
        )
        for (row, column), state in sorted(wanted.items())
        if dense[row, column] != state
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"labels{ending}"
        try:
            layout = write_labels(table, path, format=format)
            source = Source(path)
            before = read(source, layout)
            patched = patch(source, layout, before, changes)  # which reads back what it gives
        except DataError:
            return
        if not changes and set(patched.files) == {""} and ending not in (".xlsx", ".parquet"):
            assert patched.files[""] == path.read_bytes()
        for change in patched.changes:
            expected = change.state
            assert expected in (State.PRESENT, State.ABSENT, table.unlisted)
        said_present = {
            (one.row, one.column) for one in patched.changes if one.state == State.PRESENT
        }
        assert said_present == {(o.row, o.column) for o in changes if o.state == State.PRESENT}
        gone = {(o.row, o.column) for o in changes if o.was == State.PRESENT}
        assert gone <= {(one.row, one.column) for one in patched.changes}
        target = Path(folder) / f"new{ending}"
        write_files(target, patched.files)
        assert target.exists()


cells_of_text = st.text(st.sampled_from('ab,;"\n \t'), max_size=5)


@MANY
@given(
    st.lists(st.lists(cells_of_text, min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(0, 2),
    cells_of_text,
)
def test_a_changed_cell_of_a_text_leaves_all_others_alone(
    rows: list[list[str]], column: int, new: str
) -> None:
    # What stands around a cell belongs to the file, not to the cell.
    rows = [[f"i{at}", *(cell.strip() for cell in row)] for at, row in enumerate(rows)]
    text = CsvText(Path("labels.csv"), as_csv(rows).decode(), ",")
    record = text.records[-1]
    text.set_cell(record.row, column + 1, new.strip())
    changed = [*rows[:-1], [*rows[-1]]]
    changed[-1][column + 1] = new.strip()
    assert list(csv.reader(io.StringIO(text.text(), newline=""))) == changed
    same = as_csv(rows[:-1]).decode() if len(rows) > 1 else ""
    assert text.text().startswith(same)
