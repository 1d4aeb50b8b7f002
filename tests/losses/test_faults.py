"""Wrong calls, each answered in words; they do not depend on the loss."""

from __future__ import annotations

import pytest
import torch

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import LOSSES, build, hill
from tests.losses.conftest import batch


def test_shapes_must_agree() -> None:
    with pytest.raises(ArgumentError, match=r"shape of logits \(8, 80\), but got \(8, 81\)"):
        build("hill")(torch.zeros(8, 80), torch.zeros(8, 81))
    verified = torch.zeros(8, 2, dtype=torch.bool)
    with pytest.raises(ArgumentError, match=r"verified must have the shape of logits"):
        build("hill")(torch.zeros(8, 80), torch.zeros(8, 80), verified=verified)


def test_types_must_fit() -> None:
    zeros = torch.zeros(2, 2)
    with pytest.raises(ArgumentTypeError, match=r"floating-point tensor, but got one of"):
        build("hill")(zeros.long(), zeros)
    with pytest.raises(ArgumentTypeError, match="targets must be a real tensor, but got list"):
        build("hill")(zeros, [[0, 0], [0, 0]])
    with pytest.raises(ArgumentTypeError, match="verified must be a tensor of bool"):
        build("hill")(zeros, zeros, verified=zeros)


def test_devices_must_agree() -> None:
    zeros = torch.zeros(2, 2)
    for name in ("targets", "verified"):
        other = torch.zeros(2, 2, device="meta", dtype=torch.bool)
        pair = {"targets": zeros, name: other}
        with pytest.raises(ArgumentError, match=f"{name} must be on the device of logits, cpu"):
            build("hill")(zeros, **pair)
    moved = build("bce", class_weight=[1.0, 2.0]).to("meta")
    with pytest.raises(ArgumentError, match="class_weight must be on the device of logits"):
        moved(zeros, zeros)


def test_weights_survive_half() -> None:
    logits, targets = batch(4, 2)
    loss = build("hill", class_weight=[1.0, 2.0])
    expected = loss(logits, targets)
    torch.testing.assert_close(loss.half()(logits, targets), expected)


def test_an_unknown_loss_or_option_gets_a_suggestion() -> None:
    with pytest.raises(ArgumentError, match=r"Unknown loss 'hil'. Did you mean 'hill'\? Known"):
        build("hil")
    with pytest.raises(ArgumentTypeError, match=r"no option 'margn'. Did you mean 'margin'\?"):
        build("hill", margn=0.5)
    with pytest.raises(ArgumentError, match=r"'batchmean', 'none', but got 'avg'"):
        build("hill", reduction="avg")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hill", {"lam": 0.5}, "lam must be at least 1, but got 0.5"),
        ("focal", {"gamma": -1}, "gamma must be at least 0, but got -1"),
        ("asl", {"gamma_neg": 0.5}, "gamma must be 0 or at least 1, but got 0.5"),
        ("asl", {"shift": 1.0}, "shift must be at least 0 and at most 0.99"),
        ("splc", {"tau": 1.2}, "tau must be at least 0 and at most 1, but got 1.2"),
        ("bce_ls", {"label_smoothing": float("nan")}, "label_smoothing must be at least 0"),
        ("bce", {"class_weight": [1.0, -2.0]}, "class_weight must be finite and not negative"),
        ("bce", {"pos_weight": [[1.0]]}, "pos_weight must be one number or one row"),
        ("hill", {"lam": float("inf")}, "lam must be at least 1, but got inf"),
        ("asl", {"shift": 1e-8}, "shift must be 0 or at least 0.0001"),
        ("splc_bounded", {"per_label": -1}, "per_label must be at least 0, but got -1"),
        ("focal", {"alpha_neg": -1}, "alpha_neg must be at least 0, but got -1"),
        ("splc", {"start_epoch": 1.5}, "start_epoch must be a whole number, but got 1.5"),
    ],
)
def test_constants_out_of_range(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        build(name, **options)


def test_weights_must_have_one_entry_a_class() -> None:
    with pytest.raises(ArgumentError, match="class_weight must be one number or one for each"):
        build("bce", class_weight=[1.0, 1.0])(torch.zeros(1, 3), torch.zeros(1, 3))


def test_no_classes_at_all() -> None:
    for options in ({}, {"class_weight": []}):
        assert build("hill", **options)(torch.zeros(3, 0), torch.zeros(3, 0)) == 0


def test_wan_cannot_guess_a_weight_for_one_class() -> None:
    with pytest.raises(ArgumentError, match="needs at least 2 classes"):
        build("wan")(torch.zeros(4, 1), torch.zeros(4, 1))


def test_splc_over_a_finished_loss_takes_no_further_options() -> None:
    with pytest.raises(ArgumentTypeError, match="takes reduction from the given base"):
        build("splc", base=build("bce"), reduction="sum")


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(ArgumentError, match="'hill' is registered already"):
        LOSSES.register("hill")(lambda: build("bce"))


# These look at values, or keep a table that lies where ``prepare`` put it.
NOT_ON_META = {"count_likelihood", "em_apl", "ll_cp", "role"}


@pytest.mark.parametrize("name", sorted(set(LOSSES) - NOT_ON_META))
def test_a_loss_need_not_be_moved_to_the_device_of_the_logits(name: str) -> None:
    """As ``BCEWithLogitsLoss``; the meta device stands for all but the CPU."""
    loss = build(name, epochs=3) if name == "gr" else build(name)
    logits = torch.zeros(16, 5, device="meta", requires_grad=True)
    for _ in range(3):
        loss(logits, torch.zeros(16, 5, device="meta")).backward()
    assert logits.grad is not None


def test_validation_with_gradients_is_not_watched() -> None:
    loss = hill(safe_start=False).eval()
    for _ in range(10):
        loss(torch.full((8, 40), 6.0, requires_grad=True), torch.zeros(8, 40))
    assert loss.watch is not None
    assert loss.watch.steps == 0
