"""How far the review of a class has come, and whether it is still worth the time."""

from __future__ import annotations

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

    @classmethod
    def of(cls, answers: Answers, class_name: str) -> ClassProgress:
        """Count the answers of a class."""
        outcomes: Counter[str] = Counter()
        by_reviewer: Counter[str] = Counter()
        disputed = 0
        for _, votes in answers.pairs(class_name):
            outcomes[resolve(votes.values())] += 1
            by_reviewer.update(votes.keys())
            disputed += differ(votes.values())
        ranked: Counter[str] = Counter()
        last: list[tuple[str, bool]] = []
        for _, votes in answers.pairs(class_name, mode="ranked"):
            ranked[resolve(votes.values())] += 1
            last += [
                (vote.time, vote.answer == "present")
                for vote in votes.values()
                if vote.answer != "unsure"
            ]
        recent = [found for _, found in sorted(last)[-RECENT:]]
        return cls(
            present=outcomes["present"],
            absent=outcomes["absent"],
            unsure=outcomes["unsure"],
            disputed=disputed,
            by_reviewer=dict(by_reviewer),
            ranked_present=ranked["present"],
            ranked_absent=ranked["absent"],
            recent_present=sum(recent),
            recent=len(recent),
            sample=answers.sample(class_name),
        )
