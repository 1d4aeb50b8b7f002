"""Checks that every registered loss passes, with the compiled kernel and without it."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hilltop.errors import ArgumentError, HilltopError
from hilltop.losses import MultiLabelLoss, build, kernel
from tests.losses.conftest import batch

Make = Callable[..., MultiLabelLoss]
EXTREME = [-1e4, -500.0, -89.0, -17.5, -1e-8, 0.0, 3.0, 17.5, 89.0, 500.0, 1e4]
pytestmark = pytest.mark.usefixtures("engine")


def value_and_gradient(
    loss: MultiLabelLoss, logits: Tensor, targets: Tensor, **options: Tensor
) -> tuple[Tensor, Tensor]:
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, targets, **options)
    value.sum().backward()
    assert leaf.grad is not None
    return value.detach(), leaf.grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", [0.0, 1.0, 0.4])
def test_finite_and_not_negative_for_every_finite_logit(
    make: Make, dtype: torch.dtype, target: float
) -> None:
    logits = torch.tensor([EXTREME], dtype=dtype)
    targets = torch.full_like(logits, target)
    value, gradient = value_and_gradient(make(reduction="none"), logits, targets)
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    assert (value >= 0).all()
    assert gradient.dtype == dtype
    assert value.dtype == (dtype if dtype == torch.float64 else torch.float32)


def test_reductions_agree_with_none(make: Make) -> None:
    logits, targets = batch()
    entries = make(reduction="none")(logits, targets)
    assert entries.shape == logits.shape
    for name, expected in {
        "mean": entries.mean(),
        "sum": entries.sum(),
        "batchmean": entries.sum(dim=1).mean(),
    }.items():
        torch.testing.assert_close(make(reduction=name)(logits, targets), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean", "none"])
def test_gradient_is_that_of_the_reduced_loss(make: Make, reduction: str) -> None:
    logits, targets = batch()
    loss = make(reduction=reduction)
    _, gradient = value_and_gradient(loss, logits, targets)
    divisor = {"mean": logits.numel(), "batchmean": len(logits)}.get(reduction, 1)
    _, total = value_and_gradient(make(reduction="sum"), logits, targets)
    torch.testing.assert_close(gradient, total / divisor)


def test_order_of_images_and_classes_does_not_matter(make: Make) -> None:
    logits, targets = batch(6, 6)
    loss, rows, columns = make(reduction="none"), torch.randperm(6), torch.randperm(6)
    expected = loss(logits, targets)[rows][:, columns]
    actual = loss(logits[rows][:, columns], targets[rows][:, columns])
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-9)


def test_targets_of_any_kind_give_the_same_loss(make: Make) -> None:
    logits, targets = batch()
    loss = make()
    expected = loss(logits, targets)
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float64, torch.float16):
        torch.testing.assert_close(loss(logits, targets.to(dtype)), expected)


@pytest.mark.parametrize("shape", [(0, 5), (5,), (2, 3, 5), (1, 1, 2, 5)])
def test_any_leading_shape_and_the_empty_batch(make: Make, shape: tuple[int, ...]) -> None:
    logits = torch.randn(shape)
    targets = (torch.rand(shape) < 0.5).float()
    for reduction in ("mean", "sum", "batchmean", "none"):
        loss = make(reduction=reduction)
        value, gradient = value_and_gradient(loss, logits, targets)
        assert value.isfinite().all()
        assert gradient.shape == logits.shape
    if logits.numel():
        flat = make(reduction="none")(logits.reshape(-1, 5), targets.reshape(-1, 5))
        torch.testing.assert_close(value, flat.view(shape))


def test_a_nan_target_leaves_the_entry_out_of_value_gradient_and_mean(make: Make) -> None:
    logits, targets = batch()
    holes = targets.clone()
    holes[1, 2] = holes[3, :] = float("nan")
    known = ~holes.isnan()
    entries = make(reduction="none")(logits, targets)
    value, gradient = value_and_gradient(make(), logits, holes)
    torch.testing.assert_close(value, entries[known].mean())
    assert (gradient[~known] == 0).all()
    _, full = value_and_gradient(make(reduction="sum"), logits, targets)
    torch.testing.assert_close(gradient[known], full[known] / known.sum())
    assert (make(reduction="none")(logits, holes)[~known] == 0).all()


def test_nothing_but_unknown_targets_give_zero(make: Make) -> None:
    logits, _ = batch()
    value, gradient = value_and_gradient(make(), logits, torch.full_like(logits, float("nan")))
    assert value == 0
    assert (gradient == 0).all()


def test_a_nan_logit_is_not_hidden(make: Make) -> None:
    logits, targets = batch()
    logits[0, 0] = float("nan")
    assert make()(logits, targets).isnan()


@pytest.mark.parametrize(("wrong", "message"), [(-1.0, "a person said"), (1.5, "but got 1.5")])
def test_a_target_out_of_range_is_an_error_in_words(make: Make, wrong: float, message: str) -> None:
    logits, targets = batch()
    targets[2, 2] = wrong
    with pytest.raises(ArgumentError, match=message):
        make()(logits, targets)


def test_class_weight_and_pos_weight_scale_as_in_torch(make: Make) -> None:
    logits, targets = batch(400, 5)  # several blocks of the kernel
    weight, pos_weight = torch.rand(5), 3 * torch.rand(5)
    plain = make(reduction="none")
    scaled = make(reduction="none", class_weight=weight, pos_weight=pos_weight)
    positive = plain(logits, torch.ones_like(logits))
    if type(plain.label_smoothing) is float and plain.label_smoothing:
        negative = plain(logits, torch.zeros_like(logits))
        share = plain.label_smoothing
        # Undo the smoothing: solve for the two halves.
        positive, negative = (
            ((1 - share) * positive - share * negative) / (1 - 2 * share),
            ((1 - share) * negative - share * positive) / (1 - 2 * share),
        )
        smooth = targets * (1 - 2 * share) + share
        expected = weight * (smooth * pos_weight * positive + (1 - smooth) * negative)
    else:
        expected = weight * torch.where(targets > 0, pos_weight * positive, plain(logits, targets))
    torch.testing.assert_close(scaled(logits, targets), expected, rtol=1e-4, atol=1e-5)
    _, gradient = value_and_gradient(scaled, logits, targets)
    _, exact = value_and_gradient(scaled, logits.double(), targets.double())
    torch.testing.assert_close(gradient, exact.float(), rtol=1e-4, atol=1e-5)


def test_observed_and_index_are_accepted_and_observed_entries_are_not_corrected(
    make: Make, loss_name: str
) -> None:
    logits, targets = batch()
    loss = make()
    everything = torch.ones_like(targets, dtype=torch.bool)
    index = torch.arange(len(logits))
    confirmed = loss(logits, targets, observed=everything, index=index)
    nothing = loss(logits, targets, observed=~everything)
    torch.testing.assert_close(nothing, loss(logits, targets))
    uncorrected = build(loss_name)  # epoch 0
    torch.testing.assert_close(confirmed, uncorrected(logits, targets))


def test_gradient_mode_is_left_as_it_was(make: Make) -> None:
    logits, targets = batch()
    loss = make()
    with torch.no_grad():
        assert not loss(logits.requires_grad_(), targets).requires_grad
        assert not torch.is_grad_enabled()
    assert loss(logits, targets).requires_grad
    with torch.inference_mode():
        assert loss(logits.detach(), targets).isfinite()


def test_the_epoch_survives_copying_pickling_and_state_dict(make: Make, loss_name: str) -> None:
    loss = make()
    fresh = build(loss_name)
    fresh.load_state_dict(loss.state_dict())
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), fresh):
        assert int(other.epoch) == 3
        torch.testing.assert_close(other(*batch()), loss(*batch()))


class Kept:
    """A tensor saved for backward."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def test_at_most_one_tensor_of_the_size_of_the_logits_is_saved(make: Make) -> None:
    logits, targets = batch(64, 40)
    saved: list[weakref.ref[Kept]] = []

    def pack(tensor: Tensor) -> Kept:
        kept = Kept(tensor)
        saved.append(weakref.ref(kept))
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        value = make()(logits.requires_grad_(), targets)
    still = [kept() for kept in saved]  # what the forward pass freed again is gone
    assert sum(kept.tensor.numel() for kept in still if kept is not None) == logits.numel()
    value.backward()


def test_backward_twice_gives_the_same_gradient_twice(make: Make) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    value = make()(logits, targets)
    (once,) = torch.autograd.grad(value, logits, retain_graph=True)
    (twice,) = torch.autograd.grad(value, logits)
    assert torch.equal(once, twice)


def test_a_second_derivative_through_backward_raises_instead_of_being_wrong(make: Make) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(make()(logits, targets), logits, create_graph=True)
    with pytest.raises(HilltopError, match=r"second derivatives compute it under torch\.func"):
        gradient.sum().backward()


def test_gradients_reach_soft_targets_that_ask_for_them(make: Make) -> None:
    logits, targets = batch()
    targets = targets.clamp(0.1, 0.9).requires_grad_()
    make(reduction="sum")(logits, targets).backward()
    positive = make(reduction="none")(logits, torch.ones_like(logits))
    negative = make(reduction="none")(logits, torch.zeros_like(logits))
    assert targets.grad is not None
    torch.testing.assert_close(targets.grad, positive - negative, rtol=1e-4, atol=1e-5)


def test_non_contiguous_input_gives_the_same_loss(make: Make) -> None:
    logits, targets = batch(6, 6)
    value, gradient = value_and_gradient(make(), logits, targets)
    leaf = logits.t().contiguous().t().detach().requires_grad_()
    other = make()(leaf, targets.t().contiguous().t())
    other.backward()
    torch.testing.assert_close(other.detach(), value)
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, gradient)


entries = st.tuples(
    st.floats(-1e4, 1e4, width=32),
    st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.25, float("nan")]),
    st.booleans(),
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(rows=st.lists(entries, min_size=1, max_size=40), epoch=st.integers(0, 2))
def test_float32_agrees_with_float64(
    loss_name: str, rows: list[tuple[float, float, bool]], epoch: int
) -> None:
    logits, targets, observed = (torch.tensor([column]) for column in zip(*rows, strict=True))
    if logits.shape[-1] == 1:
        logits, targets, observed = (part.repeat(1, 2) for part in (logits, targets, observed))
    for reduction in ("none", "mean"):
        loss = build(loss_name, reduction=reduction)
        loss.set_epoch(epoch)
        value, gradient = value_and_gradient(loss, logits, targets, observed=observed)
        exact, slope = value_and_gradient(loss, logits.double(), targets, observed=observed)
        torch.testing.assert_close(value.double(), exact, rtol=3e-6, atol=1e-7)
        torch.testing.assert_close(gradient.double(), slope, rtol=1e-4, atol=1e-6)


def test_large_batches_split_over_threads_give_the_same_loss(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, targets = batch(301, 7)
    weight = torch.rand(7)
    losses = [make(), make(class_weight=weight)]
    expected = [value_and_gradient(loss, logits, targets) for loss in losses]
    monkeypatch.setattr(kernel, "_ENTRIES_PER_THREAD", 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    for loss, (value, gradient) in zip(losses, expected, strict=True):
        split_value, split_gradient = value_and_gradient(loss, logits, targets)
        torch.testing.assert_close(split_value, value)
        torch.testing.assert_close(split_gradient, gradient, rtol=1e-6, atol=0)
