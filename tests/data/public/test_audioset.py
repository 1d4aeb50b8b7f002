"""AudioSet's segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import PatchCase, check_patch, found_format

P, U = State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
CONTENT = """# Segments csv created Sun Mar  5 10:54:25 2017
# num_ytids=2, num_segs=3
# YTID, start_seconds, end_seconds, positive_labels
--PJHxphWEs, 30.000, 40.000, "/m/09x0r,/t/dd00088"
-0abc, 0.000, 10.000, "/m/09x0r"
-0abd, 50.500, 60.500, "/m/04rlf"
"""
INDEX = """index,mid,display_name
0,/m/09x0r,"Speech"
1,/t/dd00088,"Gush, spray"
2,/m/04rlf,"Music"
3,/m/0jbk,"Animal"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "segments.csv", CONTENT)


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="audioset", options=options)
    return str(caught.value)


@pytest.mark.parametrize("mark", ["# ", "#", ""])
def test_a_comment_names_the_columns(file: Path, mark: str) -> None:
    file.write_text(CONTENT.replace("# YTID", f"{mark}YTID"))
    assert found_format(file) == "audioset"
    table = read_labels(file, options=UNKNOWN)
    assert table.images.to_pylist() == ["--PJHxphWEs", "-0abc", "-0abd"]
    assert table.classes == ("/m/04rlf", "/m/09x0r", "/t/dd00088")
    assert table.dense().tolist() == [[U, P, P], [U, P, U], [P, U, U]]
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(file)


def test_segments_of_one_video_are_merged_if_the_user_says_so(file: Path) -> None:
    file.write_text(CONTENT.replace("-0abd", "-0abc"))
    with pytest.raises(AmbiguousInputError, match=r"'-0abc' in rows 5, 6.*--image-column YTID"):
        read_labels(file, options=UNKNOWN)
    table = read_labels(file, image_column="YTID", unlisted="unknown")
    assert table.labels_of(1) == ("/m/04rlf", "/m/09x0r")


def test_a_patch_changes_only_the_answered_labels(tmp_path: Path) -> None:
    case = PatchCase(
        "segments",
        "audioset",
        '# YTID, start_seconds, end_seconds, positive_labels\na.jpg, 0, 10, "cow,dog"\n'
        'b.jpg, 0, 10, "cow"\n',
        ['- b.jpg, 0, 10, "cow"\n', '+ b.jpg, 0, 10, "cow,dog"\n'],
        answers=(("b.jpg", "dog", P),),
    )
    check_patch(case, tmp_path)


def test_names_come_from_the_index_of_classes(file: Path, tmp_path: Path) -> None:
    index = write(tmp_path / "class_labels_indices.csv", INDEX)
    options = ReadOptions(unlisted="unknown", classes=index)
    table = read_labels(file, options=options)
    assert table.classes == ("Speech", "Gush, spray", "Music", "Animal")
    assert table.labels_of(0) == ("Speech", "Gush, spray")
    index.write_text("/m/09x0r\n/m/04rlf\n")
    assert "line 4: class '/t/dd00088' is not in the class list (2 names)" in message(file, options)
    index.write_text(INDEX + "4,/m/x\n")
    assert "line 6: expected a code and a name" in message(file, options)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("abc", "row 7 has 1 cell"),
        ('a, 0, "/m/a"', "row 7 has 3 cells"),
        ('abc, 0, 10, "/m/a', "line 7: this row is not valid CSV"),
    ],
)
def test_a_faulty_line_is_named(file: Path, line: str, text: str) -> None:
    file.write_text(CONTENT + line + "\n")
    assert text in message(file)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int, tmp_path: Path) -> None:
    tables, faults = survives(file, count, "audioset", UNKNOWN)
    assert tables > 0
    assert faults > 0
    index = write(tmp_path / "index.csv", INDEX)
    options = ReadOptions(unlisted="unknown", classes=index)
    tables, faults = survives(file, count, "audioset", options, file=index)
    assert faults > 0
