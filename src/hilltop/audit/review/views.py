"""Which pairs of a class a view of the review page shows, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from hilltop.audit.decisions.answers import Answers, differ
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.review.ranking import LiveRanking
from hilltop.data import LabelTable
from hilltop.data.review_record import Mode

View = Literal["ranked", "random", "disputed", "wrong", "planned"]
VIEWS: tuple[View, ...] = get_args(View)


class Views:
    """The views of one audit; whoever asks holds the lock of its answers."""

    def __init__(
        self,
        labels: LabelTable,
        index: CandidateIndex,
        suspects: CandidateIndex | None,
        ranking: LiveRanking,
        answers: Answers,
        rows: Mapping[str, int],
        *,
        planned: Sequence[Ints] | None,
    ) -> None:
        """Look at what the review itself looks at.

        Args:
            labels: The labels that were audited.
            index: Labels that may be missing.
            suspects: Labels that may be wrong.
            ranking: The order of candidates, which answers change.
            answers: All answers so far.
            rows: Image number of each image that was answered about.
            planned: Places that a plan asks about, by class.
        """
        self._labels, self._index, self._suspects = labels, index, suspects
        self._ranking, self._answers, self._rows = ranking, answers, rows
        self._planned = planned
        self._sample_order = lru_cache(maxsize=8)(index.sample_order)

    def offered(self) -> list[View]:
        """Return the views that have something to show."""
        needed = {"wrong": self._suspects, "planned": self._planned}
        return [view for view in VIEWS if view not in needed or needed[view] is not None]

    def index_of(self, view: View) -> CandidateIndex:
        """Return the candidates that a view is about."""
        return self._suspects if view == "wrong" and self._suspects is not None else self._index

    def places(self, column: int, view: View) -> Ints:
        """Places among the candidates of a class, in the order of the view."""
        if view == "ranked":
            return self._ranking.order(column)
        if view == "wrong":
            return np.arange(0 if self._suspects is None else self._suspects.count(column))
        if view == "random":
            return self._sample_order(column)
        if view == "planned":
            return np.zeros(0, np.int64) if self._planned is None else self._planned[column]
        pairs = self._answers.pairs(self._labels.classes[column])
        rows = [self._rows[image] for image, votes in pairs if differ(votes.values())]
        return np.flatnonzero(self._among(column, rows))

    def first_open(self, column: int, view: View, places: Ints, reviewer: str) -> int:
        """Number of the first pair that the reviewer has not answered; behind all if none."""
        mode: Mode | None = "random" if view == "random" else None
        pairs = self._answers.pairs(self._labels.classes[column], mode=mode)
        rows = [self._rows[image] for image, votes in pairs if reviewer in votes]
        still_open = ~self._among(column, rows, view)[places]
        return int(np.argmax(still_open)) if still_open.any() else len(places)

    def _among(self, column: int, rows: Iterable[int], view: View = "ranked") -> Any:
        """Which candidates of a class are about one of these images."""
        return np.isin(self.index_of(view).class_rows(column), np.fromiter(rows, dtype=np.int32))
