"""Tables from lists and DataFrames."""

from __future__ import annotations

from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State
from hilltop.errors import AmbiguousInputError, ArgumentError, ArgumentTypeError, DataError

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
BOTH_UNKNOWN = ReadOptions(zero="unknown", empty="unknown")


class Column:
    def __init__(self, cells: list[Any]) -> None:
        self.cells = cells

    def to_list(self) -> list[Any]:
        return self.cells


class Frame:
    """What pandas and polars have in common."""

    def __init__(self, **columns: list[Any]) -> None:
        self.content = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Column:
        return Column(self.content[name])

    def __len__(self) -> int:
        return len(next(iter(self.content.values())))


def test_lists_of_names() -> None:
    table = LabelTable.from_lists(["b", "a"], [["dog", "cat", "dog"], []])
    assert table.classes == ("cat", "dog")
    assert table.dense().tolist() == [[P, P], [U, U]]
    absent = LabelTable.from_lists(["b", "a"], [["dog"], []], ["dog", "cow"], unlisted="absent")
    assert absent.dense().tolist() == [[P, A], [A, A]]


def test_lists_of_numbers() -> None:
    table = LabelTable.from_lists(["b", "a"], [[1], (0, 1)], ["cat", "dog"])
    assert table.dense().tolist() == [[U, P], [P, P]]
    assert str(table.history[0]) == "from_lists: images=2"


@pytest.mark.parametrize(
    ("images", "labels", "classes", "text"),
    [
        (["a"], [["x"], []], None, "a list for each of 1 images, not 2"),
        (["a", "a"], [[], []], None, "'a' is there more than once"),
        (["a"], [[3]], None, "pass classes to name the numbers"),
        (["a"], [[2]], ["x", "y"], "holds? 2, which is no number of 2 classes"),
        (["a"], [["z"]], ["x"], "class 'z' is not in the class list"),
        (["a"], ["cat"], None, r"must be a list, but are 'cat'. Write \['cat'\]"),
    ],
)
def test_lists_that_cannot_be_used(images: Any, labels: Any, classes: Any, text: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError, DataError), match=text):
        LabelTable.from_lists(images, labels, classes)


def test_a_frame_with_a_column_for_each_class() -> None:
    frame = Frame(image=["a", "b"], cat=[1.0, float("nan")], dog=[0, 1])
    table = LabelTable.from_dataframe(frame, options=BOTH_UNKNOWN)
    assert table.classes == ("cat", "dog")
    assert table.dense().tolist() == [[P, U], [U, P]]


def test_a_frame_with_a_column_of_lists_and_a_closed_list_of_classes() -> None:
    frame = Frame(image=["a", "b"], labels=[["dog"], []])
    table = LabelTable.from_dataframe(frame, classes=["cat", "dog"], options=UNKNOWN)
    assert table.dense().tolist() == [[U, P], [U, U]]
    assert str(table.history[0]) == "from_dataframe: rows=2, columns=2"


def test_what_a_frame_leaves_open_is_asked_without_naming_a_file() -> None:
    with pytest.raises(AmbiguousInputError, match=r"^the DataFrame: This format does not say"):
        LabelTable.from_dataframe(Frame(image=["a"], labels=[["dog"]]))
    options = ReadOptions(unlisted="unknown", label_columns="x")
    with pytest.raises(DataError, match=r"^the DataFrame: .*no column 'x'"):
        LabelTable.from_dataframe(Frame(image=["a"], labels=[["dog"]]), options=options)
    mixed = LabelTable.from_dataframe(Frame(image=["a", 3], labels=[["dog"], []]), options=UNKNOWN)
    assert mixed.images.to_pylist() == ["a", "3"]
    with pytest.raises(ArgumentTypeError, match="Expected a DataFrame of pandas or polars"):
        LabelTable.from_dataframe([1, 2])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_real_frames(library: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    frame = module.DataFrame({"image": ["a", "b"], "cat": [1.0, None], "dog": [0, 1]})
    table = LabelTable.from_dataframe(frame, options=BOTH_UNKNOWN)
    assert table.dense().tolist() == [[P, U], [U, P]]
