"""Calibrate: what the scores of a run mean, found at its end, and how good they are.

Complete labels judge by themselves. Incomplete ones punish a model for every label it found and
nobody recorded. By them epochs can be compared, but not judged: the true values of the last and the
best epoch are estimated, with intervals, when training is done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data import LabelTable, State, read_labels
from hilltop.data.scores import ScoreTable
from hilltop.inputs.features import FeatureInputs
from hilltop.metrics import classification_report
from hilltop.metrics.epochs import best_epoch, judged_value
from hilltop.missing import Evaluation, Interval, MissingLabelModel
from hilltop.training.checkpoint import load_tensors, save_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.heads import KnownLabels, truth_of_head, with_extra_scores
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Task, training_batch

Which = Literal["best", "last"]

_SURE = 1e-6  # scores of 0 and 1 are taken as this far from it


def calibrate_run(
    config: TrainConfig,
    folder: RunFolder,
    task: Task,
    rows: list[dict[str, Any]],
    last_scores: Tensor,
) -> list[dict[str, Any]]:
    """Calibrate the last and the best weights of a run, and estimate the true metrics of both.

    Heads are calibrated by folds of their training rows; networks on images, which would have to be
    trained several times for that, by the validation images, which they did not learn from.

    Args:
        config: Of the run.
        folder: The run folder, with the scores of the best epoch.
        task: What was trained.
        rows: The metrics of all epochs.
        last_scores: Probabilities of the last epoch for the validation images; NaN rows could not
            be read.

    Returns:
        The metrics, with intervals for the last and the best epoch where labels are incomplete.
    """
    values = last_scores.numpy().astype(np.float32)
    ScoreTable(task.val.images, task.val.classes, values).save(folder.last_scores)
    scores = {"last": last_scores}
    if folder.val_scores.is_file():  # an epoch without any metric is not the best one
        scores["best"] = torch.from_numpy(np.array(ScoreTable.load(folder.val_scores).values))
    if isinstance(task.train_inputs, FeatureInputs):
        truths = dict.fromkeys(scores, _by_folds(config, task, task.train_inputs))
    else:
        truths = {which: _by_validation(task, values) for which, values in scores.items()}
    epochs = {"last": rows[-1]["epoch"], "best": best_epoch(rows)["epoch"]}
    for which, truth in truths.items():
        if truth is None:
            continue
        save_model(truth, folder.truth(which))
        if lists_positives_alone(task.val):
            values = scores[which].numpy()
            found = _estimates(evaluate_scores(task.val.eval_targets(), values, truth))
            rows = [row | found if row["epoch"] == epochs[which] else row for row in rows]
    folder.record(rows)
    return rows


def usual_weights(folder: RunFolder) -> Which:
    """The weights to use if nobody says which, see ``load_run``."""
    if not folder.val_labels.is_file():
        return "last"
    complete = read_labels(folder.val_labels).unlisted == State.ABSENT
    return "best" if complete else "last"


def load_truth(folder: RunFolder, which: str) -> MissingLabelModel | None:
    """Read what a run keeps for its last or best weights; None if it keeps nothing."""
    return load_model(folder.truth(which))


def save_model(model: MissingLabelModel, path: Path) -> None:
    """Write a missing-label model to a file, completely or not at all."""
    save_tensors(path, model.tensors(), model.note())


def load_model(path: Path) -> MissingLabelModel | None:
    """Read a missing-label model; None if there is no file, or one of an older release."""
    if not path.is_file():
        return None
    tensors, note = load_tensors(path)
    return MissingLabelModel.from_tensors(tensors, note) if "kind" in note else None


def score_logits(scores: Tensor) -> Tensor:
    """Logits of scores between 0 and 1."""
    return torch.logit(scores.float(), eps=_SURE)


def _by_folds(config: TrainConfig, task: Task, inputs: FeatureInputs) -> MissingLabelModel | None:
    assert task.initial_loss is not None
    return truth_of_head(
        inputs.values,
        task.labels,
        task.initial_loss,
        seed=config.seed,
        recipe=task.recipe,
        hidden=config.model.hidden_width,
        evidence=task.evidence,
    )


def _by_validation(task: Task, scores: Tensor) -> MissingLabelModel | None:
    readable = np.flatnonzero(~torch.isnan(scores).any(dim=1).numpy())
    known = KnownLabels.of(
        lambda rows: training_batch(task.val, readable[rows.numpy()]), len(readable)
    )
    if not known.can_calibrate:
        return None
    (targets, absent, _), extra = known, task.extra_scores[1]
    logits = score_logits(scores[readable])
    combined = with_extra_scores(logits, None if extra is None else extra[readable], targets)
    model = MissingLabelModel.fit(combined, targets, verified=absent)
    if extra is None:
        return model
    return model.for_scores(logits, combined, targets, verified=absent)


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
