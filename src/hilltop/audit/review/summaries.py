"""What the page says of every class: how far its review is, and what more answers are worth."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.audit.decisions.answers import Answers, Sample, differ, resolve
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import Estimate, read_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import worth_of_answer
from hilltop.audit.review.ranking import LiveRanking
from hilltop.data import LabelTable, State
from hilltop.missing.interval import proportion_interval

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Expectations:
    """What an audit said of each class, by its number.

    Attributes:
        missing: Labels that are missing.
        most: The upper end of its 90% interval.
        wrong: Labels that are wrong.
        listed: What the probabilities of all candidates add up to.
    """

    missing: Numbers
    most: Numbers
    wrong: Numbers
    listed: Numbers

    @classmethod
    def read(cls, folder: AuditFolder, labels: LabelTable, index: CandidateIndex) -> Expectations:
        """Read the estimates of an audit; where there are samples of people, these count."""
        path = folder.path / "estimates.csv"
        known: dict[str, Estimate] = {}
        wrong: dict[str, float] = {}
        for one in read_estimates(path) if path.is_file() else ():
            known[one.class_name] = one  # samples stand behind what the model says
            wrong.setdefault(one.class_name, one.wrong)
        listed = np.array([index.expected(column) for column in range(len(labels.classes))])
        said = [
            (
                known[name].missing.value + known[name].beyond,
                known[name].missing.high + known[name].beyond,
            )
            if name in known
            else (total, total)
            for name, total in zip(labels.classes, listed.tolist(), strict=True)
        ]
        missing, most = np.array(said).reshape(-1, 2).T
        return cls(
            missing, most, np.array([wrong.get(name, 0.0) for name in labels.classes]), listed
        )

    def factor(self, column: int) -> float:
        """By what the probabilities of a class have to be multiplied to add up to the estimate."""
        return float(self.missing[column] / max(self.listed[column], 1e-9))


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


class Summaries:
    """Keeps the counts of all classes as answers come and go."""

    def __init__(
        self,
        labels: LabelTable,
        index: CandidateIndex,
        suspects: CandidateIndex | None,
        ranking: LiveRanking,
        expectations: Expectations,
    ) -> None:
        """Start without answers."""
        self._said = expectations
        self._labels, self._index, self._suspects = labels, index, suspects
        self._ranking, self._labelled = ranking, labels.counts_by_class(State.PRESENT)
        # Answers to candidates find missing labels, answers to labels wrong ones.
        self._found = {name: RunningProgress(name) for name in labels.classes}
        self._checked = {name: RunningProgress(name) for name in labels.classes}

    def update(self, answers: Answers, name: str, image: str, row: int) -> None:
        """Count a pair anew, whose answers have changed; pairs of other audits do not count."""
        if name in self._found:
            is_label = row >= 0 and name in self._labels.labels_of(row)
            (self._checked if is_label else self._found)[name].update(answers, image)

    def decided(self, column: int) -> int:
        """Number of candidates that are known to be present or absent by now."""
        done = self._progress(column)
        return done.present + done.absent

    def of(self, column: int, reviewer: str) -> dict[str, Any]:
        """Return what the page shows of a class."""
        done = self._progress(column)
        drawn = done.sample.present + done.sample.absent
        low, high = proportion_interval(done.sample.present, drawn)
        candidates = self._index.count(column)
        return {
            "number": column,
            "name": self._labels.classes[column],
            "candidates": candidates,
            **self._expected(column, done),
            "present": done.present,
            "absent": done.absent,
            "unsure": done.unsure,
            "disputed": done.disputed,
            "mine": done.by_reviewer.get(reviewer, 0),
            "ranked": {"present": done.ranked_present, "absent": done.ranked_absent},
            "recent": _recent(done),
            "worthwhile": done.worthwhile,
            "worth": self._worth(column, done),
            "wrong": self._wrong(column),
            "sample": {
                "present": done.sample.present,
                "answers": drawn,
                "low": round(low * candidates),
                "high": round(high * candidates),
            },
        }

    def _progress(self, column: int) -> ClassProgress:
        return self._found[self._labels.classes[column]].progress()

    def _expected(self, column: int, done: ClassProgress) -> dict[str, Any]:
        """What may be found in all: what the audit said, or what follows from answers since.

        ``most`` is there where the audit expects none; ``listed`` is for the order of classes.
        """
        said, learned = float(self._said.missing[column]), self._ranking.learned(column)
        expected, most = said, None
        if learned is not None:
            found, still = learned
            expected = found + still * (self._said.factor(column) if said else 1.0)
        elif not said:
            most = round(float(self._said.most[column]), 1)
        return {
            "expected": round(max(expected, done.present), 1),
            "most": most,
            "listed": round(float(self._said.listed[column]), 3),
        }

    def _worth(self, column: int, done: ClassProgress) -> float:
        """What the next answer to a class helps the model, see the queue for the model."""
        asked = done.present + done.absent
        probs = self._ranking.probabilities(column)
        if asked >= len(probs):
            return 0.0
        prob = float(probs[self._ranking.place(column, asked)])
        return worth_of_answer(prob, asked + int(self._labelled[column]))

    def _wrong(self, column: int) -> dict[str, Any]:
        """How many labels of a class are listed, probably wrong, and checked."""
        checked = self._checked[self._labels.classes[column]].progress()
        suspects = self._suspects
        return {
            "labels": 0 if suspects is None else suspects.count(column),
            "expected": round(float(self._said.wrong[column]), 1),
            "right": checked.present,
            "struck": checked.absent,
        }


def _recent(done: ClassProgress) -> dict[str, Any]:
    """The last answers, and between what the share of missing labels lies there: a 90% interval."""
    low, high = proportion_interval(done.recent_present, done.recent)
    return {"present": done.recent_present, "answers": done.recent, "low": low, "high": high}
