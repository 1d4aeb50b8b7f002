"""Train: the fourth step of a run, epoch by epoch, from where it stands."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hilltop.data.scores import ScoreTable
from hilltop.errors import DivergenceError
from hilltop.inputs.features import FeatureInputs
from hilltop.metrics.epochs import judged_value
from hilltop.models import FeatureHead, classifier_parameters, hold_statistics
from hilltop.training.calibration import epoch_metrics, is_better, lists_positives_alone
from hilltop.training.checkpoint import Progress, load_state, rng_state, save_state, save_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import (
    Interrupt,
    all_gather,
    all_reduce_sum,
    any_rank,
    average_gradients,
    gradient_scaler,
    mean_over_ranks,
    shard,
)
from hilltop.training.folds import head_solver
from hilltop.training.learner import Learner
from hilltop.training.logistic import LogisticSolver, entry_weights
from hilltop.training.pseudo_counts import PseudoCounts, keep_histogram, pseudo_columns
from hilltop.training.recipe import seed_of
from hilltop.training.reporter import Reporter
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Task, placed, predict, training_batch, uses_solver

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def train_epochs(
    config: TrainConfig, folder: RunFolder, fabric: Fabric, task: Task, reporter: Reporter
) -> tuple[list[dict[str, Any]], Tensor]:
    """Go through the epochs that are left, and keep the model and the metrics of each.

    Returns:
        The metrics of all epochs, and the validation scores of the last one.
    """
    task.loss.to(fabric.device)
    task.model.to(fabric.device)
    with torch.random.fork_rng():
        if uses_solver(config, task.recipe, task.loss):
            return _solve_head(config, folder, fabric, task, reporter)
        return _train_by_steps(config, folder, fabric, task, reporter)


def _solve_head(
    config: TrainConfig, folder: RunFolder, fabric: Fabric, task: Task, reporter: Reporter
) -> tuple[list[dict[str, Any]], Tensor]:
    """Fit a linear head of cross-entropy, where an epoch is a pass through the training rows.

    It takes seconds, so that a run that was stopped begins anew. Every process fits the whole head,
    and all of them get the same.
    """
    modules = {"model": task.model, "loss": task.loss}
    if folder.state.is_file():
        load_state(folder.state, modules, None, {}, fabric.global_rank)
        return folder.recorded(), predict(
            task.model, task.val_inputs, len(task.val), config, fabric
        )
    rows: list[dict[str, Any]] = []
    progress, started, images = Progress(), time.perf_counter(), len(task.train)
    solver = _solver(task, fabric)
    with _divergence_explained(folder, config, task, rows):
        for loss in solver.passes(config.epochs):
            progress = dataclasses.replace(progress, loss_sum=loss * images, loss_count=images)
            if task.true_labels is not None:
                counts = _count_pseudo_labels(task, solver.logits, fabric)
                progress = dataclasses.replace(progress, pseudo_counts=counts)
            reporter.step(progress.epoch, 1, 1, loss, images)
            scores = predict(task.model, task.val_inputs, len(task.val), config, fabric)
            row, progress = _evaluate(task, scores, progress, rate=1.0)
            rows.append(row)
            if fabric.is_global_zero:
                _keep(folder, task, task.model, scores, rows, progress)
                reporter.epoch(row, time.perf_counter() - started)
            progress, started = _next_epoch(progress), time.perf_counter()
    _save(folder, modules, None, {}, progress, fabric)
    return rows, scores


def _train_by_steps(
    config: TrainConfig, folder: RunFolder, fabric: Fabric, task: Task, reporter: Reporter
) -> tuple[list[dict[str, Any]], Tensor]:
    """Train by steps of an optimiser; what was stopped goes on at the step where it was."""
    learner, wrapped = _learner(config, task, fabric)
    others = {**gradient_scaler(fabric), "schedule": learner.schedule}
    scores: Tensor | None = None
    with Interrupt() as interrupt:
        progress = Progress()
        if folder.state.is_file():
            progress = load_state(
                folder.state, learner.modules, learner.optimizer, others, fabric.global_rank
            )
        rows = [row for row in folder.recorded() if row["epoch"] <= progress.epoch]
        for epoch in range(progress.epoch, config.epochs):
            started = time.perf_counter()
            task.loss.set_epoch(epoch)
            if progress.step == 0:
                torch.manual_seed(seed_of(config.seed, epoch, fabric.global_rank))
            with _divergence_explained(folder, config, task, rows):
                progress = _train_epoch(
                    config, task, learner, wrapped, fabric, progress, interrupt, reporter
                )
                if interrupt.asked:
                    _save(folder, learner.modules, learner.optimizer, others, progress, fabric)
                    raise KeyboardInterrupt
                scores, kept, both = _scores(config, task, learner, fabric)
            rate = learner.optimizer.param_groups[0]["lr"]
            row, progress = _evaluate(task, scores, progress, rate=rate)
            rows.append(row | both)
            if fabric.is_global_zero:
                _keep(folder, task, kept, scores, rows, progress)
                reporter.epoch(row, time.perf_counter() - started)
            progress = _next_epoch(progress)
            _save(folder, learner.modules, learner.optimizer, others, progress, fabric)
    if scores is None:  # a run that had finished training before it was resumed
        scores, _, _ = _scores(config, task, learner, fabric)
    return rows, scores


def _next_epoch(progress: Progress) -> Progress:
    return Progress(
        epoch=progress.epoch + 1, best_map=progress.best_map, best_epoch=progress.best_epoch
    )


@contextmanager
def _divergence_explained(
    folder: RunFolder, config: TrainConfig, task: Task, rows: Sequence[dict[str, Any]]
) -> Iterator[None]:
    """Say in which epoch training diverged, what is kept and what to try."""
    try:
        yield
    except DivergenceError as error:
        epoch = len(rows)
        folder.event("diverged", epoch=epoch + 1)
        kept = f"The state after epoch {epoch} is kept" if epoch else "No epoch was finished"
        reason = str(error).partition(" Try ")[0]
        mixed = "" if config.precision in ("32", "auto") else " or --precision 32"
        raise DivergenceError(
            f"{folder.path}: epoch {epoch + 1}: {reason} {kept}. Try a lower --learning-rate"
            f" (its peak was {task.recipe.learning_rate:g}){mixed}."
        ) from None


def _learner(config: TrainConfig, task: Task, fabric: Fabric) -> tuple[Learner, nn.Module]:
    """What learns, and its model as Fabric runs it, on one process or many."""
    model = task.model
    learner = Learner.build(
        model,
        task.loss,
        task.recipe,
        rows=len(task.train),
        head=classifier_parameters(model) if config.kind == "images" else (),
        head_rate=config.model.head_rate or 1.0,
    )
    average_gradients(task.loss)
    if config.kind == "images":
        learner.model = model.to(memory_format=torch.channels_last)
    wrapped, learner.stepper = fabric.setup(learner.model, learner.optimizer)
    return learner, wrapped


def _solver(task: Task, fabric: Fabric) -> LogisticSolver:
    """What fits a linear head of cross-entropy."""
    assert isinstance(task.model, FeatureHead)
    assert isinstance(task.train_inputs, FeatureInputs)
    rows = np.arange(len(task.train))
    targets, observed = (part.to(fabric.device) for part in training_batch(task.train, rows))
    index = torch.from_numpy(rows).to(fabric.device)
    entries = entry_weights(task.loss, targets, observed, index)
    assert entries is not None
    heads = None if task.evidence is None else task.evidence.start_of(task.loss)
    return head_solver(
        task.model, task.train_inputs.values, entries, recipe=task.recipe, heads=heads
    )


def _count_pseudo_labels(task: Task, logits: Tensor, fabric: Fabric) -> tuple[float, ...]:
    assert task.true_labels is not None
    empty = torch.empty(0, dtype=torch.float64, device=fabric.device)
    counted = PseudoCounts(task.loss, task.true_labels, empty)
    for rows in np.array_split(np.arange(len(logits)), -(-len(logits) // 4096)):
        targets, observed = (part.to(fabric.device) for part in training_batch(task.train, rows))
        index = torch.from_numpy(rows).to(fabric.device)
        counted.update(rows, logits[index], targets, observed, index)
    return tuple(counted.counts.tolist())


@torch.no_grad()
def _asked(learner: Learner, batch: Tensor, fabric: Fabric) -> Tensor:
    """What the moving average says of a batch."""
    assert learner.average is not None
    with fabric.autocast():
        logits: Tensor = learner.average.module.eval()(batch)
    return logits


def _train_epoch(
    config: TrainConfig,
    task: Task,
    learner: Learner,
    wrapped: nn.Module,
    fabric: Fabric,
    progress: Progress,
    interrupt: Interrupt,
    reporter: Reporter,
) -> Progress:
    """Go once through the training images, from where the run stands."""
    epoch, step = progress.epoch, progress.step
    world = fabric.world_size
    before = progress if fabric.is_global_zero else Progress()  # sums of all ranks, counted once
    total, count = before.loss_sum, before.loss_count
    plan = task.recipe.epoch_plan(len(task.train), config.seed, epoch, world=world)
    _, parts = task.recipe.passes(len(task.train))
    shards = [shard(rows.tolist(), fabric.global_rank, world) for rows in plan]
    pseudo_counts = None
    if task.true_labels is not None:
        counts = torch.tensor(before.pseudo_counts, dtype=torch.float64, device=fabric.device)
        pseudo_counts = PseudoCounts(task.loss, task.true_labels, counts)
    learner.begin_epoch(epoch, step=step)

    def backward(loss: Tensor) -> None:
        fabric.backward(loss * world)  # ranks average their gradients, but the loss is a sum
        if learner.head_alone:  # ranks exchange the gradients of the whole model, or none
            mean_over_ranks(learner.head)

    wrapped.train()
    if config.model.freeze_norms or learner.head_alone:
        hold_statistics(learner.model)
    for rows, batch in task.train_inputs.loader(shards[step:], epoch):
        targets, observed = (part.to(fabric.device) for part in training_batch(task.train, rows))
        index = torch.from_numpy(rows).to(fabric.device)
        # Of a part of the model ranks exchange gradients by themselves, see backward above.
        with fabric.no_backward_sync(wrapped, enabled=learner.head_alone):  # type: ignore[arg-type]
            logits = wrapped(placed(batch, fabric))
        if task.judged is not None:
            task.judged.teacher_logits = _asked(learner, placed(batch, fabric), fabric)
        if (
            pseudo_counts is not None and step >= len(plan) - parts
        ):  # each pair once, in the last pass
            pseudo_counts.update(rows, logits, targets, observed, index)
        total += learner.step(logits, targets, observed=observed, index=index, backward=backward)
        step, count = step + 1, count + len(rows)
        reporter.step(epoch, step, len(plan), total / max(1, count), len(plan[step - 1]))
        if world > 1:
            interrupt.asked = any_rank(interrupt.asked, fabric.device)
        if interrupt.asked:
            break
    sums = torch.tensor([total, count], dtype=torch.float64, device=fabric.device)
    if pseudo_counts is not None:
        sums = torch.cat([sums, pseudo_counts.counts])
    total, count, *counted = all_reduce_sum(sums).tolist()
    return dataclasses.replace(
        progress, step=step, loss_sum=total, loss_count=int(count), pseudo_counts=tuple(counted)
    )


def _scores(
    config: TrainConfig, task: Task, learner: Learner, fabric: Fabric
) -> tuple[Tensor, nn.Module, dict[str, float]]:
    """Validation scores of the model that is kept, that model, and mAP of both if it is chosen."""

    def scores(model: nn.Module) -> Tensor:
        return predict(model, task.val_inputs, len(task.val), config, fabric)

    kept = scores(learner.kept)
    if config.ema_choice == "average" or learner.average is None:
        return kept, learner.kept, {}
    plain = scores(learner.model)
    average, own = epoch_metrics(task, kept), epoch_metrics(task, plain)
    both = {f"mAP_{which}": found["mAP"] for which, found in (("average", average), ("plain", own))}
    if is_better(own, judged_value(average)):
        return plain, learner.model, both
    return kept, learner.kept, both


def _evaluate(
    task: Task, scores: Tensor, progress: Progress, *, rate: float
) -> tuple[dict[str, Any], Progress]:
    """Metrics of an epoch, and whether it is the best so far."""
    found, epoch = epoch_metrics(task, scores), progress.epoch + 1
    row = {
        "epoch": epoch,
        "loss": progress.loss_sum / max(1, progress.loss_count),
        "learning_rate": rate,
        **found,
        **(pseudo_columns(progress.pseudo_counts) if task.true_labels is not None else {}),
    }
    if is_better(found, progress.best_map):
        reached = judged_value(found)
        progress = dataclasses.replace(progress, best_map=reached, best_epoch=epoch)
    if lists_positives_alone(task.val):
        row["best_epoch"] = progress.best_epoch
    return row, progress


def _keep(
    folder: RunFolder,
    task: Task,
    kept: nn.Module,
    scores: Tensor,
    rows: Sequence[dict[str, Any]],
    progress: Progress,
) -> None:
    """Write the model, and scores and model of the best epoch."""
    backbone = getattr(task.train_inputs, "backbone", None)
    note = {"classes": task.train.classes, "epoch": progress.epoch + 1, "backbone": backbone}
    weights = kept.state_dict()
    save_tensors(folder.last, weights, note)
    if progress.best_epoch == progress.epoch + 1:
        save_tensors(folder.best, weights, note)
        values = scores.numpy().astype(np.float32)
        ScoreTable(task.val.images, task.val.classes, values).save(folder.val_scores)
    if progress.pseudo_counts:
        keep_histogram(folder.histograms, progress.epoch, progress.pseudo_counts)
    folder.record(list(rows))


def _save(
    folder: RunFolder,
    modules: dict[str, nn.Module],
    optimizer: torch.optim.Optimizer | None,
    others: dict[str, Any],
    progress: Progress,
    fabric: Fabric,
) -> None:
    states = {name: all_gather(state, fabric) for name, state in rng_state().items()}
    if fabric.is_global_zero:
        save_state(folder.state, modules, optimizer, others, progress, states)
    fabric.barrier()
