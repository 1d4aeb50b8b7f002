"""The order in which the page shows the pairs of a class: by rank, and anew after some answers.

What was shown once stays where it was; only pairs that no page has shown yet move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.missing.logistic import Counts, Prior, fit_logistic
from hilltop.missing.priors import REVIEW_FEATURE_SD, REVIEW_SHIFT_SD

ALIKE = 0.95
"""Cosine between directions of features from which two pictures are near-duplicates: copies and
frames of one film. Different zebras reach 0.94 on 4,000 photographs of COCO."""
MOST_COMPARED = 2000
"""The first candidates of a class, which are compared with one another; nobody gets further."""


def find_leaders(directions: npt.NDArray[np.float32]) -> Ints:
    """For each picture, the place of the first one that it is a near-duplicate of; else its own.

    Args:
        directions: Features of pictures in the order in which they are shown ``(N, D)``; what is
            behind the first 2,000 stays alone. Pictures without features, all 0, do too.

    Example:
        >>> find_leaders(np.array([[1, 0], [0, 1], [1, 0.01]], dtype=np.float32)).tolist()
        [0, 1, 0]
    """
    leaders: Ints = np.arange(len(directions), dtype=np.int64)
    some = directions[:MOST_COMPARED]
    length = np.linalg.norm(some, axis=1, keepdims=True)
    unit = some / np.where(length > 0, length, 1)
    alike = unit @ unit.T >= ALIKE
    np.fill_diagonal(alike, False)
    for place in np.flatnonzero(alike.any(axis=1)):
        if leaders[place] == place:
            followers = np.flatnonzero(alike[place])
            followers = followers[(followers > place) & (leaders[followers] == followers)]
            leaders[followers] = place
    return leaders


def put_together(order: Ints, leaders: Ints) -> Ints:
    """The same order, in which near-duplicates follow the first of them.

    Args:
        order: Places, in the order in which to show them.
        leaders: Of every place, see :func:`find_leaders`.

    Example:
        >>> put_together(np.array([3, 1, 0, 2]), np.array([0, 1, 0, 1])).tolist()
        [3, 1, 0, 2]
        >>> put_together(np.array([1, 0, 3, 2]), np.array([0, 1, 0, 1])).tolist()
        [1, 3, 0, 2]
    """
    first = np.full(int(leaders.max(initial=-1)) + 1, len(order))
    np.minimum.at(first, leaders[order], np.arange(len(order)))
    return order[np.argsort(first[leaders[order]], kind="stable")]


_MOST_ANSWERS = 1000
_CLOSEST = 1e-6


def learn_from_answers(
    directions: npt.NDArray[np.float32],
    probs: npt.NDArray[np.float32],
    answered: npt.NDArray[np.int64],
    present: npt.NDArray[np.bool_],
) -> npt.NDArray[np.float32]:
    r"""Return the probabilities of all pairs of a class, given answers to some of them.

    .. math:: \mathrm{logit}\, p' = \mathrm{logit}\, p + b + w \cdot z

    b and w have normal priors around 0 and follow the answers by logistic regression; without
    answers nothing changes. It takes milliseconds, so that a page can learn while somebody answers.

    Args:
        directions: Features of each pair's image ``(N, D)``, each of unit variance.
        probs: What the audit thinks of each pair.
        answered: Places of pairs that were answered; the last thousand count.
        present: Whether the class was there.

    Example:
        >>> directions = np.array([[1.0], [1.0], [-1.0]], dtype=np.float32)
        >>> before = np.full(3, 0.1, dtype=np.float32)
        >>> after = learn_from_answers(directions, before, np.array([0]), np.array([True]))
        >>> bool(after[1] > 0.2), bool(after[1] > after[2])
        (True, True)
    """
    if not len(answered):
        return probs.copy()
    answered, yes = answered[-_MOST_ANSWERS:], present[-_MOST_ANSWERS:].astype(np.float64)
    before = logit(np.clip(probs.astype(np.float64), _CLOSEST, 1 - _CLOSEST))
    features = np.concatenate([np.ones((len(directions), 1)), directions], axis=1)
    size = features.shape[1]
    spread = np.full(size, REVIEW_FEATURE_SD / np.sqrt(max(1, size - 1)))
    spread[0] = REVIEW_SHIFT_SD
    none = np.zeros((len(answered), 1))
    counts = Counts(none, none, none, yes[:, None], 1 - yes[:, None])
    prior = Prior(np.zeros(size), spread**-2, np.full(size, np.inf), slope=False)
    fit = fit_logistic(features[answered].T[:, :, None], before[answered, None], counts, prior)
    after: npt.NDArray[np.float32] = expit(before + features @ fit.shared).astype(np.float32)
    return after


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
        self._index, self.directions, self._known = index, directions, known
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

    def place(self, column: int, at: int) -> int:
        """Place of the pair number ``at``, without ordering a class that nobody has opened."""
        with self._lock:
            return int(self._orders[column][at]) if column in self._orders else at

    def leaders(self, column: int) -> Ints:
        """Of each candidate of a class, the first one that it is a near-duplicate of, by place."""
        with self._lock:
            self._order(column)
            return self._leaders[column]

    def _order(self, column: int) -> Ints:
        if column not in self._orders:
            leaders = np.arange(self._index.count(column))
            if self.directions is not None:
                leaders = find_leaders(self.directions[self._index.class_rows(column)])
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
        if self.directions is None or count - self._learned.get(column, 0) < EVERY:
            return
        self._learned[column] = count
        self._worker.submit(self.learn, column)

    def learn(self, column: int) -> None:
        """Rank anew what was not shown yet."""
        if self.directions is None:
            return
        places, present = self._known(column)
        before = self._index.class_probabilities(column)
        inputs = self.directions[self._index.class_rows(column)]
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
