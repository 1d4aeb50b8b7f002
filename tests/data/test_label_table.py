"""LabelTable and how it is put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilltop.data import Collector, LabelTable, State, Step
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
    table = LabelTable.from_coo(
        list("abcdef"), list("wxyz"), rows, columns, states, unlisted=unlisted
    )
    np.testing.assert_array_equal(table.dense(), matrix)
    for state in State:
        assert table.count(state) == (matrix == state).sum()
        np.testing.assert_array_equal(table.counts_by_class(state), (matrix == state).sum(0))
    np.testing.assert_array_equal(table.labels_per_image(), (matrix == P).sum(1))
    chosen = [4, 1, 1 + 2]
    np.testing.assert_array_equal(table.select(chosen).dense(), matrix[chosen])


def test_the_order_of_entries_and_repetitions_do_not_matter() -> None:
    one = LabelTable.from_coo(["i"], ["x", "y"], [0, 0], [0, 1], [P, A], unlisted=U)
    other = LabelTable.from_coo(
        ["i"], ["x", "y"], [0, 0, 0, 0], [1, 0, 1, 0], [A, P, A, U], unlisted=U
    )
    assert one == other
    assert one != LabelTable.from_coo(["i"], ["x", "y"], [0], [0], [P], unlisted=U)
    assert one != LabelTable.from_coo(["i"], ["x", "y"], [0, 0], [0, 1], [P, A], unlisted=A)


def test_present_and_absent_at_once_is_a_fault_with_the_later_line() -> None:
    with pytest.raises(DataError, match=r"l.csv, line 9: image 'i' has class 'x' both absent and"):
        LabelTable.from_coo(
            ["i"], ["x"], [0, 0, 0], [0, 0, 0], [P, U, A], unlisted=U, source=Path("l.csv"),
            line_of=lambda entry: 7 + entry,
        )  # fmt: skip


def test_names_must_differ() -> None:
    with pytest.raises(DataError, match=r"1 image name stands more than once, such as 'i'"):
        LabelTable.from_coo(["i", "i"], ["x"], [], [], P, unlisted=U)
    with pytest.raises(DataError, match=r"1 class name stands more than once, such as 'x'"):
        LabelTable.from_coo(["i"], ["x", "x"], [], [], P, unlisted=U)


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
    grown = small.with_states([], [], [], step=Step("look", by="me")).select([0])
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
        assert note.startswith("2 image names are in several rows")
        assert "1 of them has different labels there; the first is 'i'" in note

    def test_twenty_faults_are_enough(self) -> None:
        collector = self.collector()
        for line in range(1, 20):
            collector.image("", line=line)
        with pytest.raises(DataError) as caught:
            collector.image("", line=20)
        lines = str(caught.value).splitlines()
        assert len(lines) == 21
        assert lines[19].startswith("f.json, line 20: the image id is empty")
        assert lines[20].endswith("stopped after 20 errors.")


STEP = Step("look", {"at": "all"}, by="Ann", seed=7)


def random_table(rng: np.random.Generator, unlisted: State) -> LabelTable:
    shape = int(rng.integers(0, 9)), int(rng.integers(0, 6))
    states = rng.integers(0, 3, shape)
    rows, columns = np.indices(shape)
    images, classes = (
        [f"{kind}{n}" for n in range(size)] for kind, size in zip("ic", shape, strict=True)
    )
    every = rows.ravel(), columns.ravel(), states.ravel()
    return LabelTable.from_coo(images, classes, *every, unlisted=unlisted)


@pytest.mark.parametrize("unlisted", list(State))
@pytest.mark.parametrize("new_unlisted", [None, *State])
def test_an_edit_does_what_the_same_edit_of_a_matrix_does(
    unlisted: State, new_unlisted: State | None
) -> None:
    rng = np.random.default_rng(int(unlisted))
    for _ in range(50):
        table = random_table(rng, unlisted)
        expected = table.dense()
        if new_unlisted is not None:
            expected[expected == unlisted] = new_unlisted
        count = int(rng.integers(0, 12)) if expected.size else 0
        rows = rng.integers(0, max(1, len(table)), count)
        columns = rng.integers(0, max(1, len(table.classes)), count)
        states = rng.integers(0, 3, count)
        for row, column, state in zip(rows, columns, states, strict=True):
            expected[row, column] = state  # of a pair named twice, the last one counts
        edited = table.with_states(rows, columns, states, step=STEP, unlisted=new_unlisted)
        assert edited.dense().tolist() == expected.tolist()
        again = LabelTable.from_coo(
            table.images,
            table.classes,
            *(part.ravel() for part in np.indices(expected.shape)),
            expected.ravel(),
            unlisted=edited.unlisted,
        )
        assert edited == again, "entries are ordered, and none is of the unlisted state"


@pytest.mark.parametrize("unlisted", list(State))
def test_the_table_of_some_classes_is_those_columns_of_the_matrix(unlisted: State) -> None:
    rng = np.random.default_rng(int(unlisted))
    for _ in range(50):
        table = random_table(rng, unlisted)
        chosen = rng.random(len(table.classes)) < 0.5
        part = table.only_classes(chosen)
        assert part.dense().tolist() == table.dense()[:, chosen].tolist()
        assert part.classes == tuple(np.array(table.classes, dtype=object)[chosen])


def test_an_edit_keeps_history_and_notes_and_leaves_the_table_alone(small: LabelTable) -> None:
    noted = replace(small, notes=("one thing",)).with_classes(["dog", "cat", "red fox", "new"])
    edited = noted.with_states([2], [0], State.PRESENT, step=STEP)
    assert edited.notes == ("one thing",)
    assert [str(step) for step in edited.history] == [
        "with_classes: classes=4, before=3",
        "look: at=all, by=Ann, seed=7",
    ]
    assert noted.labels_of(2) == ()
    assert small.with_classes(small.classes) is small


def test_an_edit_of_a_huge_table_needs_no_matrix() -> None:
    """A matrix of these pairs would have 10^10 entries."""
    images = pa.array([f"{n:06d}" for n in range(100_000)])
    classes = [f"{n}" for n in range(100_000)]
    table = LabelTable.from_coo(
        images, classes, [5, 99_999], [7, 99_999], State.PRESENT, unlisted=State.UNKNOWN
    )
    edited = table.with_states([99_999, 0], [99_999, 99_998], [2, 0], step=STEP)
    assert (edited.rows.tolist(), edited.columns.tolist()) == ([0, 5], [99_998, 7])


def test_a_batch_has_targets_and_what_is_observed() -> None:
    states = [State.PRESENT, State.ABSENT, State.UNKNOWN]
    table = LabelTable.from_coo(
        ["a", "b"], list("xyz"), [0] * 3, [0, 1, 2], states, unlisted=State.UNKNOWN
    )
    targets, observed = table.batch([1, 0])
    assert (targets.dtype, observed.dtype) == (np.float32, np.bool_)
    assert targets.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert observed.tolist() == [[False] * 3, [True, True, False]]
    complete = LabelTable.from_coo(
        ["a"], list("xy"), [0], [0], State.PRESENT, unlisted=State.ABSENT
    )
    assert complete.batch()[1].tolist() == [[True, True]]


def test_new_image_ids_must_differ(small: LabelTable) -> None:
    named = small.with_images(["w", "x", "y", "z"], step=STEP)
    assert named.images.to_pylist() == ["w", "x", "y", "z"]
    assert named.dense().tolist() == small.dense().tolist()
    for names in (["w", "x", "y", "y"], ["w", "x", "y"]):
        with pytest.raises(DataError, match="Expected 4 different image ids, but got 3 different"):
            small.with_images(names, step=STEP)
