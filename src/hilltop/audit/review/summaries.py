"""What the page says of every class: how far its review is, and what more answers are worth."""

from __future__ import annotations

from typing import Any

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.review.expectations import Expectations
from hilltop.audit.review.progress import ClassProgress, RunningProgress
from hilltop.audit.review.queues import worth_of_answer
from hilltop.audit.review.ranking import LiveRanking
from hilltop.data import LabelTable, State
from hilltop.missing.interval import proportion_interval


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
        prob = float(probs[self._ranking.order(column)[asked]])
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
