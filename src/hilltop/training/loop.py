"""The training loop, readable from top to bottom."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel

from hilltop.data.scores import ScoreTable
from hilltop.errors import DataError
from hilltop.metrics import classification_report
from hilltop.models import classifier_parameters, hold_statistics
from hilltop.training.checkpoint import Progress, chance, load_state, save_state, save_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import (
    all_gather,
    all_gather_object,
    all_reduce_sum,
    any_rank,
    average_gradients,
    share,
)
from hilltop.training.fabric import Fabric
from hilltop.training.interrupt import Interrupt
from hilltop.training.optim import build_optimizer, build_schedule, moving_average
from hilltop.training.recovered import Recovered, keep_histogram, recovered_columns
from hilltop.training.reporter import Reporter
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Inputs, Task, build_task, training_batch


@dataclass
class _Parts:
    """What changes while training."""

    model: nn.Module
    wrapped: nn.Module  # the model as Fabric runs it, on one process or many
    stepper: Any  # the optimiser as Fabric runs it
    average: AveragedModel | None
    optimizer: Adam
    schedule: OneCycleLR
    loss: nn.Module

    @property
    def modules(self) -> dict[str, nn.Module]:
        kept = {"model": self.model, "loss": self.loss}
        return kept if self.average is None else {**kept, "average": self.average}

    @property
    def judged(self) -> nn.Module:
        """The model that is evaluated and kept: the average, where there is one."""
        return self.model if self.average is None else self.average.module


def run(config: TrainConfig, folder: RunFolder, fabric: Fabric) -> Path:
    """Train on the labels in the run folder, from where the run stands, and return its path."""
    task = build_task(config, folder)
    plan_length = -(-len(task.train) // config.batch_size)
    parts = _parts(config, task, fabric, plan_length)
    others = {"schedule": parts.schedule}
    reporter = Reporter(config, folder, task, quiet=not fabric.is_global_zero)
    with Interrupt() as interrupt, torch.random.fork_rng():
        progress = Progress()
        if folder.state.is_file():
            progress = load_state(
                folder.state, parts.modules, parts.optimizer, others, fabric.global_rank
            )
        rows = [row for row in folder.recorded() if row["epoch"] <= progress.epoch]
        for epoch in range(progress.epoch, config.epochs):
            started = time.perf_counter()
            task.loss.set_epoch(epoch)
            if progress.step == 0:
                torch.manual_seed(_seed(config.seed, epoch, fabric.global_rank))
            progress = _train_epoch(config, task, parts, fabric, progress, interrupt, reporter)
            if interrupt.asked:
                _save(folder, parts, others, progress, fabric)
                raise KeyboardInterrupt
            scores = predict(parts.judged, task.val_inputs, len(task.val), config, fabric)
            row, progress = _judge(task, scores, progress, parts)
            rows.append(row)
            if fabric.is_global_zero:
                _keep(folder, task, parts, scores, rows, progress)
                reporter.epoch(row, time.perf_counter() - started)
            progress = dataclasses.replace(
                Progress(),
                epoch=epoch + 1,
                best_map=progress.best_map,
                best_epoch=progress.best_epoch,
            )
            _save(folder, parts, others, progress, fabric)
    broken = all_gather_object(task.train_inputs.broken + task.val_inputs.broken)
    if fabric.is_global_zero:
        reporter.finish(rows, broken)
    fabric.barrier()
    return folder.path


def _parts(config: TrainConfig, task: Task, fabric: Fabric, plan_length: int) -> _Parts:
    assert config.learning_rate is not None
    assert config.weight_decay is not None
    task.loss.to(fabric.device)
    model = task.model.to(fabric.device)
    optimizer = build_optimizer(
        model,
        task.loss,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        decoupled=config.kind == "features",
        head=classifier_parameters(model) if config.kind == "images" else (),
        head_rate=config.model.head_rate or 1.0,
    )
    average_gradients(task.loss)
    if config.kind == "images":
        model = model.to(memory_format=torch.channels_last)
    wrapped, stepper = fabric.setup(model, optimizer)
    length = (config.schedule_epochs or config.epochs) * plan_length
    schedule = build_schedule(optimizer, steps=length, warmup=config.warmup)
    average = moving_average(model, config.ema) if config.ema else None
    return _Parts(model, wrapped, stepper, average, optimizer, schedule, task.loss)


def _train_epoch(
    config: TrainConfig,
    task: Task,
    parts: _Parts,
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
    plan = epoch_plan(len(task.train), config.batch_size, config.seed, epoch, world)
    shares = [share(rows, fabric.global_rank, world) for rows in plan]
    recovered = None
    if task.true_labels is not None:
        counts = torch.tensor(before.recovered, dtype=torch.float64, device=fabric.device)
        recovered = Recovered(task.loss, task.true_labels, counts)
    parts.wrapped.train()
    if config.model.freeze_norms:
        hold_statistics(parts.model)
    for rows, batch in task.train_inputs.loader(shares[step:], epoch):
        targets, observed = (part.to(fabric.device) for part in training_batch(task.train, rows))
        index = torch.from_numpy(rows).to(fabric.device)
        logits = parts.wrapped(_placed(batch, config, fabric))
        loss = parts.loss(logits, targets, observed=observed, index=index)
        if recovered is not None:
            recovered.update(rows, logits, targets, observed, index)
        fabric.backward(loss * world)  # ranks average their gradients, but the loss is a sum
        parts.stepper.step()
        parts.optimizer.zero_grad()
        parts.schedule.step()
        if parts.average is not None:
            parts.average.update_parameters(parts.model)
        step, total, count = step + 1, total + float(loss.detach()), count + len(rows)
        reporter.step(epoch, step, len(plan), total / max(1, count), len(plan[step - 1]))
        if world > 1:
            interrupt.asked = any_rank(interrupt.asked, fabric.device)
        if interrupt.asked:
            break
    sums = torch.tensor([total, count], dtype=torch.float64, device=fabric.device)
    if recovered is not None:
        sums = torch.cat([sums, recovered.counts])
    total, count, *turned = all_reduce_sum(sums).tolist()
    return dataclasses.replace(
        progress, step=step, loss_sum=total, loss_count=int(count), recovered=tuple(turned)
    )


def epoch_plan(
    rows: int, batch_size: int, seed: int, epoch: int, world: int = 1
) -> list[list[int]]:
    """The batches of one epoch, over all ranks: a permutation drawn from seed and epoch.

    The last batch may be smaller; one with fewer rows than there are ranks is left out.
    """
    generator = torch.Generator().manual_seed(_seed(seed, epoch, 0))
    order = torch.randperm(rows, generator=generator).tolist()
    batches = [order[start : start + batch_size] for start in range(0, rows, batch_size)]
    return [batch for batch in batches if len(batch) >= world]


def predict(
    model: nn.Module, inputs: Inputs, rows: int, config: TrainConfig, fabric: Fabric
) -> Tensor:
    """Probabilities for all rows, on every rank; rows that cannot be read are NaN."""
    model.eval()
    mine = share(range(rows), fabric.global_rank, fabric.world_size)
    plan = [mine[at : at + config.batch_size] for at in range(0, len(mine), config.batch_size)]
    scores, read = None, torch.zeros(rows, device=fabric.device)
    with torch.no_grad(), fabric.autocast():
        for at, batch in inputs.loader(plan, None):
            probs = torch.sigmoid(model(_placed(batch, config, fabric)).float())
            if scores is None:
                scores = torch.zeros(rows, probs.shape[1], device=fabric.device)
            where = torch.from_numpy(at).to(fabric.device)
            scores[where], read[where] = probs, 1.0
    if scores is None:
        raise DataError("There is nothing to predict: not one image could be read.")
    scores, read = all_reduce_sum(scores), all_reduce_sum(read)
    scores[read == 0] = torch.nan
    return scores.cpu()


def _placed(batch: Tensor, config: TrainConfig, fabric: Fabric) -> Tensor:
    layout = torch.channels_last if config.kind == "images" else torch.contiguous_format
    return batch.to(fabric.device, memory_format=layout)


def _judge(
    task: Task, scores: Tensor, progress: Progress, parts: _Parts
) -> tuple[dict[str, Any], Progress]:
    """Metrics of an epoch, and whether it is the best so far."""
    readable = ~torch.isnan(scores).any(dim=1).numpy()
    threshold = task.loss.decision_threshold(scores[torch.from_numpy(readable)])
    judged = task.val.eval_targets()[readable]
    report = classification_report(scores.numpy()[readable], judged, threshold)
    row = {
        "epoch": progress.epoch + 1,
        "loss": progress.loss_sum / max(1, progress.loss_count),
        "learning_rate": parts.optimizer.param_groups[0]["lr"],
        **report.as_dict(),
        **(recovered_columns(progress.recovered) if task.true_labels is not None else {}),
    }
    if report.mAP > progress.best_map:
        progress = dataclasses.replace(progress, best_map=report.mAP, best_epoch=progress.epoch + 1)
    return row, progress


def _keep(
    folder: RunFolder,
    task: Task,
    parts: _Parts,
    scores: Tensor,
    rows: Sequence[dict[str, Any]],
    progress: Progress,
) -> None:
    """Write the model, and scores and model of the best epoch."""
    note = {"classes": task.train.classes, "epoch": progress.epoch + 1}
    weights = parts.judged.state_dict()
    save_tensors(folder.last, weights, note)
    if progress.best_epoch == progress.epoch + 1:
        save_tensors(folder.best, weights, note)
        values = scores.numpy().astype(np.float32)
        ScoreTable(task.val.images, task.val.classes, values).save(folder.val_scores)
    if progress.recovered:
        keep_histogram(folder.histograms, progress.epoch, progress.recovered)
    folder.record(list(rows))


def _save(
    folder: RunFolder,
    parts: _Parts,
    others: dict[str, Any],
    progress: Progress,
    fabric: Fabric,
) -> None:
    states = {name: all_gather(state, fabric) for name, state in chance().items()}
    if fabric.is_global_zero:
        save_state(folder.state, parts.modules, parts.optimizer, others, progress, states)
    fabric.barrier()


def _seed(seed: int, epoch: int, rank: int) -> int:
    """A number of its own for every seed, epoch and rank."""
    return int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1, np.uint64)[0] >> 1)
