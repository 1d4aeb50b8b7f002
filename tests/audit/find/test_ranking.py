"""Rankings in shards: merged, resumed and bounded, they are those of one piece."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.audit import Scored, fit_ranking, merge_shards, rank_all, rank_shard
from hilltop.audit.find import ranking, top_k
from hilltop.audit.find.ranking import Assumption, RankedShard
from hilltop.audit.find.score_blocks import blocks_of
from hilltop.audit.find.top_k import TopK, TopKSpec, places_of, probabilities_of
from hilltop.data import LabelTable
from hilltop.data.label_table import Scopes
from hilltop.inputs import Parts
from tests.audit.simulated import block_keys, simulate, table_of


@pytest.fixture(scope="module")
def problem() -> tuple[LabelTable, Scored]:
    """Labels, and scores for all images but some, in another order."""
    simulated = simulate(images=240)
    logits = 3 * simulated.true - 3 + simulated.features[:, :6]
    rows = np.random.default_rng(0).permutation(240)[:220]
    return simulated.labels, Scored(blocks_of(logits[rows]), rows)


def assert_same(one: RankedShard, other: RankedShard) -> None:
    for name in ("missing", "wrong"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.beyond, other.beyond, rtol=1e-12)


@pytest.mark.parametrize("top", [None, 50])
def test_shards_merge_in_any_grouping_into_one_piece(
    problem: tuple[LabelTable, Scored], top: int | None
) -> None:
    table, scored = problem
    by = fit_ranking(table, scored, top=top)
    by = pickle.loads(pickle.dumps(by))  # as it reaches another machine
    whole = rank_shard(table, scored.logits, scored.rows, by)
    edges = [0, 64, 80, 192, 220]  # multiples of 16 pairs: the rest of a vector may round otherwise
    shards = [
        rank_shard(table, scored.logits, scored.rows, by, first=first, last=last)
        for first, last in itertools.pairwise(edges)
    ]
    assert_same(merge_shards(shards, by, 6), whole)
    tree = [merge_shards(shards[2:], by, 6), merge_shards(shards[:2], by, 6)]
    assert_same(merge_shards(tree, by, 6), whole)
    assert len(whole.missing) == (top or int((table.batch(scored.rows)[0] == 0).sum()))


def test_a_model_that_is_given_reaches_every_process(problem: tuple[LabelTable, Scored]) -> None:
    table, scored = problem
    by = fit_ranking(table, scored, given=Assumption(missing_ratio=0.8))
    assert by.model.ratio == "0.8"
    copied = pickle.loads(pickle.dumps(by))
    assert copied.model.describe() == by.model.describe()
    first = rank_shard(table, scored.logits, scored.rows, by)
    assert_same(rank_shard(table, scored.logits, scored.rows, copied), first)


def test_a_folder_of_shards_belongs_to_its_labels_and_scores(
    problem: tuple[LabelTable, Scored], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, scored = problem
    ranked: list[int] = []

    def counted(*given: object, first: int, **options: object) -> RankedShard:
        ranked.append(first)
        return rank_shard(*given, first=first, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ranking, "rank_shard", counted)

    def run(table: LabelTable, scored: Scored) -> RankedShard:
        ranked.clear()
        by = fit_ranking(table, scored)
        return rank_all(table, scored, by, parts=Parts(tmp_path), size=100)

    whole = run(table, scored)
    assert ranked == [0, 100, 200]
    assert_same(run(table, scored), whole)
    assert ranked == []
    next(tmp_path.glob("*-000000000100-*")).unlink()
    assert_same(run(table, scored), whole)
    assert ranked == [100]
    run(table, replace(scored, version="written again"))
    assert len(ranked) == 3
    changed = table.select(np.arange(240)[::-1]).select(np.arange(240)[::-1])
    run(changed, scored)  # the same labels
    assert ranked == []
    other = table_of(torch.from_numpy(np.roll(table.batch()[0], 1, axis=1)))
    run(other, scored)
    assert len(ranked) == 3


def by_sorting(probs: np.ndarray, wanted: TopKSpec) -> np.ndarray:
    """The same, by looking at everything."""
    keys = np.sort(block_keys(probs))
    columns = places_of(keys) % probs.shape[1]
    kept = np.arange(len(keys)) < wanted.top
    for column in range(probs.shape[1]):
        kept[np.flatnonzero(columns == column)[: wanted.each]] = True
    return keys[kept]


@pytest.mark.parametrize(
    "wanted", [TopKSpec(30), TopKSpec(30, 3), TopKSpec(1, 20), TopKSpec(30, 200)]
)
def test_the_first_of_all_and_of_every_class_are_kept(
    wanted: TopKSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_k, "_BLOCK_ENTRIES", 8)  # room for little
    rng = np.random.default_rng(2)
    probs = rng.random((120, 7)).round(2).astype(np.float32) * np.linspace(0.1, 1, 7, dtype="f")
    kept = TopK(wanted, probs.size, 7)
    for keys in np.split(block_keys(probs), 120):
        above = probabilities_of(keys) >= kept.least[places_of(keys) % 7]
        kept.add(keys[above])  # what cannot be among the first may be left out
    np.testing.assert_array_equal(kept.sorted(), by_sorting(probs, wanted))


def test_a_rare_class_has_candidates_among_very_many(
    problem: tuple[LabelTable, Scored], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, scored = problem
    monkeypatch.setattr(top_k, "HUGE", 100)
    monkeypatch.setattr(top_k, "MOST_OF_HUGE", 60)
    by = fit_ranking(table, scored)
    assert by.missing == TopKSpec(60, 10)
    shard = rank_all(table, scored, by, size=64)
    assert (np.bincount(places_of(shard.missing) % 6, minlength=6) >= 10).all()
    assert_same(shard, rank_shard(table, scored.logits, scored.rows, by))


def test_pairs_that_nobody_looked_for_are_added_up_apart(
    problem: tuple[LabelTable, Scored],
) -> None:
    table, scored = problem
    looked = np.array([[True] * 6, [True] * 5 + [False]])
    scopes = Scopes(("all", "some"), (np.arange(240) % 2).astype(np.int32), looked)
    joined = replace(table, scopes=scopes)
    by = fit_ranking(joined, scored)
    beside = np.isnan(joined.batch(scored.rows)[0])
    probs = by.model.probs(scored.logits(0, 220).numpy())
    expected = np.where(beside, probs, 0.0).sum(axis=0)
    assert beside.any()
    found = rank_all(joined, scored, by, size=64)
    np.testing.assert_allclose(found.beyond, expected, rtol=1e-5)
    assert np.isin(
        (scored.rows[:, None] * 6 + np.arange(6))[beside], places_of(found.missing)
    ).all()
