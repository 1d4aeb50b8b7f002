"""Generated features and labels of which some were left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Generated:
    """Features, all true labels, and those that were written down."""

    X: Floats
    truth: Ints
    Y: Ints


def generate(rows: int, *, features: int = 8, classes: int = 6, keep: float = 0.4) -> Generated:
    """Labels that a linear model can tell, each written down with a chance of ``keep``."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((rows, features))
    logits = drawn @ rng.standard_normal((features, classes)) - 1.0
    truth = (logits + 0.5 * rng.standard_normal(logits.shape) > 0).astype(np.int64)
    return Generated(drawn, truth, truth * (rng.random(truth.shape) < keep))


@pytest.fixture
def small() -> Generated:
    return generate(60)
