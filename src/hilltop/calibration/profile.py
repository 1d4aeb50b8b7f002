"""How probable the labels are at each keep rate: a curve for every class, and their common mean.

Scores are those of classifiers that never saw the labels they are asked about. If every true label
was written down with probability c, labels follow c times a calibrated probability: where a class
is certain, the share of labels saturates at c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.calibration.scaling import SHIFT_SPREAD, SLOPE_SPREAD, Calibration

Floats = npt.NDArray[np.float64]

LOG_KEEP: Floats = np.linspace(0.0, -3.0, 21)
"""Logarithms of the keep rates that are tried: 1 ("nothing is missing"), 0.86, ... 0.05."""
BLUR = 0.35
"""How far off the curve of a class may be, in log keep: calibration is never exact."""
SPREADS = (0.15, 0.4, 0.8)
"""How far log keep may differ between classes, about."""
EXTRA_NATS = 4.0
"""What more spread than the least must gain."""
_MOST_ENTRIES = 1_000_000
_FURTHEST = 30.0


@dataclass(frozen=True)
class Profile:
    """Cost of the labels at every keep rate.

    Attributes:
        costs: Negative log likelihood of the labels of each class ``(rates, C)``.
        slopes: Slope of the calibration at each rate ``(rates,)``.
        shifts: Its shift for each class ``(rates, C)``.
    """

    costs: Floats
    slopes: Floats
    shifts: Floats

    def calibration(self, log_keep: Floats) -> Calibration:
        """Return the calibration for a keep rate of each class, from the nearest that was tried."""
        at = np.abs(LOG_KEEP[:, None] - log_keep).argmin(axis=0)
        shift = self.shifts[at, np.arange(len(at))]
        return Calibration(
            torch.from_numpy(self.slopes[at]).float(), torch.from_numpy(shift).float()
        )


@dataclass(frozen=True)
class KeepRates:
    """Keep rates of classes, drawn together by what all of them say.

    Attributes:
        mean: Mean of log keep of each class.
        std: Its standard deviation.
        spread: How far classes differ.
    """

    mean: Floats
    std: Floats
    spread: float


@torch.no_grad()
def profile(logits: Tensor, targets: Tensor, *, observed: Tensor | None = None) -> Profile:
    """Find the cost of the labels at every keep rate, with scores calibrated anew at each.

    Args:
        logits: Scores that never saw these labels ``(N, C)``; about a million are looked at.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
        observed: True where a person confirmed that a pair is absent.
    """
    every = max(1, -(-logits.numel() // _MOST_ENTRIES))
    logits, targets = logits[::every].float(), targets[::every].float()
    known = (~targets.isnan()).float()
    targets = targets.nan_to_num()
    observed = None if observed is None else observed[::every]
    place = torch.zeros(logits.shape[1] + 2)
    costs, slopes, shifts = [], [], []
    for log_keep in LOG_KEEP.tolist():
        cost, place = _calibrated(logits, targets, observed, known, log_keep, place)
        costs.append(every * cost)
        slopes.append(float(place[0].exp()))
        shifts.append((place[1] + place[2:]).double().numpy())
    return Profile(np.array(costs), np.array(slopes), np.array(shifts))


def _calibrated(
    logits: Tensor,
    targets: Tensor,
    observed: Tensor | None,
    known: Tensor,
    log_keep: float,
    start: Tensor,
) -> tuple[Floats, Tensor]:
    """Cost by class at one keep rate, and log slope, shift and shifts of classes it is least at."""
    place = start.clone().requires_grad_()
    search = torch.optim.LBFGS(
        [place],
        max_iter=25,
        line_search_fn="strong_wolfe",
        tolerance_change=1e-2,
        tolerance_grad=1e-2,
    )
    log_lost = torch.full((), math.log(-math.expm1(log_keep)) if log_keep < 0 else -math.inf)
    if observed is not None:
        log_lost = torch.where(observed & (targets == 0), -math.inf, log_lost)
    by_class: list[Tensor] = []

    @torch.no_grad()  # the search switches gradients on
    def value() -> float:
        slope = place[0].exp()
        moved = (logits * slope + place[1] + place[2:]).clamp(-_FURTHEST, _FURTHEST)
        hidden = moved + log_lost
        # -log of c p for a label, of 1 - c p for none; no matter how small 1 - c is.
        cost = F.softplus(moved) - targets * (moved + log_keep) - (1 - targets) * F.softplus(hidden)
        grad = torch.sigmoid(moved) - targets - (1 - targets) * torch.sigmoid(hidden)
        cost, grad = cost * known, grad * known
        prior = (place[2:] / SHIFT_SPREAD).square() / 2
        by_class[:] = [cost.sum(dim=0, dtype=torch.float64) + prior]
        sums = grad.sum(dim=0)
        place.grad = torch.cat(
            [
                ((grad * logits).sum() * slope + place[0] / SLOPE_SPREAD**2).view(1),
                sums.sum().view(1),
                sums + place[2:] / SHIFT_SPREAD**2,
            ]
        )
        return float(by_class[0].sum() + (place[0] / SLOPE_SPREAD).square() / 2)

    search.step(value)  # type: ignore[no-untyped-call]
    value()
    found: Floats = by_class[0].numpy()
    return found, place.detach().clone()


def shrink(costs: Floats) -> KeepRates:
    r"""Draw the keep rates of classes together: empirical Bayes on their likelihood curves.

    .. math:: \log c_j \sim N(\mu, \tau), \qquad \max_{\mu, \tau} \sum_j \log \sum_c P(c) L_j(c)

    Args:
        costs: Of each class at each of :data:`LOG_KEEP` ``(rates, C)``.
    """
    blur = np.exp(-0.5 * ((LOG_KEEP[:, None] - LOG_KEEP) / BLUR) ** 2)
    likelihood = (blur / blur.sum(axis=1, keepdims=True)) @ np.exp(costs.min(axis=0) - costs)
    best, best_fit, best_spread = np.ones_like(LOG_KEEP), -math.inf, SPREADS[0]
    for spread in SPREADS:
        for centre in LOG_KEEP:
            prior = np.exp(-0.5 * ((LOG_KEEP - centre) / spread) ** 2)
            prior /= prior.sum()
            fit = np.log(prior @ likelihood + 1e-300).sum() - EXTRA_NATS * (spread > SPREADS[0])
            if fit > best_fit:
                best, best_fit, best_spread = prior, fit, spread
    posterior = best[:, None] * likelihood
    posterior /= posterior.sum(axis=0)
    mean = LOG_KEEP @ posterior
    return KeepRates(mean, np.sqrt(LOG_KEEP**2 @ posterior - mean**2), best_spread)
