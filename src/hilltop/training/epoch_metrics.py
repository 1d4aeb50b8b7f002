"""Metrics of an epoch on the validation images, and estimates of their true values at the end.

Complete labels judge by themselves. Incomplete ones punish a model for every label it found and
nobody recorded. By them epochs can be compared, but not judged: the true values of the last and the
best epoch are estimated, with intervals, when training is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data.scores import ScoreTable
from hilltop.metrics import classification_report
from hilltop.metrics.epochs import best_epoch, judged_value
from hilltop.missing import Evaluation, Interval, MissingLabelModel
from hilltop.training.decisions import load_truth, score_logits
from hilltop.training.run_folder import RunFolder

if TYPE_CHECKING:
    from hilltop.data import LabelTable
    from hilltop.training.task import Task

ESTIMATED = ("mAP", "CF1", "OF1")
"""Metrics that are estimated."""
LEAST_IMAGES, LEAST_LABELS = 30, 20
"""Fewer validation images or labels tell too little of what is missing."""
_MOST_ENTRIES = 2_000_000


def epoch_metrics(task: Task, scores: Tensor) -> dict[str, float]:
    """Judge scores of the validation images; rows that could not be read are NaN.

    Returns:
        All metrics by name where labels are complete. Otherwise mAP by the labels as they are, and
        NaN for estimates, which the end of training fills in.
    """
    readable = ~torch.isnan(scores).any(dim=1).numpy()
    threshold = task.loss.decision_threshold(scores[torch.from_numpy(readable)])
    targets = task.val.eval_targets()[readable]
    found = classification_report(scores.numpy()[readable], targets, threshold)
    if lists_positives_alone(task.val):
        return {"mAP": found.mAP, **_estimates({})}
    return found.as_dict()


def with_estimates(
    task: Task, folder: RunFolder, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of a finished run with intervals for its last and its best epoch."""
    if not lists_positives_alone(task.val):
        return rows
    chosen = {"last": rows[-1]["epoch"], "best": best_epoch(rows)["epoch"]}
    files = {"last": folder.last_scores, "best": folder.val_scores}
    for which, epoch in chosen.items():
        truth = load_truth(folder, which)
        if truth is not None and files[which].is_file():
            scores = np.array(ScoreTable.load(files[which]).values)
            found = _estimates(evaluate_scores(task.val.eval_targets(), scores, truth))
            rows = [row | found if row["epoch"] == epoch else row for row in rows]
    return rows


def evaluate_scores(
    targets: npt.NDArray[np.float32], scores: npt.NDArray[Any], truth: MissingLabelModel
) -> dict[str, Interval]:
    """Estimate the true metrics of tags at the thresholds of a run; empty where labels are few."""
    every = max(1, -(-targets.size // _MOST_ENTRIES))
    rows = np.flatnonzero(~np.isnan(scores).any(axis=1))[::every]
    targets, scores = targets[rows], scores[rows]
    if len(targets) < LEAST_IMAGES or (targets == 1).sum() < LEAST_LABELS:
        return {}
    probs = truth.probs(score_logits(torch.from_numpy(scores))).double().numpy()
    report = Evaluation([probs], targets, threshold=truth.thresholds().thresholds).report()
    return {name: report.metrics[name] for name in ESTIMATED}


def lists_positives_alone(labels: LabelTable) -> bool:
    """Whether entries without a label count as absent though nobody said so."""
    from hilltop.data import State

    absent = bool((labels.states == State.ABSENT).any())
    present = bool((labels.states == State.PRESENT).any())
    return labels.unlisted == State.UNKNOWN and present and not absent


def is_better(found: dict[str, float], best_map: float) -> bool:
    """Whether an epoch is better than the best so far, whose mAP is given."""
    return judged_value(found) > best_map


def _estimates(found: dict[str, Interval]) -> dict[str, float]:
    """Columns of estimates, NaN where there is none."""
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    return {
        f"{name}_{end}": value
        for name in ESTIMATED
        for end, value in zip(
            ("estimate", "low", "high"), _ends(found.get(name, unknown)), strict=True
        )
    }


def _ends(found: Interval) -> tuple[float, float, float]:
    return found.value, found.low, found.high
