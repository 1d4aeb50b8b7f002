"""A run from labels to report in five steps; or two runs, with pseudo labels between."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from hilltop.data import LabelTable, State, Step, read_labels, write_labels
from hilltop.inputs.features import read_features
from hilltop.training.calibration import calibrate_run, lists_positives_alone
from hilltop.training.checkpoint import load_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import all_gather_object, launch
from hilltop.training.learner import step_threads
from hilltop.training.loop import train_epochs
from hilltop.training.reporter import Reporter, Steps
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import (
    cross_validate_task,
    fit_missing_labels,
    predict,
    read_task,
    select_hyperparameters,
    store_labels,
)

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def train(config: TrainConfig, out: Path, *, calibrate: bool = True) -> Path:
    """Train from the start and return the run folder.

    Args:
        config: What to train, on what and how.
        out: The run folder; it must not hold a run already.
        calibrate: Whether to find out at the end what scores mean, which tags are decided by.
    """
    config = config.resolved()
    config.check()
    fabric = launch(config.precision, logger=config.logger, folder=out)
    folder = RunFolder(out)
    if fabric.is_global_zero:
        folder.create(config.as_dict())
    fabric.barrier()
    try:
        return _run(config, folder, fabric, calibrate)
    except BaseException:
        if fabric.is_global_zero and not _started(folder):
            folder.discard()
        raise


def resume(path: Path, *, calibrate: bool = True) -> Path:
    """Go on with a run that was stopped, as if it had not been, and return its folder."""
    folder = RunFolder(path)
    folder.check()
    config = TrainConfig.from_file(folder.config)
    config.check_stored(folder.config)
    fabric = launch(config.precision, logger=config.logger, folder=path)
    return _run(config, folder, fabric, calibrate)


def _started(folder: RunFolder) -> bool:
    """Whether training began, here or in the first of two stages."""
    return folder.events.exists() or _first(folder).events.exists()


def _first(folder: RunFolder) -> RunFolder:
    """The folder of the first of two stages."""
    return RunFolder(folder.path / "first")


def _run(config: TrainConfig, folder: RunFolder, fabric: Fabric, calibrate: bool) -> Path:
    """Train on the labels in the run folder, from where the run stands, and return its path.

    Five steps, each named as it begins: select hyperparameters, cross-validate, fit the
    missing-label model, train, calibrate. ``steps.json`` keeps what came of them.
    """
    with folder.locked() if fabric.is_global_zero else nullcontext():
        _store_labels(config, folder, fabric)
        with _threads(config, folder):
            return _five_steps(config, folder, fabric, calibrate)


def _store_labels(config: TrainConfig, folder: RunFolder, fabric: Fabric) -> None:
    """Put labels into the run folder, in the second of two stages with pseudo labels."""
    if not folder.val_labels.is_file():  # written last, so the training labels are there too
        if config.pseudo_label is not None:
            _add_pseudo_labels(config, folder, fabric, config.pseudo_label)
        elif fabric.is_global_zero:
            store_labels(config, folder)
    fabric.barrier()


def _five_steps(config: TrainConfig, folder: RunFolder, fabric: Fabric, calibrate: bool) -> Path:
    steps = Steps(folder, quiet=not fabric.is_global_zero)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        task = read_task(config, folder)
        # Estimates of the true metrics on incomplete labels need it in any case.
        calibrate = calibrate or lists_positives_alone(task.val)
        with steps.step("select hyperparameters") as found:
            task = select_hyperparameters(config, task)
            found["recipe"] = dataclasses.asdict(task.recipe)
        with steps.step("cross-validate") as found:
            task = cross_validate_task(config, task, folder, calibrate=calibrate)
            found["images"] = 0 if task.heads is None else len(task.heads.logits)
        with steps.step("fit the missing-label model") as found:
            task = fit_missing_labels(config, task)
            found["loss"] = task.loss.describe()
    reporter = Reporter(config, folder, task, fabric)
    with steps.step("train") as found:
        rows, scores = train_epochs(config, folder, fabric, task, reporter)
        found["epochs"] = config.epochs
    if calibrate:
        with steps.step("calibrate") as found:
            if fabric.is_global_zero:
                rows = calibrate_run(config, folder, task, rows, scores)
            found["images"] = len(task.val)
    broken = all_gather_object(task.train_inputs.broken + task.val_inputs.broken)
    if fabric.is_global_zero:
        reporter.finish(rows, broken)
    fabric.barrier()
    return folder.path


@contextmanager
def _threads(config: TrainConfig, folder: RunFolder) -> Iterator[None]:
    """The threads that a run is worth: a network takes all, a head on features few."""
    if config.features is None:
        yield
        return
    features = read_features(config.features)  # kept meanwhile, so that it is read once
    classes = len(read_labels(folder.val_labels).classes)
    with step_threads(config.batch_size, features.values.shape[1], classes):
        yield


def _add_pseudo_labels(
    config: TrainConfig, folder: RunFolder, fabric: Fabric, threshold: float
) -> None:
    """Train a first time in the folder's own folder, and label what that model is sure of."""
    first = _first(folder)
    once = dataclasses.replace(config, pseudo_label=None, report=False, logger=None)
    if first.last.is_file() and len(first.recorded()) == once.epochs:
        pass  # it is finished
    elif first.config.is_file():
        resume(first.path, calibrate=False)
    else:
        train(once, first.path, calibrate=False)
    task = read_task(once, first)
    task.model.load_state_dict(load_tensors(first.last)[0])
    model = task.model.to(fabric.device)
    scores = predict(model, task.train_inputs, len(task.train), once, fabric).numpy()
    if fabric.is_global_zero:
        labelled = add_confident(task.train, scores, threshold, seed=once.seed)
        write_labels(labelled, folder.train_labels)
        write_labels(read_labels(first.val_labels), folder.val_labels)
    fabric.barrier()


def add_confident(
    table: LabelTable,
    scores: npt.NDArray[np.float32],
    threshold: float,
    *,
    seed: int | None = None,
) -> LabelTable:
    """Return the table with every unknown pair above the threshold labelled present.

    Args:
        table: The labels.
        scores: What a model says of all pairs ``(images, classes)``; NaN where it says nothing.
        threshold: What a score must exceed.
        seed: What the model was trained from, for the history.
    """
    targets, _ = table.batch()
    unknown = (table.dense() == State.UNKNOWN) & ~np.isnan(targets)
    rows, columns = np.nonzero(unknown & (np.nan_to_num(scores) > threshold))
    step = Step(
        "pseudo_label", {"threshold": threshold}, by="the model of the first run", seed=seed
    )
    return table.with_states(rows, columns, State.PRESENT, step=step)
