"""Simulating missing labels: the paper's rule, exact, reproducible, and nothing else touched."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilltop.data import LabelTable, State, drop_positives, keep_each, single_positive
from hilltop.errors import ArgumentError

RULE_AT_SEED_7 = [("y", "z"), ("w",)]
EACH_AT_SEED_7 = [("y", "z"), ("w",)]


def random_table(images: int = 500, classes: int = 30, *, seed: int = 0) -> LabelTable:
    rng = np.random.default_rng(seed)
    matrix = rng.choice(
        [State.UNKNOWN, State.PRESENT, State.ABSENT], (images, classes), p=[0.7, 0.2, 0.1]
    )
    matrix[0] = State.UNKNOWN  # an image without a label
    rows, columns = np.nonzero(matrix != State.UNKNOWN)
    names = [f"{i}.jpg" for i in range(images)]
    return LabelTable.from_coo(
        names, [f"c{c}" for c in range(classes)], rows, columns, matrix[rows, columns],
        unlisted=State.UNKNOWN,
    )  # fmt: skip


@pytest.mark.parametrize("r", ["0", "0.1", "0.5", "0.8", "0.9", "1"])
def test_of_n_labels_the_rule_keeps_its_number(r: str) -> None:
    table = random_table()
    thinned = drop_positives(table, r, seed=3)
    share = 1 - Fraction(r)
    expected = [min(n, floor(n * share) + 1) for n in table.labels_per_image().tolist()]
    assert thinned.table.labels_per_image().tolist() == expected


def test_five_labels_at_r_08_keep_two_whatever_floating_point_says() -> None:
    table = LabelTable.from_coo(
        ["i"], list("abcde"), [0] * 5, range(5), State.PRESENT, unlisted=State.ABSENT
    )
    assert drop_positives(table, 0.8, seed=0).table.labels_per_image().tolist() == [2]
    assert int(5 * (1 - 0.8)) + 1 == 1, "the trap"


def test_kept_and_dropped_make_up_the_whole_and_absents_stay() -> None:
    table = random_table()
    thinned, dropped = drop_positives(table, 0.8, seed=1)
    full, kept, lost = table.dense(), thinned.dense(), dropped.dense()
    present = State.PRESENT
    np.testing.assert_array_equal(full == present, (kept == present) | (lost == present))
    assert not ((kept == present) & (lost == present)).any()
    np.testing.assert_array_equal(full == State.ABSENT, kept == State.ABSENT)
    assert thinned.images.equals(table.images)


def test_after_dropping_unlisted_pairs_are_unknown() -> None:
    complete = LabelTable.from_coo(
        ["i"], ["a", "b"], [0, 0], [0, 1], State.PRESENT, unlisted=State.ABSENT
    )
    thinned = single_positive(complete, seed=0)
    assert thinned.table.count(State.ABSENT) == 0
    assert thinned.table.count(State.UNKNOWN) == 1


def test_the_same_seed_gives_the_same_labels_on_every_machine() -> None:
    """The numbers below were drawn once; they must never change."""
    table = LabelTable.from_coo(
        ["a", "b"], list("vwxyz"), [0] * 5 + [1] * 4, [0, 1, 2, 3, 4, 0, 1, 2, 3],
        State.PRESENT, unlisted=State.ABSENT,
    )  # fmt: skip
    by_rule = drop_positives(table, 0.8, seed=7).table
    assert [by_rule.labels_of(row) for row in (0, 1)] == RULE_AT_SEED_7
    each = keep_each(table, 0.5, seed=7).table
    assert [each.labels_of(row) for row in (0, 1)] == EACH_AT_SEED_7
    assert by_rule == drop_positives(table, 0.8, seed=7).table
    assert any(by_rule != drop_positives(table, 0.8, seed=seed).table for seed in range(5))


def test_every_label_has_the_same_chance_to_stay() -> None:
    table = LabelTable.from_coo(
        [str(i) for i in range(8000)], list("abcd"), np.repeat(np.arange(8000), 4),
        np.tile(np.arange(4), 8000), State.PRESENT, unlisted=State.ABSENT,
    )  # fmt: skip
    counts = single_positive(table, seed=0).table.counts_by_class(State.PRESENT)
    assert counts.sum() == 8000
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(8000 * 0.25 * 0.75)


def test_keep_each_keeps_its_share_of_each_class() -> None:
    table = random_table(4000, 3)
    keep = {"c0": 0.0, "c1": 0.3, "c2": 1.0}
    kept = keep_each(table, keep, seed=0).table.counts_by_class(State.PRESENT)
    before = table.counts_by_class(State.PRESENT)
    assert kept[0] == 0
    assert kept[2] == before[2]
    assert kept[1] / before[1] == pytest.approx(0.3, abs=0.08)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), r=st.fractions(0, 1))
def test_any_ratio_and_seed(seed: int, r: Fraction) -> None:
    table = random_table(20, 6)
    thinned = drop_positives(table, r, seed=seed)
    counts = table.labels_per_image()
    expected = [min(n, floor(n * (1 - r)) + 1) for n in counts.tolist()]
    assert thinned.table.labels_per_image().tolist() == expected


def test_history_says_what_was_done() -> None:
    thinned = drop_positives(random_table(), "0.8", seed=5)
    assert str(thinned.table.history[-1]) == "drop_positives: r=0.8, seed=5"


def test_faults() -> None:
    table = random_table()
    with pytest.raises(ArgumentError, match=r"r must be at least 0 and at most 1, but got 1\.5"):
        drop_positives(table, 1.5, seed=0)
    with pytest.raises(ArgumentError, match="r must be a number between 0 and 1, but got 'half'"):
        drop_positives(table, "half", seed=0)
    with pytest.raises(ArgumentError, match="keep must be at least 0 and at most 1"):
        keep_each(table, -0.1, seed=0)
    with pytest.raises(ArgumentError, match="keep must name every class of the table once"):
        keep_each(table, {"c0": 0.5}, seed=0)
    with pytest.raises(ArgumentError, match="seed must be at least 0"):
        keep_each(table, 0.5, seed=-1)
