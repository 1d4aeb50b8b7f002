"""The interval of the keep rate is neither too narrow nor too wide."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.calibration import calibrate, estimate_keep
from hilltop.losses.likelihood.choose import summed_independently
from tests.audit.simulated import draw

BEHIND_AT_THE_ENDS = 1.353  # 1.645 ** 2 / 2 nats: where a 90% interval of a likelihood ends


def thinned(keep: float, *, images: int, classes: int, generator: torch.Generator) -> list[Tensor]:
    """Logits that know the truth, and labels each kept with one probability."""
    logits = 3 * torch.randn(images, classes, generator=generator) - 3
    true = draw(logits, generator)
    return [logits, true * (torch.rand(true.shape, generator=generator) < keep)]


@pytest.mark.parametrize("keep", [0.4, 0.7])
def test_the_interval_ends_where_the_likelihood_has_fallen_by_what_it_should(keep: float) -> None:
    generator = torch.Generator().manual_seed(4)
    logits, targets = thinned(keep, images=1500, classes=5, generator=generator)
    found, best = estimate_keep(logits, targets)
    ends = [
        calibrate(summed_independently(end), logits, targets, start=best.calibration).loss
        for end in (found.low, found.high)
    ]
    behind = sum(ends) / 2 - best.calibration.loss
    assert behind == pytest.approx(BEHIND_AT_THE_ENDS, rel=0.25)


@pytest.mark.slow
def test_nine_of_ten_intervals_cover_the_keep_rate() -> None:
    generator, covered, sets = torch.Generator().manual_seed(9), 0, 60
    for number in range(sets):
        keep = 0.2 + 0.6 * number / sets
        logits, targets = thinned(keep, images=1500, classes=6, generator=generator)
        found, _ = estimate_keep(logits / 2 + 1, targets)
        covered += found.low <= keep <= found.high
    assert 0.85 * sets <= covered <= 0.97 * sets
