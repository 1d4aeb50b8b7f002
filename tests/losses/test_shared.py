"""Checks that every registered loss passes, with the compiled kernel and without it."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import MultiLabelLoss, bce
from hilltop.losses.engine import kernel
from tests.losses.conftest import (
    REMEMBERING,
    batch,
    counts_labels,
    ready,
    sees_whole_batch,
    takes,
    value_and_gradient,
)

Make = Callable[..., MultiLabelLoss]
EXTREME = [-1e4, -500.0, -89.0, -17.5, -1e-8, 0.0, 3.0, 17.5, 89.0, 500.0, 1e4]
pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", [0.0, 1.0, 0.4])
def test_finite_and_not_negative_for_every_finite_logit(
    make: Make, dtype: torch.dtype, target: float
) -> None:
    logits = torch.tensor([EXTREME], dtype=dtype)
    targets = torch.full_like(logits, target)
    if counts_labels(make()) and target == 0.4:
        with pytest.raises(
            ArgumentError, match="targets must be 0, 1 or NaN for a loss that counts"
        ):
            make()(logits, targets)
        targets = (torch.arange(len(EXTREME)) == 5).to(dtype).unsqueeze(0)  # one label
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


def test_order_of_images_and_classes_does_not_matter(make: Make, loss_name: str) -> None:
    logits, targets = batch(6, 6)
    loss, rows, columns = make(reduction="none"), torch.randperm(6), torch.randperm(6)
    if loss_name in REMEMBERING:  # what it remembers of a row, it knows by the place of the class
        columns = torch.arange(6)
    expected = loss(logits, targets)[rows][:, columns]
    actual = loss(logits[rows][:, columns], targets[rows][:, columns], index=rows)
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
        rows = logits.reshape(-1, 5), targets.reshape(-1, 5)
        flat, _ = value_and_gradient(make(reduction="none"), *rows)
        torch.testing.assert_close(value, flat.view(shape))


def test_a_nan_target_leaves_the_entry_out_of_value_gradient_and_mean(make: Make) -> None:
    logits, targets = batch()
    holes = targets.clone()
    holes[1, 2] = holes[3, :] = float("nan")
    known = ~holes.isnan()
    if sees_whole_batch(make()) or counts_labels(make()):
        whole = targets.clone()
        whole[3, :] = float("nan")
        value, gradient = value_and_gradient(make(), logits, whole)
        rest = torch.tensor([0, 1, 2, 4, 5, 6])
        others = {"index": rest}
        alone = value_and_gradient(make(), logits[rest], targets[rest], **others)
        torch.testing.assert_close((value, gradient[rest]), alone)
        _, gradient = value_and_gradient(make(), logits, holes)
        assert (gradient[~known] == 0).all()
        assert (make(reduction="none")(logits, holes)[~known] == 0).all()
        return
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


def test_class_weight_and_pos_weight_scale_as_in_torch(make: Make, loss_name: str) -> None:
    logits, targets = batch(400, 5)  # several blocks of the kernel
    weight, pos_weight = torch.rand(5), 3 * torch.rand(5)
    if not takes(loss_name, "class_weight"):
        with pytest.raises(ArgumentTypeError, match="has no option 'class_weight'"):
            make(class_weight=weight)
        return
    plain = make(reduction="none")
    scaled = make(reduction="none", class_weight=weight, pos_weight=pos_weight)
    positive = plain(logits, torch.ones_like(logits))
    if type(plain.label_smoothing) is float and plain.label_smoothing:
        negative = plain(logits, torch.zeros_like(logits))
        share = plain.label_smoothing
        # Undo the smoothing: solve for the two terms.
        positive, negative = (
            ((1 - share) * positive - share * negative) / (1 - 2 * share),
            ((1 - share) * negative - share * positive) / (1 - 2 * share),
        )
        smooth = targets * (1 - 2 * share) + share
        expected = weight * (smooth * pos_weight * positive + (1 - smooth) * negative)
    else:
        expected = weight * torch.where(targets > 0, pos_weight * positive, plain(logits, targets))
    torch.testing.assert_close(scaled(logits, targets), expected, rtol=1e-4, atol=1e-5)
    _, exact = value_and_gradient(copy.deepcopy(scaled), logits.double(), targets.double())
    _, gradient = value_and_gradient(scaled, logits, targets)
    torch.testing.assert_close(gradient, exact.float(), rtol=1e-4, atol=1e-5)


def test_verified_and_index_are_accepted_and_verified_entries_are_not_corrected(
    make: Make,
) -> None:
    logits, targets = batch()
    loss = make()
    everything = torch.ones_like(targets, dtype=torch.bool)
    index = torch.arange(len(logits))
    confirmed = loss(logits, targets, verified=everything, index=index)
    nothing = loss(logits, targets, verified=~everything)
    torch.testing.assert_close(nothing, loss(logits, targets))
    if not isinstance(loss, MultiLabelLoss):
        if counts_labels(loss):  # without candidates there is nothing left but cross-entropy
            torch.testing.assert_close(confirmed, bce()(logits, targets))
        return
    # Confirmed negatives have a term of their own, or else the one of all others.
    uncorrected = MultiLabelLoss(
        positive=loss.positive,
        negative=loss.verified_negative or loss.negative,
        label_smoothing=loss.label_smoothing,
    )
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
    loss, fresh = make(), ready(loss_name)
    value_and_gradient(loss, *batch(seed=1))  # something to remember
    fresh(*batch())
    fresh.load_state_dict(loss.state_dict())
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), fresh):
        assert int(other.epoch) == 3
        torch.testing.assert_close(other(*batch()), loss(*batch()))


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
    logits, targets, verified = (torch.tensor([column]) for column in zip(*rows, strict=True))
    if logits.shape[-1] == 1:
        logits, targets, verified = (part.repeat(1, 2) for part in (logits, targets, verified))
    if counts_labels(ready(loss_name)):
        targets[targets == 0.25] = 0.0
    for reduction in ("none", "mean"):
        loss, other = (ready(loss_name, reduction=reduction) for _ in range(2))
        loss.set_epoch(epoch), other.set_epoch(epoch)
        value, gradient = value_and_gradient(loss, logits, targets, verified=verified)
        exact, exact_gradient = value_and_gradient(
            other, logits.double(), targets, verified=verified
        )
        torch.testing.assert_close(value.double(), exact, rtol=3e-6, atol=1e-7)
        torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-4, atol=1e-5)


def test_large_batches_split_over_threads_give_the_same_loss(
    make: Make, loss_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, targets = batch(301, 7)
    weight = torch.rand(7)
    losses = [make()]
    if takes(loss_name, "class_weight"):
        losses.append(make(class_weight=weight))
    expected = [value_and_gradient(copy.deepcopy(loss), logits, targets) for loss in losses]
    monkeypatch.setattr(kernel, "_ENTRIES_PER_THREAD", 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    for loss, (value, gradient) in zip(losses, expected, strict=True):
        split_value, split_gradient = value_and_gradient(loss, logits, targets)
        torch.testing.assert_close(split_value, value)
        torch.testing.assert_close(split_gradient, gradient, rtol=1e-6, atol=0)
