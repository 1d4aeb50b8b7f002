"""MultiLabelLoss: the one sum over terms, corrections and weights (Eq. 1)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from hilltop.checks import check_kind, check_number
from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses.base import LabelStats, Loss, PairBatch, SumUp
from hilltop.losses.engine.dispatch import kernel_form, sum_by_kernel
from hilltop.losses.reduction import Reduction
from hilltop.losses.targets import compute_dtype
from hilltop.losses.terms.base import NegativeTerm, PositiveTerm
from hilltop.losses.terms.correction import Correction
from hilltop.losses.weights import ClassWeight, weight_buffer, weights_by_class


class MultiLabelLoss(Loss):
    r"""Any positive term with any negative term and any correction.

    .. math:: L = \sum y\,\ell^+(x) + (1 - y)\,[keep\;\ell^-(x) + pseudo\;\ell^+(x)]

    Every row of the paper's ablations is one line: ``MultiLabelLoss(positive=LogPositive(),
    negative=HillNegative())`` is its "Hill-". Called like ``torch.nn.BCEWithLogitsLoss``.

    Args:
        positive: The term for entries labelled present.
        negative: The term for entries not labelled.
        correction: Which unlabelled entries to take for missing labels; None takes none.
        pseudo_positive: The term for those pseudo labels; None uses ``positive``, without
            ``pos_weight``.
        confirmed: The term for entries that a person confirmed absent (``observed``, not
            labelled); None uses ``negative``.
        reduction: ``"mean"`` over entries, ``"sum"`` (the paper), ``"batchmean"`` (sum over
            classes, mean over images) or ``"none"``.
        label_smoothing: The eps that turns targets 1 and 0 into 1 - eps and eps.
        class_weight: One factor, or one for each class, on both terms.
        pos_weight: One factor, or one for each class, on the positive term of labelled entries.
        watch: Whether to warn when training is going flat, for parts with which it can.
        check: Whether to wait for the GPU in every step to look at the values of the targets, see
            :meth:`raise_deferred_errors`; on the CPU they are always looked at.

    Shape:
        logits and targets ``(..., C)``, usually ``(N, C)``; a number, or ``(..., C)`` with
        ``reduction="none"``. The loss is float64 for float64 logits and float32 for all others.

    Raises:
        ArgumentError: A target outside [0, 1], shapes that differ, or a constant out of range.

    Example:
        >>> loss = MultiLabelLoss(positive=LogPositive(), negative=HillNegative())
        >>> loss(torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([[1, 0, 0]]))
        tensor(0.1853)

    Note:
        A NaN target leaves that entry out of value, gradient and mean. With no entry left the loss
        is 0. Second derivatives are there under ``torch.func`` and ``torch.compile``, not through
        ``backward(create_graph=True)``, which raises.
    """

    class_weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        *,
        positive: PositiveTerm,
        negative: NegativeTerm,
        correction: Correction | None = None,
        pseudo_positive: PositiveTerm | None = None,
        confirmed: NegativeTerm | None = None,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        class_weight: ClassWeight | None = None,
        pos_weight: ClassWeight | None = None,
        watch: bool = True,
        check: bool = False,
    ) -> None:
        """Check and keep the parts."""
        super().__init__(reduction=reduction, watch=watch, check=check)
        check_kind("positive", positive, PositiveTerm)
        check_kind("negative", negative, NegativeTerm)
        check_kind("correction", correction, Correction, none=True)
        check_kind("pseudo_positive", pseudo_positive, PositiveTerm, none=True)
        check_kind("confirmed", confirmed, NegativeTerm, none=True)
        self.positive, self.negative = positive, negative
        self.correction, self.confirmed = correction, confirmed
        self.pseudo_positive = pseudo_positive
        self._declare()
        self.label_smoothing = check_number("label_smoothing", label_smoothing, low=0, high=0.5)
        self.register_buffer("class_weight", weight_buffer("class_weight", class_weight))
        self.register_buffer("pos_weight", weight_buffer("pos_weight", pos_weight))

    def prepare(self, stats: LabelStats) -> None:
        """Pass the statistics on to the correction."""
        if self.correction is not None:
            self.correction.prepare(stats)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss, and its correction, which epoch begins."""
        super().set_epoch(epoch)
        if self.correction is not None:
            self.correction.set_epoch(epoch)

    def describe(self) -> str | None:
        """Return what the correction has to say."""
        return None if self.correction is None else self.correction.describe()

    def with_correction(self, correction: Correction) -> MultiLabelLoss:
        """Return a copy of this loss that uses ``correction``."""
        copied = copy.deepcopy(self)
        copied.correction = correction
        copied._declare()
        return copied

    def _declare(self) -> None:
        """Declare what the parts declare, and watch out if they can go flat."""
        parts = (
            self.positive,
            self.negative,
            self.correction,
            self.pseudo_positive,
            self.confirmed,
        )
        self.take_over(part for part in parts if part is not None)
        self.start_watch()

    def factors(self) -> tuple[Tensor | None, ...]:
        """Return the weights."""
        # The buffers are read straight: for a small batch, attribute look-ups count.
        return self._buffers["class_weight"], self._buffers["pos_weight"]

    def kernel(self, batch: PairBatch) -> SumUp | None:
        """Return what sums the loss up in compiled code, if all parts have such a form."""
        weights = weights_by_class(self._buffers, batch.logits)
        form = kernel_form(self, batch)
        if form is None:
            return None
        return lambda needs_grad: sum_by_kernel(self, form, batch, weights, needs_grad)

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return True for unlabelled entries that count as labels more than as negatives."""
        if self.correction is None:
            return super().find_pseudo_labels(batch)
        batch = batch.with_logits(batch.logits.to(compute_dtype(batch.logits)))
        keep, pseudo = self.correction(batch, self.negative(batch.logits))
        found: Tensor = (pseudo > keep) & (batch.targets == 0)
        return found

    def entries(self, batch: PairBatch) -> Tensor:
        """The equation, entry by entry; unknown entries are 0."""
        weights_by_class(self._buffers, batch.logits)  # checks them
        logits = batch.logits.to(compute_dtype(batch.logits))
        targets = batch.targets.to(logits.dtype)
        known = targets == targets  # NaN differs from itself
        logits = torch.where(known, logits, 0.0)
        given = batch.with_values(logits, targets)
        targets = torch.where(known, targets, 0.0)
        targets = targets * (1 - 2 * self.label_smoothing) + self.label_smoothing
        loss_pos, loss_neg = self.positive(logits), self._unlabelled(given)
        if self.pos_weight is not None:
            loss_pos = self.pos_weight.to(loss_pos.dtype) * loss_pos
        weight = 1.0 if self.class_weight is None else self.class_weight.to(loss_pos.dtype)
        return torch.where(known, weight * (targets * loss_pos + (1 - targets) * loss_neg), 0.0)

    def _unlabelled(self, batch: PairBatch) -> Tensor:
        """What an entry costs where it is not labelled: its negative term, corrected."""
        loss_neg: Tensor = self.negative(batch.logits)
        if self.confirmed is not None and batch.observed is not None:
            loss_neg = torch.where(batch.observed, self.confirmed(batch.logits), loss_neg)
        if self.correction is None:
            return loss_neg
        keep, pseudo = self.correction(batch, loss_neg)
        pseudo_positive = self.positive if self.pseudo_positive is None else self.pseudo_positive
        loss_neg = keep * loss_neg + pseudo * pseudo_positive(batch.logits)
        extra = self.correction.extra_loss(batch)
        return loss_neg if extra is None else loss_neg + extra

    def extra_repr(self) -> str:
        """Show what the parts do not say."""
        smoothing = f", label_smoothing={self.label_smoothing:g}" if self.label_smoothing else ""
        return f"reduction={self.reduction!r}{smoothing}"


def check_separable(loss: object) -> MultiLabelLoss:
    """Return the loss if it is one number in the end and every pair in it stands for itself."""
    if not isinstance(loss, MultiLabelLoss) or type(loss).forward is not MultiLabelLoss.forward:
        raise ArgumentTypeError(
            f"loss must be made of terms, so that each class can be computed by itself, but got"
            f" {type(loss).__name__}. Use nn.Linear and the loss itself instead."
        )
    if loss.correction is not None and not loss.correction.by_entry:
        raise ArgumentError(
            f"{type(loss.correction).__name__} looks at more than one pair at a time, so that the"
            " loss cannot be computed class by class. Use nn.Linear and the loss itself instead."
        )
    if loss.reduction == "none":
        raise ArgumentError(
            "reduction must be 'mean', 'sum' or 'batchmean' where the logits are never there as a"
            " whole, but got 'none'."
        )
    return loss
