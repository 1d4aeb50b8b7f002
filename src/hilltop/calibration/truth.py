"""Scores and incomplete labels in, probabilities of truth and decisions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.belief import Belief, believe
from hilltop.calibration.decision import Decision, Goal, decide
from hilltop.calibration.expected import ExpectedCounts
from hilltop.calibration.posterior import present_probability
from hilltop.calibration.scaling import Calibration, calibrate
from hilltop.losses.likelihood import scar_nll

NOTHING_MISSING = "every pair is known to be present or absent, so that no label is missing"
"""What is said where a person looked at every pair."""


@dataclass(frozen=True)
class TruthModel:
    """Turns scores of a model into probabilities that labels are true, and decides by them.

    Attributes:
        calibration: From logits of scores to logits of probabilities of truth.
        counts: What may be expected of thresholds.
        sentence: What was found about missing labels, in words.
    """

    calibration: Calibration
    counts: ExpectedCounts
    sentence: str

    def probs(self, logits: Tensor) -> Tensor:
        """Return the probability that each label is true ``(N, C)``."""
        return torch.sigmoid(self.calibration(logits))

    def decide(self, goal: Goal = "balanced_f1", *, wanted: float | None = None) -> Decision:
        """Choose thresholds, see :func:`hilltop.calibration.decide`."""
        return decide(self.counts, goal, wanted=wanted)

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the sentence, as tensors to keep in a file."""
        counts = self.counts
        return {
            "slope": torch.as_tensor(self.calibration.slope, dtype=torch.float32),
            "shift": self.calibration.shift,
            "rows": torch.tensor(counts.rows),
            "accepted": torch.from_numpy(np.ascontiguousarray(counts.accepted)),
            "hits": torch.from_numpy(np.ascontiguousarray(counts.hits)),
            "present": torch.from_numpy(np.ascontiguousarray(counts.present)),
        }

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor], sentence: str) -> TruthModel:
        """Read what :meth:`tensors` returned."""
        counts = ExpectedCounts(
            int(tensors["rows"]),
            *(tensors[name].numpy() for name in ("accepted", "hits", "present")),
        )
        return cls(Calibration(float(tensors["slope"]), tensors["shift"]), counts, sentence)


def fit_truth(
    logits: Tensor,
    targets: Tensor,
    *,
    observed: Tensor | None = None,
    belief: Belief | None = None,
    believed_logits: Tensor | None = None,
) -> TruthModel:
    """Find out from scores that never saw the labels how probable labels are true.

    Args:
        logits: Scores of the model that will decide, on rows it did not learn from ``(N, C)``;
            NaN where there is none.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
        observed: True where a person confirmed that a pair is absent.
        belief: How labels were lost, if that was found out by other scores, such as those of
            cross-entropy; then ``logits`` are calibrated to what these say.
        believed_logits: The other scores, on the same rows.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits = 6 * torch.randn(2000, 3, generator=generator)
        >>> true = torch.rand(2000, 3, generator=generator) < torch.sigmoid(logits)
        >>> kept = true & (torch.rand(2000, 3, generator=generator) < 0.5)
        >>> truth = fit_truth(logits, kept.float())
        >>> print(f"{truth.probs(logits).mean():.2f} {true.float().mean():.2f}")
        0.51 0.49
    """
    unscored = logits.isnan()
    logits = logits.float().nan_to_num()
    targets = targets.float().masked_fill(unscored, torch.nan)
    if observed is not None and bool((observed | (targets != 0)).all()):
        calibration = calibrate(scar_nll(1.0), logits, targets)
        return _known(calibration, logits.masked_fill(targets.isnan(), torch.nan))
    if belief is None:
        belief = believe(logits, targets, observed=observed)
        calibration = belief.truth.calibration
    else:
        others = logits if believed_logits is None else believed_logits.float()
        moved = belief.truth.calibration(others)
        present = present_probability(belief.truth.loss, moved, targets, observed=observed)
        calibration = calibrate(scar_nll(1.0), logits, present)
    moved = calibration(logits)
    cases = _cases(belief, moved, targets)
    counts = ExpectedCounts.of(moved.masked_fill(unscored, torch.nan), cases)
    return TruthModel(calibration, counts, belief.sentence)


def _known(calibration: Calibration, logits: Tensor) -> TruthModel:
    """What is expected where every pair is known: no label can be missing."""
    counts = ExpectedCounts.of(calibration(logits), (0.0, 0.0, 0.0))
    return TruthModel(calibration, counts, NOTHING_MISSING)


def _cases(belief: Belief, logits: Tensor, targets: Tensor) -> tuple[float, float, float]:
    """What is added to logits where fewer labels are missing, as many as they say, and more."""
    known = logits[~targets.isnan()].double()
    middle = float(torch.sigmoid(known).sum())
    low, _, high = (float((targets == 1).sum()) + belief.missing.total).tolist()
    return _shift(known, min(low, middle)), 0.0, _shift(known, max(high, middle))


def _shift(logits: Tensor, total: float) -> float:
    """What brings the sum of probabilities to a total."""
    low, high = -8.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2
        above = float(torch.sigmoid(logits + middle).sum()) > total
        low, high = (low, middle) if above else (middle, high)
    return (low + high) / 2
