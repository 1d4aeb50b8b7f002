"""KeptByCount: the likelihood of the paper's rule, which keeps a number of labels of an image."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from hilltop.checks import check_whole
from hilltop.losses.base import Loss, PairBatch, SumUp
from hilltop.losses.catalogue import LOSSES, MethodCard
from hilltop.losses.engine import count_device, kernel
from hilltop.losses.engine.count_kernel import count_loss_and_grad
from hilltop.losses.engine.one_pass import Evaluated, Summed, grad_by_autograd, needs_graph
from hilltop.losses.likelihood.count_rows import ImageRows, image_entries, log_likelihood
from hilltop.losses.likelihood.count_rule import CountRule
from hilltop.losses.likelihood.independent import KeptIndependently, warm_share
from hilltop.losses.likelihood.keep_rate import KeepRate
from hilltop.losses.reduction import Reduction
from hilltop.losses.targets import check_hard, compute_dtype

_LEAST_KEEP_TO_START = Fraction(1, 5)


class KeptByCount(Loss):
    r"""Likelihood of the paper's rule: of t labels, n(t) are kept, drawn without replacement.

    .. math:: L = -\sum_{O} \log p - \sum_{A} \log(1 - p)
              - \log \sum_u \frac{[n(s + u) = s]}{\binom{s + u}{s}}\; P(u),
              \qquad n(t) = \min(t, \lfloor t(1 - r) \rfloor + 1)

    O are the s labels, A the entries that a person confirmed absent, and P(u) is the probability
    that u of the remaining entries, the candidates, are present (a Poisson-binomial). It sees an
    image as a whole: one label left at r = 0.8 means one to four, whatever the classes.

    If each lost label was put back with probability a since, by a review for example
    (``restore_prob`` of the rule), fewer than s labels may have been left, and the term in front of
    P(u) is

    .. math:: [n \le s] \binom{s}{n} \binom{s + u}{n}^{-1} a^{s - n} (1 - a)^u, \qquad n = n(s + u)

    Without that room a second label on an image, at r = 0.8, would mean five to nine in truth.

    An entry whose target is NaN is no part of the image: the rule was applied without its class,
    and it takes no part in value, gradient and mean. An image that the rule cannot produce, such
    as one with two labels at r = 1 and ``restore_prob`` = 0, counts as complete, which is
    cross-entropy. So does an image without labels, since the rule leaves at least one.

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

    counts_labels = can_go_flat = True

    def __init__(
        self,
        rule: CountRule,
        *,
        warmup_epochs: int = 0,
        reduction: Reduction = "mean",
        watch: bool = True,
    ) -> None:
        """Keep the rule."""
        super().__init__(reduction=reduction, watch=watch)
        self.rule = rule
        self.warmup_epochs = check_whole("warmup_epochs", warmup_epochs, low=0)

    def init_loss(self) -> Loss:
        """Return, where r is above 0.8, a likelihood that expects two of three labels to be there.

        At r = 1 a single label says nothing of how many there were. The best constant is that all
        classes are present, and training stays there; where it starts instead is where it stays
        near, so a number in the middle of what data sets have is taken.
        """
        if self.rule.keep >= _LEAST_KEEP_TO_START:
            return self
        return KeptIndependently(KeepRate(2 / 3), reduction=self.reduction, watch=False)

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the loss of every entry; what the candidates of an image share, spread evenly."""
        warmed: Tensor | float = 1.0
        if self.warmup_epochs:  # a tensor, so that it can change in compiled code
            warmed = (batch.epoch / self.warmup_epochs).clamp(max=1.0)
        return image_entries(self.rule, ImageRows.of(batch), warmed).view(batch.logits.shape)

    def evaluate(self, batch: PairBatch) -> Tensor:
        """Return the reduced loss; on a device without reduction, too, without waiting for it."""
        logits, targets, observed = batch[:3]
        opaque = self.reduction == "none" and not needs_graph(logits, targets)
        if not opaque or not count_device.counts_on(logits):
            return super().evaluate(batch)
        entries: Tensor = count_device.CountEntries.apply(
            logits, targets, observed, lambda needs_grad: self._on_device(batch, needs_grad)
        )
        return entries

    def kernel(self, batch: PairBatch) -> SumUp | None:
        """Return what sums the loss up in compiled code, where that runs."""
        # Without reduction an entry depends on all logits of its image: one gradient hides that.
        if self.reduction == "none":
            return None
        if count_device.counts_on(batch.logits):
            return lambda needs_grad: Evaluated(*self._on_device(batch, needs_grad))
        if not _kernel_runs(batch.logits):
            return None
        return lambda needs_grad: self._sum_by_kernel(batch, needs_grad)

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
        return self._posterior(self.batch(logits, targets, observed))

    def _posterior(self, batch: PairBatch) -> Tensor:
        logits = batch.logits
        check_hard(batch.targets)
        with torch.inference_mode(False), torch.enable_grad():
            # Clones: what was made in inference mode cannot take part in a gradient.
            seen = None if batch.observed is None else batch.observed.clone()
            copied = PairBatch(logits.detach().clone(), batch.targets.detach().clone(), seen)
            rows = ImageRows.of(copied)
            leaf = rows.logits.requires_grad_()
            (lost,) = torch.autograd.grad(log_likelihood(self.rule, rows).sum(), leaf)
        with torch.no_grad():
            present = torch.where(rows.labels, 1.0, torch.where(rows.candidates, lost, 0.0))
            present = torch.where(rows.known, present, torch.sigmoid(logits.to(present.dtype)))
            return present.view(logits.shape).to(compute_dtype(logits))

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return True for unlabelled entries that are probably labels."""
        if not _kernel_runs(batch.logits):
            return (self._posterior(batch) > 0.5) & (batch.targets == 0)
        # The gradient by a candidate's logit is its probability without the labels, less that with
        # them. Rounded to single precision, but far sooner than the posterior.
        rows = batch.rows()
        result = count_loss_and_grad(self.rule, 1.0, rows, needs_grad=True)
        if result.invalid:
            check_hard(batch.targets)
        assert result.grad is not None
        probable = torch.sigmoid(rows.logits) - result.grad > 0.5
        if result.hard is not None:
            probable[result.hard] = self._posterior(rows.at(result.hard)) > 0.5
        return (probable & rows.candidates()).view(batch.logits.shape)

    def _on_device(
        self, batch: PairBatch, needs_grad: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        seen = self.checks.seen(batch.logits.device)
        form = count_device.CountForm.of(self.rule, self.warmup_epochs)
        return count_device.count_loss_on_device(form, batch, seen, self.reduction, needs_grad)

    def _sum_by_kernel(self, batch: PairBatch, needs_grad: bool) -> Summed:
        """Loss and gradient together, by the compiled kernel; rows too hard for it by torch."""
        rows = batch.rows()
        warmed = warm_share(int(batch.epoch), self.warmup_epochs) if self.warmup_epochs else 1.0
        result = count_loss_and_grad(self.rule, warmed, rows, needs_grad=needs_grad)
        if result.invalid:
            check_hard(batch.targets)
        total, grad = result.total, result.grad
        if result.hard is not None:
            hard = rows.at(result.hard)
            values, grads = grad_by_autograd(
                lambda leaf: self.entries(hard.with_logits(leaf)), hard.logits, needs_grad
            )
            total += float(values.sum())
            if grad is not None and grads is not None:
                grad[result.hard] = grads
        grad = None if grad is None else grad.view(batch.logits.shape)
        return Summed(total, grad, known=result.known)

    def extra_repr(self) -> str:
        """Show the rule."""
        chosen = self.rule.restore_prob
        restored = f", restore_prob={chosen:g}" if chosen else ""
        return f"r={1 - self.rule.keep}{restored}, reduction={self.reduction!r}"


@LOSSES.register(
    "kept_by_count",
    MethodCard(
        unlabelled="absent, or labels not written down",
        remark="likelihood of the paper's rule: of t labels, floor(t (1 - r)) + 1 are kept",
        when=(
            "When annotators wrote down one or a few labels and stopped, however many there"
            " were. It also says how probable it is that a label is missing."
        ),
    ),
)
def kept_by_count(
    *,
    r: float | str | Fraction = 0.8,
    restore_prob: float = 0.0,
    warmup_epochs: int = 0,
    reduction: Reduction = "mean",
    watch: bool = True,
) -> KeptByCount:
    r"""Likelihood of the paper's rule: of t labels, floor(t (1 - r)) + 1 were kept.

    .. math:: L = -\sum_{O} \log p - \sum_{A} \log(1 - p)
              - \log \sum_u \frac{[n(s + u) = s]}{\binom{s + u}{s}}\; P(u)

    In the words of PU learning this is not SCAR: the propensity with which a true label was written
    down, n(t) / t, depends on how many the image has. See :class:`KeptByCount` for the terms.

    Labels are counted, so targets are 0, 1 or NaN. There are no class weights: the likelihood of an
    image is no sum over classes.

    Args:
        r: The missing ratio; 0.5, 0.8 and 1 are "75% left", "40% left" and "single label".
        restore_prob: Probability that a lost label was put back since, by a review for example.
        warmup_epochs: During these the loss moves from cross-entropy to the likelihood.
        reduction: ``"mean"``, ``"sum"``, ``"batchmean"`` or ``"none"``.
        watch: Whether to warn when training is going flat.

    Example:
        >>> loss = kept_by_count(r=1, reduction="sum")
        >>> loss(torch.zeros(1, 2), torch.tensor([[1, 0]]))  # -log(1/2) - log(1/2 + 1/2 * 1/2)
        tensor(0.9808)
    """
    rule = CountRule.of(r, restore_prob=restore_prob)
    return KeptByCount(rule, warmup_epochs=warmup_epochs, reduction=reduction, watch=watch)


def _kernel_runs(logits: Tensor) -> bool:
    fast = logits.is_cpu and logits.dtype != torch.float64 and logits.numel() > 0
    return fast and kernel.library() is not None
