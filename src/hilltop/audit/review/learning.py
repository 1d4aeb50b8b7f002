"""The page learns: answers to pairs of a class change the probabilities of those still open."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LOGIT_SPREAD = 1.5
"""How far the features of an image may move its log odds, as a standard deviation."""
SHIFT_SPREAD = 1.0
"""The same for a shift of the whole class."""
_STEPS = 8
_SIZES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)
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

    b and w have normal priors around 0 and follow the answers by logistic regression (Newton's
    method); without answers nothing changes. It takes milliseconds, so that a page can learn while
    somebody answers.

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
    answered, present = answered[-_MOST_ANSWERS:], present[-_MOST_ANSWERS:]
    clipped = np.clip(probs.astype(np.float64), _CLOSEST, 1 - _CLOSEST)
    before = np.log(clipped) - np.log1p(-clipped)
    width = LOGIT_SPREAD / np.sqrt(max(1, directions.shape[1]))
    inputs = _with_shift(directions[answered], width)
    weights = _newton(inputs, before[answered], present.astype(np.float64))
    moved = before + _with_shift(directions, width) @ weights
    after: npt.NDArray[np.float32] = _sigmoid(moved).astype(np.float32)
    return after


def _with_shift(directions: npt.NDArray[np.float32], width: float) -> Floats:
    """Inputs scaled so that every weight has a prior of unit variance."""
    shift = np.full((len(directions), 1), SHIFT_SPREAD)
    return np.concatenate([shift, directions * width], axis=1)


def _sigmoid(logits: Floats) -> Floats:
    """The probability of log odds; a step that goes too far must not overflow."""
    probs: Floats = 0.5 * (1 + np.tanh(0.5 * logits))
    return probs


def _newton(inputs: Floats, offset: Floats, present: Floats) -> Floats:
    """Weights with the highest posterior probability."""
    weights = np.zeros(inputs.shape[1])
    best = _badness(weights, inputs, offset, present)
    for _ in range(_STEPS):
        probs = _sigmoid(offset + inputs @ weights)
        grad = inputs.T @ (probs - present) + weights
        curvature = inputs.T @ (inputs * (probs * (1 - probs))[:, None])
        step = np.linalg.solve(curvature + np.eye(len(weights)), grad)
        # Where answers contradict sure probabilities the curve is flat, and a whole step goes too
        # far: back and forth for ever.
        for size in _SIZES:
            found = _badness(weights - size * step, inputs, offset, present)
            if found <= best:
                weights, best = weights - size * step, found
                break
    return weights


def _badness(weights: Floats, inputs: Floats, offset: Floats, present: Floats) -> float:
    """Negative logarithm of the posterior probability of weights."""
    logits = offset + inputs @ weights
    return float((np.logaddexp(0, logits) - present * logits).sum() + 0.5 * weights @ weights)
