"""What the scores of a run mean: found at its end, kept in its folder, read by whoever decides."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hilltop.data import State, read_labels
from hilltop.data.scores import ScoreTable
from hilltop.inputs.features import FeatureInputs
from hilltop.missing.model import MissingLabelModel
from hilltop.training.checkpoint import load_tensors, save_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.evidence import confirmed_absent
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Task, training_batch
from hilltop.training.truth_of_head import LEAST_ROWS, truth_of_head

Which = Literal["best", "last"]

_SURE = 1e-6  # scores of 0 and 1 are taken as this far from it


def keep_truth(config: TrainConfig, folder: RunFolder, task: Task, last_scores: Tensor) -> None:
    """Calibrate the last and the best weights of a run and keep it in its folder.

    Heads are calibrated by folds of their training rows; networks on images, which would have to be
    trained several times for that, by the validation images, which they did not learn from.

    Args:
        config: Of the run.
        folder: The run folder, with the scores of the best epoch.
        task: What was trained.
        last_scores: Probabilities of the last epoch for the validation images; NaN rows could not
            be read.
    """
    values = last_scores.numpy().astype(np.float32)
    ScoreTable(task.val.images, task.val.classes, values).save(folder.last_scores)
    if isinstance(task.train_inputs, FeatureInputs):
        truths = dict.fromkeys(("last", "best"), _by_folds(config, task, task.train_inputs))
    else:
        best = torch.from_numpy(np.array(ScoreTable.load(folder.val_scores).values))
        scores = {"last": last_scores, "best": best}
        truths = {which: _by_validation(task, values) for which, values in scores.items()}
    for which, truth in truths.items():
        if truth is not None:
            save_model(truth, folder.truth(which))


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
    assert task.untrained is not None
    every = np.arange(len(task.train))
    return truth_of_head(
        inputs.values,
        lambda rows: training_batch(task.train, rows.numpy()),
        task.untrained,
        seed=config.seed,
        recipe=task.recipe,
        hidden=config.model.hidden if config.model.model == "mlp" else None,
        evidence=task.evidence,
        before=None if task.before is None else training_batch(task.before, every)[0],
    )


def _by_validation(task: Task, scores: Tensor) -> MissingLabelModel | None:
    readable = np.flatnonzero(~torch.isnan(scores).any(dim=1).numpy())
    targets, observed = training_batch(task.val, readable)
    if len(readable) < LEAST_ROWS or not bool((targets == 1).any()):
        return None
    absent = confirmed_absent(targets, observed)
    return MissingLabelModel.fit(score_logits(scores[readable]), targets, verified=absent)
