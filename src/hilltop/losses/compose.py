"""MultiLabelLoss: the one sum over halves, corrections and weights (Eq. 1)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hilltop.checks import check_choice, check_number
from hilltop.errors import ArgumentError
from hilltop.losses import kernel
from hilltop.losses.correction import Correction
from hilltop.losses.half import NegativeHalf, PositiveHalf
from hilltop.losses.one_pass import (
    Evaluated,
    OnePass,
    autograd_must_see_inside,
    slope_by_autograd,
)
from hilltop.losses.reduction import REDUCTIONS, Reduction, divisor, reduce
from hilltop.losses.targets import check_device, check_inputs, check_values, compute_dtype

ClassWeight = Tensor | Sequence[float]


class MultiLabelLoss(nn.Module):
    r"""Any positive half with any negative half and any correction.

    .. math:: L = \sum y\,\ell^+(x) + (1 - y)\,[keep\;\ell^-(x) + flip\;\ell^{rec}(x)]

    Every row of the paper's ablations is one line: ``MultiLabelLoss(positive=LogPositive(),
    negative=HillNegative())`` is its "Hill-". Called like ``torch.nn.BCEWithLogitsLoss``.

    Args:
        positive: The half for entries labelled present.
        negative: The half for entries not labelled.
        correction: Which unlabelled entries to take for missing labels; None takes none.
        recovered: The half for those; None uses ``positive``.
        reduction: ``"mean"`` over entries, ``"sum"`` (the paper), ``"batchmean"`` (sum over
            classes, mean over images) or ``"none"``.
        label_smoothing: The eps that turns targets 1 and 0 into 1 - eps and eps.
        class_weight: One factor for each class, on both halves.
        pos_weight: One factor for each class, on the positive half alone.

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

    epoch: Tensor
    class_weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        *,
        positive: PositiveHalf,
        negative: NegativeHalf,
        correction: Correction | None = None,
        recovered: PositiveHalf | None = None,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        class_weight: ClassWeight | None = None,
        pos_weight: ClassWeight | None = None,
    ) -> None:
        """Check and keep the parts."""
        super().__init__()
        self.positive, self.negative, self.correction = positive, negative, correction
        self.recovered = positive if recovered is None else recovered
        self.reduction: Reduction = reduction
        check_choice("reduction", reduction, REDUCTIONS)
        self.label_smoothing = check_number("label_smoothing", label_smoothing, low=0, high=0.5)
        self.register_buffer("class_weight", _weights("class_weight", class_weight))
        self.register_buffer("pos_weight", _weights("pos_weight", pos_weight))
        self.register_buffer("epoch", torch.zeros((), dtype=torch.long))
        self._learns = any(True for _ in self.parameters())
        self._weighted = class_weight is not None or pos_weight is not None

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins, counting from 0. Some corrections wait for it."""
        self.epoch.fill_(int(check_number("epoch", epoch, low=0)))

    def with_correction(self, correction: Correction) -> MultiLabelLoss:
        """Return a copy of this loss that uses ``correction``."""
        corrected = copy.deepcopy(self)
        corrected.correction = correction
        corrected._learns = any(True for _ in corrected.parameters())
        return corrected

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            logits: Raw model output.
            targets: 1 for labelled, 0 for not labelled, NaN for "leave out"; soft values too.
            observed: True where a person confirmed the target; such entries are not corrected.
            index: Row numbers of the batch in the data set, for corrections that remember.
        """
        check_inputs(logits, targets, observed)
        if self._weighted:
            self._check_weights(logits)
        if self._learns or autograd_must_see_inside(logits, targets):
            check_values(targets)
            entries = self._entries(logits, targets, observed, index)
            return reduce(entries, targets, self.reduction)

        def evaluate(logits: Tensor, want_slope: bool) -> Evaluated:
            return self._evaluate(logits, targets, observed, index, want_slope)

        return OnePass.apply(logits, evaluate)  # type: ignore[no-any-return]

    def _entries(
        self, logits: Tensor, targets: Tensor, observed: Tensor | None, index: Tensor | None
    ) -> Tensor:
        """The equation, entry by entry; unknown entries are 0."""
        logits = logits.to(compute_dtype(logits))
        targets = targets.to(logits.dtype)
        known = targets == targets  # NaN differs from itself
        targets = torch.where(known, targets, 0.0)
        targets = targets * (1 - 2 * self.label_smoothing) + self.label_smoothing
        loss_pos, loss_neg = self.positive(logits), self.negative(logits)
        if self.correction is not None:
            keep, flip = self.correction(
                logits, loss_neg, observed=observed, epoch=self.epoch, index=index
            )
            loss_neg = keep * loss_neg + flip * self.recovered(logits)
        if self.pos_weight is not None:
            loss_pos = self.pos_weight * loss_pos
        weight = 1.0 if self.class_weight is None else self.class_weight
        return torch.where(known, weight * (targets * loss_pos + (1 - targets) * loss_neg), 0.0)

    def _evaluate(
        self,
        logits: Tensor,
        targets: Tensor,
        observed: Tensor | None,
        index: Tensor | None,
        want_slope: bool,
    ) -> Evaluated:
        """Loss and slope together: by the compiled kernel where it can, else by autograd."""
        fused = self._fused(logits)
        if fused is None:
            check_values(targets)
            entries, slope = slope_by_autograd(
                lambda leaf: self._entries(leaf, targets, observed, index),
                logits.to(compute_dtype(logits)),
                want_slope,
            )
            parts = divisor(targets, self.reduction)
            loss = reduce(entries, targets, self.reduction)
            return Evaluated(loss, slope, None if parts is None else 1 / parts)
        result = kernel.loss_and_slope(
            fused,
            logits.float().contiguous(),
            targets.float().contiguous(),
            None if observed is None else observed.contiguous(),
            *self._float_weights(),
            want_entries=self.reduction == "none",
            want_slope=want_slope,
        )
        if result.invalid:
            check_values(targets)
        if result.entries is not None:
            return Evaluated(result.entries, result.slope, None)
        parts = divisor(targets, self.reduction, known=result.known)
        total = result.total if parts is None else result.total / float(parts)
        return Evaluated(torch.full((), total), result.slope, None if parts is None else 1 / parts)

    def _fused(self, logits: Tensor) -> kernel.FusedLoss | None:
        """This loss for the compiled kernel, or None if the kernel cannot run it."""
        if logits.dtype == torch.float64 or not logits.is_cpu or kernel.library() is None:
            return None
        classes = logits.shape[-1] if logits.ndim else 1
        positive, negative = self.positive.fused(classes), self.negative.fused(classes)
        recovered = positive
        flip_above: float | None = math.inf
        if self.correction is not None:
            recovered = self.recovered.fused(classes)
            flip_above = self.correction.flips_above(int(self.epoch))
        if positive is None or negative is None or recovered is None or flip_above is None:
            return None
        return kernel.FusedLoss(positive, negative, recovered, flip_above, self.label_smoothing)

    def _float_weights(self) -> tuple[Tensor | None, Tensor | None]:
        """Class and positive weights in float32, also after ``loss.half()``."""
        if not self._weighted:
            return None, None
        weights = (self.class_weight, self.pos_weight)
        first, second = (None if weight is None else weight.float() for weight in weights)
        return first, second

    def _check_weights(self, logits: Tensor) -> None:
        classes = logits.shape[-1] if logits.ndim else 1
        for name, weight in (("class_weight", self.class_weight), ("pos_weight", self.pos_weight)):
            if weight is None:
                continue
            if weight.numel() != classes:
                raise ArgumentError(
                    f"{name} has {weight.numel()} entries, one for each class,"
                    f" but logits have {classes} classes in their last dimension."
                )
            check_device(name, weight, logits)


def _weights(name: str, weights: ClassWeight | None) -> Tensor | None:
    if weights is None:
        return None
    tensor = torch.as_tensor(weights, dtype=torch.float32).detach().clone()
    if tensor.ndim != 1:
        raise ArgumentError(
            f"{name} must be one row of numbers, one for each class,"
            f" but got the shape {tuple(tensor.shape)}."
        )
    if not bool((tensor >= 0).all() and tensor.isfinite().all()):
        raise ArgumentError(f"{name} must be finite and not negative, but got {tensor.tolist()}.")
    return tensor
