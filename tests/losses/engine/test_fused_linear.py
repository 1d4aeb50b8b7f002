"""A linear head and its loss in parts equal ``nn.Linear`` and the loss as a whole."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from hilltop.losses import (
    LOSSES,
    FusedLinearLoss,
    MultiLabelLoss,
    bce,
    build,
    hill,
    kept_independently,
    splc,
)
from hilltop.losses.engine import linear_parts
from hilltop.losses.init import head_start
from tests.losses.conftest import label_stats
from tests.losses.engine.fused_head import (
    CLASSES,
    INPUTS,
    ROWS,
    as_a_whole,
    gradients,
    head,
    inputs,
)

WHOLE = {
    "auto",
    "em_apl",
    "kept_by_count",
    "ll_cp",
    "ll_ct",
    "ll_r",
    "role",
    "splc_bounded",
    "splc_adaptive",
}
SEPARABLE = sorted(set(LOSSES) - WHOLE)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three classes at a time, so that the last part is smaller than the others."""
    monkeypatch.setattr(linear_parts, "_ENTRIES", 3 * ROWS)


def made(name: str, **options: object) -> MultiLabelLoss:
    loss = build(name, **options)
    loss.prepare(label_stats(CLASSES))
    loss.set_epoch(3)
    assert isinstance(loss, MultiLabelLoss)
    return loss


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
@pytest.mark.parametrize("name", SEPARABLE)
def test_value_and_gradients_are_those_of_linear_and_loss(name: str, reduction: str) -> None:
    weights = {"class_weight": torch.rand(CLASSES), "pos_weight": 2 * torch.rand(CLASSES)}
    fused = head(made(name, reduction=reduction, **weights))
    features, targets = inputs()
    targets[1, 2] = targets[3, :] = float("nan")
    targets[4, 5] = 0.3
    observed = torch.rand(ROWS, CLASSES) < 0.2
    actual = fused(features, targets, observed=observed)
    expected = as_a_whole(fused, features, targets, observed=observed)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        gradients(actual, fused, features),
        gradients(expected, fused, features),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("name", SEPARABLE)
def test_float32_agrees_too(name: str) -> None:
    fused = head(made(name), torch.float32)
    features, targets = inputs(torch.float32)
    actual, expected = fused(features, targets), as_a_whole(fused, features, targets)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(
        gradients(actual, fused, features), gradients(expected, fused, features)
    )


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_loss_that_looks_at_many_pairs_at_once_is_an_error_in_words(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"Use nn\.Linear and the loss itself"):
        FusedLinearLoss(INPUTS, CLASSES, loss=name)


def test_reduction_none_is_an_error_in_words() -> None:
    with pytest.raises(ValueError, match="but got 'none'"):
        FusedLinearLoss(INPUTS, CLASSES, loss=hill(reduction="none"))


FORMS = ["bool", "list of lists", "list of tensors", "pair", "COO", "CSR"]


def forms(targets: Tensor) -> dict[str, object]:
    rows, columns = targets.nonzero(as_tuple=True)
    return {
        "bool": targets.bool(),
        "list of lists": [row.nonzero().flatten().tolist() for row in targets],
        "list of tensors": [row.nonzero().flatten() for row in targets],
        "pair": (rows.flip(0), columns.flip(0).int()),
        "COO": targets.to_sparse(),
        "CSR": targets.to_sparse_csr(),
    }


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("form", FORMS)
def test_targets_and_observed_of_every_form_give_the_same_loss(form: str) -> None:
    fused = head(splc(start_epoch=0))
    features, targets = inputs()
    targets[2] = 0.0
    observed = torch.rand(ROWS, CLASSES) < 0.3
    expected = as_a_whole(fused, features, targets, observed=observed)
    confirmed = forms(observed.float())[form]
    if isinstance(confirmed, Tensor):
        confirmed = forms(observed)[form]
    actual = fused(features, forms(targets)[form], observed=confirmed)
    torch.testing.assert_close(actual, expected)


def test_sparse_values_may_be_soft_or_unknown() -> None:
    fused = head(bce())
    features, targets = inputs()
    targets[0, 0], targets[1, 1] = 0.25, float("nan")
    actual = fused(features, targets.to_sparse())
    torch.testing.assert_close(actual, as_a_whole(fused, features, targets))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([[0]] * 6, "one list of classes for each of 7 rows of features, but got 6"),
        ([[0]] * 6 + [[11]], "a class from 0 to 10, but got 11"),
        ((torch.tensor([7]), torch.tensor([0])), "a row from 0 to 6, but got 7"),
        ((torch.tensor([0]), torch.tensor([0, 1])), r"columns of targets .* but got \(2,\)"),
        ([[0.5]] * 7, "rows of whole numbers"),
        (torch.zeros(7, 10), r"targets must have the shape"),
        ("labels", "but got str"),
        (torch.full((7, 11), 2.0), "between 0 and 1"),
    ],
)
def test_targets_that_do_not_fit_are_an_error_in_words(targets: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        head(hill())(inputs()[0], targets)


def test_features_that_do_not_fit_are_an_error_in_words() -> None:
    fused, (features, targets) = head(hill()), inputs()
    with pytest.raises(ValueError, match="features must have the shape"):
        fused(features[:, 1:], targets)
    with pytest.raises(TypeError, match=r"dtype of the head, torch.float64, but got torch.float32"):
        fused(features.float(), targets)


@pytest.mark.parametrize("keep", [0.4, [0.3 + 0.05 * number for number in range(CLASSES)]])
def test_what_the_loss_learns_itself_gets_its_gradient(keep: float | list[float]) -> None:
    fused = head(kept_independently(keep, learn=True))
    features, targets = inputs()
    actual, expected = fused(features, targets), as_a_whole(fused, features, targets)
    torch.testing.assert_close(
        gradients(actual, fused, features), gradients(expected, fused, features)
    )
    assert len(gradients(fused(features, targets), fused, features)) == 4


def test_what_needs_no_gradient_gets_none() -> None:
    fused, (features, targets) = head(hill()), inputs()
    expected = fused(features, targets).detach()
    fused.linear.weight.requires_grad_(False)
    fused(features.detach(), targets).backward()
    assert fused.linear.weight.grad is None
    assert fused.linear.bias.grad is not None
    with torch.no_grad():
        assert not fused(features, targets).requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(fused(features, targets), expected)


def test_the_correction_of_splc_begins_with_its_epoch() -> None:
    loss = splc()
    fused, (features, targets) = head(loss), inputs()
    before = fused(features, targets)
    fused.set_epoch(1)
    after = fused(features, targets)
    torch.testing.assert_close(after, as_a_whole(fused, features, targets))
    assert after < before
    loss.set_epoch(0)
    torch.testing.assert_close(fused(features, targets), before)


def test_the_given_loss_is_left_as_it_was() -> None:
    loss = build("wan")
    state = copy.deepcopy(loss.__dict__)
    fused, (features, targets) = head(loss), inputs()
    fused(features, targets).backward()
    assert (loss.reduction, str(loss.negative)) == ("mean", str(state["_modules"]["negative"]))
    assert fused.loss is loss


def test_logits_of_some_classes() -> None:
    fused, (features, _) = head(hill()), inputs()
    whole = fused.linear(features)
    torch.testing.assert_close(fused.logits(features), whole)
    torch.testing.assert_close(fused.logits(features, start=2, stop=5), whole[:, 2:5])


@pytest.mark.parametrize("name", ["bce", "hill", "splc_released", "kept_independently"])
def test_the_bias_starts_where_the_loss_is_least_on_the_labels(name: str) -> None:
    targets = (torch.rand(200, CLASSES, generator=torch.Generator().manual_seed(0)) < 0.1).float()
    expected = head_start(build(name), targets)
    indices = [row.nonzero().flatten().tolist() for row in targets]
    for labels in (targets, indices, targets.to_sparse()):
        start = FusedLinearLoss(INPUTS, CLASSES, loss=name, labels=labels).linear.bias
        torch.testing.assert_close(start.detach(), expected, rtol=0, atol=1e-4)


def test_a_loss_that_guesses_labels_starts_at_the_prior_of_every_class() -> None:
    labels = [[0], [0, 1], [0], []]
    start = FusedLinearLoss(INPUTS, 2, loss="gr", labels=labels).linear.bias.detach()
    torch.testing.assert_close(start.sigmoid(), torch.tensor([0.75, 0.25]))


def test_an_empty_batch_costs_nothing() -> None:
    fused = head(hill())
    loss = fused(torch.zeros(0, INPUTS, dtype=torch.float64), [])
    loss.backward()
    assert loss == 0
    assert (fused.linear.weight.grad == 0).all()
