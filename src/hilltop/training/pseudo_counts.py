"""What training makes of missing labels, where the truth is known: pseudo labels, probabilities.

Everything is counted from the logits of the training steps themselves, at no pass of its own.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.checks import check_number
from hilltop.data import LabelTable, State
from hilltop.data.array_files import read_npz
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.losses import Loss

KINDS = ("labelled", "missing", "absent")
"""Kinds of pairs: labels that training sees, labels that were left out, and true negatives."""
BINS = 100
_COUNTED = 3  # pseudo labels, those of them that are right, all missing labels


class PseudoCounts:
    """Counts, over an epoch, pseudo labels of the loss and how probable each kind of pair is.

    ``counts`` holds pseudo labels, those of them that are truly labels, all missing labels,
    and then one histogram of probabilities for each of :data:`KINDS`.
    """

    def __init__(self, loss: Loss, true_labels: LabelTable, counts: Tensor) -> None:
        """Start from the counts of an epoch that was interrupted, or from none."""
        self._loss, self._true_labels = loss, true_labels
        size = _COUNTED + len(KINDS) * BINS
        self.counts = counts if len(counts) else counts.new_zeros(size)

    def update(
        self,
        rows: npt.NDArray[np.int64],
        logits: Tensor,
        targets: Tensor,
        observed: Tensor,
        index: Tensor,
    ) -> None:
        """Count one batch."""
        logits = logits.detach()
        pseudo = self._loss.pseudo_labels(logits, targets, verified=observed, index=index)
        present = torch.from_numpy(self._true_labels.dense(rows) == State.PRESENT)
        labelled = targets > 0
        beyond = targets.isnan()  # nobody looked for these
        missing = present.to(targets.device) & ~labelled & ~beyond
        seen = torch.stack([pseudo.sum(), (pseudo & missing).sum(), missing.sum()])
        kind = torch.where(labelled, 0, torch.where(missing, 1, 2))
        bins = (torch.sigmoid(logits.float()) * BINS).long().clamp(0, BINS - 1)
        drawn = torch.bincount((kind * BINS + bins)[~beyond], minlength=len(KINDS) * BINS)
        self.counts = self.counts + torch.cat([seen, drawn]).to(self.counts)


def pseudo_columns(counts: Sequence[float]) -> dict[str, Any]:
    """Turn the counts of an epoch into columns of ``metrics.csv``.

    Example:
        >>> pseudo_columns([4, 3, 6])
        {'pseudo_labels': 4, 'pseudo_label_precision': 0.75, 'pseudo_label_recall': 0.5}
    """
    pseudo, right, missing = counts[:_COUNTED]
    return {
        "pseudo_labels": int(pseudo),
        "pseudo_label_precision": right / pseudo if pseudo else float("nan"),
        "pseudo_label_recall": right / missing if missing else float("nan"),
    }


@dataclass(frozen=True, eq=False)
class Histograms:
    """Probabilities of training pairs while they were trained on, by epoch and kind.

    Attributes:
        edges: Edges of the bins, from 0 to 1.
        counts: ``(epochs, kinds, bins)``, kinds as in :data:`KINDS`.

    Example:
        >>> counts = np.zeros((1, 3, 100))
        >>> counts[0, 1, [10, 70]], counts[0, 2, [10, 70]] = [3, 1], [9, 3]
        >>> Histograms(np.linspace(0, 1, 101), counts).above(0.6)
        (array([0.25]), array([0.25]))
    """

    edges: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]

    def of(self, kind: str, epoch: int) -> npt.NDArray[np.float64]:
        """Counts of one kind in one epoch, counting from 0; -1 is the last."""
        return np.asarray(self.counts[epoch, KINDS.index(kind)])

    def above(self, threshold: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Precision and recall, by epoch, of taking unlabelled pairs above a threshold for labels.

        Args:
            threshold: A probability with two decimals, because bins are that wide.
        """
        check_number("threshold", threshold, low=0, high=1)
        start = round(threshold * BINS)
        missing, absent = (self.counts[:, KINDS.index(kind)] for kind in KINDS[1:])
        right, wrong = missing[:, start:].sum(axis=1), absent[:, start:].sum(axis=1)
        nothing = np.full(len(right), np.nan)
        precision = np.divide(right, right + wrong, out=nothing.copy(), where=right + wrong > 0)
        total = missing.sum(axis=1)
        return precision, np.divide(right, total, out=nothing, where=total > 0)


def read_histograms(path: Path) -> Histograms:
    """Read what :func:`keep_histogram` wrote."""
    edges, counts = read_npz(path, ("edges", "counts"))
    if edges.shape != (BINS + 1,) or counts.ndim < 2 or counts.shape[-1] != BINS:
        raise data_error(path, f"these are no histograms: {edges.shape} edges, {counts.shape}.")
    return Histograms(edges, counts)


def keep_histogram(path: Path, epoch: int, counts: Sequence[float]) -> None:
    """Write the histograms of an epoch, counting from 0, behind those of the epochs before it."""
    drawn = np.asarray(counts[_COUNTED:], dtype=np.float64).reshape(1, len(KINDS), BINS)
    before = read_histograms(path).counts[:epoch] if epoch and path.exists() else drawn[:0]
    content = io.BytesIO()
    np.savez(content, edges=np.linspace(0, 1, BINS + 1), counts=np.concatenate([before, drawn]))
    atomic_write(path, content.getvalue())
