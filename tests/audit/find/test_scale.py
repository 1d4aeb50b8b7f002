"""Audits of very many pairs: blocks of classes and of images give what matrices give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.audit import Scored, fit_ranking, rank_shard
from hilltop.audit.find import ranking, top_k
from hilltop.audit.find.candidates import Candidates
from hilltop.audit.find.score_blocks import blocks_of
from hilltop.audit.find.top_k import TopKSpec, entry_keys, places_of, probabilities_of
from hilltop.audit.run import audit
from hilltop.data import LabelTable, State
from hilltop.data.label_table import Scopes
from hilltop.inputs import Parts
from hilltop.inputs.shards import check_shard_folder
from hilltop.losses import bce
from hilltop.missing.logistic import Counts, LabelBlock
from hilltop.missing.model import MissingLabelModel
from hilltop.training import class_blocks
from hilltop.training.class_blocks import fit_fold_heads
from hilltop.training.heads import cross_validate
from tests.audit.simulated import Simulated, average_precision, block_keys, simulate


@pytest.fixture(scope="module")
def many() -> Simulated:
    return simulate(images=3000, classes=30, width=16, shift=-4.0, seed=3)


@pytest.fixture(scope="module")
def dense(many: Simulated) -> torch.Tensor:
    loss = bce(reduction="sum")
    return cross_validate(many.features, many.targets, loss, repeats=2, seed=0).logits


def fold_logits(many: Simulated, parts: Parts = Parts()) -> torch.Tensor:  # noqa: B008
    rows = np.arange(len(many.labels))
    options = {"folds": 4, "repeats": 2, "seed": 0, "parts": parts}
    heads = fit_fold_heads(many.features, many.labels, rows, say=str, **options)  # type: ignore[arg-type]
    return torch.cat([heads.logits(0, 1100), heads.logits(1100, 3000)])


def precision(many: Simulated, logits: torch.Tensor) -> float:
    hidden = many.missing.ravel()[many.targets.numpy().ravel() == 0]
    return average_precision(logits.numpy().ravel()[many.targets.numpy().ravel() == 0], hidden)


def test_heads_of_class_blocks_are_those_of_all_classes(
    many: Simulated, dense: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_blocks, "_WHOLE_BLOCK_ENTRIES", 3000 * 8 * 7)
    torch.testing.assert_close(fold_logits(many), dense, rtol=1e-4, atol=1e-4)


def test_features_of_64_bits_are_learned_from_as_they_are(many: Simulated) -> None:
    double = many.features.double()
    loss = bce(reduction="sum")
    dense = cross_validate(double, many.targets, loss, repeats=2, seed=0).logits
    found = fold_logits(Simulated(double, many.true, many.targets, many.labels))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, dense, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("most", [0, 1 << 26])
def test_pairs_that_nobody_looked_for_take_no_part_unless_they_are_listed(
    most: int, many: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_blocks, "WHOLE_PAIRS", most)
    looked = np.ones((2, 30), bool)
    looked[1, 3] = False
    scopes = Scopes(("all", "some"), (np.arange(3000) % 2).astype(np.int32), looked)
    rows, columns = np.nonzero(many.targets.numpy())
    absent = np.arange(1, 3000, 6)
    absent = absent[many.targets.numpy()[absent, 3] == 0]  # in images where nobody looked
    table = LabelTable.from_coo(
        many.labels.images,
        many.labels.classes,
        np.concatenate([rows, absent]),
        np.concatenate([columns, np.full(len(absent), 3)]),
        np.repeat([State.PRESENT, State.ABSENT], [len(rows), len(absent)]),
        unlisted=State.UNKNOWN,
    )
    table = replace(table, scopes=scopes)
    targets = torch.from_numpy(table.batch()[0])
    assert bool(targets[1::2, 3].isnan().any())
    assert not bool(targets[absent, 3].isnan().any())
    loss = bce(reduction="sum")
    dense = cross_validate(many.features, targets, loss, repeats=2, seed=0).logits
    found = fold_logits(Simulated(many.features, many.true, targets, table))
    torch.testing.assert_close(found, dense, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("corrected", [0, 1 << 31])
def test_a_weighted_sample_of_the_background_stands_for_all_of_it(
    many: Simulated, dense: torch.Tensor, corrected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_blocks, "WHOLE_PAIRS", 0)
    monkeypatch.setattr(class_blocks, "BACKGROUND", 1000)
    monkeypatch.setattr(class_blocks, "LABELLED", 300)
    monkeypatch.setattr(class_blocks, "CORRECTED_PAIRS", corrected)
    found = fold_logits(many)
    assert float((found.mean(dim=0) - dense.mean(dim=0)).abs().mean()) < 0.1
    # A third of the background costs 0.022 here, unless gradients of all images correct it.
    assert precision(many, found) > precision(many, dense) - (0.002 if corrected else 0.05)


def test_finished_blocks_of_classes_stay_in_the_folder(
    many: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_blocks, "_WHOLE_BLOCK_ENTRIES", 3000 * 8 * 2)
    alone = fold_logits(many)
    parts = Parts(tmp_path)
    torch.testing.assert_close(fold_logits(many, parts), alone, rtol=0, atol=0)
    check_shard_folder(tmp_path)
    files = sorted(tmp_path.glob("heads-*.npz"))
    assert len(files) > 1
    files[0].unlink()
    kept = files[1].stat().st_mtime_ns
    torch.testing.assert_close(fold_logits(many, parts), alone, rtol=0, atol=0)
    assert files[1].stat().st_mtime_ns == kept


def test_counts_of_blocks_are_counts_of_all(many: Simulated, dense: torch.Tensor) -> None:
    scores, targets = dense.double().numpy(), many.targets.numpy().copy()
    targets[::7, 3] = np.nan
    verified = (np.arange(3000) % 5 == 0)[:, None] & (targets == 0)
    restored = (np.arange(3000) % 3 == 0)[:, None] & (targets == 1)
    parts = np.array_split(np.arange(3000), 7)
    found = Counts.of_blocks(
        lambda: (LabelBlock(scores[p], targets[p], verified[p], restored[p]) for p in parts), 30
    )
    whole = Counts.of_labels(scores, targets, verified, restored)
    for name in ("scores", "labelled", "unlabelled", "present", "absent"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-9)


def test_a_model_of_counts_is_the_model_of_all_images(many: Simulated, dense: torch.Tensor) -> None:
    whole = MissingLabelModel.fit(dense, many.targets)
    scores, targets = dense.numpy(), many.targets.numpy()
    counts = Counts.of_blocks(lambda: [LabelBlock(scores, targets)], 30)
    some = slice(0, 3000, 3)
    found = MissingLabelModel.fit(dense[some], many.targets[some], counts=counts, images=3000)
    assert found.kind == whole.kind
    assert found.missing.total.value == pytest.approx(whole.missing.total.value, rel=0.01)
    probs, expected = (
        one.prob_present(dense, many.targets)[targets == 0] for one in (found, whole)
    )
    np.testing.assert_allclose(probs, expected, atol=0.005)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_CHUNK_PAIRS", 3000)
    monkeypatch.setattr(top_k, "_BLOCK_ENTRIES", 1000)
    monkeypatch.setattr(ranking, "_SAMPLE_ENTRIES", 9000)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("spec", [TopKSpec(90_000), TopKSpec(500, 20), TopKSpec(2000)])
def test_pairs_that_are_passed_over_are_not_among_the_first(
    many: Simulated, dense: torch.Tensor, spec: TopKSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hilltop.audit.find.top_k._BLOCK_ENTRIES", 400)
    scored = Scored(blocks_of(dense), np.arange(3000))
    fitted = fit_ranking(many.labels, scored)
    by = ranking.Ranking(fitted.model, fitted.wrong_model, spec, TopKSpec(10**6))
    assert by.model.ranks_by_score
    found = rank_shard(many.labels, scored.logits, scored.rows, by)
    probs = by.model.prob_present(dense, many.targets).astype(np.float32)
    keys = np.sort(block_keys(probs)[many.targets.numpy().ravel() == 0])
    first = keys[: spec.top]
    np.testing.assert_array_equal(found.missing[: len(first)], first)
    for column in range(30):
        mine = keys[places_of(keys) % 30 == column][: spec.each]
        assert np.isin(mine, found.missing).all()
    assert len(found.wrong) == int(many.targets.sum())


def test_keys_tell_ten_million_images_of_twenty_thousand_classes_apart() -> None:
    places = np.array([0, 10_000_000 * 20_000 - 1])
    keys = entry_keys(np.array([0.25, 0.7], dtype=np.float32), places)
    np.testing.assert_array_equal(places_of(keys), places)
    np.testing.assert_allclose(probabilities_of(keys), [0.25, 0.7], rtol=5e-7)


@pytest.mark.usefixtures("small_steps")
def test_nothing_of_the_size_of_all_pairs_is_held_beyond_the_bound(
    many: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hilltop.audit.run import fold_logits as lazily

    for module in ("hilltop.audit.run", "hilltop.training.class_blocks"):
        monkeypatch.setattr(f"{module}.WHOLE_PAIRS", 1000)
    monkeypatch.setattr("hilltop.training.recipe._MOST_ROWS", 300)
    asked: list[int] = []
    plain = LabelTable.dense

    def watched(self: LabelTable, rows: object = None) -> object:
        matrix = plain(self, rows)  # type: ignore[arg-type]
        asked.append(matrix.size)
        return matrix

    monkeypatch.setattr(LabelTable, "dense", watched)
    rows = np.arange(3000)
    logits = lazily(many.labels, many.features, rows, folds=4, seed=0, say=str)

    def served(first: int, last: int) -> torch.Tensor:
        asked.append((last - first) * 30)
        return logits(first, last)

    found = audit(many.labels, Scored(served, rows), top=int(many.missing.sum()))
    assert max(asked) <= 9000
    low, high = found.missing.low, found.missing.high
    assert low < many.missing.sum() < high
    candidates: Candidates = found.candidates
    hits = many.missing[candidates.rows(), candidates.columns()].mean()
    assert hits > 3 * many.missing.sum() / (many.targets == 0).sum()


def test_blocks_of_other_features_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single number that was mended between two runs makes all heads anew."""
    monkeypatch.setattr(class_blocks, "_WHOLE_BLOCK_ENTRIES", 9000 * 8 * 7)
    wide = simulate(images=9000, classes=30, width=4, shift=-4.0, seed=3)
    parts = Parts(tmp_path)
    rows, options = np.arange(9000), {"folds": 4, "repeats": 2, "seed": 0, "say": str}
    fit_fold_heads(wide.features, wide.labels, rows, parts=parts, **options)  # type: ignore[arg-type]
    before = set(tmp_path.iterdir())
    mended = wide.features.clone()
    mended[1, 2] += 1
    fit_fold_heads(mended, wide.labels, rows, parts=parts, **options)  # type: ignore[arg-type]
    made = set(tmp_path.iterdir()) - before
    assert len(made) == len(before) > 1
