"""How many labels a loss turned over while training, and how many of those were right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data import LabelTable, State
from hilltop.losses import Loss


class Recovered:
    """Counts, over an epoch, what the loss turned over against the complete labels.

    It looks at the logits of the training steps themselves, so that it costs no pass of its own.
    ``counts`` holds pairs turned over, those of them that are truly labels, and all missing labels.
    """

    def __init__(self, loss: Loss, true_labels: LabelTable, counts: Tensor) -> None:
        """Start from the counts of an epoch that was interrupted, or from zeros."""
        self._loss, self._true_labels = loss, true_labels
        self.counts = counts

    def update(
        self,
        rows: npt.NDArray[np.int64],
        logits: Tensor,
        targets: Tensor,
        observed: Tensor,
        index: Tensor,
    ) -> None:
        """Count one batch."""
        turned = self._loss.turned_over(logits.detach(), targets, observed=observed, index=index)
        present = torch.from_numpy(self._true_labels.dense(rows) == State.PRESENT)
        missing = present.to(targets.device) & (targets == 0)
        seen = torch.stack([turned.sum(), (turned & missing).sum(), missing.sum()])
        self.counts = self.counts + seen.to(self.counts)


def recovered_columns(counts: Sequence[float]) -> dict[str, Any]:
    """Turn the counts of an epoch into columns of ``metrics.csv``.

    Example:
        >>> recovered_columns([4, 3, 6])
        {'turned_over': 4, 'turned_over_precision': 0.75, 'turned_over_recall': 0.5}
    """
    turned, right, missing = counts
    return {
        "turned_over": int(turned),
        "turned_over_precision": right / turned if turned else float("nan"),
        "turned_over_recall": right / missing if missing else float("nan"),
    }
