"""How far the review of a class has come, and whether it is still worth the time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass

from hilltop.audit.decisions.answers import Answers, Sample, differ, resolve

RECENT = 20
"""Answers that the advice to stop looks back on."""
WORTH = 0.1
"""Share of missing labels among them below which a class is hardly worth more time."""


@dataclass(frozen=True)
class ClassProgress:
    """Counts of one class.

    Attributes:
        present: Pairs that were confirmed as missing labels.
        absent: Pairs that were confirmed as absent.
        unsure: Pairs that nobody could tell.
        disputed: Pairs that reviewers disagree on, resolved or not.
        by_reviewer: Pairs that each reviewer answered.
        ranked_present: Confirmed ones among those shown by rank.
        ranked_absent: Absent ones among those shown by rank.
        recent_present: Confirmed ones among the last answers by rank.
        recent: How many last answers that looks at, at most 20.
        sample: The answered part of the random sample.
    """

    present: int
    absent: int
    unsure: int
    disputed: int
    by_reviewer: dict[str, int]
    ranked_present: int
    ranked_absent: int
    recent_present: int
    recent: int
    sample: Sample

    @property
    def worthwhile(self) -> bool:
        """Whether the last answers speak for going on."""
        return self.recent < RECENT or self.recent_present / self.recent >= WORTH


@dataclass(frozen=True)
class _Share:
    """What one pair adds to the counts of its class."""

    outcome: str | None = None
    disputed: bool = False
    reviewers: tuple[str, ...] = ()
    ranked: str | None = None
    latest: tuple[tuple[str, str, str, bool], ...] = ()
    drawn: str | None = None

    @classmethod
    def of(cls, answers: Answers, class_name: str, image: str) -> _Share:
        votes = answers.votes(class_name, image)
        if not votes:
            return cls()
        ranked = answers.votes(class_name, image, mode="ranked")
        outcome = resolve(votes.values())
        return cls(
            outcome=outcome,
            disputed=differ(votes.values()),
            reviewers=tuple(votes),
            ranked=resolve(ranked.values()) if ranked else None,
            latest=tuple(
                (vote.time, image, reviewer, vote.answer == "present")
                for reviewer, vote in ranked.items()
                if vote.answer != "unsure"
            ),
            drawn=outcome if answers.votes(class_name, image, mode="random") else None,
        )


class RunningProgress:
    """Keeps the counts of a class as answers come and go, at the same cost however many there are.

    Example:
        >>> from hilltop.audit.decisions.store import Answer
        >>> answers, running = Answers(), RunningProgress("dog")
        >>> said = Answer("1", "1", "Ann", "2026-01-31", "a", "dog", "present", "ranked", 0.9)
        >>> for _, image in answers.take(said):
        ...     running.update(answers, image)
        >>> running.progress().present, running.progress().by_reviewer
        (1, {'Ann': 1})
    """

    def __init__(self, class_name: str) -> None:
        """Start without answers."""
        self._class_name = class_name
        self._shares: dict[str, _Share] = {}
        self._outcomes: Counter[str | None] = Counter()
        self._ranked: Counter[str | None] = Counter()
        self._drawn: Counter[str | None] = Counter()
        self._reviewers: Counter[str] = Counter()
        self._disputed = 0
        self._latest: list[tuple[str, str, str, bool]] = []

    def update(self, answers: Answers, image: str) -> None:
        """Count a pair anew, whose answers have changed."""
        before = self._shares.pop(image, _Share())
        self._add(before, -1)
        for one in before.latest:
            del self._latest[bisect_left(self._latest, one)]
        share = _Share.of(answers, self._class_name, image)
        self._add(share, 1)
        for one in share.latest:
            insort(self._latest, one)
        if share.outcome is not None:
            self._shares[image] = share

    def progress(self) -> ClassProgress:
        """Return the counts as they are now."""
        recent = [found for *_, found in self._latest[-RECENT:]]
        known = self._drawn["present"] + self._drawn["absent"]
        return ClassProgress(
            present=self._outcomes["present"],
            absent=self._outcomes["absent"],
            unsure=self._outcomes["unsure"],
            disputed=self._disputed,
            by_reviewer={name: count for name, count in self._reviewers.items() if count},
            ranked_present=self._ranked["present"],
            ranked_absent=self._ranked["absent"],
            recent_present=sum(recent),
            recent=len(recent),
            sample=Sample(
                self._drawn["present"], self._drawn["absent"], self._drawn_pairs() - known
            ),
        )

    def _drawn_pairs(self) -> int:
        return sum(count for outcome, count in self._drawn.items() if outcome is not None)

    def _add(self, share: _Share, sign: int) -> None:
        self._outcomes[share.outcome] += sign
        self._ranked[share.ranked] += sign
        self._drawn[share.drawn] += sign
        self._disputed += sign * share.disputed
        for name in share.reviewers:
            self._reviewers[name] += sign
