"""What the page says of every class: how far its review is, and what more answers are worth."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.audit.decisions.answers import Answers, differ, resolve
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import Estimate, read_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
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


class ClassProgress:
    """Counts of one class, kept as answers come and go, at the same cost however many there are.

    Every pair contributes words, each a kind and a value, which are counted: ``all`` and the
    outcome of its answers, ``ranked`` and the outcome of those by rank, ``random`` and the outcome
    where it is of the random sample, ``by`` and each reviewer, ``differ`` where answers do.

    Example:
        >>> from hilltop.audit.decisions.store import Answer
        >>> answers, progress = Answers(), ClassProgress("dog")
        >>> said = Answer("1", "1", "Ann", "2026-01-31", "a", "dog", "present", "ranked", 0.9)
        >>> for _, image in answers.take(said):
        ...     progress.update(answers, image)
        >>> progress.count("all", "present"), progress.count("by", "Ann")
        (1, 1)
    """

    def __init__(self, class_name: str) -> None:
        """Start without answers."""
        self._class_name = class_name
        self._counts: Counter[Word] = Counter()
        self._latest: list[Told] = []
        self._of: dict[str, tuple[list[Word], list[Told]]] = {}

    def update(self, answers: Answers, image: str) -> None:
        """Count a pair anew, whose answers have changed."""
        words, latest = self._of.pop(image, ([], []))
        self._counts.subtract(words)
        for one in latest:
            del self._latest[bisect_left(self._latest, one)]
        votes = answers.votes(self._class_name, image)
        if not votes:
            return
        ranked = answers.votes(self._class_name, image, mode="ranked")
        outcome = resolve(votes.values())
        words = [("all", outcome), *(("by", name) for name in votes)]
        words += [("ranked", resolve(ranked.values()))] if ranked else []
        words += [("differ", "")] if differ(votes.values()) else []
        if answers.votes(self._class_name, image, mode="random"):
            words.append(("random", outcome))
        latest = [
            (vote.time, image, reviewer, vote.answer == "present")
            for reviewer, vote in ranked.items()
            if vote.answer != "unsure"
        ]
        self._of[image] = words, latest
        self._counts.update(words)
        for one in latest:
            insort(self._latest, one)

    def count(self, kind: str, value: str = "") -> int:
        """Number of pairs that contribute a word."""
        return self._counts[kind, value]

    @property
    def decided(self) -> int:
        """Number of pairs that are known to be present or absent."""
        return self.count("all", "present") + self.count("all", "absent")

    @property
    def recent(self) -> tuple[int, int]:
        """How many of the last answers by rank, at most 20, found the class, and how many are."""
        found = [found for *_, found in self._latest[-RECENT:]]
        return sum(found), len(found)

    @property
    def worthwhile(self) -> bool:
        """Whether the last answers speak for going on."""
        present, number = self.recent
        return number < RECENT or present / number >= WORTH


Word = tuple[str, str]
Told = tuple[str, str, str, bool]
"""Time, image and reviewer of an answer, and whether it found the class."""


class Summaries:
    """Keeps the counts of all classes as answers come and go."""

    def __init__(self, pairs: AuditPairs, ranking: LiveRanking, expectations: Expectations) -> None:
        """Start without answers."""
        self._said, self._pairs, self._ranking = expectations, pairs, ranking
        names = pairs.labels.classes
        self._labelled = pairs.labels.counts_by_class(State.PRESENT)
        # Answers to candidates find missing labels, answers to labels wrong ones.
        self._found = {name: ClassProgress(name) for name in names}
        self._checked = {name: ClassProgress(name) for name in names}

    def update(self, answers: Answers, name: str, image: str) -> None:
        """Count a pair anew, whose answers have changed; pairs of other audits do not count."""
        if name in self._found:
            row = self._pairs.row_of(image)
            is_label = row is not None and name in self._pairs.labels.labels_of(row)
            (self._checked if is_label else self._found)[name].update(answers, image)

    def decided(self, column: int) -> int:
        """Number of candidates that are known to be present or absent by now."""
        return self._progress(column).decided

    def of(self, column: int, reviewer: str) -> dict[str, Any]:
        """Return what the page shows of a class."""
        done, candidates = self._progress(column), self._pairs.candidates.count(column)
        drawn = done.count("random", "present"), done.count("random", "absent")
        low, high = proportion_interval(drawn[0], sum(drawn))
        present, answers = done.recent
        recent_low, recent_high = proportion_interval(present, answers)
        return {
            "number": column,
            "name": self._pairs.labels.classes[column],
            "candidates": candidates,
            **self._expected(column, done),
            **{word: done.count("all", word) for word in ("present", "absent", "unsure")},
            "disputed": done.count("differ"),
            "mine": done.count("by", reviewer),
            "ranked": {word: done.count("ranked", word) for word in ("present", "absent")},
            "recent": {
                "present": present,
                "answers": answers,
                "low": recent_low,
                "high": recent_high,
            },
            "worthwhile": done.worthwhile,
            "worth": self._worth(column, done.decided),
            "wrong": self._wrong(column),
            "sample": {
                "present": drawn[0],
                "answers": sum(drawn),
                "low": round(low * candidates),
                "high": round(high * candidates),
            },
        }

    def _progress(self, column: int) -> ClassProgress:
        return self._found[self._pairs.labels.classes[column]]

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
            "expected": round(max(expected, done.count("all", "present")), 1),
            "most": most,
            "listed": round(float(self._said.listed[column]), 3),
        }

    def _worth(self, column: int, decided: int) -> float:
        """What the next answer to a class helps the model, see the queue for the model."""
        probs = self._ranking.probabilities(column)
        if decided >= len(probs):
            return 0.0
        prob = float(probs[self._ranking.place(column, decided)])
        return worth_of_answer(prob, decided + int(self._labelled[column]))

    def _wrong(self, column: int) -> dict[str, Any]:
        """How many labels of a class are listed, probably wrong, and checked."""
        checked, suspects = self._checked[self._pairs.labels.classes[column]], self._pairs.suspects
        return {
            "labels": 0 if suspects is None else suspects.count(column),
            "expected": round(float(self._said.wrong[column]), 1),
            "right": checked.count("all", "present"),
            "struck": checked.count("all", "absent"),
        }
