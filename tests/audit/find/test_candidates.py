from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import torch

from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.candidates import Candidates, write_candidates
from hilltop.audit.find.ranking import Ranking, fit_ranking, rank_shard
from hilltop.audit.find.score_blocks import LogitBlocks, Scored, blocks_of, score_blocks
from hilltop.audit.find.top_k import TopKSpec
from hilltop.audit.folder import AuditFolder
from hilltop.cli.audit import Audit
from hilltop.data import LabelTable, State, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError, DataError
from hilltop.losses import bce
from hilltop.losses.likelihood import count_nll, scar_nll
from hilltop.missing import (
    Calibration,
    ExpectedCounts,
    Interval,
    MissingCounts,
    MissingLabelModel,
)
from hilltop.missing.frequency import count_posterior
from hilltop.missing.model import _Order
from hilltop.missing.priors import RESTORE_PROB
from hilltop.training.heads import cross_validate
from hilltop.training.recipe import Recipe
from tests.audit.simulated import average_precision, simulate, table_of


def as_given(frequency: float, classes: int) -> MissingLabelModel:
    """A model for scores that are calibrated already, at a label frequency."""
    none = np.zeros(classes)
    return MissingLabelModel(
        "scar",
        MissingCounts(Interval(1.0, 0.0, 2.0), np.zeros((3, classes)), none),
        Calibration(np.ones(classes), none, none, none),
        ExpectedCounts(np.zeros((classes, 1)), np.zeros((1, classes, 1)), np.zeros((1, classes))),
        images=0,
        order=_Order(1.0, 0.0, float(np.log(frequency))),
    )


def ranked(
    labels: LabelTable, logits: LogitBlocks, model: MissingLabelModel, top: int | None = None
) -> Candidates:
    width = len(labels.classes)
    wanted = TopKSpec.of(labels.count(State.UNKNOWN), width, top)
    by = Ranking(model, None, wanted, TopKSpec(1))
    return Candidates(rank_shard(labels, logits, np.arange(len(labels)), by).missing, width)


def test_candidates_are_the_unknown_pairs_ordered_by_posterior() -> None:
    labels = LabelTable.from_coo(
        ["a", "b"],
        ["cat", "dog", "cow"],
        [0, 1],
        [0, 1],
        [State.PRESENT, State.ABSENT],
        unlisted=State.UNKNOWN,
    )
    logits = torch.tensor([[3.0, 0.0, -1.0], [2.0, 4.0, -3.0]])
    found = ranked(labels, blocks_of(logits), as_given(0.4, 3))
    assert list(zip(found.rows().tolist(), found.columns().tolist(), strict=True)) == [
        (1, 0),
        (0, 1),
        (0, 2),
        (1, 2),
    ]
    p = 1 / (1 + np.exp(-np.array([2.0, 0.0, -1.0, -3.0])))
    expected = 0.6 * p / (1 - 0.4 * p)
    assert found.probabilities() == pytest.approx(expected, rel=1e-5)


def test_pairs_of_one_probability_stay_in_the_order_of_the_table() -> None:
    labels = table_of(torch.zeros(3, 2))
    found = ranked(labels, blocks_of(torch.zeros(3, 2)), as_given(0.5, 2))
    assert (found.rows() * 2 + found.columns()).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("top", [1, 1000, 300_000])
def test_the_first_candidates_are_those_of_the_whole_ranking(top: int) -> None:
    logits = torch.randn(20_000, 40, generator=torch.Generator().manual_seed(3))
    labels = table_of(torch.zeros(20_000, 40))
    model = as_given(0.4, 40)
    every = ranked(labels, blocks_of(logits), model)
    first = ranked(labels, blocks_of(logits), model, top=top)
    assert len(every) == 800_000
    assert np.array_equal(first.keys, every.keys[:top])
    assert (np.diff(every.probabilities()) <= 0).all()


@pytest.mark.parametrize("ratio", ["0.5", "0.8", "1"])
def test_slope_and_posterior_of_a_count_rule_agree(ratio: str) -> None:
    chance = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(50, 9, generator=chance) - 2
    targets = (torch.rand(50, 9, generator=chance) < 0.15).float()
    verified = torch.rand(50, 9, generator=chance) < 0.1
    _, by_slope = count_posterior(ratio, logits.numpy(), targets.numpy(), verified.numpy())
    loss = count_nll(ratio, restore_prob=RESTORE_PROB)
    exact = loss.posterior(logits, targets, verified=verified)
    torch.testing.assert_close(torch.from_numpy(by_slope).float(), exact, rtol=1e-4, atol=1e-6)


def test_scores_on_disk_are_joined_by_name(tmp_path: Path) -> None:
    labels = table_of(torch.eye(4)[:, :3])
    scores = np.random.default_rng(0).random((4, 3)).astype(np.float32)
    straight = ScoreTable(labels.images, labels.classes, scores)
    turned = ScoreTable(
        labels.images.take(pa.array([3, 1, 0, 2])),
        labels.classes[::-1],
        np.ascontiguousarray(scores[[3, 1, 0, 2]][:, ::-1]),
    )
    straight.save(tmp_path / "straight.npy")
    turned.save(tmp_path / "turned.npy")
    model = as_given(0.4, 3)
    rankings = [
        ranked(labels, score_blocks(table, labels), model).keys.tolist()
        for table in (
            straight,
            ScoreTable.load(tmp_path / "straight.npy"),
            ScoreTable.load(tmp_path / "turned.npy"),
        )
    ]
    assert rankings[0] == rankings[1] == rankings[2]


def test_a_part_of_mapped_scores_is_read_from_its_own_place(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "scores.npy", values)
    labels = table_of(torch.zeros(2, 3))
    part = np.load(tmp_path / "scores.npy", mmap_mode="r")[2:]
    logits = score_blocks(ScoreTable(labels.images, labels.classes, part), labels)(0, 2)
    assert torch.sigmoid(logits).numpy() == pytest.approx(values[2:], rel=1e-5)


@pytest.mark.parametrize("wrong", [1.5, -0.1, np.nan])
def test_scores_that_are_no_probabilities_are_named(wrong: float) -> None:
    labels = table_of(torch.zeros(3, 2))
    values = np.full((3, 2), 0.5, dtype=np.float32)
    values[1, 1] = wrong
    blocks = score_blocks(ScoreTable(labels.images, labels.classes, values), labels)
    with pytest.raises(DataError, match=r"The score of 'image-1.jpg' for 'class 1' is"):
        ranked(labels, blocks, as_given(0.4, 2))


def test_certain_scores_are_ranked_too() -> None:
    labels = table_of(torch.zeros(2, 2))
    values = np.array([[0.0, 1.0], [0.5, 0.2]])
    blocks = score_blocks(ScoreTable(labels.images, labels.classes, values), labels)
    found = ranked(labels, blocks, as_given(0.4, 2))
    assert (found.rows() * 2 + found.columns()).tolist() == [1, 2, 3, 0]


def test_labels_without_unknown_pairs_are_refused() -> None:
    labels = LabelTable.from_coo(["a"], ["cat"], [0], [0], State.PRESENT, unlisted=State.ABSENT)
    with pytest.raises(DataError, match="pass --unlisted unknown"):
        fit_ranking(labels, Scored(blocks_of(torch.zeros(1, 1)), np.arange(1)))


def test_candidates_come_back_from_their_files(tmp_path: Path) -> None:
    simulated = simulate(images=50)
    logits = torch.randn(50, 6, generator=torch.Generator().manual_seed(1))
    found = ranked(simulated.labels, blocks_of(logits), as_given(0.5, 6))
    write_candidates(found, simulated.labels, tmp_path)
    folder = AuditFolder(path=tmp_path, labels=Path("x"), format="hilltop")
    write_labels(simulated.labels, folder.audited_labels, format="hilltop")
    index = CandidateIndex.read(folder, simulated.labels)
    assert len(index) == len(found) == simulated.labels.count(State.UNKNOWN)
    mine = found.columns() == 2
    assert index.class_rows(2).tolist() == found.rows()[mine].tolist()
    text = pyarrow.csv.read_csv(tmp_path / "candidates.csv")
    assert text.column_names == ["image", "class", "probability", "rank"]
    assert text.column("rank").to_pylist() == list(range(1, len(found) + 1))
    assert text.column("image")[0].as_py() == f"image-{found.rows()[0]}.jpg"


def test_no_image_has_a_part_in_its_own_logits() -> None:
    simulated = simulate(images=80)
    moved = simulated.targets.clone()
    image = int(torch.nonzero(moved.sum(dim=1) == 1)[0])
    moved[image] = moved[image].roll(1)  # as many labels as before, so heads start where they did

    def score(targets: torch.Tensor) -> torch.Tensor:
        loss = scar_nll(0.5)
        recipe = Recipe(epochs=2)
        return cross_validate(simulated.features, targets, loss, repeats=2, recipe=recipe).logits

    before, after = score(simulated.targets), score(moved)
    assert torch.equal(before[image], after[image])
    others = torch.arange(80) != image
    assert not torch.equal(before[others], after[others])


def test_out_of_fold_logits_repeat_with_their_seed() -> None:
    simulated = simulate(images=40)

    def score(seed: int) -> torch.Tensor:
        loss = bce(reduction="sum")
        options = {"recipe": Recipe(epochs=2), "seed": seed}
        return cross_validate(simulated.features, simulated.targets, loss, **options).logits

    assert torch.equal(score(0), score(0))
    assert not torch.equal(score(0), score(1))


def test_labels_removed_on_purpose_come_back_at_the_top() -> None:
    simulated = simulate()
    logits = cross_validate(simulated.features, simulated.targets, bce(reduction="sum")).logits
    model = MissingLabelModel.fit(logits, simulated.targets)
    found = ranked(simulated.labels, blocks_of(logits), model)
    missing = simulated.missing[found.rows(), found.columns()]
    assert missing.sum() == simulated.missing.sum()
    assert missing[:100].mean() > 0.6
    assert average_precision(-np.arange(len(missing)), missing) > 4 * missing.mean()


def test_options_of_another_assumption_are_refused(tmp_path: Path) -> None:
    def audit(**options: Any) -> None:
        Audit(
            labels=tmp_path / "l.csv", out=tmp_path / "a", scores=tmp_path / "s", **options
        )._given()

    with pytest.raises(ArgumentError, match="--keep belongs to --loss scar_likelihood"):
        audit(loss="count_likelihood", keep=0.5)
    with pytest.raises(ArgumentError, match="Did you mean 'count_likelihood'"):
        audit(loss="count_likelihod")
