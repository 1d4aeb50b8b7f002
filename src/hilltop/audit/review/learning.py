"""The page learns: answers to pairs of a class change the probabilities of those still open."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from hilltop.missing.logistic import Counts, Prior, fit_logistic
from hilltop.missing.priors import REVIEW_FEATURE_SD, REVIEW_SHIFT_SD

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
