"""Labels from Python: plain keywords, DataFrames, lists and matrices; clear errors for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop import data, errors
from hilltop.cli.main import main
from hilltop.data import LabelTable, ReadOptions, State, Step, read_labels
from hilltop.data.formats import named_format
from hilltop.errors import AmbiguousInputError, ArgumentError, ArgumentTypeError, DataError

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN


@pytest.fixture(params=["pandas", "polars"])
def frames(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def table() -> LabelTable:
    return LabelTable.from_lists(["a", "b", "c"], [["cat"], ["dog"], []])


def test_a_file_is_read_with_plain_keywords(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,tags\na.jpg,0\nb.jpg,1 0\n")
    read = read_labels(path, unlisted="unknown", classes=["cat", "dog"])
    assert [read.labels_of(row) for row in range(2)] == [("cat",), ("cat", "dog")]
    with pytest.raises(ArgumentTypeError, match=r"no option 'unlisteds'.*'unlisted'"):
        read_labels(path, unlisteds="unknown")


def test_a_frame_is_read_like_any_table(frames: Any) -> None:
    frame = frames.DataFrame({"file": ["a", "b"], "tags": ["cat;dog", None], "n": [1, 2]})
    read = read_labels(frame, unlisted="unknown")
    assert read.dense().tolist() == [[P, P], [U, U]]
    read = LabelTable.from_dataframe(
        frame, image="n", label="tags", delimiter="none", unlisted="absent"
    )
    assert (read.images.to_pylist(), read.labels_of(0)) == (["1", "2"], ("cat;dog",))


def test_columns_of_classes_are_named(frames: Any) -> None:
    frame = frames.DataFrame({"file": ["a", "n"], "cat": [1.0, None], "dog": [0.0, 1.0]})
    read = LabelTable.from_dataframe(
        frame, image="file", classes=["cat", "dog"], zero="absent", empty="unknown"
    )
    assert read.dense().tolist() == [[P, A], [U, P]]
    assert read.images.to_pylist() == ["a", "n"]


def test_the_index_of_pandas_is_kept() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tags": [["cat"], []]}, index=["a.jpg", "b.jpg"])
    read = LabelTable.from_dataframe(frame, image="index", label="tags", unlisted="unknown")
    assert read.images.to_pylist() == ["a.jpg", "b.jpg"]
    frame.index.name = "image"
    assert read_labels(frame, unlisted="unknown") == read


def test_a_frame_without_rows_is_a_table_without_images(frames: Any) -> None:
    frame = frames.DataFrame({"image": [], "tags": []})
    assert len(read_labels(frame, unlisted="unknown", label_columns="tags")) == 0


def test_what_is_neither_a_path_nor_a_frame_is_said() -> None:
    with pytest.raises(ArgumentTypeError, match="Expected a path or a DataFrame"):
        read_labels([1, 2])


def test_a_mask_selects_rows() -> None:
    assert table().select(np.array([False, True, False])).images.to_pylist() == ["b"]
    with pytest.raises(ArgumentError, match="mask of rows must have 3 values"):
        table().select(np.array([True, False]))
    with pytest.raises(ArgumentError, match="There is no row 3"):
        table().select([0, 3])


@pytest.mark.parametrize(("row", "column"), [(3, 0), (-1, 0), (0, 2)])
def test_states_beyond_the_table_are_refused(row: int, column: int) -> None:
    with pytest.raises(ArgumentError, match=r"There is no (row|class)"):
        table().with_states([row], [column], P, step=Step("look"))


def test_a_matrix_is_not_taken_for_lists() -> None:
    matrix = np.array([[1, 0], [1, 1]])
    with pytest.raises(ArgumentTypeError, match="from_matrix"):
        LabelTable.from_lists(["a", "b"], matrix, ["cat", "dog"])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="from_matrix"):
        LabelTable.from_lists(["a", "b"], matrix.tolist(), ["cat", "dog"])
    read = LabelTable.from_matrix(["a", "b"], [[1, 0], [np.nan, 1]], ["cat", "dog"], zero="absent")
    assert read.dense().tolist() == [[P, A], [U, P]]


@pytest.mark.parametrize(
    ("images", "labels", "classes", "said"),
    [
        (["a"], [["x"]], ["x", "x"], "'x' is there more than once"),
        (["a"], [["x"]], ["x", None], "classes must be names, but got None"),
        ([None], [["x"]], None, "must all have a name, but got None"),
        (["a"], [[-1]], ["x"], "-1, which is no number of 1 class"),
        (["a"], [[None]], None, "labels must be names or class numbers, but hold None"),
        (["a"], ["x"], None, "must be a list"),
        (["a"], [[0.5]], ["x"], "but hold 0.5"),
        (["a", "b"], [[0, 1], [1, 0]], ["x", "y"], "from_matrix"),
        ("ab", [["x"], ["y"]], None, "images must be a list of ids"),
        (["a", "b"], [["caf\u00e9"], ["cafe\u0301"]], None, "look the same"),
    ],
)
def test_lists_that_cannot_be_labels(images: Any, labels: Any, classes: Any, said: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=said):
        LabelTable.from_lists(images, labels, classes)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[1, 0]], "shape"),
        ([[1, -1], [0, 1]], "-1"),
        ([[1, 1j], [0, 1]], "numbers"),
        ([["x", "y"], ["x", "y"]], "numbers"),
    ],
)
def test_matrices_that_cannot_be_labels(matrix: Any, said: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=said):
        LabelTable.from_matrix(["a", "b"], matrix, ["cat", "dog"], zero="absent")


def test_old_names_work_and_warn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,cat,dog\na,1,\nb,0,1\n")
    with pytest.warns(DeprecationWarning, match="'blank' is deprecated.*'empty'"):
        assert len(read_labels(path, zero="absent", blank="unknown")) == 2
    with pytest.warns(DeprecationWarning, match="'none_class' is deprecated.*'background_class'"):
        assert ReadOptions(none_class="x").background_class == "x"  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="'long_values' is deprecated.*'long'"):
        assert named_format("long_values").name == "long"
    with pytest.warns(DeprecationWarning, match="AmbiguousInputError"):
        assert errors.OptionNeeded is AmbiguousInputError  # type: ignore[attr-defined]
    assert main(["inspect", str(path), "--zero", "absent", "--blank", "unknown"]) == 0
    said = capsys.readouterr().err
    assert "--blank" in said
    assert "--empty" in said
    with pytest.raises(AmbiguousInputError, match=r"docs/recipes\.md"):
        named_format("fasttext")


def test_a_question_carries_its_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,tags\na,cat;dog\n")
    with pytest.raises(AmbiguousInputError) as caught:
        read_labels(path)
    assert isinstance(caught.value.ambiguous, data.Ambiguous)
    assert caught.value.ambiguous.answers == {"unlisted": "unknown"}
    assert caught.value.ambiguous.words() == ["--unlisted", "unknown"]


def test_convert_prints_the_counts_of_the_output_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("image,tags\na,cat;dog\nb,\n")
    words = ["convert", str(path), str(out), "--unlisted", "unknown"]
    assert main(words) == 0
    assert out.read_text().replace('"', "") == "image,cat,dog\na,1,1\nb,,\n"
    assert "b.csv: 2 images, 2 classes, 2 labels" in capsys.readouterr().out
    assert main([*words, "--force", "--to", "long", "--lossy"]) == 0
    assert "b.csv: 1 image, 2 classes, 2 labels" in capsys.readouterr().out
    sheet = tmp_path / "b.xlsx"
    assert main(["convert", str(path), str(sheet), "--unlisted", "unknown"]) == 0
    assert read_labels(sheet, unlisted="unknown") == read_labels(path, unlisted="unknown")


def test_reading_options_and_keywords_can_be_mixed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,tags\na,cat\n")
    assert read_labels(path, options=ReadOptions(unlisted="absent")).unlisted == A
    with pytest.raises(DataError, match="no such file"):
        read_labels(tmp_path / "none.csv")


def test_objects_in_cells_are_not_dropped() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"image": ["a", "b"], "tags": [{"cat": 1}, {"dog": 0}]})
    with pytest.raises(DataError, match=r"'tags' holds \{'cat': 1\} in row 1"):
        read_labels(frame, unlisted="unknown")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: table().select([0.5]), "row numbers must be whole"),
        (lambda: table().select(["a"]), "row numbers must be whole"),
        (lambda: table().with_states([0], [0], 7, step=Step("x")), "States must be"),
        (lambda: table().with_states([0.5], [0], P, step=Step("x")), "must be whole"),
        (lambda: table().with_classes(["cat", "dog", "dog"]), "'dog' is there more than once"),
        (lambda: LabelTable.from_coo(["a"], ["x"], [3], [0], [1], unlisted=U), "no row 3"),
        (lambda: LabelTable.from_coo(["a"], ["x"], [0], [1], [1], unlisted=U), "no class 1"),
        (lambda: LabelTable.from_coo(["a"], ["x"], [-1], [0], [1], unlisted=U), "no row -1"),
        (lambda: LabelTable.from_coo(["a"], ["x"], [0], [0], [9], unlisted=U), "States must be"),
        (lambda: LabelTable.from_matrix(["a", "b"], [[1], [1, 0]], ["x"], zero="absent"), "length"),
        (lambda: LabelTable.from_matrix(["a"], [[1]], ["x"], zero=None), "state must be one of"),
        (lambda: LabelTable.from_matrix(["a"], [[1]], ["x"], zero="present"), "zero must be"),  # type: ignore[arg-type]
        (lambda: LabelTable.from_lists(["a"], [["x"]], unlisted="present"), "unlisted must"),  # type: ignore[arg-type]
        (lambda: read_labels("a.csv", options={"unlisted": "unknown"}), "must be ReadOptions"),  # type: ignore[arg-type]
    ],
)
def test_what_no_table_can_hold_is_refused(call: Any, text: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=text):
        call()


def test_names_may_come_as_numpy_or_scipy_has_them() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    names = np.array(["cat", "dog"])
    made = LabelTable.from_matrix(["a"], sparse.csr_matrix([[1, 0]]), names, zero="absent")
    assert made == LabelTable.from_lists(["a"], [names[:1]], iter(names), unlisted="absent")
    assert [type(name) for name in made.classes] == [str, str]


def test_a_matrix_with_names_must_have_the_order_of_the_others(frames: Any) -> None:
    frame = frames.DataFrame({"dog": [1, 0], "cat": [0, 0]})
    made = LabelTable.from_matrix(["a", "b"], frame, ["dog", "cat"], zero="absent")
    assert made.labels_of(0) == ("dog",)
    with pytest.raises(ArgumentError, match="'dog' in place of 'cat'"):
        LabelTable.from_matrix(["a", "b"], frame, ["cat", "dog"], zero="absent")
    with pytest.raises(DataError, match="class '1' is not in the class list"):
        LabelTable.from_lists(["a", "b"], [["1", "0"], ["0", "1"]], ["cat", "dog"])


def test_columns_of_a_frame_that_were_named_must_be_there(frames: Any) -> None:
    frame = frames.DataFrame({"file": ["a"], "cat": [1]})
    with pytest.raises(DataError, match="no column 'dog'"):
        LabelTable.from_dataframe(frame, image="file", classes=["cat", "dog"], zero="absent")
    with pytest.raises(AmbiguousInputError, match="row-number if rows have no names"):
        read_labels(frame[["cat"]], label_columns="cat", unlisted="unknown")


def test_what_a_frame_cannot_be_read_as_is_said(frames: Any) -> None:
    frame = frames.DataFrame({"file": ["a"], "tags": ["cat"]})
    for classes in ("cat", Path("cat.txt")):
        with pytest.raises(ArgumentTypeError, match="classes must be a list"):
            LabelTable.from_dataframe(frame, label="tags", classes=classes)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="'coco' is read from a file"):
        read_labels(frame, format="coco")
