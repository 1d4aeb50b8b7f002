"""Labels that are wrong: which share of them in each class, and which ones probably.

Missing labels hide where scores are high and no label stands; wrong ones show where scores are
lowest and one does. There the share of labels does not sink to 0 but to a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.calibration.arrays import Floats
from hilltop.calibration.scaling import SHIFT_SPREAD, SLOPE_SPREAD, Calibration, class_levels

USUAL_RATE = 0.01
"""Share of wrong labels that is expected before anything is seen."""
RATE_SPREAD, OWN_RATE_SPREAD = 1.5, 0.1
"""How far off that may be, and how far rates of classes lie apart, as standard deviations of log
odds. Classes whose scores are poor look as if more of their labels were wrong: given more freedom,
they would come before all others."""
LEVELLED = 0.5
"""How far classes are brought to one level of suspicion: a class whose labels all have low scores
has a weak head rather than many wrong labels."""
LEAST_NATS = 4.0
"""By how much a floor must explain the labels better before any of them is said to be wrong."""
_MOST_ENTRIES = 400_000
_FURTHEST = 30.0


@dataclass(frozen=True)
class FalseLabels:
    """How labels became wrong, as far as scores tell.

    Attributes:
        rates: Share of the labels of each class that is wrong.
        any_wrong: Whether the labels show that some are; otherwise rates are what would go
            unnoticed.
        floor: Probability that an absent class is written down, for each class.
        keep: Probability that a present one is.
        calibration: How logits become those of probabilities.
        level: What is added to the log odds of each class to bring them nearer to one level.
    """

    rates: Floats
    any_wrong: bool
    floor: Tensor
    keep: Tensor
    calibration: Calibration
    level: Tensor

    def wrong_probability(self, logits: Tensor) -> Tensor:
        r"""Return how probable it is that each pair, if it is a label, is a wrong one.

        .. math:: P(\text{absent} \mid \text{written})
            = \frac{\epsilon (1 - q)}{c q + \epsilon (1 - q)}

        with log odds moved by the level of the class.

        Args:
            logits: Scores that never saw the labels ``(N, C)``.
        """
        moved = self.calibration(logits.float()).clamp(-_FURTHEST, _FURTHEST)
        return torch.sigmoid(self.floor.log() - self.keep.log() - moved + self.level)

    def levelled(self, logits: Tensor, labelled: Tensor) -> FalseLabels:
        """Bring classes half way to the same mean log odds over their labels; the sum stays.

        Args:
            logits: Scores that never saw the labels ``(N, C)``.
            labelled: 1 for labels that count, else 0.
        """
        probs = self.wrong_probability(logits).double()
        odds, labelled = torch.logit(probs, eps=1e-12), labelled.double()
        number = labelled.sum(dim=0)
        mean = (odds * labelled).sum(dim=0) / number.clamp(min=1)
        common = (mean * number).sum() / number.sum().clamp(min=1)
        level = torch.where(number > 0, LEVELLED * (common - mean), 0.0)
        total, low, high = (probs * labelled).sum(), -_FURTHEST, _FURTHEST
        for _ in range(50):
            middle = (low + high) / 2
            above = (torch.sigmoid(odds + level + middle) * labelled).sum() > total
            low, high = (low, middle) if above else (middle, high)
        return replace(self, level=(level + high).float())


def find_false_labels(
    logits: Tensor, targets: Tensor, keep: Tensor, *, observed: Tensor | None = None
) -> FalseLabels:
    r"""Fit the probability of being written down, with a floor for each class.

    .. math:: P(\text{written}) = c \, q + \epsilon \, (1 - q), \qquad
        q = \sigma(a (x - m_j) + m_j + b_j)

    with the level m of each class, see :func:`~hilltop.calibration.scaling.class_levels`.

    Args:
        logits: Scores that never saw these labels ``(N, C)``; at most 400,000 are looked at.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
        keep: Share of the true labels of each class that was written down.
        observed: True where a person confirmed the target; such pairs say nothing of mistakes.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits = 4 * torch.randn(4000, 2, generator=generator) - 2
        >>> true = torch.rand(4000, 2, generator=generator) < torch.sigmoid(logits)
        >>> wrong = ~true & (torch.rand(4000, 2, generator=generator) < 0.04)
        >>> found = find_false_labels(logits, (true | wrong).float(), torch.ones(2))
        >>> share = (wrong.sum() / (true | wrong).sum()).item()
        >>> found.any_wrong, bool((abs(found.rates - share) < 0.03).all())
        (True, True)
    """
    every = max(1, -(-logits.numel() // _MOST_ENTRIES))
    fit = _Fit.of(logits[::every], targets[::every], keep, observed, every)
    numbers = fit.minimize(floored=True)
    gain = fit.loss(fit.minimize(floored=False), floored=False) - fit.loss(numbers, floored=True)
    found = FalseLabels(
        rates=np.zeros(logits.shape[1]),
        any_wrong=float(gain) * every > LEAST_NATS,
        floor=fit.floor(numbers),
        keep=fit.keep,
        calibration=fit.calibration(numbers),
        level=torch.zeros(logits.shape[1]),
    ).levelled(fit.logits, fit.targets * fit.known)
    return replace(found, rates=fit.rates(found.wrong_probability(fit.logits)))


@dataclass(frozen=True)
class _Fit:
    """Places: log odds of the rate, log slope, shift, then rate and shift of each class in turn."""

    logits: Tensor
    targets: Tensor
    known: Tensor
    keep: Tensor
    share: Tensor
    levels: Tensor

    @classmethod
    def of(
        cls, logits: Tensor, targets: Tensor, keep: Tensor, observed: Tensor | None, every: int
    ) -> _Fit:
        known = ~targets.isnan()
        if observed is not None:
            known &= ~observed[::every]
        labels = targets.nan_to_num().float()
        share = (labels.sum(dim=0) + 0.5) / (known.sum(dim=0) + 1)
        keep, levels = keep.float().clamp(1e-3, 1.0), class_levels(logits.float(), known)
        return cls(logits.float(), labels, known.float(), keep, share, levels)

    def minimize(self, *, floored: bool) -> Tensor:
        numbers = torch.zeros(3 + 2 * self.logits.shape[1])
        numbers[0] = math.log(USUAL_RATE)
        numbers.requires_grad_()
        search = torch.optim.LBFGS([numbers], max_iter=60, line_search_fn="strong_wolfe")

        def value() -> Tensor:
            search.zero_grad()
            total = self.loss(numbers, floored=floored)
            total.backward()  # type: ignore[no-untyped-call]
            return total

        with torch.enable_grad():
            search.step(value)  # type: ignore[no-untyped-call]
        return numbers.detach()

    def floor(self, numbers: Tensor) -> Tensor:
        """Probability that an absent class is written down: a share of the labels there are."""
        return torch.sigmoid(numbers[0] + numbers[3::2]) * self.share

    def rates(self, wrong: Tensor) -> Floats:
        """Mean over the labels of each class of the probability that they are wrong."""
        labelled = self.targets * self.known
        mean = (wrong * labelled).sum(dim=0) / labelled.sum(dim=0).clamp(min=1)
        rates: Floats = mean.double().numpy()
        return rates

    def calibration(self, numbers: Tensor) -> Calibration:
        slope = float(numbers[1].clamp(-3.0, 3.0).exp())
        return Calibration.about(self.levels, slope, numbers[2] + numbers[4::2])

    def loss(self, numbers: Tensor, *, floored: bool) -> Tensor:
        """Negative log likelihood of the labels, with priors."""
        slope = numbers[1].clamp(-3.0, 3.0).exp()
        moved = (self.logits - self.levels) * slope + self.levels + numbers[2] + numbers[4::2]
        moved = moved.clamp(-_FURTHEST, _FURTHEST)
        kept = F.logsigmoid(moved) + self.keep.log()
        written = kept
        if floored:
            written = torch.logaddexp(kept, F.logsigmoid(-moved) + self.floor(numbers).log())
        unwritten = torch.log1p(-written.exp().clamp(max=1 - 1e-6))
        cost = -(self.targets * written + (1 - self.targets) * unwritten) * self.known
        prior = ((numbers[0] - math.log(USUAL_RATE)) / RATE_SPREAD).square()
        prior = prior + (numbers[3::2] / OWN_RATE_SPREAD).square().sum()
        prior = prior + (numbers[1] / SLOPE_SPREAD).square()
        prior = prior + (numbers[4::2] / SHIFT_SPREAD).square().sum()
        return cost.sum() + prior / 2
