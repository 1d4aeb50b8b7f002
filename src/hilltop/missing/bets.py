"""Bets that prove linear statements about a finite population from answers in random order.

``docs/promises.md`` states the theorem. Everything here is for many problems at once, because a
promise tries many thresholds, and classes and curves are further problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from hilltop.missing import priors
from hilltop.missing.answers import Flags
from hilltop.missing.logistic import Floats

_ENTRIES_AT_ONCE = 4_000_000
_TINY, _HUGE = 1e-12, 1e12
_ROOT_2_PI = 2.5066282746
_EVERY = 25  # draws after which what is decided is set aside
_LOST = 0.02  # wealth below which a bet is given up, which proves nothing


@dataclass(frozen=True, eq=False)
class Claims:
    r"""Statements :math:`D = \sum_i v_i \ge 0` that are to be proven; ``(H,)`` each.

    Attributes:
        mean: D, if the guesses of all that is open were right.
        weight: Sum of the weights of what may be drawn.
        worst: By how much an answer may be below its guess, divided by its weight, at most.
        scale: Standard deviation of one draw, if the guesses were right.
    """

    mean: Floats
    weight: Floats
    worst: Floats
    scale: Floats


@dataclass(frozen=True, eq=False)
class Draws:
    """What was drawn, in its order.

    Attributes:
        gain: By how much the answer exceeds its guess ``(n, H)``; NaN where a claim is not about
            what was drawn.
        weight: Weight that it was drawn with ``(n,)``.
        ends: Numbers of draws after which batches of questions end; the last one is at least n.
        replaced: Whether what was drawn could be drawn again.
    """

    gain: Floats
    weight: Floats
    ends: tuple[int, ...]
    replaced: bool = False

    def values(self, weight: Floats) -> Floats:
        """What each draw says of D beyond the guess, whatever the guesses are ``(n, H)``."""
        gain, drawn = np.nan_to_num(self.gain), self.weight[:, None]
        if self.replaced:
            return gain * weight / drawn
        left = np.maximum(weight - np.cumsum(drawn, axis=0) + drawn, drawn)
        found: Floats = np.cumsum(gain, axis=0) - gain + gain * left / drawn
        return found


def proven(problems: Sequence[tuple[Claims, Draws]], delta: float) -> list[Flags]:
    r"""Which claims of each problem are proven: a bet on each of them reached 1/delta.

    Before draw k everything that is left comes next with probability :math:`q_i = w_i / W`, so that

    .. math:: Z_k = \sum_{seen} v + \sum_{left} m + (v_I - m_I) / q_I

    has the mean D, whatever the guesses m are. Where D < 0, wealth that is multiplied by
    :math:`1 + \lambda_k Z_k` with :math:`0 \le \lambda_k \le 1 / -\min Z_k` chosen before the
    draw does not grow on average, and reaches 1/delta with probability delta at most (Ville).
    """
    found: list[Flags] = []
    for group in _groups(problems):
        found += _Bets(group).run(delta)
    return found


def _groups(
    problems: Sequence[tuple[Claims, Draws]],
) -> Iterator[Sequence[tuple[Claims, Draws]]]:
    """Problems that are worked on together, in their order and in bounded memory."""
    group: list[tuple[Claims, Draws]] = []
    height = length = 1
    for claims, draws in problems:
        taller, longer = max(height, len(claims.mean)), max(length, len(draws.weight))
        if group and (len(group) + 1) * taller * longer > _ENTRIES_AT_ONCE:
            yield group
            group, taller, longer = [], len(claims.mean), max(1, len(draws.weight))
        group.append((claims, draws))
        height, length = taller, longer
    if group:
        yield group


class _Bets:
    """Bets on all claims of some problems side by side, one entry for each claim ``(E,)``."""

    def __init__(self, group: Sequence[tuple[Claims, Draws]]) -> None:
        """Lay the problems side by side; shorter ones end with draws that no claim is about."""
        self._sizes = [len(claims.mean) for claims, _ in group]
        length = max(len(draws.weight) for _, draws in group)
        self.mean, self.weight, self.worst, scale = (
            np.concatenate([getattr(claims, name) for claims, _ in group]).astype(np.float64)
            for name in ("mean", "weight", "worst", "scale")
        )
        self.problem = np.repeat(np.arange(len(group)), self._sizes)
        self.gains = np.full((length, len(self.mean)), np.nan)
        self.drawn, self.left = np.ones((2, length, len(group)))
        self.renewed = np.zeros((length, len(group)), dtype=bool)
        ends = np.cumsum([0, *self._sizes])
        for at, (_, draws) in enumerate(group):
            count = len(draws.weight)
            self.gains[:count, ends[at] : ends[at + 1]] = draws.gain
            self.drawn[:count, at] = draws.weight
            for first, last in pairwise((0, *draws.ends)):
                mine = np.arange(first, min(last, count))
                self.left[mine, at] = last - mine
                self.renewed[mine[:1], at] = first > 0
        self.keep = np.array([draws.replaced for _, draws in group])[self.problem]
        # Of the draws of a batch, a claim is about the share that its weight is of the largest.
        largest = np.array([claims.weight.max(initial=_TINY) for claims, _ in group])
        self.share = self.weight / np.maximum(largest, _TINY)[self.problem]
        self.squares = priors.BET_PRIOR * scale**2
        self.seen = np.full(len(self.mean), priors.BET_PRIOR)
        self.entry = np.arange(len(self.mean))

    def run(self, delta: float) -> list[Flags]:
        """Bet, and return which claims of each problem are proven."""
        shares = np.asarray(priors.BET_SHARES)[:, None]
        reserve, number = priors.BET_RESERVE, len(shares)
        self.bold = np.full(len(self.mean), 1 - reserve)
        self.careful = np.full((number, len(self.mean)), reserve / number)
        proven_ = np.zeros(len(self.mean), dtype=bool)
        done = self.mean - self.weight * self.worst >= 0
        first = 0  # the draw that stands first in gains
        for k in range(len(self.drawn)):
            whole = self.bold + self.careful.sum(axis=0)
            if k % _EVERY == 0:  # what is proven, or all but lost, needs no more bets
                proven_[self.entry[done]] = True
                self._keep_entries(~done & (whole > _LOST), k - first)
                first, done = k, np.zeros(len(self.entry), dtype=bool)
                whole = self.bold + self.careful.sum(axis=0)
                if not len(self.entry):
                    break
            if self.renewed[k].any():  # another batch: what is left is divided anew
                one = self.renewed[k][self.problem]
                self.bold = np.where(one, (1 - reserve) * whole, self.bold)
                self.careful = np.where(one, reserve * whole / number, self.careful)
            gain, drawn = self.gains[k - first], self.drawn[k][self.problem]
            active = ~np.isnan(gain)
            gain = np.where(active, gain, 0.0)
            most = 1 / np.maximum(self.weight * self.worst - self.mean, _TINY)
            surprise = gain * self.weight / drawn
            z = np.where(active, self.mean + surprise, 0.0)
            sigma = np.sqrt(np.maximum(self.squares / self.seen, _TINY))
            # The hedge of an option that pays 1 / delta at the end of the batch, or nothing.
            chance = np.clip(delta * self.bold, _TINY, 1 - 1e-9)
            wager = np.exp(-0.5 * ndtri(chance) ** 2) / (_ROOT_2_PI * chance * sigma)
            wager /= np.sqrt(np.maximum(self.left[k][self.problem] * self.share, 1.0))
            wager = np.minimum(wager, priors.BET_MOST * most)
            self.bold = np.minimum(self.bold * np.maximum(1 + wager * z, 0.0), _HUGE)
            gained = np.maximum(1 + shares * (z * most), 0.0)
            self.careful = np.minimum(self.careful * gained, _HUGE)
            done |= self.bold + self.careful.sum(axis=0) >= 1 / delta
            self.squares = self.squares + z * z
            self.seen = self.seen + active
            self.mean = np.where(self.keep, self.mean, self.mean + gain)
            left = np.maximum(self.weight - drawn, 0.0)
            self.weight = np.where(self.keep | ~active, self.weight, left)
            done |= (self.mean - self.weight * self.worst >= 0) & ~self.keep
        proven_[self.entry[done]] = True
        return np.split(proven_, np.cumsum(self._sizes)[:-1])

    def _keep_entries(self, kept: Flags, passed: int) -> None:
        """Go on with some entries alone, after some draws."""
        for name in ("mean", "weight", "worst", "problem", "keep", "share", "squares", "seen"):
            setattr(self, name, getattr(self, name)[kept])
        self.bold, self.entry = self.bold[kept], self.entry[kept]
        self.careful, self.gains = self.careful[:, kept], self.gains[passed:, kept]
