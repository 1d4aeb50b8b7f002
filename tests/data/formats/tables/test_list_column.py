"""One column with all labels of an image: CSV, JSON lines, Parquet, round trips."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import LabelTable, ReadOptions, State, assemble, read_labels, write_labels
from hilltop.data.formats import LabelSource, recognise
from hilltop.data.formats.tables import list_column
from hilltop.errors import DataError, OptionNeeded
from tests.data.conftest import write
from tests.data.formats.fuzz import survives
from tests.data.formats.patched import PatchCase, check_patch

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN, ABSENT = ReadOptions(unlisted="unknown"), ReadOptions(unlisted="absent")
CSV = "image,labels\na.jpg,cat;dog\nb.jpg,\nc.jpg,red fox\n"
JSONL = (
    '{"image": "a.jpg", "labels": ["cat", "dog"]}\n\n'
    '{"image": "b.jpg", "labels": []}\n{"image": "c.jpg", "labels": ["red fox"]}\n'
)
DENSE = [[P, P, U], [U, U, U], [U, U, P]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


@pytest.mark.parametrize(("ending", "text"), [("csv", CSV), ("jsonl", JSONL), ("txt", JSONL)])
def test_labels_are_read_from_one_column(tmp_path: Path, ending: str, text: str) -> None:
    path = write(tmp_path / f"t.{ending}", text)
    assert recognise(LabelSource(path)).name == "list_column"
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.classes == ("cat", "dog", "red fox")
    assert table.dense().tolist() == DENSE


@pytest.mark.parametrize(
    "labels",
    [
        [["cat", "dog"], [], ["red fox"]],
        [["cat", "dog"], None, ["red fox"]],
        ["cat|dog", "", "red fox"],
        ["cat|dog", None, "red fox"],
        pa.array([["cat", "dog"], [], ["red fox"]], pa.large_list(pa.large_string())),
        pa.array([["cat", "dog"], [], ["red fox"]], pa.list_(pa.dictionary(pa.int32(), pa.utf8()))),
        pa.array(["cat;dog", "", "red fox"]).dictionary_encode(),
    ],
)
def test_parquet_lists_and_delimited_text_are_read(tmp_path: Path, labels: object) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"file_name": ["a.jpg", "b.jpg", "c.jpg"], "tags": labels}), path)
    assert read_labels(path, options=UNKNOWN).dense().tolist() == DENSE


def test_unlisted_classes_are_never_guessed(path: Path) -> None:
    with pytest.raises(OptionNeeded, match="--unlisted unknown"):
        read_labels(write(path, CSV))
    assert read_labels(path, options=ABSENT).count(A) == 6


def test_uncertain_columns_are_asked_for(path: Path) -> None:
    write(path, "size,id,image,labels,tags\nxl,1,a,cat,dog\n")
    with pytest.raises(OptionNeeded, match="--image-column with one of id, image"):
        read_labels(path, options=UNKNOWN)
    with pytest.raises(OptionNeeded, match="--label-column with one of labels, tags"):
        read_labels(path, options=ReadOptions(unlisted="unknown", image_column="image"))
    both = ReadOptions(unlisted="unknown", image_column="image", label_column="tags")
    assert read_labels(path, options=both).labels_of(0) == ("dog",)


@pytest.mark.parametrize("text", [CSV, JSONL])
def test_a_wrong_column_name_is_a_fault(path: Path, text: str) -> None:
    options = ReadOptions(unlisted="unknown", label_column="lables")
    with pytest.raises(DataError, match=r"'lables'. Did you mean 'labels'\?"):
        read_labels(write(path, text), options=options)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"image": "x"}', "line 2: the key 'labels' is missing"),
        ('{"image": "x", "labels": 1.5}', "line 2: 'labels' must be a list of names, but is 1.5"),
        ('{"image": "x", "labels": {}}', "line 2: 'labels' must be a list of names, but is {}"),
        ('{"image": "x", "labels": ["a", 1.5]}', 'list of names, but is \\["a", 1.5\\]'),
        ('{"image": "x", "labels": "cat,dog"}', "line 2: 'labels' is a list in other places"),
        ('{"image": "", "labels": []}', "line 2: 'image' must be a name"),
        ('{"image": ["x"], "labels": []}', "line 2: 'image' must be a name, but is"),
        ('{"image": "x", "labels": [], "labels": ["a"]}', "line 2: .*'labels' stands twice"),
        ('{"image": "x", "labels": ["\\ud800"]}', "line 2: a name holds half a character"),
        ('{"image": "x", "labels": [', "line 2: this is not a JSON object"),
        ('["x"]', "line 2: expected a JSON object, but got"),
        ("[" * 100_000, "line 2: this JSON cannot be used"),
        ("9" * 5000, "line 2: this JSON cannot be used"),
    ],
)
def test_broken_json_lines_are_faults(tmp_path: Path, line: str, message: str) -> None:
    good = '{"image": "a", "labels": ["cat"]}'
    with pytest.raises(DataError, match=message):
        read_labels(write(tmp_path / "t.jsonl", f"{good}\n{line}\n"), options=UNKNOWN)


def test_parquet_text_that_is_not_utf8_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    raw = pa.array([b"\xff"], pa.binary())
    pq.write_table(
        pa.table({"image": ["a"], "labels": pa.Array.from_buffers(pa.string(), 1, raw.buffers())}),
        path,
    )
    with pytest.raises(DataError, match=r"this Parquet file cannot be read: .*Invalid UTF8"):
        read_labels(path, options=UNKNOWN)


def test_spaces_around_column_names_do_not_matter(path: Path) -> None:
    table = read_labels(write(path, "image, labels\na, cat;dog\n"), options=UNKNOWN)
    assert table.labels_of(0) == ("cat", "dog")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_round_trip_keeps_every_state(small: LabelTable, tmp_path: Path, name: str) -> None:
    write_labels(small, tmp_path / name, format="list_column")
    assert read_labels(tmp_path / name, options=UNKNOWN) == small
    unknown = assemble(
        small.images, small.classes, [0, 1, 1, 2], [0, 1, 0, 2], [P, P, U, U], unlisted=A
    )
    write_labels(unknown, tmp_path / name, format="list_column")
    assert read_labels(tmp_path / name, options=ABSENT) == unknown


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize(
    "classes",
    [
        ("a;b", "c|d"),
        ("[a", "b"),
        (" a", "b"),
        ("a, b", "c"),
        ("red fox", "z"),
        ("a|b", "c"),
        ('a"b', "c\nd"),
    ],
)
@pytest.mark.parametrize("columns", [[0, 1], [0, 0]])
def test_round_trip_keeps_awkward_names(
    tmp_path: Path, name: str, classes: tuple[str, str], columns: list[int]
) -> None:
    used = tuple(sorted({classes[column] for column in columns}))
    rows = [0, 0] if len(used) == 2 else [0, 1]
    table = assemble(
        ["x", "y"], used, rows, [used.index(classes[c]) for c in columns], P, unlisted=U
    )
    write_labels(table, tmp_path / name, format="list_column")
    assert read_labels(tmp_path / name, options=UNKNOWN) == table


def test_written_json_lines_are_plain_records(small: LabelTable, tmp_path: Path) -> None:
    write_labels(small, tmp_path / "t.jsonl")
    records = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert records[0] == {"image": "a.jpg", "labels": ["dog"], "absent": ["cat"]}


def test_classes_nobody_has_cannot_be_written(path: Path) -> None:
    table = assemble(["a"], ["cat", "dog"], [0], [0], P, unlisted=U)
    with pytest.raises(DataError, match="cannot express 1 class that no image has"):
        write_labels(table, path, format="list_column")
    write_labels(table, path, format="list_column", lossy=True)
    assert read_labels(path, options=UNKNOWN).classes == ("cat",)


@pytest.mark.parametrize(
    "text",
    [
        "image,class,state\na,cat,present\n",
        "image,cat,dog\na,1,0\n",
        '{"images": [], "annotations": [], "categories": []}',
        '{"image": 1, "labels"',
        "[1]",
        "",
        "\x00\xff",
    ],
)
def test_other_formats_are_not_taken_for_a_list_column(path: Path, text: str) -> None:
    assert not list_column.fits(LabelSource(write(path, text)))
    assert not list_column.fits(LabelSource(path.parent))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'image,labels,absent\na,cat;dog,fox\n"b,c",,\nd,fox,cat\n'),
        ("t.csv", 'image,labels\na,"[""cat"", ""dog""]"\nb,[]\nc,"[""fox""]"\n'),
        ("t.jsonl", JSONL),
        ("t.jsonl", '{"id": 1, "tags": "cat|dog"}\n{"id": 2, "tags": null}\n'),
    ],
)
def test_damaged_files_end_in_a_table_or_in_words(
    tmp_path: Path, count: int, name: str, text: str
) -> None:
    tables, faults = survives(write(tmp_path / name, text), count, "list_column", UNKNOWN)
    assert tables + faults == count
    assert tables
    assert faults


PATCHES = [
    PatchCase(
        "list column with an absent column",
        "list_column",
        "image,labels,note,absent\na.jpg,dog; pig,\"x, y\",\nb.jpg,cow,z,pig\n",
        [
            '- a.jpg,dog; pig,"x, y",\n', '+ a.jpg,dog; pig,"x, y",cow\n',
            "- b.jpg,cow,z,pig\n", "+ b.jpg,cow;dog,z,pig\n",
        ],
    ),
    PatchCase(
        "list column as JSON text",
        "list_column",
        'image,labels,absent\na.jpg,"[""dog""]",\nb.jpg,"[""cow""]",\n',
        [
            '- a.jpg,"[""dog""]",\n', '+ a.jpg,"[""dog""]","[""cow""]"\n',
            '- b.jpg,"[""cow""]",\n', '+ b.jpg,"[""cow"", ""dog""]",\n',
        ],
    ),
    PatchCase(
        "JSON lines",
        "list_column",
        '{"image":"a.jpg","labels":["dog"],"note":1.50}\n{"image": "b.jpg", "labels": ["cow"]}\n'
        '{"image":"c.jpg","labels":[]}\n',
        [
            '- {"image":"a.jpg","labels":["dog"],"note":1.50}\n',
            '+ {"image":"a.jpg","labels":["dog"],"note":1.5,"absent":["cow"]}\n',
            '- {"image": "b.jpg", "labels": ["cow"]}\n',
            '+ {"image": "b.jpg", "labels": ["cow", "dog"], "absent": []}\n',
            '- {"image":"c.jpg","labels":[]}\n',
            '+ {"image":"c.jpg","labels":[],"absent":[]}\n',
        ],
        file="labels.jsonl",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
