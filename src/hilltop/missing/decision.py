"""From probabilities of truth to tags: thresholds for what a person wants, and what to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from hilltop.checks import check_choice, check_number
from hilltop.errors import ArgumentError
from hilltop.missing import priors
from hilltop.missing.interval import Z_90, Interval
from hilltop.missing.logistic import Floats

Goal = Literal["balanced_f1", "class_f1", "f1", "precision", "recall", "tags"]
GRID: Floats = np.linspace(-8.0, 8.0, 161)
"""Log odds of the thresholds that are tried."""
_ROUNDS = 8  # of a search that is done after three or four


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """How many predictions thresholds give, and how many of them are right.

    Scenarios are equally probable assumptions about the label frequency.

    Attributes:
        accepted: Entries of each class above each threshold of ``GRID`` ``(C, thresholds)``.
        hits: How many of them are true, in each scenario ``(scenarios, C, thresholds)``.
        present: True labels of each class, in each scenario ``(scenarios, C)``.
        rows: Images.
    """

    accepted: Floats
    hits: Floats
    present: Floats
    rows: int = 0

    @classmethod
    def of(cls, log_odds: Floats, total: Floats, probs: Floats) -> ExpectedCounts:
        """Count groups of entries.

        Args:
            log_odds: What thresholds apply to ``(groups, C)``.
            total: Entries in each group.
            probs: Probability of truth of each group, in each scenario.
        """
        classes = log_odds.shape[1]
        above = np.ceil((log_odds - GRID[0]) / (GRID[1] - GRID[0])).clip(0, len(GRID))
        at = (np.arange(classes) * (len(GRID) + 1) + above.astype(np.int64)).ravel()

        def sums(values: Floats) -> Floats:
            size = classes * (len(GRID) + 1)
            counted = np.bincount(at, values.ravel(), size).reshape(classes, -1)
            return counted[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]

        hits = np.stack([sums(total * one) for one in probs])
        present = np.stack([(total * one).sum(axis=0) for one in probs])
        return cls(sums(total), hits, present)

    def pooled(self) -> ExpectedCounts:
        """All classes as one."""
        return ExpectedCounts(
            self.accepted.sum(axis=0, keepdims=True),
            self.hits.sum(axis=1, keepdims=True),
            self.present.sum(axis=1, keepdims=True),
            self.rows,
        )

    def f1(self) -> Floats:
        """Expected F1 of each class at each threshold, the mean over scenarios."""
        both = self.accepted + self.present[:, :, None]
        f1: Floats = (2 * self.hits / np.maximum(both, 1e-9)).mean(axis=0)
        return f1

    def at(self, log_odds: Floats) -> tuple[Floats, Floats]:
        """Accepted and right predictions at a threshold of each class ``(C,)``, ``(S, C)``."""
        place = np.clip((log_odds - GRID[0]) / (GRID[1] - GRID[0]), 0, len(GRID) - 1 - 1e-9)
        never, place = np.isinf(log_odds), np.nan_to_num(place)
        below, columns = place.astype(np.int64), np.arange(len(log_odds))
        share = place - below

        def between(table: Floats) -> Floats:
            low, high = table[..., columns, below], table[..., columns, below + 1]
            return np.where(never, 0.0, low + share * (high - low))

        return between(self.accepted), between(self.hits)


@dataclass(frozen=True)
class Expected:
    """What to expect of decisions on images like those that the model was fitted to.

    Attributes:
        precision: Share of the tags that are right.
        recall: Share of the true labels that are found.
        f1: Harmonic mean of both.
        tags: Tags per image.
    """

    precision: Interval
    recall: Interval
    f1: Interval
    tags: float

    def __str__(self) -> str:
        """Return a line."""
        return (
            f"precision {self.precision.share()}, recall {self.recall.share()},"
            f" F1 {self.f1.share()}, {self.tags:.1f} tags per image"
        )


@dataclass(frozen=True, eq=False)
class Decision:
    """Thresholds, and what to expect of them.

    Attributes:
        goal: What they were chosen for.
        wanted: The precision, recall or number of tags that was asked for.
        log_odds: Log odds of the truth above which a label is predicted, for each class; infinity
            for never.
        expected: Precision, recall and F1 over all classes together.
        by_class: Expected precision, recall and F1 of each class ``(3, C)``.
    """

    goal: Goal
    wanted: float | None
    log_odds: Floats
    expected: Expected
    by_class: Floats

    @property
    def thresholds(self) -> Floats:
        """Probabilities of truth above which a label is predicted ``(C,)``."""
        probs: Floats = expit(self.log_odds)
        return probs

    def describe(self) -> str:
        """Say what was chosen and what to expect, in a sentence."""
        share = f"{100 * (self.wanted or 0):g}%"
        aims = {
            "balanced_f1": "the best mean of overall F1 and per-class F1",
            "class_f1": "the best F1 of each class",
            "f1": "the best overall F1",
            "precision": f"a precision of at least {share}",
            "recall": f"a recall of at least {share}",
            "tags": f"{self.wanted or 0:g} tags per image",
        }
        never = int(np.isinf(self.log_odds).sum())
        if never == len(self.log_odds):
            return f"thresholds for {aims[self.goal]}, which no class reaches: there are no tags"
        said = f"thresholds for {aims[self.goal]}; expected: {self.expected}"
        if never:
            said += (
                f"; {never:,} of {len(self.log_odds):,} classes do not reach it and are never"
                " predicted"
            )
        return said


def decide(
    counts: ExpectedCounts, goal: Goal = "balanced_f1", *, wanted: float | None = None
) -> Decision:
    """Choose thresholds by what may be expected of them.

    The label frequency is uncertain, and F1 is far from linear in it. So F1 is averaged over
    scenarios instead of computed in the middle one.

    Args:
        counts: Of calibrated scores.
        goal: ``balanced_f1``, the best mean of overall F1 (OF1) and per-class F1 (CF1);
            ``class_f1``, the best F1 of each class; thresholds of both are shrunk towards the
            common one where labels are few; ``f1``, one threshold with the best OF1; ``precision``
            or ``recall``, the threshold of each class that just reaches it; ``tags``, one threshold
            with that many tags per image.
        wanted: The precision, the recall or the number of tags.

    Raises:
        ArgumentError: The goal is unknown, or what is wanted is missing or out of range.
    """
    check_choice("goal", goal, get_args(Goal))
    _check_wanted(goal, wanted)
    classes = len(counts.accepted)
    if goal == "balanced_f1":
        log_odds = _shrunk(counts, _balanced(counts))
    elif goal == "class_f1":
        log_odds = _shrunk(counts, GRID[_capped_f1(counts).argmax(axis=1)])
    elif goal == "f1":
        log_odds = np.full(classes, GRID[_capped_f1(counts.pooled()).argmax()])
    elif goal == "precision":
        log_odds = _reaching_precision(counts, float(wanted or 0))
    elif goal == "recall":
        log_odds = _reaching_recall(counts, float(wanted or 0))
    else:
        tags = counts.pooled().accepted[0] / max(1, counts.rows)
        log_odds = np.full(classes, np.interp(-float(wanted or 0), -tags, GRID))
    accepted, hits = counts.at(log_odds)
    mean_hits, present = hits.mean(axis=0), counts.present.mean(axis=0)
    wholes = (accepted, present, (accepted + present) / 2)
    by_class = np.stack([mean_hits / np.maximum(whole, 1e-9) for whole in wholes])
    return Decision(goal, wanted, log_odds, _expect(counts, accepted, hits), by_class)


def _expect(counts: ExpectedCounts, accepted: Floats, hits: Floats) -> Expected:
    """Precision, recall and F1 of all classes together, with the spread between scenarios."""
    tags, right, present = accepted.sum(), hits.sum(axis=1), counts.present.sum(axis=1)

    def interval(wholes: npt.ArrayLike, less: float = 0.0) -> Interval:
        shares = np.clip(right / np.maximum(wholes, 1e-9), 0.0, 1.0)
        value, reach = float(shares.mean()), Z_90 * priors.EXPECTATION_ERROR
        low = value - np.hypot(value - shares.min(), np.hypot(reach, Z_90 * less))
        high = value + np.hypot(shares.max() - value, reach)
        return Interval(value, float(max(0.0, low)), float(min(1.0, high)))

    return Expected(
        interval(np.full_like(present, tags)),
        interval(present, priors.CLEAR_FIRST_ERROR),
        interval((tags + present) / 2),
        tags / max(1, counts.rows),
    )


def _check_wanted(goal: str, wanted: float | None) -> None:
    if goal in ("balanced_f1", "class_f1", "f1"):
        if wanted is not None:
            raise ArgumentError(f"wanted does not belong to the goal {goal!r}.")
        return
    if wanted is None:
        raise ArgumentError(f"The goal {goal!r} needs a number: wanted.")
    check_number("wanted", wanted, low=0, high=np.inf if goal == "tags" else 1, low_open=True)


def _capped_f1(counts: ExpectedCounts) -> Floats:
    """Expected F1; below 0 where predictions outnumber the plausible true labels too far."""
    most = priors.MAX_TAGS * np.maximum(counts.present.max(axis=0), 1.0)
    f1: Floats = np.where(counts.accepted <= most[:, None], counts.f1(), -1.0)
    return f1


def _balanced(counts: ExpectedCounts) -> Floats:
    r"""The thresholds with the best mean of both F1 scores.

    .. math:: \max_t \; E_s \frac{\sum_c 2 h_{sc}}{\sum_c (a_c + n_{sc})}
        + \frac{1}{C} \sum_c E_s F_{sc}

    With a_c predictions, h_c of them right, n_c true labels, in scenario s. The ratio is improved
    class by class at its value so far (Dinkelbach's method).
    """
    f1, classes = _capped_f1(counts), np.arange(len(counts.accepted))
    at, present = f1.argmax(axis=1), counts.present.sum(axis=1)
    for _ in range(_ROUNDS):
        whole = np.maximum(counts.accepted[classes, at].sum() + present, 1e-9)
        share = 2 * counts.hits[:, classes, at].sum(axis=1) / whole
        weight = 1 / whole / len(whole)
        overall = 2 * np.einsum("s,sct->ct", weight, counts.hits)
        overall -= (weight * share).sum() * counts.accepted
        at = np.where(f1 < 0, -np.inf, overall + f1 / len(classes)).argmax(axis=1)
    best: Floats = GRID[at]
    return best


def _shrunk(counts: ExpectedCounts, best: Floats) -> Floats:
    """Thresholds of classes with few labels are shrunk towards the common one."""
    common, present = GRID[_capped_f1(counts.pooled()).argmax()], counts.present.mean(axis=0)
    own = present / (present + priors.SHRINK_LABELS)
    shrunk: Floats = common + own * (best - common)
    return shrunk


def _reaching_precision(counts: ExpectedCounts, wanted: float) -> Floats:
    """The lowest threshold of each class with that precision; infinity if there is none."""
    # A class without any entry above a threshold has no precision there to speak of.
    hits = counts.hits.mean(axis=0)
    shares = np.where(counts.accepted >= 1, hits / np.maximum(counts.accepted, 1.0), 0.0)
    reached = shares >= wanted
    return np.where(reached.any(axis=1), GRID[reached.argmax(axis=1)], np.inf)


def _reaching_recall(counts: ExpectedCounts, wanted: float) -> Floats:
    """The highest threshold of each class with that recall; the lowest of all if there is none."""
    present = np.maximum(counts.present.mean(axis=0), 1e-9)
    reached = counts.hits.mean(axis=0) / present[:, None] >= wanted
    last = len(GRID) - 1 - reached[:, ::-1].argmax(axis=1)
    found: Floats = np.where(reached.any(axis=1), GRID[last], GRID[0])
    return found
