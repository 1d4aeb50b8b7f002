"""The order in which the page shows the pairs of a class: by rank, and anew after some answers.

What was shown once stays where it was; only pairs that no page has shown yet move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.review.duplicates import find_leaders, put_together
from hilltop.audit.review.learning import learn_from_answers

EVERY = 20
"""Answers to a class after which what is left of it is ranked anew."""
Known = Callable[[int], tuple[Ints, npt.NDArray[np.bool_]]]
"""Gives the answered places of a class, in the order of answers, and whether it was present."""


class LiveRanking:
    """Orders of all classes; safe to be used by several threads."""

    def __init__(
        self, index: CandidateIndex, directions: npt.NDArray[np.float32] | None, known: Known
    ) -> None:
        """Start in the order of the audit.

        Args:
            index: The candidates.
            directions: Features of the images by number; without them nothing is learned.
            known: What was answered.
        """
        self._index, self._directions, self._known = index, directions, known
        self._orders: dict[int, Ints] = {}
        self._probs: dict[int, npt.NDArray[np.float32]] = {}
        self._leaders: dict[int, Ints] = {}
        self._found: dict[int, tuple[float, float]] = {}
        self._shown: dict[int, int] = {}
        self._learned: dict[int, int] = {}
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ranking")

    def order(self, column: int) -> Ints:
        """Places among the candidates of a class, in the order to show them in."""
        with self._lock:
            return self._order(column)

    def leaders(self, column: int) -> Ints:
        """Of each candidate of a class, the first one that it is a near-duplicate of, by place."""
        with self._lock:
            self._order(column)
            return self._leaders[column]

    def _order(self, column: int) -> Ints:
        if column not in self._orders:
            leaders = np.arange(self._index.count(column))
            if self._directions is not None:
                leaders = find_leaders(self._directions[self._index.class_rows(column)])
            self._leaders[column] = leaders
            self._orders[column] = put_together(np.arange(len(leaders)), leaders)
        return self._orders[column]

    def probabilities(self, column: int) -> npt.NDArray[np.float32]:
        """Probabilities of the candidates of a class by place, as far as answers tell."""
        with self._lock:
            return self._probs.get(column, self._index.class_probabilities(column))

    def learned(self, column: int) -> tuple[float, float] | None:
        """Labels found by what a class was last learned from, and what the open pairs add up to.

        None if nothing was learned yet.
        """
        with self._lock:
            return self._found.get(column)

    def show(self, column: int, end: int) -> None:
        """Take note that the first pairs of a class are on somebody's page."""
        with self._lock:
            self._shown[column] = max(self._shown.get(column, 0), end)

    def answered(self, column: int, count: int) -> None:
        """Take note of how many answers a class has, and learn from them in the background."""
        if self._directions is None or count - self._learned.get(column, 0) < EVERY:
            return
        self._learned[column] = count
        self._worker.submit(self.learn, column)

    def learn(self, column: int) -> None:
        """Rank anew what was not shown yet."""
        if self._directions is None:
            return
        places, present = self._known(column)
        before = self._index.class_probabilities(column)
        inputs = self._directions[self._index.class_rows(column)]
        probs = learn_from_answers(inputs, before, places, present)
        still = probs.astype(np.float64)
        still[places] = 0.0
        with self._lock:
            self._found[column] = float(present.sum()), float(still.sum())
            order = self._order(column)
            shown = self._shown.get(column, 0)
            rest = order[shown:]
            by_probability = rest[np.argsort(-probs[rest], kind="stable")]
            together = put_together(by_probability, self._leaders[column])
            self._orders[column] = np.concatenate([order[:shown], together])
            # A number on a page that somebody looks at does not change, either.
            fixed = self._probs.get(column, before)[order[:shown]]
            probs[order[:shown]] = fixed
            self._probs[column] = probs

    def close(self) -> None:
        """Wait until nothing is learned any more."""
        self._worker.shutdown(wait=True, cancel_futures=True)
