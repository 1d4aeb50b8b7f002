"""MultiLabelLoss: the one sum over terms, corrections and weights (Eq. 1)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from hilltop.checks import check_kind, check_number
from hilltop.losses.base import LabelStats, Loss
from hilltop.losses.engine.dispatch import evaluate_by_kernel, kernel_form
from hilltop.losses.engine.one_pass import (
    Evaluated,
    OnePass,
    needs_graph,
    slope_by_autograd,
)
from hilltop.losses.reduction import Reduction, divisor, reduce
from hilltop.losses.targets import check_inputs, check_values, compute_dtype
from hilltop.losses.terms.base import NegativeTerm, PositiveTerm
from hilltop.losses.terms.correction import Correction
from hilltop.losses.watch import CollapseWatch
from hilltop.losses.weights import ClassWeight, weight_buffer, weights_by_class


class MultiLabelLoss(Loss):
    r"""Any positive term with any negative term and any correction.

    .. math:: L = \sum y\,\ell^+(x) + (1 - y)\,[keep\;\ell^-(x) + flip\;\ell^{rec}(x)]

    Every row of the paper's ablations is one line: ``MultiLabelLoss(positive=LogPositive(),
    negative=HillNegative())`` is its "Hill-". Called like ``torch.nn.BCEWithLogitsLoss``.

    Args:
        positive: The term for entries labelled present.
        negative: The term for entries not labelled.
        correction: Which unlabelled entries to take for missing labels; None takes none.
        recovered: The term for those; None uses ``positive``, without ``pos_weight``.
        confirmed: The term for entries that a person confirmed absent (``observed``, not
            labelled); None uses ``negative``.
        reduction: ``"mean"`` over entries, ``"sum"`` (the paper), ``"batchmean"`` (sum over
            classes, mean over images) or ``"none"``.
        label_smoothing: The eps that turns targets 1 and 0 into 1 - eps and eps.
        class_weight: One factor, or one for each class, on both terms.
        pos_weight: One factor, or one for each class, on the positive term of labelled entries.
        watch: Whether to warn when training is going flat, for parts with which it can.

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
        recovered: PositiveTerm | None = None,
        confirmed: NegativeTerm | None = None,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        class_weight: ClassWeight | None = None,
        pos_weight: ClassWeight | None = None,
        watch: bool = True,
    ) -> None:
        """Check and keep the parts."""
        super().__init__(reduction=reduction)
        check_kind("positive", positive, PositiveTerm)
        check_kind("negative", negative, NegativeTerm)
        check_kind("correction", correction, Correction, none=True)
        check_kind("recovered", recovered, PositiveTerm, none=True)
        check_kind("confirmed", confirmed, NegativeTerm, none=True)
        self.positive, self.negative = positive, negative
        self.correction, self.recovered, self.confirmed = correction, recovered, confirmed
        self.watched = watch
        self._set_watch()
        self.label_smoothing = check_number("label_smoothing", label_smoothing, low=0, high=0.5)
        self.register_buffer("class_weight", weight_buffer("class_weight", class_weight))
        self.register_buffer("pos_weight", weight_buffer("pos_weight", pos_weight))

    @property
    def self_labelling(self) -> bool:
        """Whether the correction guesses labels from the first step on."""
        return self.correction is not None and self.correction.self_labelling

    def prepare(self, facts: LabelStats) -> None:
        """Pass the facts on to the correction."""
        if self.correction is not None:
            self.correction.prepare(facts)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss, and its correction, which epoch begins."""
        super().set_epoch(epoch)
        if self.correction is not None:
            self.correction.set_epoch(epoch)

    def note(self) -> str | None:
        """Return what the correction has to say."""
        return None if self.correction is None else self.correction.note()

    def with_correction(self, correction: Correction) -> MultiLabelLoss:
        """Return a copy of this loss that uses ``correction``."""
        corrected = copy.deepcopy(self)
        corrected.correction = correction
        corrected._set_watch()
        return corrected

    def _set_watch(self) -> None:
        """Look out for a collapse if it is wanted and these parts can bring it about."""
        parts = [self.negative] if self.correction is None else [self.negative, self.correction]
        flat = any(part.can_go_flat for part in parts)
        self.watch = CollapseWatch() if self.watched and flat else None

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, see :meth:`Loss.forward`."""
        check_inputs(logits, targets, observed)
        if self.watch is not None:
            self.watch.step(logits, targets)
        # The buffers are read straight: for a small batch, attribute look-ups count.
        weights = weights_by_class(self._buffers, logits)
        opaque = not needs_graph(logits, targets, *weights)
        form = kernel_form(self, logits) if opaque else None
        if form is None and opaque:
            # A half of the user's own may learn, or mix entries, which one slope cannot tell.
            learns = any(parameter.requires_grad for parameter in self.parameters())
            opaque = not learns and self.reduction != "none"
        if not opaque:
            check_values(targets)
            entries = self._entries(logits, targets, observed, index)
            return reduce(entries, targets, self.reduction)
        needs_grad = torch.is_grad_enabled() and logits.requires_grad

        def evaluate(logits: Tensor) -> Evaluated:
            batch = logits, targets, observed, index
            if form is not None:
                return evaluate_by_kernel(self, form, *batch, weights, needs_grad)
            return self._by_autograd(*batch, needs_grad)

        return OnePass.apply(logits, evaluate)  # type: ignore[no-any-return]

    @torch.no_grad()
    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that count as labels more than as negatives."""
        if self.correction is None:
            return torch.zeros_like(targets, dtype=torch.bool)
        keep, flip = self.correction(
            logits.to(compute_dtype(logits)),
            self.negative(logits.to(compute_dtype(logits))),
            targets=targets,
            observed=observed,
            epoch=self.epoch,
            index=index,
        )
        turned: Tensor = (flip > keep) & (targets == 0)
        return turned

    def _entries(
        self, logits: Tensor, targets: Tensor, observed: Tensor | None, index: Tensor | None
    ) -> Tensor:
        """The equation, entry by entry; unknown entries are 0."""
        logits = logits.to(compute_dtype(logits))
        given = targets = targets.to(logits.dtype)
        known = targets == targets  # NaN differs from itself
        logits, targets = torch.where(known, logits, 0.0), torch.where(known, targets, 0.0)
        targets = targets * (1 - 2 * self.label_smoothing) + self.label_smoothing
        loss_pos, loss_neg = self.positive(logits), self.negative(logits)
        if self.confirmed is not None and observed is not None:
            loss_neg = torch.where(observed, self.confirmed(logits), loss_neg)
        if self.correction is not None:
            keep, flip = self.correction(
                logits,
                loss_neg,
                targets=given,
                observed=observed,
                epoch=self.epoch,
                index=index,
            )
            recovered = self.positive if self.recovered is None else self.recovered
            loss_neg = keep * loss_neg + flip * recovered(logits)
            further = self.correction.further(logits, targets=given, observed=observed, index=index)
            loss_neg = loss_neg if further is None else loss_neg + further
        if self.pos_weight is not None:
            loss_pos = self.pos_weight.to(loss_pos.dtype) * loss_pos
        weight = 1.0 if self.class_weight is None else self.class_weight.to(loss_pos.dtype)
        return torch.where(known, weight * (targets * loss_pos + (1 - targets) * loss_neg), 0.0)

    def _by_autograd(
        self,
        logits: Tensor,
        targets: Tensor,
        observed: Tensor | None,
        index: Tensor | None,
        needs_grad: bool,
    ) -> Evaluated:
        """Loss and slope together, for any terms on any device."""
        check_values(targets)
        entries, slope = slope_by_autograd(
            lambda leaf: self._entries(leaf, targets, observed, index),
            logits.to(compute_dtype(logits)),
            needs_grad,
        )
        parts = divisor(targets, self.reduction)
        if isinstance(parts, Tensor):
            parts = parts.to(entries.dtype)
        loss = reduce(entries, targets, self.reduction)
        return Evaluated(loss, slope, None if parts is None else 1 / parts)

    def extra_repr(self) -> str:
        """Show what the parts do not say."""
        smoothing = f", label_smoothing={self.label_smoothing:g}" if self.label_smoothing else ""
        return f"reduction={self.reduction!r}{smoothing}"
