"""The count likelihood: of t labels of an image the paper's rule left n(t), whichever they were."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.checks import check_whole
from hilltop.deprecation import renamed_arguments
from hilltop.losses.base import Loss, PairBatch, Reduction
from hilltop.losses.catalogue import LOSSES
from hilltop.losses.engine import kernel
from hilltop.losses.likelihood.count_rule import IMPOSSIBLE, CountRule, log_elementary_sums
from hilltop.losses.likelihood.scar import LabelFrequency, ScarLikelihood
from hilltop.losses.tracing import traced

_LEAST_LEFT_TO_START = Fraction(1, 5)


class CountLikelihood(Loss):
    r"""Likelihood of the paper's rule: of t labels, n(t) are left, drawn without replacement.

    .. math:: L = -\sum_{O} \log p - \sum_{A} \log(1 - p)
              - \log \sum_u \frac{[n(s + u) = s]}{\binom{s + u}{s}}\; P(u),
              \qquad n(t) = \min(t, \lfloor t(1 - r) \rfloor + 1)

    O are the s labels, A the entries that a person verified to be absent, and P(u) is the
    probability that u of the remaining entries, the candidates, are present (a Poisson-binomial).
    It sees an image as a whole: one label left at r = 0.8 means one to four, whatever the classes.

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
        watch: Whether to warn when training saturates.
        safe_start: Whether training begins with :class:`SafeStart`.

    Shape:
        logits and targets ``(..., C)``; a number, or ``(..., C)`` with ``reduction="none"``.

    Raises:
        ArgumentError: A target other than 0, 1 and NaN, since labels are counted.
    """

    can_saturate = True
    takes_soft_targets = False  # labels are counted

    def __init__(
        self,
        rule: CountRule,
        *,
        warmup_epochs: int = 0,
        reduction: Reduction = "mean",
        watch: bool = True,
        safe_start: bool = True,
    ) -> None:
        """Store the rule."""
        super().__init__(reduction=reduction, watch=watch, safe_start=safe_start)
        self.rule = rule
        self.warmup_epochs = check_whole("warmup_epochs", warmup_epochs, low=0)

    def init_loss(self) -> Loss:
        """Return, where r is above 0.8, a likelihood that expects two of three labels to be there.

        At r = 1 a single label says nothing of how many there were. The best constant is that all
        classes are present, and training stays there; where it starts instead is where it stays
        near, so a number in the middle of what data sets have is taken.
        """
        if self.rule.left_ratio >= _LEAST_LEFT_TO_START:
            return self
        frequency = LabelFrequency(2 / 3)
        return ScarLikelihood(frequency, reduction=self.reduction, watch=False, safe_start=False)

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the loss of every entry; what the candidates of an image share, spread evenly."""
        warmed: Tensor | float = 1.0
        if self.warmup_epochs:  # a tensor, so that it can change in compiled code
            warmed = (torch.as_tensor(batch.epoch) / self.warmup_epochs).clamp(max=1.0)
        return image_entries(self.rule, ImageRows.of(batch), warmed).view(batch.logits.shape)

    def evaluate(self, batch: PairBatch) -> Tensor:
        """Return the reduced loss: by the compiled kernel on the CPU, or by the formula."""
        # Without reduction an entry depends on all logits of its image: one gradient hides that.
        if self.reduction == "none" or not kernel.runs_on(batch.logits, batch.targets):
            return super().evaluate(batch)
        logits = batch.logits
        needs_grad = torch.is_grad_enabled() and logits.requires_grad
        found, rows = self._run_kernel(batch, needs_grad=needs_grad)
        total, grad = found.total, found.grad
        if found.hard is not None:  # rows whose likelihood is too small for the kernel
            hard = rows.at(found.hard)
            with torch.enable_grad():
                leaf = hard.logits.requires_grad_()
                values = self.entries(hard.with_logits(leaf)).sum()
                if grad is not None:
                    (grad[found.hard],) = torch.autograd.grad(values, leaf)
            total += float(values.detach())
        count = self.divisor(batch, max(1, found.known))
        value = rows.targets.new_full((), total / count)
        if grad is not None:
            grad = (grad if count == 1 else grad.div_(count)).view(logits.shape)
        return kernel.with_gradient(logits, value, grad)

    def _run_kernel(
        self, batch: PairBatch, *, needs_grad: bool
    ) -> tuple[kernel.KernelResult, PairBatch]:
        """Return what the kernel found, and the batch as it saw it: an image a row, in float32."""
        shape = (-1, batch.logits.shape[-1] if batch.logits.ndim else 1)
        parts = (part.detach().float() for part in (batch.logits, batch.targets))
        logits, targets = (part.reshape(shape).contiguous() for part in parts)
        verified = None if batch.verified is None else batch.verified.reshape(shape).contiguous()
        share = min(1.0, int(batch.epoch) / self.warmup_epochs) if self.warmup_epochs else 1.0
        found = kernel.count_loss_and_grad(
            self.rule.left_ratio,
            self.rule.restore_prob,
            share,
            logits,
            targets,
            verified,
            needs_grad=needs_grad,
        )
        if found.invalid:
            self.check_targets(batch.targets)
        return found, PairBatch(logits, targets, verified, epoch=batch.epoch)

    @renamed_arguments(observed="verified")
    def posterior(
        self, logits: Tensor, targets: Tensor, *, verified: Tensor | None = None
    ) -> Tensor:
        """Return the probability that each entry is really present.

        Labels are 1, verified absent entries 0, unknown (NaN) entries the model's own probability.

        Example:
            >>> model = count_likelihood(r=1)  # of two labels, one stays
            >>> model.posterior(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 0.0]))
            tensor([1.0000, 0.3333])
        """
        return self._posterior(self.batch(logits, targets, verified))

    def _posterior(self, batch: PairBatch) -> Tensor:
        logits = batch.logits
        self.check_targets(batch.targets)
        with torch.inference_mode(False), torch.enable_grad():
            # Clones: what was made in inference mode cannot take part in a gradient.
            seen = None if batch.verified is None else batch.verified.clone()
            copied = PairBatch(logits.detach().clone(), batch.targets.detach().clone(), seen)
            rows = ImageRows.of(copied)
            leaf = rows.logits.requires_grad_()
            (lost,) = torch.autograd.grad(log_likelihood(self.rule, rows).sum(), leaf)
        with torch.no_grad():
            present = torch.where(rows.labels, 1.0, torch.where(rows.candidates, lost, 0.0))
            present = torch.where(rows.known, present, torch.sigmoid(logits.to(present.dtype)))
            return present.view(logits.shape).to(logits.dtype)

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return True for unlabelled entries that are probably labels."""
        if not kernel.runs_on(batch.logits):
            return (self._posterior(batch) > 0.5) & (batch.targets == 0)
        # The gradient by a candidate's logit is its probability without the labels, less that with
        # them. Rounded to single precision, but far sooner than the posterior.
        found, rows = self._run_kernel(batch._replace(epoch=self.warmup_epochs), needs_grad=True)
        assert found.grad is not None
        probable = torch.sigmoid(rows.logits) - found.grad > 0.5
        if found.hard is not None:
            probable[found.hard] = self._posterior(rows.at(found.hard)) > 0.5
        return (probable & rows.candidates()).view(batch.logits.shape)

    def extra_repr(self) -> str:
        """Show the rule."""
        chosen = self.rule.restore_prob
        restored = f", restore_prob={chosen:g}" if chosen else ""
        return f"r={self.rule.missing_ratio}{restored}, reduction={self.reduction!r}"


@LOSSES.register("count_likelihood")
def count_likelihood(
    *,
    r: float | str | Fraction = 0.8,
    restore_prob: float = 0.0,
    warmup_epochs: int = 0,
    reduction: Reduction = "mean",
    watch: bool = True,
    safe_start: bool = True,
) -> CountLikelihood:
    r"""Likelihood of the paper's rule: of t labels, floor(t (1 - r)) + 1 were left.

    .. math:: L = -\sum_{O} \log p - \sum_{A} \log(1 - p)
              - \log \sum_u \frac{[n(s + u) = s]}{\binom{s + u}{s}}\; P(u)

    In the words of PU learning this is not SCAR: the propensity with which a true label was
    recorded, n(t) / t, depends on how many the image has. :class:`CountLikelihood` explains the
    terms.

    Labels are counted, so targets are 0, 1 or NaN. There are no class weights: the likelihood of an
    image is no sum over classes.

    Assumption:
        Unlabelled entries are absent, or present and not recorded.

    When to use:
        When annotators recorded one or a few labels and stopped, however many there were. It also
        says how probable it is that a label is missing.

    Args:
        r: The missing ratio; 0.5, 0.8 and 1 are "75% left", "40% left" and "single label".
        restore_prob: Probability that a lost label was put back since, by a review for example.
        warmup_epochs: During these the loss moves from cross-entropy to the likelihood.
        reduction: ``"mean"``, ``"sum"``, ``"batchmean"`` or ``"none"``.
        watch: Whether to warn when training saturates.
        safe_start: Whether training begins with :class:`SafeStart`.

    Example:
        >>> loss = count_likelihood(r=1, reduction="sum")
        >>> loss(torch.zeros(1, 2), torch.tensor([[1, 0]]))  # -log(1/2) - log(1/2 + 1/2 * 1/2)
        tensor(0.9808)
    """
    rule = CountRule.of(r, restore_prob=restore_prob)
    return CountLikelihood(
        rule,
        warmup_epochs=warmup_epochs,
        reduction=reduction,
        watch=watch,
        safe_start=safe_start,
    )


@dataclass(frozen=True)
class ImageRows:
    """A batch, sorted into what the likelihood treats differently; every tensor is ``(..., C)``.

    Attributes:
        logits: In float64, 0 where the target is unknown.
        known: False where the target is NaN; such entries are no part of the image.
        labels: Labelled present.
        absents: Verified to be absent by a person.
        candidates: Neither: each may be a label that was lost.
    """

    logits: Tensor
    known: Tensor
    labels: Tensor
    absents: Tensor
    candidates: Tensor

    @classmethod
    def of(cls, batch: PairBatch) -> ImageRows:
        """Sort a batch."""
        logits, targets, verified = batch.logits, batch.targets, batch.verified
        if not logits.ndim:
            logits, targets = logits.unsqueeze(0), targets.unsqueeze(0)
            verified = None if verified is None else verified.unsqueeze(0)
        # Logarithms reach the sum of all logits; float32 would round them by more than 0.01 at
        # logits of 10,000, and the posterior with them. Apple's GPUs have nothing better.
        exact = torch.float32 if logits.device.type == "mps" else torch.float64
        known = targets == targets  # NaN differs from itself
        labels, unlabelled = targets == 1, targets == 0
        absents = torch.zeros_like(known) if verified is None else unlabelled & verified
        logits = torch.where(known, logits.to(exact), 0.0)
        return cls(logits, known, labels, absents, unlabelled & ~absents)


def log_likelihood(rule: CountRule, rows: ImageRows) -> Tensor:
    r"""Return :math:`\log \sum_u w(u)\, e_u`, which is log L without the factors 1 - p.

    Its gradient by a candidate's logit is the probability that this candidate is a lost label.

    Shape:
        rows ``(..., C)`` to ``(...)``.
    """
    left, candidates = rows.labels.sum(dim=-1), rows.candidates.sum(dim=-1)
    most = _most_missing(rule, rows, left, candidates)
    weights = rule.log_weights(left, candidates, most, rows.logits.dtype)
    log_odds = torch.where(rows.candidates, rows.logits, IMPOSSIBLE)
    return torch.logsumexp(weights + log_elementary_sums(log_odds, most), dim=-1)


def image_entries(rule: CountRule, rows: ImageRows, warmed: Tensor | float) -> Tensor:
    """Return the loss of every entry; the part that the candidates share is spread over them.

    Args:
        rule: Which labels stay.
        rows: The batch.
        warmed: How much of the loss is the likelihood; the rest is cross-entropy.
    """
    positive, negative = -F.logsigmoid(rows.logits), -F.logsigmoid(-rows.logits)
    own = torch.where(rows.labels, positive, torch.where(rows.absents, negative, 0.0))
    cross_entropy = torch.where(rows.candidates, negative, 0.0).sum(dim=-1)
    # Two large numbers may differ by less than their rounding; a loss is not negative.
    shared = (cross_entropy - warmed * log_likelihood(rule, rows)).clamp(min=0.0)
    share = shared / rows.candidates.sum(dim=-1).clamp(min=1)
    return own + torch.where(rows.candidates, share.unsqueeze(-1), 0.0)


def _most_missing(rule: CountRule, rows: ImageRows, left: Tensor, candidates: Tensor) -> int:
    """The largest number of lost labels that needs to be looked at."""
    classes = rows.logits.shape[-1]
    if traced():
        return rule.most_missing_ever(classes)  # values cannot be looked at
    if not left.numel():
        return 0
    numbers = range(int(left.max()) + 1)
    allowed = torch.tensor([rule.most_missing(number, among=classes) for number in numbers])
    complete = torch.tensor([bool(rule.restore_prob) or rule.number_left(n) == n for n in numbers])
    rise = torch.tensor([rule.log_rise(number) for number in numbers], dtype=torch.float64)
    high = torch.minimum(allowed.to(left.device)[left], candidates)
    # Weights grow by at most e^rise, so if u starts at 0, all beyond the tail changes the sum by at
    # most e^rise P(in the tail) / P(before it), which Bernstein's inequality puts below e^-34.
    expected = torch.where(rows.candidates, torch.sigmoid(rows.logits.detach()), 0.0).sum(dim=-1)
    third = (34 + rise.to(expected)[left]) / 3
    tail = expected + third + (third * third + 6 * third * expected).sqrt() + 1
    short = complete.to(left.device)[left] & (tail < high)
    return int(torch.where(short, tail.to(high.dtype), high).max())
