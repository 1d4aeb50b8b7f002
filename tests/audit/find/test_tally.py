"""The sums behind estimates against their formula, pair by pair in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hilltop.audit.find.estimate import Tally, model_estimates

LOGITS = [[-2.0, 0.5], [-1.0, 1.5], [0.3, -0.4], [1.0, 2.0]]
GIVEN = [[0.05, 1.0], [0.2, 0.7], [1.0, 0.3], [0.6, 1.0]]
UNKNOWN = [[True, False], [True, True], [False, True], [True, False]]


def variance(column: int) -> float:
    """V + (V / (H + h))^2 I of one class, as the docstring of Tally has it; h = 1 / 0.5^2."""
    spread = curvature = noise = 0.0
    for logits, given, unknown in zip(LOGITS, GIVEN, UNKNOWN, strict=True):
        p, q = 1 / (1 + math.exp(-logits[column])), given[column]
        own = q * (1 - q) if unknown[column] else 0.0
        spread += own
        curvature += p * (1 - p) - own
        noise += (p - q) ** 2
    return spread + (spread / (max(0.0, curvature) + 4.0)) ** 2 * noise


def made() -> Tally:
    tally = Tally(2)
    for rows in (slice(3), slice(3, 4)):  # in two blocks
        given = np.array(GIVEN[rows], dtype=np.float32)
        tally.add(torch.tensor(LOGITS[rows]), given, np.array(UNKNOWN[rows]))
    return tally


def test_variance_is_chance_and_what_calibration_leaves_open() -> None:
    assert made().variance() == pytest.approx([variance(0), variance(1)], rel=1e-5)


def test_the_interval_reaches_1_645_deviations_to_either_side() -> None:
    for column, one in enumerate(model_estimates(["a", "b"], [1, 2], made())):
        missing = sum(q[column] for q, open_ in zip(GIVEN, UNKNOWN, strict=True) if open_[column])
        reach = 1.645 * math.sqrt(variance(column))
        pairs = sum(open_[column] for open_ in UNKNOWN)
        assert one.missing == pytest.approx(missing)
        assert one.low == pytest.approx(max(0.0, missing - reach), abs=1e-3)
        assert one.high == pytest.approx(min(pairs, missing + reach), abs=1e-3)
