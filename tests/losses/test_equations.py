"""Values and gradients against the scalar reference, closed forms and numbers worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

import tests.reference as ref
from hilltop.losses import (
    LOSSES,
    FocalNegative,
    FocalPositive,
    HillNegative,
    LogNegative,
    LogPositive,
    MseNegative,
    MultiLabelLoss,
    NegativeTerm,
    PositiveTerm,
    SelfPacedCorrection,
    ShiftedFocalNegative,
    WeakNegative,
    asl,
    bce,
    build,
    focal,
    focal_margin,
    hill,
    splc,
    splc_released,
)
from tests.losses.conftest import counts_labels, ready
from tests.reference_methods import METHODS

GRID = [-30.0, -8.0, -3.0, -1.3, -0.4, 0.0, 0.3, 0.41, 1.0, 2.2, 4.0, 9.0, 30.0]
TARGETS = [0.0, 1.0, 0.3]
ENUMERATED = {"count_likelihood", "scar_likelihood"}  # whose reference test_observation.py holds


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("loss_name", [*sorted(ref.TERMS), "bce_ls"])
@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_presets_agree_with_the_scalar_reference(loss_name: str, epoch: int, target: float) -> None:
    loss = build(loss_name, reduction="none")
    loss.set_epoch(epoch)
    logits = torch.tensor([GRID])
    expected = [ref.preset(loss_name, x, target, len(GRID), epoch) for x in GRID]
    actual = loss(logits, torch.full_like(logits, target))
    torch.testing.assert_close(actual, torch.tensor([expected]), rtol=2e-6, atol=1e-9)


OWN = list(LOSSES.references)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("loss_name", OWN)
def test_losses_agree_with_the_reference_in_their_own_file(loss_name: str, target: float) -> None:
    logits = torch.tensor([GRID])
    reference = LOSSES.references[loss_name]
    expected = [reference(x, target) for x in GRID]
    actual = build(loss_name, reduction="none")(logits, torch.full_like(logits, target))
    torch.testing.assert_close(actual, torch.tensor([expected]), rtol=2e-6, atol=1e-9)


def test_every_registered_preset_has_a_reference() -> None:
    elsewhere = {*ref.TERMS, "bce_ls", *METHODS, *ENUMERATED}
    assert set(LOSSES) - {"auto"} == elsewhere | set(OWN)  # auto is bce with a mask


@pytest.mark.parametrize(
    ("term", "reference"),
    [
        (LogPositive(), ref.log_positive),
        (FocalPositive(), ref.focal_positive),
        (FocalPositive(gamma=0.5), lambda x: ref.focal_positive(x, gamma=0.5)),
        (FocalPositive(margin=1.0), ref.focal_margin_positive),
        (FocalPositive(alpha=0.25), lambda x: 0.25 * ref.focal_positive(x)),
        (FocalNegative(alpha=0.75), lambda x: 0.75 * ref.focal_negative(x)),
        (LogNegative(), ref.log_negative),
        (WeakNegative(), lambda x: ref.weak_negative(x, len(GRID))),
        (WeakNegative(weight=0.2), lambda x: 0.2 * ref.log_negative(x)),
        (FocalNegative(gamma=1.5), lambda x: ref.focal_negative(x, gamma=1.5)),
        (ShiftedFocalNegative(), ref.asl_negative),
        (ShiftedFocalNegative(gamma=1.5, shift=0.2), lambda x: ref.asl_negative(x, 1.5, 0.2)),
        (MseNegative(), ref.mse_negative),
        (HillNegative(), ref.hill_negative),
        (HillNegative(lam=2.0), lambda x: ref.hill_negative(x, 2.0)),
    ],
    ids=repr,
)
def test_terms_agree_with_the_scalar_reference(
    term: torch.nn.Module, reference: Callable[[float], float]
) -> None:
    expected = torch.tensor([reference(x) for x in GRID], dtype=torch.float64)
    actual = term(torch.tensor(GRID, dtype=torch.float64))
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-12)


POSITIVES, NEGATIVES = PositiveTerm.__subclasses__(), NegativeTerm.__subclasses__()


@pytest.mark.parametrize("kind", [*POSITIVES, *NEGATIVES])
def test_every_term_passes_gradcheck(kind: type[torch.nn.Module]) -> None:
    logits = torch.tensor([[-6.0, -2.0, -0.3, 0.4, 1.7, 5.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(kind(), logits.requires_grad_())


# Where a part is held constant, the gradient is not that of the value.
EXACT = sorted(set(LOSSES) - {"focal_released", "asl_released", "gr", "role"})


@pytest.mark.parametrize("name", EXACT)
def test_gradients_of_presets_pass_gradcheck(name: str) -> None:
    loss = ready(name, reduction="sum")
    loss.set_epoch(1)
    logits = torch.tensor([[-6.0, -2.0, -0.3, 0.43, 1.7, 5.0]], dtype=torch.float64)
    targets = torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.7, 1.0]], dtype=torch.float64)
    if counts_labels(loss):
        targets = (targets.cumsum(dim=1) == 1).double()  # one label left, so that some are missing
    assert torch.autograd.gradcheck(lambda x: loss(x, targets), logits.requires_grad_())


def gradient(loss: MultiLabelLoss, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    leaf = logits.clone().requires_grad_()
    loss(leaf, targets).backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.usefixtures("engine")
def test_hill_gradient_has_its_closed_form() -> None:
    logits = torch.tensor([GRID])
    probs = torch.sigmoid(logits)
    actual = gradient(hill(reduction="sum", safe_start=False), logits, torch.zeros_like(logits))
    torch.testing.assert_close(actual, 3 * probs**2 * (1 - probs) ** 2, rtol=2e-5, atol=1e-7)


@pytest.mark.usefixtures("engine")
def test_released_focal_and_asl_hold_their_weight_constant() -> None:
    logits = torch.tensor([[-2.0, -0.5, 0.5, 2.0]])
    probs = torch.sigmoid(logits)
    zeros, ones = torch.zeros_like(logits), torch.ones_like(logits)
    focal_loss = build("focal_released", reduction="sum")
    torch.testing.assert_close(gradient(focal_loss, logits, zeros), probs**3)
    torch.testing.assert_close(gradient(focal_loss, logits, ones), -((1 - probs) ** 3))
    shifted = (probs - 0.05).clamp(min=0)
    expected = shifted**4 * probs * (1 - probs) / (1 - shifted)
    asl_loss = build("asl_released", reduction="sum")
    torch.testing.assert_close(gradient(asl_loss, logits, zeros), expected)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["focal", "focal_released"])
@pytest.mark.parametrize("gamma", [2.0, 1.5])
def test_alpha_of_focal_weighs_positives_and_negatives(name: str, gamma: float) -> None:
    loss = build(name, gamma=gamma, alpha_pos=0.25, alpha_neg=0.75, reduction="none")
    for target in (0.0, 1.0, 0.3):
        expected = [
            target * 0.25 * ref.focal_positive(x, gamma)
            + (1 - target) * 0.75 * ref.focal_negative(x, gamma)
            for x in GRID
        ]
        actual = loss(torch.tensor([GRID]), torch.full((1, len(GRID)), target))
        torch.testing.assert_close(actual, torch.tensor([expected]), rtol=2e-6, atol=1e-9)


@pytest.mark.usefixtures("engine")
def test_values_worked_out_by_hand() -> None:
    half = torch.zeros(1, 1)  # p = 1/2
    present, absent = torch.ones(1, 1), torch.zeros(1, 1)
    log2 = math.log(2)
    assert bce()(half, absent).item() == pytest.approx(log2)
    assert hill()(half, absent).item() == pytest.approx((1.5 - 0.5) * 0.25)
    assert build("mse")(half, absent).item() == pytest.approx(0.25)
    assert focal()(half, present).item() == pytest.approx(log2 / 4)
    assert asl()(half, absent).item() == pytest.approx(-(0.45**4) * math.log(0.55))
    # x = m puts p_m at 1/2 as well.
    assert focal_margin()(half + 1, present).item() == pytest.approx(log2 / 4)
    # p = 0.75 lies above tau: the released form has no margin on a corrected entry.
    sure = torch.full((1, 1), math.log(3.0))
    released, usual, equation = splc_released(), splc(), splc(equation=True)
    for loss in (released, usual, equation):
        loss.set_epoch(1)
    assert released(sure, absent).item() == pytest.approx(-(0.25**2) * math.log(0.75))
    assert usual(sure, absent).item() == released(sure, absent).item()
    p_m = 1 / (1 + math.exp(1) / 3)
    assert equation(sure, absent).item() == pytest.approx(-((1 - p_m) ** 2) * math.log(p_m))


class TestLimits:
    """The members of the family that coincide at the edge of a parameter."""

    logits = torch.tensor([GRID])
    targets = torch.tensor([[0.0, 1.0] * 6 + [0.0]])

    def assert_equal(self, one: MultiLabelLoss, other: MultiLabelLoss) -> None:
        for loss in (one, other):
            loss.set_epoch(5)
        for measure in (gradient, lambda loss, *pair: loss(*pair)):
            torch.testing.assert_close(
                measure(one, self.logits, self.targets), measure(other, self.logits, self.targets)
            )

    def test_focal_with_gamma_zero_is_bce(self) -> None:
        self.assert_equal(focal(gamma=0), bce())

    def test_focal_margin_with_margin_zero_is_focal(self) -> None:
        self.assert_equal(focal_margin(margin=0), focal())

    def test_asl_without_shift_and_with_equal_gammas_is_focal(self) -> None:
        self.assert_equal(asl(gamma_pos=2, gamma_neg=2, shift=0, safe_start=False), focal())

    def test_splc_with_tau_one_is_no_correction(self) -> None:
        self.assert_equal(splc(tau=1, safe_start=False), focal_margin())

    def test_splc_before_its_first_epoch_is_no_correction(self) -> None:
        self.assert_equal(splc(start_epoch=9, safe_start=False), focal_margin())

    def test_splc_with_tau_zero_takes_every_entry_for_a_label(self) -> None:
        loss = splc("bce", tau=0, start_epoch=0)
        everything = bce()(self.logits, torch.ones_like(self.logits))
        torch.testing.assert_close(loss(self.logits, self.targets), everything)

    def test_bce_ls_without_smoothing_is_bce(self) -> None:
        self.assert_equal(build("bce_ls", label_smoothing=0), bce())

    def test_wan_with_two_classes_is_bce(self) -> None:
        logits, targets = self.logits.view(-1)[:2], self.targets.view(-1)[:2]
        torch.testing.assert_close(build("wan")(logits, targets), bce()(logits, targets))

    def test_bce_is_the_loss_of_torch(self) -> None:
        expected = torch.nn.functional.binary_cross_entropy_with_logits
        weights = {"class_weight": torch.rand(13), "pos_weight": torch.rand(13)}
        torch.testing.assert_close(
            bce(**weights)(self.logits, self.targets),
            expected(
                self.logits,
                self.targets,
                weight=weights["class_weight"],
                pos_weight=weights["pos_weight"],
            ),
        )


@pytest.mark.parametrize("equation", [False, True])
@pytest.mark.parametrize("base", ["bce", "focal", "asl", "focal_margin"])
@pytest.mark.usefixtures("engine")
def test_splc_goes_over_any_loss(base: str, equation: bool) -> None:
    loss = splc(build(base, reduction="none"), tau=0.6, start_epoch=0, equation=equation)
    positive, negative = ref.TERMS[base]
    if base == "focal_margin" and not equation:
        positive = ref.focal_positive
    expected = [ref.self_paced(negative, positive, 0.6)(x) for x in GRID]
    logits = torch.tensor([GRID])
    actual = loss(logits, torch.zeros_like(logits))
    torch.testing.assert_close(actual, torch.tensor([expected]), rtol=2e-6, atol=1e-9)
    by_name = splc(base, reduction="none", start_epoch=0, equation=equation)
    torch.testing.assert_close(by_name(logits, torch.zeros_like(logits)), actual)


def test_splc_leaves_its_base_as_it_was() -> None:
    base = bce()
    corrected = splc(base)
    corrected.set_epoch(4)
    assert base.correction is None
    assert int(base.epoch) == 0


@pytest.mark.parametrize("positive", POSITIVES)
@pytest.mark.parametrize("negative", NEGATIVES)
def test_any_term_goes_with_any_other_and_a_correction(positive: type, negative: type) -> None:
    loss = MultiLabelLoss(
        positive=positive(),
        negative=negative(),
        correction=SelfPacedCorrection(start_epoch=0),
        reduction="none",
    )
    logits = torch.tensor([[-2.0, 0.2, 3.0]])
    assert torch.equal(
        loss(logits, torch.zeros(1, 3))[:, 2], loss(logits, torch.ones(1, 3))[:, 2]
    ), "an entry above tau gets the positive term whether labelled or not"
