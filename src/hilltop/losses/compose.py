"""MultiLabelLoss: the one sum over terms, corrections and weights (Eq. 1)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hilltop.checks import check_kind, check_number
from hilltop.deprecation import renamed_arguments
from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import functional
from hilltop.losses.base import (
    LabelStats,
    Loss,
    PairBatch,
    Reduction,
    check_one_for_each_class,
)
from hilltop.losses.corrections import Correction, EmaTeacher, SelectiveCorrection
from hilltop.losses.engine import kernel
from hilltop.losses.terms import NegativeTerm, PositiveTerm
from hilltop.losses.tracing import traced

ClassWeight = Tensor | Sequence[float] | float
_NO_WEIGHTS = kernel.LossWeights()


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
        verified_negative: The term for entries that a person verified to be absent (``verified``,
            not labelled); None uses ``negative``.
        reduction: ``"mean"`` over entries, ``"sum"`` (the paper), ``"batchmean"`` (sum over
            classes, mean over images) or ``"none"``.
        label_smoothing: The eps that turns targets 1 and 0 into 1 - eps and eps.
        class_weight: One factor, or one for each class, on both terms.
        pos_weight: One factor, or one for each class, on the positive term of labelled entries.
        watch: Whether to warn when training saturates, for parts with which it can.
        check: Whether to check the targets of every batch on an accelerator, which waits for it.
        safe_start: Whether training begins with :class:`SafeStart`, for parts that can saturate.
            With False the loss is its equation from the first step.

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
        is 0. The compiled CPU kernel has no second derivative and says so; float64 logits,
        ``torch.func`` and ``torch.compile`` use the formula, which has one.
    """

    class_weight: Tensor | None
    pos_weight: Tensor | None

    @renamed_arguments(confirmed="verified_negative")
    def __init__(
        self,
        *,
        positive: PositiveTerm,
        negative: NegativeTerm,
        correction: Correction | None = None,
        pseudo_positive: PositiveTerm | None = None,
        verified_negative: NegativeTerm | None = None,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        class_weight: ClassWeight | None = None,
        pos_weight: ClassWeight | None = None,
        watch: bool = True,
        check: bool = False,
        safe_start: bool = True,
    ) -> None:
        """Check and store the parts."""
        super().__init__(reduction=reduction, watch=watch, check=check, safe_start=safe_start)
        check_kind("positive", positive, PositiveTerm)
        check_kind("negative", negative, NegativeTerm)
        check_kind("correction", correction, Correction, none=True)
        check_kind("pseudo_positive", pseudo_positive, PositiveTerm, none=True)
        check_kind("verified_negative", verified_negative, NegativeTerm, none=True)
        self.positive, self.negative = positive, negative
        self.correction, self.verified_negative = correction, verified_negative
        self.pseudo_positive = pseudo_positive
        self._take_over_parts()
        self.label_smoothing = check_number("label_smoothing", label_smoothing, low=0, high=0.5)
        self.register_buffer("class_weight", _weight_buffer("class_weight", class_weight))
        self.register_buffer("pos_weight", _weight_buffer("pos_weight", pos_weight))

    def _take_over_parts(self) -> None:
        """Take the properties of the parts."""
        correction = self.correction
        parts = (self.positive, self.negative, self.pseudo_positive, correction)
        self.can_saturate = any(part.can_saturate for part in parts if part is not None)
        self.self_labelling = correction is not None and correction.self_labelling
        self.independent_rows = correction is None or correction.independent_rows
        self.guard_saturation()

    def forgives_from_epoch(self) -> int | None:
        """Return when the correction begins, where the negative term does not forgive itself."""
        if self.negative.can_saturate and not self.negative.stresses_confident:
            return 0
        return None if self.correction is None else self.correction.start_epoch

    def prepare(self, stats: LabelStats) -> None:
        """Pass the statistics on to the correction, for a run that begins."""
        super().prepare(stats)
        if self.correction is not None:
            self.correction.prepare(stats)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss, and its correction, which epoch begins."""
        super().set_epoch(epoch)
        if self.correction is not None:
            self.correction.set_epoch(epoch)

    def describe(self) -> str | None:
        """Return the sentence of the correction."""
        return None if self.correction is None else self.correction.describe()

    def with_correction(self, correction: Correction) -> MultiLabelLoss:
        """Return a copy of this loss that uses ``correction``."""
        copied = copy.deepcopy(self)
        copied.correction = correction
        copied._take_over_parts()
        return copied

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return True for unlabelled entries that count as labels more than as negatives."""
        if self.correction is None:
            return super().find_pseudo_labels(batch)
        keep, pseudo = self.correction(batch, self.negative(batch.logits))
        found: Tensor = (pseudo > keep) & (batch.targets == 0)
        return found

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the equation, entry by entry; unknown entries are 0."""
        class_weight, pos_weight = self.class_weights(batch.logits)
        logits, targets = batch.logits, batch.targets.to(batch.logits.dtype)
        known = None  # False for NaN; compiled code takes longer for isnan and nan_to_num
        if not batch.complete and batch.targets.dtype.is_floating_point:
            known = targets >= 0
            if logits.is_cpu and not traced():
                logits = torch.where(known, logits, 0.0)
        given = batch._replace(logits=logits, targets=targets)
        targets = functional.smooth_targets(targets, self.label_smoothing)
        if known is not None:
            targets = torch.where(known, targets, 0.0)
        loss_pos, loss_neg = self.positive(logits), self._unlabelled(given)
        if pos_weight is not None:
            loss_pos = pos_weight.to(loss_pos.dtype) * loss_pos
        # y l+ + (1 - y) l-, exact at 0 and 1, in one operator instead of four.
        loss = torch.lerp(loss_neg, loss_pos, targets)
        if known is not None:
            loss = torch.where(known, loss, 0.0)
        if class_weight is not None:
            loss = class_weight.to(loss.dtype) * loss
        return loss

    def _unlabelled(self, batch: PairBatch) -> Tensor:
        """Return what an entry costs where it is not labelled: its negative term, corrected."""
        loss_neg: Tensor = self.negative(batch.logits)
        if self.verified_negative is not None and batch.verified is not None:
            verified = self.verified_negative(batch.logits)
            loss_neg = torch.where(batch.verified, verified, loss_neg)
        if self.correction is None:
            return loss_neg
        keep, pseudo = self.correction(batch, loss_neg)
        pseudo_positive = self.positive if self.pseudo_positive is None else self.pseudo_positive
        loss_neg = keep * loss_neg + pseudo * pseudo_positive(batch.logits)
        extra = self.correction.extra_loss(batch)
        return loss_neg if extra is None else loss_neg + extra

    def evaluate(self, batch: PairBatch) -> Tensor:
        """Return the reduced loss: by the compiled kernel on the CPU, or by the formula."""
        logits, targets, verified = batch.logits, batch.targets, batch.verified
        class_weight, pos_weight = self._buffers["class_weight"], self._buffers["pos_weight"]
        described = None
        if kernel.runs_on(logits, targets, class_weight, pos_weight):
            described = self._kernel_form(logits)
        if described is None:
            return super().evaluate(batch)
        form, weights = described
        needs_grad = torch.is_grad_enabled() and logits.requires_grad
        plain, labels = logits.contiguous(), targets.float().contiguous()
        selected, correction = None, self._modules.get("correction")
        if isinstance(correction, SelectiveCorrection):
            limit = correction.limit(batch.epoch)
            if limit is None:
                self.check_targets(targets)  # or wrong targets would be remembered
                given = batch._replace(logits=plain, targets=labels)
                selected = correction.selected(given, learning=needs_grad).contiguous()
                form.adds_pseudo_labels = correction.adds_pseudo_labels
            else:
                form.pseudo_above = limit
        divisor = self.divisor(batch, targets.numel())
        form.grad_scale = 1 / divisor
        found = kernel.loss_and_grad(
            form,
            plain,
            labels,
            weights,
            verified=None if verified is None else verified.contiguous(),
            selected=selected,
            want_entries=self.reduction == "none",
            needs_grad=needs_grad,
        )
        if found.invalid:
            self.check_targets(targets)
        known = self.divisor(batch, max(1, found.known))
        if found.grad is not None and known != divisor:
            found.grad.mul_(divisor / known)
        value = found.entries
        if value is None:
            value = labels.new_full((), found.total / known)
        return kernel.with_gradient(logits, value, found.grad)

    def _kernel_form(self, logits: Tensor) -> tuple[kernel.LossForm, kernel.LossWeights] | None:
        """Return this loss for the kernel, or None if the kernel cannot express it."""
        parts: dict[str, Any] = self._modules  # for a small batch, attribute look-ups count
        correction = parts.get("correction")
        if correction is not None:
            selective = isinstance(correction, SelectiveCorrection)
            if not selective or not correction.selects_only():
                return None
        forms: list[kernel.KernelTerm | None] = []
        for name in ("positive", "negative", "pseudo_positive", "verified_negative"):
            part = parts.get(name)
            forms.append(None if part is None else part.kernel_form(logits))
            if part is not None and (
                forms[-1] is None or part._forward_hooks or part._forward_pre_hooks
            ):
                return None
        positive, negative, pseudo, verified = forms
        assert positive is not None
        assert negative is not None
        if any(form is not None and form.by_class is not None for form in (pseudo, verified)):
            return None
        weights = _NO_WEIGHTS
        given, numbers = self.class_weights(logits), (positive.by_class, negative.by_class)
        if given != (None, None) or numbers != (None, None):
            classes = logits.shape[-1] if logits.ndim else 1
            by_class = [
                None if weight is None else weight.float().expand(classes).contiguous()
                for weight in given
            ]
            weights = kernel.LossWeights(by_class[0], by_class[1], *numbers)
        form = kernel.LossForm(positive, negative, pseudo or positive, verified or negative)
        form.has_verified, form.smoothing = verified is not None, self.label_smoothing
        form.pseudo_above = math.inf
        return form, weights

    def class_weights(self, logits: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return ``class_weight`` and ``pos_weight``, if they fit the logits."""
        for name in ("class_weight", "pos_weight"):
            weight = self._buffers[name]  # for a small batch, attribute look-ups count
            if weight is not None:
                check_one_for_each_class(name, weight, logits)
        return self._buffers["class_weight"], self._buffers["pos_weight"]

    def extra_repr(self) -> str:
        """Show what the parts do not say."""
        smoothing = f", label_smoothing={self.label_smoothing:g}" if self.label_smoothing else ""
        return f"reduction={self.reduction!r}{smoothing}"


def with_ema_teacher(loss: Loss) -> tuple[MultiLabelLoss, EmaTeacher]:
    """Return a loss whose correction asks an EMA teacher, and that correction.

    Raises:
        ArgumentError: The loss turns no pairs into labels.
    """
    if isinstance(loss, MultiLabelLoss) and isinstance(loss.correction, SelectiveCorrection):
        teacher = EmaTeacher(loss.correction)
        return loss.with_correction(teacher), teacher
    raise ArgumentError(
        "An EMA teacher (ask_average) needs a loss that selects pairs, such as splc, splc_bounded"
        " or ll_ct, and this one selects none. Leave it out, or take another loss."
    )


def check_separable(loss: object) -> MultiLabelLoss:
    """Return the loss if it is made of terms and every entry in it stands for itself."""
    if not isinstance(loss, MultiLabelLoss) or type(loss).forward is not MultiLabelLoss.forward:
        raise ArgumentTypeError(
            f"loss must be made of terms, so that the loss of one entry is defined, but got"
            f" {type(loss).__name__}."
        )
    if not loss.independent_rows:
        raise ArgumentError(
            f"{type(loss.correction).__name__} looks at more than one entry at a time, so that the"
            " loss of one entry is not defined."
        )
    return loss


def _weight_buffer(name: str, weight: ClassWeight | None) -> Tensor | None:
    """Return the weight as a tensor, if it is one number or one row of them, not negative."""
    if weight is None:
        return None
    tensor = torch.as_tensor(weight, dtype=torch.float32).detach().clone()
    if tensor.ndim > 1:
        raise ArgumentError(
            f"{name} must be one number or one row of numbers, one for each class,"
            f" but got the shape {tuple(tensor.shape)}."
        )
    if not bool((tensor >= 0).all() and tensor.isfinite().all()):
        raise ArgumentError(f"{name} must be finite and not negative, but got {tensor.tolist()}.")
    return tensor
