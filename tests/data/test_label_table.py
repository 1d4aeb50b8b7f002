"""LabelTable and how it is put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilltop.data import Collector, LabelTable, State, assemble
from hilltop.errors import ArgumentError, DataError

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN


def test_dense_states(small: LabelTable) -> None:
    expected = [[A, P, U], [U, U, P], [U, U, U], [P, U, P]]
    np.testing.assert_array_equal(small.dense(), expected)
    np.testing.assert_array_equal(small.dense([3, 0, 3]), [expected[3], expected[0], expected[3]])


def test_counts(small: LabelTable) -> None:
    assert [small.count(state) for state in (P, A, U)] == [4, 1, 7]
    assert small.counts_by_class(P).tolist() == [1, 1, 2]
    assert small.counts_by_class(U).tolist() == [2, 3, 2]
    assert small.labels_per_image().tolist() == [1, 1, 0, 2]
    assert small.labels_of(3) == ("cat", "red fox")
    assert small.labels_of(0, A) == ("cat",)


entries = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), unique=True)


@settings(max_examples=80, deadline=None)
@given(pairs=entries, draws=st.data(), unlisted=st.sampled_from([A, U]))
def test_a_table_says_what_was_put_in(
    pairs: list[tuple[int, int]], draws: st.DataObject, unlisted: State
) -> None:
    states = [draws.draw(st.sampled_from(list(State))) for _ in pairs]
    matrix = np.full((6, 4), unlisted, dtype=np.int8)
    for (row, column), state in zip(pairs, states, strict=True):
        matrix[row, column] = state
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    table = assemble(list("abcdef"), list("wxyz"), rows, columns, states, unlisted=unlisted)
    np.testing.assert_array_equal(table.dense(), matrix)
    for state in State:
        assert table.count(state) == (matrix == state).sum()
        np.testing.assert_array_equal(table.counts_by_class(state), (matrix == state).sum(0))
    np.testing.assert_array_equal(table.labels_per_image(), (matrix == P).sum(1))
    chosen = [4, 1, 1 + 2]
    np.testing.assert_array_equal(table.select(chosen).dense(), matrix[chosen])


def test_the_order_of_entries_and_repetitions_do_not_matter() -> None:
    one = assemble(["i"], ["x", "y"], [0, 0], [0, 1], [P, A], unlisted=U)
    other = assemble(["i"], ["x", "y"], [0, 0, 0, 0], [1, 0, 1, 0], [A, P, A, U], unlisted=U)
    assert one == other
    assert one != assemble(["i"], ["x", "y"], [0], [0], [P], unlisted=U)
    assert one != assemble(["i"], ["x", "y"], [0, 0], [0, 1], [P, A], unlisted=A)


def test_present_and_absent_at_once_is_a_fault_with_the_later_line() -> None:
    with pytest.raises(DataError, match=r"l.csv, line 9: image 'i' has class 'x' both absent and"):
        assemble(
            ["i"], ["x"], [0, 0, 0], [0, 0, 0], [P, U, A], unlisted=U, source=Path("l.csv"),
            line_of=lambda entry: 7 + entry,
        )  # fmt: skip


def test_names_must_differ() -> None:
    with pytest.raises(DataError, match=r"1 image names stand more than once, for example 'i'"):
        assemble(["i", "i"], ["x"], [], [], P, unlisted=U)
    with pytest.raises(DataError, match=r"1 class names stand more than once, for example 'x'"):
        assemble(["i"], ["x", "x"], [], [], P, unlisted=U)


def test_tables_cannot_be_changed(small: LabelTable) -> None:
    with pytest.raises(ValueError, match="read-only"):
        small.states[0] = P
    with pytest.raises(AttributeError):
        small.unlisted = A  # type: ignore[misc]


def test_images_are_found_by_name(small: LabelTable) -> None:
    assert small.find(["c.jpg", "a.jpg"]).tolist() == [2, 0]
    with pytest.raises(DataError, match=r"1 of 2 images is not in the table of 4.* 'z.jpg'"):
        small.find(["a.jpg", "z.jpg"])


def test_history_grows(small: LabelTable) -> None:
    grown = small.with_step("look", by="me").select([0])
    assert [step.name for step in grown.history] == ["look", "select"]
    assert small.history == ()


def test_an_unknown_state_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"but got 'absnt'. Did you mean 'absent'\?"):
        State.parse("absnt")


class TestCollector:
    def collector(self, **options: object) -> Collector:
        return Collector(Path("f.json"), **options)  # type: ignore[arg-type]

    def test_classes_come_as_they_come_or_sorted(self) -> None:
        for sort, names in ((False, ("b", "a")), (True, ("a", "b"))):
            collector = self.collector()
            row = collector.image("i")
            for name in ("b", "a"):
                collector.label(row, name, P if name == "b" else A)
            table = collector.table(unlisted=U, sort_classes=sort)
            assert table.classes == names
            assert table.labels_of(0) == ("b",)

    def test_a_closed_list_refuses_other_classes(self) -> None:
        collector = self.collector(classes=["a"])
        collector.label(collector.image("i"), "sofa", P, line=17)
        with pytest.raises(DataError, match=r"line 17: class 'sofa' is not in the class list \(1"):
            collector.table(unlisted=U)

    def test_records_of_one_image_are_merged_and_noted(self) -> None:
        collector = self.collector()
        for image, label in (("i", "a"), ("i", "b"), ("j", "a"), ("j", "a")):
            collector.label(collector.image(image, once=True), label, P)
        table = collector.table(unlisted=U)
        assert table.labels_of(0) == ("a", "b")
        (note,) = table.notes
        assert note.startswith("2 image ids stand in more than one record")
        assert "1 of them has different labels there, the first is 'i'" in note

    def test_twenty_faults_are_enough(self) -> None:
        collector = self.collector()
        for line in range(1, 20):
            collector.image("", line=line)
        with pytest.raises(DataError) as caught:
            collector.image("", line=20)
        lines = str(caught.value).splitlines()
        assert len(lines) == 21
        assert lines[19].startswith("f.json, line 20: the image id is empty")
        assert lines[20].endswith("stopped after 20 faults.")
