"""How labels were lost, found by scores: nothing, independently, by count, and by class."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.calibration import belief as belief_module
from hilltop.calibration.belief import Belief, believe
from hilltop.calibration.profile import LOG_KEEP, profile
from hilltop.calibration.scaling import calibrate
from hilltop.losses.likelihood import scar_nll


def drawn(rows: int = 3000, classes: int = 8, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Clear scores and true labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(rows, classes, generator=generator) - 2
    return logits, (torch.rand(rows, classes, generator=generator) < torch.sigmoid(logits)).float()


def kept(true: Tensor, keep: float | Tensor, *, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return true * (torch.rand(true.shape, generator=generator) < keep)


def share_kept(belief: Belief, labels: Tensor) -> float:
    """Share of the true labels that was written down."""
    there = float(labels.nansum())
    return there / (there + float(belief.missing.total[1]))


def test_complete_labels_show_no_sign_of_missing_ones() -> None:
    logits, true = drawn()
    belief = believe(logits, true)
    assert belief.kind == "nothing"
    assert belief.agreeing == ()
    assert torch.equal(belief.absent_probability(logits, true), torch.ones_like(true))


@pytest.mark.parametrize("keep", [0.3, 0.6])
def test_labels_that_were_lost_independently_are_found_with_their_rate(keep: float) -> None:
    logits, true = drawn()
    labels = kept(true, keep)
    belief = believe(logits, labels)
    assert belief.kind == "independent"
    assert share_kept(belief, labels) == pytest.approx(keep, abs=0.12)


def test_scores_may_be_stretched_and_shifted() -> None:
    logits, true = drawn()
    labels = kept(true, 0.4)
    belief = believe(0.4 * logits + torch.linspace(-1, 1, 8), labels)
    assert share_kept(belief, labels) == pytest.approx(0.4, abs=0.12)


def test_missing_labels_weigh_less_than_true_negatives_and_confirmed_ones_in_full() -> None:
    logits, true = drawn()
    labels = kept(true, 0.5)
    belief = believe(logits, labels)
    weight = belief.absent_probability(logits, labels)
    missing, absent = (true == 1) & (labels == 0), true == 0
    assert weight[missing].mean() < 0.75 < weight[absent].mean()
    assert weight[labels == 1].eq(1).all()
    observed = absent & (torch.rand(true.shape) < 0.5)
    confirmed = belief.absent_probability(logits, labels, observed=observed)
    assert confirmed[observed].eq(1).all()


def test_a_rule_that_keeps_one_label_is_told_from_things_that_have_one() -> None:
    logits, true = drawn(classes=6)
    generator = torch.Generator().manual_seed(2)
    some = true.sum(dim=1) > 0
    logits, true = logits[some], true[some]
    one = torch.zeros_like(true)
    one.scatter_(1, torch.multinomial(true, 1, generator=generator), 1.0)
    belief = believe(logits, one)
    assert belief.kind == "count"
    assert "r = 1" in belief.sentence
    low, _, high = belief.missing.total
    assert belief.posterior.beside is not None
    assert low <= true.sum() - one.sum() <= high
    single = torch.nn.functional.one_hot(torch.randint(6, (2000,), generator=generator), 6).float()
    clear = 8 * single - 4 + torch.randn(2000, 6, generator=generator)
    assert believe(clear, single).kind == "nothing"


def test_a_count_rule_must_gain_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, true = drawn(600, 6)
    logits, true = logits[some := true.any(dim=1)], true[some]
    first = torch.zeros_like(true).scatter_(1, true.argmax(dim=1, keepdim=True), 1.0)
    belief = believe(logits, first)
    assert belief.kind == "count"
    gain = float(belief.sentence.partition(" nats an image")[0].split()[-1])
    for least, kind in ((gain - 0.02, "count"), (gain + 0.02, "independent")):
        monkeypatch.setattr(belief_module, "LEAST_GAIN", least)
        assert believe(logits, first).kind == kind


def test_empty_rows_are_evidence_against_a_count() -> None:
    logits, true = drawn(classes=6)
    assert believe(logits, kept(true, 0.2)).kind == "independent"


def test_unknown_targets_take_no_part() -> None:
    logits, true = drawn()
    labels = kept(true, 0.5)
    hidden = torch.rand(labels.shape, generator=torch.Generator().manual_seed(3)) < 0.3
    unknown = labels.masked_fill(hidden, torch.nan)
    left_out = believe(logits, unknown)
    assert share_kept(left_out, unknown) == pytest.approx(0.5, abs=0.12)
    assert left_out.absent_probability(logits, unknown)[hidden].eq(1).all()


def test_the_cost_at_each_rate_is_the_likelihood_of_the_labels() -> None:
    logits, true = drawn(400, 2)
    labels = kept(true, 0.5)
    found = profile(logits, labels)
    for number in (0, 4, 12):
        keep = float(np.exp(LOG_KEEP[number]))
        probs = keep * torch.sigmoid(found.calibration(number)(logits).double())
        cost = -(labels * probs.log() + (1 - labels) * torch.log1p(-probs)).sum(dim=0).numpy()
        shift = found.shifts[number] - found.shifts[number].mean()
        slope = np.log(found.slopes[number]) ** 2 / 2 / len(cost)
        assert found.costs[number] == pytest.approx(cost + shift**2 * 2 + slope, abs=0.1)
    assert found.costs.sum(axis=1).argmin() in (4, 5)


def test_no_other_calibration_makes_the_labels_more_probable() -> None:
    logits, true = drawn(600, 3)
    labels = kept(true, 0.5)
    logits = 0.5 * logits + 1
    found = profile(logits, labels)
    for number in (0, 4, 10):
        keep, slope = float(np.exp(LOG_KEEP[number])), float(found.slopes[number])
        model = scar_nll(keep)
        searched = calibrate(model, logits, labels)
        mine = model(found.calibration(number)(logits), labels)
        assert float(mine) <= searched.loss + 1.0
        assert slope == pytest.approx(float(searched.slope), rel=0.05)


def test_training_distrusts_a_pair_only_as_far_as_all_models_do() -> None:
    logits, true = drawn(classes=6)
    some = true.sum(dim=1) > 0
    logits, true = logits[some], true[some]
    one = torch.zeros_like(true)
    generator = torch.Generator().manual_seed(2)
    one.scatter_(1, torch.multinomial(true, 1, generator=generator), 1.0)
    belief = believe(logits, one)
    assert len(belief.agreeing) == 2
    weight = belief.absent_probability(logits, one)
    for model in belief.agreeing:
        alone = replace(belief, agreeing=(model,)).absent_probability(logits, one)
        assert (weight >= alone - 1e-6).all()


@pytest.mark.parametrize(("size", "kind"), [(0.3, "count"), (3.0, "nothing")])
def test_one_label_each_is_told_whatever_is_believed(size: float, kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = size * torch.randn(600, 5, generator=generator) - 2
    drawn_one = torch.multinomial(torch.softmax(logits, dim=1), 1, generator=generator)
    one = torch.zeros(600, 5).scatter_(1, drawn_one, 1.0)
    belief = believe(logits, one)
    assert belief.kind == kind
    assert "100% of the images have exactly one label" in belief.sentence
    one[:100] = 0.0
    assert "exactly one label" not in believe(logits, one).sentence


def test_a_belief_goes_to_other_processes_with_its_truth() -> None:
    logits, true = drawn(400, 3)
    belief = believe(logits, kept(true, 0.5))
    sent = pickle.loads(pickle.dumps(belief))
    assert sent.sentence == belief.sentence
    assert torch.equal(sent.find_truth().calibration(logits), belief.truth.calibration(logits))
