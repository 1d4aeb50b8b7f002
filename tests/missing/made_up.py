"""Made-up test sets whose truth is known, with somebody who answers rightly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from hilltop.missing import Evaluation, SampledAnswers

Array = npt.NDArray[Any]


def simulated(seed: int, *, images: int = 400, keep: float = 0.5) -> tuple[Array, Array, Array]:
    """Probabilities, incomplete labels and the truth."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-2, 3, (images, 5))
    true = rng.random(logits.shape) < expit(logits)
    return expit(logits), true & (rng.random(logits.shape) < keep), true


def clear_cases_first(seed: int, *, images: int = 400) -> tuple[Array, Array, Array]:
    """The same; what a model is sure of was written down, and hardly anything else."""
    probs, _, true = simulated(seed, images=images)
    chance = np.random.default_rng(seed + 1000).random(true.shape)
    return probs, true & (chance < 0.1 + 0.8 * (probs > 0.8)), true


def too_sure(seed: int, *, images: int = 400) -> tuple[Array, Array, Array]:
    """The same; scores are noisy, and classes differ in how much of them is written down."""
    probs, _, true = simulated(seed, images=images)
    rng = np.random.default_rng(seed + 1000)
    odds = 1.5 * (np.log(probs) - np.log1p(-probs)) + rng.normal(0, 3, probs.shape)
    return expit(odds), true & (rng.random(true.shape) < rng.uniform(0.2, 1, 5)), true


def hidden_below(seed: int, *, images: int = 400) -> tuple[Array, Array, Array]:
    """The same; some of what is true lies where scores say that there is nothing."""
    probs, _, true = simulated(seed, images=images)
    rng = np.random.default_rng(seed + 1000)
    true = true | ((probs < 0.1) & (rng.random(true.shape) < 0.03))
    return probs, true & (rng.random(true.shape) < 0.1 + 0.4 * (probs > 0.1)), true


def answered(test: Evaluation, true: Array, number: int, *, seed: int = 0) -> SampledAnswers:
    """Right answers to the pairs of a plan."""
    pairs = test.plan(number, seed=seed)
    said = true[pairs.rows, pairs.columns]
    return SampledAnswers(
        pairs.rows, pairs.columns, said, pairs.sampled_with, np.zeros(len(said), dtype=np.int64)
    )
