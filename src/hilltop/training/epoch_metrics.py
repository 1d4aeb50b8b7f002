"""Metrics of an epoch on the validation images: by labels as they are, and as they may truly be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.data.scores import ScoreTable
from hilltop.metrics import classification_report
from hilltop.report.epochs import judged_value
from hilltop.training.checkpoint import Progress
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Task


@dataclass(frozen=True)
class EpochMetrics:
    """Metrics of an epoch.

    Attributes:
        columns: By name; with estimates where validation labels list positives alone.
        gain: Estimated mAP less that of the rival; None if there is none, or no estimate.
    """

    columns: dict[str, float]
    gain: float | None = None

    def is_better(self, best_map: float) -> bool:
        """Whether the epoch is better than the best so far, whose mAP is given.

        An epoch that was judged, kept and then lost with the process is its own rival: no gain.
        """
        return judged_value(self.columns) > best_map if self.gain is None else self.gain >= 0


def epoch_metrics(task: Task, scores: Tensor, *, rival: Tensor | None = None) -> EpochMetrics:
    """Judge scores of the validation images; rows that could not be read are NaN.

    Args:
        task: What the run works on.
        scores: Probabilities.
        rival: Those of the best epoch so far.
    """
    readable = ~torch.isnan(scores).any(dim=1).numpy()
    threshold = task.loss.decision_threshold(scores[torch.from_numpy(readable)])
    targets = task.val.eval_targets()[readable]
    found = classification_report(scores.numpy()[readable], targets, threshold).as_dict()
    if task.incomplete is None:
        return EpochMetrics(found)
    other = None if rival is None else rival.numpy()
    judged = task.incomplete.judge(scores.numpy(), threshold, rival=other)
    return EpochMetrics(found | judged.columns(), judged.gain)


def best_scores(folder: RunFolder, task: Task, progress: Progress) -> Tensor | None:
    """Validation scores of the best epoch so far, where epochs are compared with it."""
    if task.incomplete is None or progress.best_epoch < 1 or not folder.val_scores.is_file():
        return None
    return torch.from_numpy(np.array(ScoreTable.load(folder.val_scores).values))
