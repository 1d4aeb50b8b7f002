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
    learner, wrapped = _learner(config, task, fabric)
    others = {**gradient_scaler(fabric)}
    if learner.schedule is not None:
        others["schedule"] = learner.schedule
    scores: Tensor | None = None
    with Interrupt() as interrupt, torch.random.fork_rng():
        progress = Progress()
        if folder.state.is_file():
            progress = load_state(
                folder.state, learner.modules, learner.optimizer, others, fabric.global_rank
            )
        rows = [row for row in folder.recorded() if row["epoch"] <= progress.epoch]
        for epoch in range(progress.epoch, config.epochs):
            if isinstance(learner.optimizer, LogisticSolver) and learner.optimizer.is_done:
                break
            started = time.perf_counter()
            task.loss.set_epoch(epoch)
            if progress.step == 0:
                torch.manual_seed(seed_of(config.seed, epoch, fabric.global_rank))
            with _divergence_explained(folder, config, task, epoch):
                if isinstance(learner.optimizer, LogisticSolver):
                    progress = _solve_epoch(
                        task, learner.optimizer, fabric, progress, interrupt, reporter
                    )
                else:
                    progress = _train_epoch(
                        config, task, learner, wrapped, fabric, progress, interrupt, reporter
                    )
                if interrupt.asked:
                    _save(folder, learner, others, progress, fabric)
                    raise KeyboardInterrupt
                scores, kept, both = _scores(config, task, learner, fabric)
            row, progress = _evaluate(task, scores, progress, learner)
            rows.append(row | both)
            if fabric.is_global_zero:
                _keep(folder, task, kept, scores, rows, progress)
                reporter.epoch(row, time.perf_counter() - started)
            progress = dataclasses.replace(
                Progress(),
                epoch=epoch + 1,
                best_map=progress.best_map,
                best_epoch=progress.best_epoch,
            )
            _save(folder, learner, others, progress, fabric)
    if scores is None:  # a run that had finished training before it was resumed
        scores, _, _ = _scores(config, task, learner, fabric)
    return rows, scores


@contextmanager
def _divergence_explained(
    folder: RunFolder, config: TrainConfig, task: Task, epoch: int
) -> Iterator[None]:
    """Say in which epoch training diverged, what is kept and what to try."""
    try:
        yield
    except DivergenceError as error:
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
    task.loss.to(fabric.device)
    model = task.model.to(fabric.device)
    solver = _solver(config, task, fabric)
    if solver is not None:
        return Learner(model, task.loss, task.recipe, len(task.train), solver, None), model
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
    assert isinstance(learner.optimizer, torch.optim.Optimizer)
    wrapped, learner.stepper = fabric.setup(learner.model, learner.optimizer)
    return learner, wrapped


def _solver(config: TrainConfig, task: Task, fabric: Fabric) -> LogisticSolver | None:
    """What fits a linear head of cross-entropy; None for all that is trained by steps.

    Every process fits the whole head: it takes seconds, and all of them get the same.
    """
    if not uses_solver(config, task.recipe, task.loss):
        return None
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


@torch.no_grad()
def _solve_epoch(
    task: Task,
    solver: LogisticSolver,
    fabric: Fabric,
    progress: Progress,
    interrupt: Interrupt,
    reporter: Reporter,
) -> Progress:
    """Make one step of the solver, which is a pass through the training rows."""
    rows, counts = len(task.train), progress.pseudo_counts
    if progress.step == 0:
        loss = solver.step()
        solver.set_bias()
        if task.true_labels is not None:
            counts = _count_pseudo_labels(task, solver.logits, fabric)
        solver.recompute()  # a resumed run has no logits either
        reporter.step(progress.epoch, 1, 1, loss, rows)
        progress = dataclasses.replace(
            progress, step=1, loss_sum=loss * rows, loss_count=rows, pseudo_counts=counts
        )
    if fabric.world_size > 1:
        interrupt.asked = any_rank(interrupt.asked, fabric.device)
    return progress


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
    task: Task, scores: Tensor, progress: Progress, learner: Learner
) -> tuple[dict[str, Any], Progress]:
    """Metrics of an epoch, and whether it is the best so far."""
    found, epoch = epoch_metrics(task, scores), progress.epoch + 1
    row = {
        "epoch": epoch,
        "loss": progress.loss_sum / max(1, progress.loss_count),
        "learning_rate": learner.optimizer.param_groups[0]["lr"],
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
    learner: Learner,
    others: dict[str, Any],
    progress: Progress,
    fabric: Fabric,
) -> None:
    states = {name: all_gather(state, fabric) for name, state in rng_state().items()}
    if fabric.is_global_zero:
        save_state(folder.state, learner.modules, learner.optimizer, others, progress, states)
    fabric.barrier()
