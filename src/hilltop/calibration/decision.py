"""From probabilities of truth to tags: thresholds for what a person wants, and what to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hilltop.calibration.arrays import Floats
from hilltop.calibration.expected import GRID, Expected, ExpectedCounts
from hilltop.checks import check_choice, check_number
from hilltop.errors import ArgumentError

Goal = Literal["balanced_f1", "class_f1", "f1", "precision", "recall", "tags"]

OWN_LABELS = 5.0
"""True labels of a class at which its own threshold counts as much as that of all classes."""
MOST_TAGS = 3.0
"""Tags of a class for each of its true labels, at most, where F1 is the goal: a class that nothing
is known of would have the best F1 if all images were given it."""
_ROUNDS = 8  # of a search that is done after three or four


@dataclass(frozen=True)
class Decision:
    """Thresholds, and what may be expected of them.

    Attributes:
        goal: What they were chosen for.
        wanted: The precision, recall or number of tags that was asked for.
        logits: Logit of the probability of truth above which a label is said, for each class;
            infinity for never.
        expected: What they give, all classes together.
        by_class: Expected precision, recall and F1 of each class ``(3, C)``.
    """

    goal: Goal
    wanted: float | None
    logits: Floats
    expected: Expected
    by_class: Floats

    @property
    def thresholds(self) -> Floats:
        """Probabilities of truth above which a label is said ``(C,)``."""
        return probability(self.logits)

    def describe(self) -> str:
        """Say what was chosen and what to expect, in a sentence."""
        share = f"{100 * (self.wanted or 0):g}%"
        aims = {
            "balanced_f1": "the best F1 of all tags and of each class, in the mean",
            "class_f1": "the best F1 of each class",
            "f1": "the best F1 of all classes together",
            "precision": f"a precision of at least {share}",
            "recall": f"a recall of at least {share}",
            "tags": f"{self.wanted or 0:g} tags an image",
        }
        never = int(np.isinf(self.logits).sum())
        if never == len(self.logits):
            return f"thresholds for {aims[self.goal]}, which no class reaches: there are no tags"
        said = f"thresholds for {aims[self.goal]}; expected: {self.expected}"
        if never:
            said += f"; {never:,} of {len(self.logits):,} classes do not reach it: never tagged"
        return said


def decide(
    counts: ExpectedCounts, goal: Goal = "balanced_f1", *, wanted: float | None = None
) -> Decision:
    """Choose thresholds by what may be expected of them.

    Args:
        counts: Of calibrated scores.
        goal: ``balanced_f1``, the best mean of the F1 of all tags (OF1) and the mean F1 of classes
            (CF1); ``class_f1``, the best F1 of each class; thresholds of both are drawn towards the
            common one where labels are few; ``f1``, one threshold with the best F1 of all;
            ``precision`` or ``recall``, the threshold of each class that just reaches it; ``tags``,
            one threshold with so many tags an image.
        wanted: The precision, the recall or the number of tags.

    Raises:
        ArgumentError: The goal is unknown, or what is wanted is missing or out of range.
    """
    check_choice("goal", goal, get_args(Goal))
    _check_wanted(goal, wanted)
    classes = len(counts.accepted)
    if goal == "balanced_f1":
        logits = _drawn_together(counts, _balanced(counts))
    elif goal == "class_f1":
        logits = _drawn_together(counts, _best(counts))
    elif goal == "f1":
        logits = np.full(classes, _best(counts.pooled())[0])
    elif goal == "precision":
        logits = _reaching_precision(counts, float(wanted or 0))
    elif goal == "recall":
        logits = _reaching_recall(counts, float(wanted or 0))
    else:
        tags = counts.pooled().accepted[0] / max(1, counts.rows)
        logits = np.full(classes, np.interp(-float(wanted or 0), -tags, GRID))
    return Decision(goal, wanted, logits, counts.expect(logits), _by_class(counts, logits))


def probability(logits: Floats) -> Floats:
    """The sigmoid; 1 at infinity."""
    probs: Floats = 0.5 * (1 + np.tanh(logits / 2))
    return probs


def _check_wanted(goal: str, wanted: float | None) -> None:
    if goal in ("balanced_f1", "class_f1", "f1"):
        if wanted is not None:
            raise ArgumentError(f"wanted does not belong to the goal {goal!r}.")
        return
    if wanted is None:
        raise ArgumentError(f"The goal {goal!r} needs a number: wanted.")
    if goal == "tags":
        check_number("wanted", wanted, low=0, low_open=True)
    else:
        check_number("wanted", wanted, low=0, high=1, low_open=True)


def _best(counts: ExpectedCounts) -> Floats:
    """The logit at which the F1 of each class is best."""
    best: Floats = GRID[_sensible_f1(counts).argmax(axis=1)]
    return best


def _sensible_f1(counts: ExpectedCounts) -> Floats:
    """The F1 of each class at each threshold; below 0 where too many images would be given it."""
    allowed = counts.accepted <= MOST_TAGS * np.maximum(counts.present[1], 1.0)[:, None]
    f1: Floats = np.where(allowed, counts.f1(), -1.0)
    return f1


def _balanced(counts: ExpectedCounts) -> Floats:
    r"""The logits with the best mean of both F1 scores.

    .. math:: \max_t \; \frac{\sum_c 2 h_c}{\sum_c (a_c + n_c)} + \frac{1}{C} \sum_c F_c

    With a_c accepted, h_c of them true, n_c true labels. The first part is a share: its best v is
    where the sum of 2 h_c - v (a_c + n_c) is, class by class (Dinkelbach's method).
    """
    f1, classes = _sensible_f1(counts), np.arange(len(counts.accepted))
    at = f1.argmax(axis=1)
    for _ in range(_ROUNDS):
        whole = max(1e-9, counts.accepted[classes, at].sum() + counts.present[1].sum())
        share = 2 * counts.hits[1][classes, at].sum() / whole
        overall = (2 * counts.hits[1] - share * counts.accepted) / whole
        at = np.where(f1 < 0, -np.inf, overall + f1 / len(classes)).argmax(axis=1)
    best: Floats = GRID[at]
    return best


def _drawn_together(counts: ExpectedCounts, best: Floats) -> Floats:
    """Thresholds of classes with few labels are nearer to the common one."""
    common = _best(counts.pooled())[0]
    own = counts.present[1] / (counts.present[1] + OWN_LABELS)
    drawn: Floats = common + own * (best - common)
    return drawn


def _reaching_precision(counts: ExpectedCounts, wanted: float) -> Floats:
    """The lowest threshold of each class with that precision; infinity if there is none."""
    # A class without any pair above a threshold has no precision there to speak of.
    shares = np.divide(
        counts.hits[1], counts.accepted, out=np.zeros_like(counts.accepted),
        where=counts.accepted >= 1,
    )  # fmt: skip
    return np.array([_first(line >= wanted) for line in shares])


def _reaching_recall(counts: ExpectedCounts, wanted: float) -> Floats:
    """The highest threshold of each class with that recall; the lowest of all if there is none."""
    shares = counts.hits[1] / np.maximum(counts.present[1], 1e-9)[:, None]
    below = [np.flatnonzero(line >= wanted) for line in shares]
    return np.array([GRID[found[-1]] if len(found) else GRID[0] for found in below])


def _first(reached: np.ndarray) -> float:
    found = np.flatnonzero(reached)
    return float(GRID[found[0]]) if len(found) else float("inf")


def _by_class(counts: ExpectedCounts, logits: Floats) -> Floats:
    """Precision, recall and F1 of each class in the middle case."""
    accepted, hits = counts.at(logits)
    wholes = (accepted, counts.present[1], (accepted + counts.present[1]) / 2)
    return np.stack([hits[1] / np.maximum(whole, 1e-9) for whole in wholes])
