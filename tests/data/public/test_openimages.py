"""Open Images CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.data.content import Source
from hilltop.data.public import known_tables
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.fuzz import survives
from tests.data.patched import PatchCase, check_patch

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
HEADER = "ImageID,Source,LabelName,Confidence\n"
CONTENT = (
    HEADER
    + "00a1,verification,/m/01g317,1\n"
    + "00a1,crowdsource-verification,/m/0bt9lr,0\n"
    + "00b2,verification,/m/0bt9lr,1.0\n"
    + "00b2,verification,/m/0bt9lr,1\n"
)

FRACTIONS = CONTENT + "00b2,machine,/m/01g317,0.7\n00c3,machine,/m/01g317,0.6\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(CONTENT)
    return path


def described(tmp_path: Path, content: str) -> ReadOptions:
    path = tmp_path / "class-descriptions.csv"
    path.write_text(content)
    return ReadOptions(classes=path)


def message(path: Path, options: ReadOptions | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="openimages", options=options)
    return str(caught.value)


def test_confidence_says_present_or_absent_and_the_rest_is_unknown(file: Path) -> None:
    table = read_labels(file)
    assert table.images.to_pylist() == ["00a1", "00b2"]
    assert table.classes == ("/m/0bt9lr", "/m/01g317")  # numbers in names count as numbers
    assert table.dense().tolist() == [[A, P], [P, U]]
    assert table.unlisted == U


def test_fractions_need_a_cut(file: Path) -> None:
    file.write_text(FRACTIONS)
    with pytest.raises(AmbiguousInputError, match=r"'0.7', '0.6' \(row 6\). --label-threshold"):
        read_labels(file)
    table = read_labels(file, options=ReadOptions(label_threshold=0.7))
    assert table.dense().tolist() == [[A, P], [P, P], [U, U]]


def test_a_cut_does_not_touch_whole_confidences(file: Path) -> None:
    assert read_labels(file, options=ReadOptions(label_threshold=0.01)) == read_labels(file)


def test_extra_columns_are_allowed_in_any_order(file: Path) -> None:
    table = read_labels(file)
    lines = [line.split(",") for line in CONTENT.splitlines()]
    mixed = [",".join([line[3], "x", line[2], line[0], line[1]]) for line in lines]
    file.write_text("\n".join(mixed))
    assert known_tables.matches_openimages(Source(file))
    assert read_labels(file) == table


def test_other_columns_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    for content in ("", "ImageID,LabelName,Confidence\na,b,1\n", "image,class\na,b\n", "\x00\xff"):
        path.write_text(content, encoding="latin-1")
        assert not known_tables.matches_openimages(Source(path))
    assert not known_tables.matches_openimages(Source(tmp_path))


@pytest.mark.parametrize("header", ["", "LabelName,DisplayName\n"])
def test_class_descriptions_name_the_classes(file: Path, tmp_path: Path, header: str) -> None:
    lines = '/m/0bt9lr,Dog\n/m/0zz,"Salt, pepper"\n/m/01g317,Person\n'
    table = read_labels(file, options=described(tmp_path, header + lines))
    assert table.classes == ("Dog", "Salt, pepper", "Person")
    assert table.labels_of(0) == ("Person",)
    assert table.labels_of(0, A) == ("Dog",)


def test_a_plain_class_list_names_the_codes_in_order(file: Path, tmp_path: Path) -> None:
    options = described(tmp_path, "/m/0bt9lr\n/m/01g317\n")
    assert read_labels(file, options=options).classes == ("/m/0bt9lr", "/m/01g317")


def test_codes_that_are_not_described_are_faults(file: Path, tmp_path: Path) -> None:
    text = message(file, described(tmp_path, "/m/0bt9lr,Dog\n"))
    assert text.endswith("labels.csv, line 2: class '/m/01g317' is not in the class list (1 name).")


def test_a_name_of_two_codes_is_told_apart_by_the_code(file: Path, tmp_path: Path) -> None:
    table = read_labels(file, options=described(tmp_path, "/m/0bt9lr,Dog\n/m/01g317,Dog\n"))
    assert table.classes == ("Dog (/m/0bt9lr)", "Dog (/m/01g317)")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("/m/1,Dog\n/m/2\n", "line 2: expected a code and a name"),
        ("/m/1,Dog\n/m/2,\n", "line 2: expected a code and a name"),
        ("/m/1,Dog\n/m/1,Cat\n", "line 2: the code '/m/1' is here again"),
        ('/m/1,Dog\n/m/2,"Cat\n', "line 2: expected a code and a name"),
    ],
)
def test_faults_of_class_descriptions(file: Path, tmp_path: Path, lines: str, text: str) -> None:
    found = message(file, described(tmp_path, lines))
    assert "class-descriptions.csv, line 2" in found
    assert text in found


@pytest.mark.parametrize("word", ["2", "-1", "nan", "maybe", "1e999", "0x1"])
def test_another_confidence_is_asked_about(file: Path, word: str) -> None:
    file.write_text(CONTENT + f"00b2,verification,/m/1,{word}\n")
    with pytest.raises(AmbiguousInputError, match=f"{word}|inf"):
        read_labels(file)


def test_a_blank_cell_and_a_missing_column_are_faults(file: Path) -> None:
    file.write_text(CONTENT + "00b2,verification,,1\n")
    assert read_labels(file).images.to_pylist()[-1] == "00b2"  # an image without a label
    file.write_text("ImageID,Source,LabelNames,Confidence\na,b,c,1\n")
    assert "there is no column 'LabelName'. Did you mean 'LabelNames'?" in message(file)


def test_an_image_both_with_and_without_a_class_is_a_fault(file: Path) -> None:
    file.write_text(CONTENT + "00a1,verification,/m/0bt9lr,1\n")
    text = "line 6: image '00a1' has class '/m/0bt9lr' both absent and present"
    assert text in message(file)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int) -> None:
    file.write_text(FRACTIONS)
    tables, faults = survives(file, count, "openimages", ReadOptions(label_threshold=0.5))
    assert tables > 0
    assert faults > 0


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_class_descriptions_end_in_a_table_or_in_words(
    file: Path, tmp_path: Path, count: int
) -> None:
    options = described(tmp_path, "/m/0bt9lr,Dog\n/m/01g317,Person\n")
    tables, faults = survives(file, count, "openimages", options, file=options.classes)
    assert tables > 0
    assert faults > 0


PATCHES = [
    PatchCase(
        "open images",
        "openimages",
        "ImageID,Source,LabelName,Confidence\na.jpg,verification,dog,1\nb.jpg,human,cow,1\n",
        ["+ a.jpg,verification,cow,0\n", "+ b.jpg,verification,dog,1\n"],
        options=ReadOptions(),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
