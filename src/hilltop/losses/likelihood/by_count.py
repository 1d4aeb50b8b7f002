"""KeptByCount: the likelihood of the paper's rule, which keeps a number of labels of an image."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from hilltop.checks import check_whole
from hilltop.losses.base import Loss
from hilltop.losses.catalogue import LOSSES
from hilltop.losses.engine import kernel
from hilltop.losses.engine.count_kernel import count_loss_and_grad
from hilltop.losses.engine.one_pass import (
    Evaluated,
    OnePass,
    needs_graph,
    slope_by_autograd,
)
from hilltop.losses.likelihood.count_rows import Rows, entries, log_chance
from hilltop.losses.likelihood.count_rule import CountRule
from hilltop.losses.likelihood.independent import KeptIndependently, warm_share
from hilltop.losses.likelihood.keep_rate import KeepRate
from hilltop.losses.reduction import Reduction, divisor, reduce
from hilltop.losses.targets import check_hard, check_inputs, compute_dtype
from hilltop.losses.watch import CollapseWatch

_LEAST_KEEP_TO_START = Fraction(1, 5)


class KeptByCount(Loss):
    r"""Likelihood of the paper's rule: of t labels, n(t) are kept, drawn without replacement.

    .. math:: L = -\sum_{O} \log p - \sum_{A} \log(1 - p)
              - \log \sum_u \frac{[n(s + u) = s]}{\binom{s + u}{s}}\; P(u),
              \qquad n(t) = \min(t, \lfloor t(1 - r) \rfloor + 1)

    O are the s labels, A the entries that a person confirmed absent, and P(u) is the probability
    that u of the remaining entries, the candidates, are present (a Poisson-binomial). It sees an
    image as a whole: one label left at r = 0.8 means one to four, whatever the classes.

    If each lost label was put back with probability a since, by a review for example (``added`` of
    the rule), fewer than s labels may have been left, and the term in front of P(u) is

    .. math:: [n \le s] \binom{s}{n} \binom{s + u}{n}^{-1} a^{s - n} (1 - a)^u, \qquad n = n(s + u)

    Without that room a second label on an image, at r = 0.8, would mean five to nine in truth.

    An entry whose target is NaN is no part of the image: the rule was applied without its class,
    and it takes no part in value, gradient and mean. An image that the rule cannot produce, such
    as one with two labels at r = 1 and ``added`` = 0, counts as complete, which is cross-entropy.
    So does an image without labels, since the rule leaves at least one.

    Args:
        rule: Which labels stay.
        warmup_epochs: During these the loss moves from cross-entropy to the likelihood.
        reduction: As in :class:`MultiLabelLoss`. With ``"none"`` the part of the loss that the
            candidates of an image share is spread over them evenly, so that sums are right.
        watch: Whether to warn when training is going flat.

    Shape:
        logits and targets ``(..., C)``; a number, or ``(..., C)`` with ``reduction="none"``.

    Raises:
        ArgumentError: A target other than 0, 1 and NaN, since labels are counted.
    """

    def __init__(
        self,
        rule: CountRule,
        *,
        warmup_epochs: int = 0,
        reduction: Reduction = "mean",
        watch: bool = True,
    ) -> None:
        """Keep the rule."""
        super().__init__(reduction=reduction)
        self.rule = rule
        self.warmup_epochs = check_whole("warmup_epochs", warmup_epochs, low=0)
        self.watch = CollapseWatch() if watch else None

    def init_loss(self) -> Loss:
        """Return, where r is above 0.8, a likelihood that expects two of three labels to be there.

        At r = 1 a single label says nothing of how many there were. The best constant is that all
        classes are present, and training stays there; where it starts instead is where it stays
        near, so a number in the middle of what data sets have is taken.
        """
        if self.rule.keep >= _LEAST_KEEP_TO_START:
            return self
        return KeptIndependently(KeepRate(2 / 3), reduction=self.reduction, watch=False)

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
        # Without reduction an entry depends on all logits of its image, which one slope hides.
        if needs_graph(logits) or self.reduction == "none":
            check_hard(targets)
            values = self._entries(logits, targets, observed).to(compute_dtype(logits))
            return reduce(values, targets, self.reduction)
        needs_grad = torch.is_grad_enabled() and logits.requires_grad

        def evaluate(logits: Tensor) -> Evaluated:
            if _kernel_runs(logits):
                return self._by_kernel(logits, targets, observed, needs_grad)
            return self._by_autograd(logits, targets, observed, needs_grad)

        return OnePass.apply(logits, evaluate)  # type: ignore[no-any-return]

    def posterior(
        self, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
    ) -> Tensor:
        """Return the probability that each entry is really present.

        Labels are 1, confirmed absents 0, unknown (NaN) entries the model's own probability.

        Example:
            >>> model = kept_by_count(r=1)  # of two labels, one stays
            >>> model.posterior(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 0.0]))
            tensor([1.0000, 0.3333])
        """
        check_inputs(logits, targets, observed)
        check_hard(targets)
        with torch.inference_mode(False), torch.enable_grad():
            # Clones: what was made in inference mode cannot take part in a gradient.
            seen = None if observed is None else observed.clone()
            rows = Rows.of(logits.detach().clone(), targets.detach().clone(), seen)
            leaf = rows.logits.requires_grad_()
            (lost,) = torch.autograd.grad(log_chance(self.rule, rows).sum(), leaf)
        with torch.no_grad():
            present = torch.where(rows.labels, 1.0, torch.where(rows.candidates, lost, 0.0))
            present = torch.where(rows.known, present, torch.sigmoid(logits.to(present.dtype)))
            return present.view(logits.shape).to(compute_dtype(logits))

    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that are probably labels."""
        if not _kernel_runs(logits):
            return (self.posterior(logits, targets, observed=observed) > 0.5) & (targets == 0)
        # The slope by a candidate's logit is its probability without the labels, less that with
        # them. Rounded to single precision, but far sooner than the posterior.
        check_inputs(logits, targets, observed)
        x, y, seen = _rows(logits, targets, observed)
        result = count_loss_and_grad(self.rule, 1.0, x, y, seen, needs_grad=True)
        if result.invalid:
            check_hard(targets)
        assert result.slope is not None
        probable = torch.sigmoid(x) - result.slope > 0.5
        if result.hard is not None:
            confirmed = None if seen is None else seen[result.hard]
            hard = self.posterior(x[result.hard], y[result.hard], observed=confirmed)
            probable[result.hard] = hard > 0.5
        candidates = (y == 0) if seen is None else (y == 0) & ~seen
        return (probable & candidates).view(logits.shape)

    def _entries(self, logits: Tensor, targets: Tensor, observed: Tensor | None) -> Tensor:
        warmed: Tensor | float = 1.0
        if self.warmup_epochs:  # a tensor, so that it can change in compiled code
            warmed = (self.epoch / self.warmup_epochs).clamp(max=1.0)
        return entries(self.rule, Rows.of(logits, targets, observed), warmed).view(logits.shape)

    def _by_autograd(
        self, logits: Tensor, targets: Tensor, observed: Tensor | None, needs_grad: bool
    ) -> Evaluated:
        """Loss and slope together, on any device."""
        check_hard(targets)
        dtype = compute_dtype(logits)
        values, slope = slope_by_autograd(
            lambda leaf: self._entries(leaf, targets, observed), logits.to(dtype), needs_grad
        )
        parts = divisor(targets, self.reduction)
        loss = reduce(values, targets, self.reduction).to(dtype)
        return Evaluated(loss, slope, None if parts is None else 1 / parts)

    def _by_kernel(
        self, logits: Tensor, targets: Tensor, observed: Tensor | None, needs_grad: bool
    ) -> Evaluated:
        """Loss and slope together, by the compiled kernel; rows too hard for it by torch."""
        x, y, seen = _rows(logits, targets, observed)
        warmed = warm_share(int(self.epoch), self.warmup_epochs) if self.warmup_epochs else 1.0
        result = count_loss_and_grad(self.rule, warmed, x, y, seen, needs_grad=needs_grad)
        if result.invalid:
            check_hard(targets)
        total, slope = result.total, result.slope
        if result.hard is not None:
            hard = result.hard
            labels, confirmed = y[hard], None if seen is None else seen[hard]
            values, slopes = slope_by_autograd(
                lambda leaf: self._entries(leaf, labels, confirmed), x[hard], needs_grad
            )
            total += float(values.sum())
            if slope is not None and slopes is not None:
                slope[hard] = slopes
        parts = divisor(targets, self.reduction, known=result.known)
        scale = None if parts is None else 1 / float(parts)
        loss = logits.new_full((), total * (scale or 1.0), dtype=torch.float32)
        return Evaluated(loss, None if slope is None else slope.view(logits.shape), scale)

    def extra_repr(self) -> str:
        """Show the rule."""
        added = f", added={self.rule.added:g}" if self.rule.added else ""
        return f"r={1 - self.rule.keep}{added}, reduction={self.reduction!r}"


@LOSSES.register("kept_by_count")
def kept_by_count(
    *,
    r: float | str | Fraction = 0.8,
    added: float = 0.0,
    warmup_epochs: int = 0,
    reduction: Reduction = "mean",
    watch: bool = True,
) -> KeptByCount:
    r"""Likelihood of the paper's rule: of t labels, floor(t (1 - r)) + 1 were kept.

    .. math:: L = -\sum_{O} \log p - \sum_{A} \log(1 - p)
              - \log \sum_u \frac{[n(s + u) = s]}{\binom{s + u}{s}}\; P(u)

    See :class:`KeptByCount` for the terms. Labels are counted, so targets are 0, 1 or NaN. There
    are no class weights: the likelihood of an image is no sum over classes.

    Args:
        r: The missing ratio; 0.5, 0.8 and 1 are "75% left", "40% left" and "single label".
        added: Chance that a lost label was put back since, by a review for example.
        warmup_epochs: During these the loss moves from cross-entropy to the likelihood.
        reduction: ``"mean"``, ``"sum"``, ``"batchmean"`` or ``"none"``.
        watch: Whether to warn when training is going flat.

    Example:
        >>> loss = kept_by_count(r=1, reduction="sum")
        >>> loss(torch.zeros(1, 2), torch.tensor([[1, 0]]))  # -log(1/2) - log(1/2 + 1/2 * 1/2)
        tensor(0.9808)
    """
    rule = CountRule.of(r, added=added)
    return KeptByCount(rule, warmup_epochs=warmup_epochs, reduction=reduction, watch=watch)


def _rows(
    logits: Tensor, targets: Tensor, observed: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return a batch as the kernel takes it: an image a row, in single precision."""
    shape = (-1, logits.shape[-1] if logits.ndim else 1)
    x, y = (part.detach().float().reshape(shape).contiguous() for part in (logits, targets))
    return x, y, None if observed is None else observed.reshape(shape).contiguous()


def _kernel_runs(logits: Tensor) -> bool:
    fast = logits.is_cpu and logits.dtype != torch.float64 and logits.numel() > 0
    return fast and kernel.library() is not None
