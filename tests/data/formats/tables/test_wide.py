"""Wide tables: what the cells mean, round trips, recognition, damage and patches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from hilltop.data import LabelTable, ReadOptions, State, assemble, read_labels, write_labels
from hilltop.data.formats import LabelSource, recognise
from hilltop.data.formats.tables import wide
from hilltop.errors import DataError, OptionNeeded
from tests.data.conftest import write
from tests.data.formats.fuzz import survives
from tests.data.formats.patched import PatchCase, check_patch
from tests.data.formats.tables.conftest import ONES_AND_ZEROS, UNKNOWN, A, P, U, read

ABSENT, ALL_ABSENT = ReadOptions(unlisted="absent"), ReadOptions(zero="absent", blank="absent")
THREE_VALUES = "image,cat,dog\na.jpg,1,-1\nb.jpg,0,1.0\nc.jpg,,-1.0\n"


def test_one_is_present_and_the_rest_is_what_the_user_says(path: Path) -> None:
    zeros = "image,cat,dog\na.jpg,1,0\nb.jpg,0,0\n"
    assert read(path, UNKNOWN, zeros).dense().tolist() == [[P, U], [U, U]]
    assert read(path, ABSENT, zeros).dense().tolist() == [[P, A], [A, A]]
    assert read(path, ABSENT, zeros.replace("0", "")).dense().tolist() == [[P, A], [A, A]]


def test_zero_and_blank_mean_different_things(path: Path) -> None:
    options = ReadOptions(zero="absent", blank="unknown")
    assert read(path, options, ONES_AND_ZEROS).dense().tolist() == [[P, A], [A, U]]
    assert read(path, ALL_ABSENT, ONES_AND_ZEROS).dense().tolist() == [[P, A], [A, A]]
    options = ReadOptions(zero="absent", blank="unknown", minus_one="present")
    assert read(path, options, THREE_VALUES).dense().tolist() == [[P, P], [A, P], [U, P]]


def test_zeros_and_blanks_are_asked_for_together_with_a_command(path: Path) -> None:
    with pytest.raises(OptionNeeded) as caught:
        read(path, UNKNOWN, THREE_VALUES)
    said = str(caught.value)
    assert "0 stands in 1 cell, a blank stands in 1 cell, -1 stands in 2 cells" in said
    assert "--unlisted would settle zeros and blanks alike" in said
    assert said.endswith(f"{path} --zero absent --blank unknown --minus-one unknown")


def test_zeros_and_blanks_are_never_guessed(path: Path) -> None:
    with pytest.raises(OptionNeeded, match="--zero absent --blank unknown"):
        read(path, ReadOptions(), ONES_AND_ZEROS)


def test_minus_one_is_never_guessed(path: Path) -> None:
    with pytest.raises(OptionNeeded, match="-1 stands in 2 cells, and the file does not"):
        read(path, ALL_ABSENT, THREE_VALUES)


def test_nothing_is_asked_that_does_not_occur(path: Path) -> None:
    assert read(path, ReadOptions(), "image,cat\na.jpg,1\n").dense().tolist() == [[P]]
    signed = read(path, ReadOptions(minus_one="absent"), "image,cat,dog\na.jpg,1,-1\n")
    assert signed.dense().tolist() == [[P, A]]


@pytest.mark.parametrize(
    ("unlisted", "minus_one", "states"),
    [
        ("unknown", "absent", [[P, A], [U, P], [U, A]]),
        ("absent", "unknown", [[P, U], [A, P], [A, U]]),
        ("unknown", "unknown", [[P, U], [U, P], [U, U]]),
        ("absent", "absent", [[P, A], [A, P], [A, A]]),
    ],
)
def test_minus_one_and_zero_mean_what_the_options_say(
    path: Path, unlisted: str, minus_one: str, states: list[list[int]]
) -> None:
    options = ReadOptions(zero=unlisted, blank=unlisted, minus_one=minus_one)  # type: ignore[arg-type]
    assert read(path, options, THREE_VALUES).dense().tolist() == states


def test_raw_values_are_noted_where_minus_one_occurs(path: Path) -> None:
    options = ReadOptions(zero="unknown", blank="unknown", minus_one="absent")
    table = read(path, options, THREE_VALUES)
    assert table.notes == ("raw values: 1 in 2 cells, 0 in 1, -1 in 2, blank in 1",)
    details = table.history[0].details
    assert details["raw_values"] == {"1": 2, "0": 1, "-1": 2, "blank": 1}
    assert details["minus_one"] == "absent"
    assert read(path, ALL_ABSENT, ONES_AND_ZEROS).notes == ()


def test_true_and_false_are_one_and_zero(path: Path) -> None:
    table = read(path, UNKNOWN, "image,cat,dog\na.jpg,True,false\n")
    assert table.dense().tolist() == [[P, U]]


def test_other_values_are_faults_with_line_and_column(path: Path) -> None:
    text = "image,cat,dog\na.jpg,1,0\nb.jpg,2,maybe\nc.jpg,0.5,1\nd.jpg,1,1\n"
    with pytest.raises(DataError) as caught:
        read_labels(write(path, text), format="wide", options=UNKNOWN)
    lines = str(caught.value).splitlines()
    assert [line.partition(", line ")[2].partition(", which")[0] for line in lines] == [
        "3: column 'cat' holds '2'",
        "4: column 'cat' holds '0.5'",
        "3: column 'dog' holds 'maybe'",
    ]
    assert lines[0].endswith("Correct it, or pass --ignore-columns if the column is not a class.")


def test_one_column_among_many_wrong_cells_takes_three_lines(path: Path) -> None:
    rows = "".join(f"{row}.jpg,1,{1 if row % 2 else 7}\n" for row in range(30))
    with pytest.raises(DataError) as caught:
        read(path, UNKNOWN, "image,cat,dog\n" + rows)
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert lines[3].endswith("--ignore-columns dog")
    assert "12 more cells of this column are like that" in str(caught.value)


def test_an_image_in_two_rows_is_merged_and_noted(path: Path) -> None:
    table = read(path, UNKNOWN, "image,cat,dog\na.jpg,1,0\na.jpg,0,1\n")
    assert table.dense().tolist() == [[P, P]]
    assert len(table.notes) == 1
    assert table.notes[0].startswith("1 image id stands in more than one record; the labels")
    assert "1 of them has different labels there, the first is" in table.notes[0]


def test_an_image_in_two_rows_that_contradict_is_a_fault(path: Path) -> None:
    with pytest.raises(DataError, match=r"line 3: image 'a.jpg' has class 'cat' both"):
        read(path, ABSENT, "image,cat\na.jpg,1\na.jpg,0\n")


def test_a_class_column_without_a_name_is_named_by_its_place(path: Path) -> None:
    table = read(path, UNKNOWN, "image,,cat\na.jpg,1,1\nb.jpg,0,1\n")
    assert sorted(table.classes) == ["cat", "column 2"]


def test_blank_images_are_faults(path: Path) -> None:
    with pytest.raises(DataError, match="line 3: column 'image' is empty"):
        read(path, UNKNOWN, "image,cat\na.jpg,1\n,1\nb.jpg,1\n")


def test_spaces_after_commas_do_not_matter(path: Path) -> None:
    table = read(path, UNKNOWN, "image, cat, dog\na.jpg, 1, 0\n")
    assert table.classes == ("cat", "dog")
    assert table.count(P) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("unlisted", [U, A])
def test_round_trip_keeps_every_state(
    small: LabelTable, tmp_path: Path, unlisted: State, ending: str
) -> None:
    other = A if unlisted == U else U
    table = assemble(
        small.images,
        ["image", "dog", "red, fox", "never"],
        small.rows,
        small.columns,
        np.where(small.states == P, P, other),
        unlisted=unlisted,
    )
    path = tmp_path / f"t.{ending}"
    write_labels(table, path, format="wide")
    word = {A: "absent", U: "unknown"}
    options = ReadOptions(unlisted=word[unlisted], minus_one=word[other])  # type: ignore[arg-type]
    assert read_labels(path, options=options) == table


def test_unknown_is_written_as_a_blank_and_absent_by_default_as_zero(path: Path) -> None:
    for unlisted, cells in ((U, "1,-1,"), (A, "1,0,-1")):
        table = assemble(["a"], ["x", "y", "z"], [0, 0, 0], [0, 1, 2], [P, A, U], unlisted=unlisted)
        write_labels(table, path, format="wide")
        assert path.read_text().splitlines()[1].replace('"', "") == f"a,{cells}"


def test_parquet_of_numbers_booleans_and_nulls_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {
        "image": ["a", "b", "c"],
        "number": pa.array([1, 0, None], pa.int64()),
        "flag": [True, False, None],
        "float": [1.0, float("nan"), -0.0],
        "word": ["1", "0", ""],
        "coded": pa.array(["1", None, "0"]).dictionary_encode(),
        "nothing": pa.nulls(3),
    }
    pq.write_table(pa.table(columns), path)
    expected = [[P] * 5 + [U], [U] * 6, [U] * 6]
    options = ReadOptions(zero="unknown", blank="unknown")
    assert read_labels(path, options=options).dense().tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "image,class,state\na.jpg,cat,1\n",
        "ImageID,Source,LabelName,Confidence\na,verification,/m/01,1\n",
        "image,labels\na.jpg,cat;dog\n",
        "a.jpg,1\nb.jpg,0\n",
        "image,cat\n",
        "",
        "\x00\x01",
        '{"image": 1}',
    ],
)
def test_other_formats_are_not_taken_for_wide(path: Path, text: str) -> None:
    assert not wide.fits(LabelSource(write(path, text)))


@pytest.mark.parametrize("text", [ONES_AND_ZEROS, THREE_VALUES, "x,cat\na.jpg,1\nb.jpg,0\n"])
def test_wide_is_recognised(path: Path, text: str) -> None:
    assert recognise(LabelSource(write(path, text))).name == "wide"


def test_many_rows_read_as_they_were_made(path: Path) -> None:
    cells = np.random.default_rng(0).integers(0, 2, (20_000, 100), dtype=np.int8)
    columns = {"image": [f"{row}.jpg" for row in range(len(cells))]}
    columns |= {f"class {at}": column for at, column in enumerate(cells.T)}
    pa_csv.write_csv(pa.table(columns), path)
    table = read_labels(path, options=ABSENT)
    assert np.array_equal(table.dense(), cells)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "text",
    [
        THREE_VALUES,
        'x,"a, b",c\n"d, e",1,0\nf,-1,\n',
        "# made by hand\nfile; sex;cat;dog;\na.jpg;M;1;0;\nb.jpg;F;;1;\n",
    ],
)
def test_damaged_files_end_in_a_table_or_in_words(path: Path, count: int, text: str) -> None:
    options = ReadOptions(zero="absent", blank="unknown", minus_one="absent")
    tables, faults = survives(write(path, text), count, "wide", options)
    assert tables + faults == count
    assert tables
    assert faults


PATCHES = [
    PatchCase(
        "wide",
        "wide",
        "image,cow,dog\n'a.jpg,0,0\na.jpg,0,1\nb.jpg,1,0\n",
        ["- a.jpg,0,1\n", "+ a.jpg,-1,1\n", "- b.jpg,1,0\n", "+ b.jpg,1,1\n"],
        read_with=ReadOptions(unlisted="unknown", minus_one="absent"),
    ),
    PatchCase(
        "wide with 1, 0, -1 and blanks",
        "wide",
        "image,cow,dog,fox\na.jpg,,1.0,0.0\nb.jpg,1.0,-1.0,\n",
        [
            "- a.jpg,,1.0,0.0\n",
            "+ a.jpg,0.0,1.0,0.0\n",
            "- b.jpg,1.0,-1.0,\n",
            "+ b.jpg,1.0,1.0,\n",
        ],
        options=ReadOptions(zero="absent", blank="unknown", minus_one="unknown"),
    ),
    PatchCase(
        "wide where -1 means unknown and nothing absent",
        "wide",
        "image,cow,dog\na.jpg,-1,1.0\nb.jpg,1.0,-1\n",
        ["- a.jpg,-1,1.0\n", "+ a.jpg,0,1.0\n", "- b.jpg,1.0,-1\n", "+ b.jpg,1.0,1.0\n"],
        options=ReadOptions(unlisted="absent", minus_one="unknown"),
        read_with=ReadOptions(
            unlisted="absent", minus_one="unknown", zero="absent", blank="absent"
        ),
    ),
    PatchCase(
        "wide where 0 and -1 both mean unknown",
        "wide",
        "image,cow,dog\na.jpg,-1,1\nb.jpg,1,0\n",
        ["- b.jpg,1,0\n", "+ b.jpg,1,1\n"],
        options=ReadOptions(zero="unknown", minus_one="unknown"),
        absents=False,
    ),
    PatchCase(
        "wide with semicolons, a comment and a column that is no class",
        "wide",
        "# by hand\nimage;sex;cow;dog\na.jpg;M;;1\nb.jpg;F;1;0\n",
        ["- a.jpg;M;;1\n", "+ a.jpg;M;0;1\n", "- b.jpg;F;1;0\n", "+ b.jpg;F;1;1\n"],
        options=ReadOptions(zero="absent", blank="unknown"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
