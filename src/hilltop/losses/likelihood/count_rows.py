"""The counted likelihood in torch: differentiable, for any device, and safe at any logit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.losses.base import PairBatch
from hilltop.losses.engine.one_pass import traced
from hilltop.losses.likelihood.count_rule import CountRule
from hilltop.losses.likelihood.poisson_binomial import IMPOSSIBLE, log_elementary_sums


@dataclass(frozen=True)
class ImageRows:
    """A batch, sorted into what the likelihood treats differently; every tensor is ``(..., C)``.

    Attributes:
        logits: In float64, 0 where the target is unknown.
        known: False where the target is NaN; such entries are no part of the image.
        labels: Labelled present.
        absents: Confirmed absent by a person.
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
        logits, targets, observed = batch.logits, batch.targets, batch.observed
        if not logits.ndim:
            logits, targets = logits.unsqueeze(0), targets.unsqueeze(0)
            observed = None if observed is None else observed.unsqueeze(0)
        # Logarithms reach the sum of all logits; float32 would round them by more than 0.01 at
        # logits of 10,000, and the posterior with them. Apple's GPUs have nothing better.
        exact = torch.float32 if logits.device.type == "mps" else torch.float64
        known = targets == targets  # NaN differs from itself
        labels, unlabelled = targets == 1, targets == 0
        absents = torch.zeros_like(known) if observed is None else unlabelled & observed
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
    complete = torch.tensor([bool(rule.restore_prob) or rule.kept(n) == n for n in numbers])
    rise = torch.tensor([rule.log_rise(number) for number in numbers], dtype=torch.float64)
    high = torch.minimum(allowed.to(left.device)[left], candidates)
    # Weights grow by at most e^rise, so if u starts at 0, all beyond the tail changes the sum by at
    # most e^rise P(in the tail) / P(before it), which Bernstein's inequality puts below e^-34.
    expected = torch.where(rows.candidates, torch.sigmoid(rows.logits.detach()), 0.0).sum(dim=-1)
    third = (34 + rise.to(expected)[left]) / 3
    tail = expected + third + (third * third + 6 * third * expected).sqrt() + 1
    short = complete.to(left.device)[left] & (tail < high)
    return int(torch.where(short, tail.to(high.dtype), high).max())
