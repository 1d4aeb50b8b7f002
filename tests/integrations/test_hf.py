"""The Hugging Face Trainer with our losses: the real one, a tiny text model, random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.integrations import hf_epochs, hf_loss
from hilltop.losses import LOSSES, Loss, build, hill, splc
from tests.losses.conftest import REMEMBERING, label_stats, ready, sees_whole_batch

CLASSES, ROWS = 5, 14
Rows = list[dict[str, Tensor]]


def tiny_model() -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=6,
        num_labels=CLASSES,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def texts() -> Rows:
    """Rows with labels, some of them unknown."""
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(1, 30, (ROWS, 6), generator=generator)
    labels = (torch.rand(ROWS, CLASSES, generator=generator) < 0.3).float()
    labels[torch.rand(ROWS, CLASSES, generator=generator) < 0.2] = -100
    return [{"input_ids": w, "labels": y} for w, y in zip(words, labels, strict=True)]


class Gradients(TrainerCallback):
    """Keeps the gradient that the optimiser gets."""

    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        parameters = given["model"].parameters()
        self.seen.append(torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]))


def trainer(
    folder: Path, compute_loss: Callable[..., Tensor], *callbacks: TrainerCallback, **options: Any
) -> Trainer:
    options = {"max_steps": 1, "max_grad_norm": 0.0, **options}
    arguments = TrainingArguments(
        output_dir=str(folder),
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **options,
    )
    return Trainer(
        model=tiny_model(),
        args=arguments,
        train_dataset=texts(),
        compute_loss_func=compute_loss,
        callbacks=list(callbacks),
    )


def step_gradient(folder: Path, compute_loss: Callable[..., Tensor], accumulate: int) -> Tensor:
    """Gradient of one step over all rows, in so many micro-batches of which the last is smaller."""
    gradients = Gradients()
    trainer(
        folder,
        compute_loss,
        gradients,
        per_device_train_batch_size=-(-ROWS // accumulate),
        gradient_accumulation_steps=accumulate,
    ).train()
    assert len(gradients.seen) == 1
    return gradients.seen[0]


def whole_batch_gradient(criterion: Loss) -> Tensor:
    """What the step must be: the loss of all rows at once."""
    model, rows = tiny_model(), texts()
    targets = torch.stack([row["labels"] for row in rows])
    targets[targets == -100] = float("nan")
    logits = model(torch.stack([row["input_ids"] for row in rows])).logits
    criterion(logits, targets).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("accumulate", [1, 2, 4])
def test_the_gradient_is_the_same_for_every_accumulation(
    tmp_path: Path, accumulate: int, reduction: str
) -> None:
    gradient = step_gradient(
        tmp_path, hf_loss(hill(reduction=reduction, safe_start=False)), accumulate
    )
    expected = whole_batch_gradient(hill(reduction=reduction, safe_start=False))
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_a_mean_over_each_micro_batch_would_be_four_times_too_strong(tmp_path: Path) -> None:
    def mean(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
        return hill()(outputs.logits, labels.masked_fill(labels == -100, torch.nan))

    plain, ours = (step_gradient(tmp_path, loss, 4) for loss in (mean, hf_loss(hill())))
    assert 3 < plain.norm() / ours.norm() < 5


@pytest.mark.parametrize(
    "name", [n for n in LOSSES if n not in REMEMBERING and not sees_whole_batch(ready(n))]
)
def test_micro_batches_of_every_loss_add_up_to_the_whole(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(ROWS, CLASSES, generator=generator)
    targets = torch.stack([row["labels"] for row in texts()])
    known = int((targets != -100).sum())
    parts = zip(logits.split(4), targets.split(4), strict=True)
    criterion = build(name)
    criterion.prepare(label_stats(CLASSES))
    compute_loss = hf_loss(criterion)
    added = sum(compute_loss((x,), y, num_items_in_batch=known) for x, y in parts)
    whole = criterion(logits, targets.masked_fill(targets == -100, torch.nan))
    torch.testing.assert_close(added, whole)
    torch.testing.assert_close(compute_loss({"logits": logits}, targets), whole)


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_loss_that_remembers_rows_says_what_it_misses(name: str) -> None:
    criterion = build(name)
    criterion.prepare(label_stats(CLASSES))
    with pytest.raises(ArgumentError, match="remembers every image: pass index="):
        hf_loss(criterion)((torch.zeros(2, CLASSES),), torch.zeros(2, CLASSES))


def test_nan_labels_are_left_out_too() -> None:
    logits, labels = torch.randn(2, 3), torch.tensor([[1.0, -100.0, 0.0], [-100.0, 0.0, 1.0]])
    holes = labels.masked_fill(labels == -100, torch.nan)
    compute_loss = hf_loss(hill())
    assert compute_loss((logits,), labels) == compute_loss((logits,), holes)


def test_the_callback_tells_the_loss_which_epoch_begins(tmp_path: Path) -> None:
    criterion = splc()
    epochs: list[int] = []

    class Seen(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            epochs.append(int(criterion.epoch))

    options = {"max_steps": -1, "num_train_epochs": 3, "per_device_train_batch_size": 7}
    trainer(tmp_path, hf_loss(criterion), hf_epochs(criterion), Seen(), **options).train()
    assert epochs == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("fraction", "epoch"), [(0.0, 0), (2.0, 2), (2 - 1e-9, 2), (1.99, 1), (1.9999, 1), (2.5, 2)]
)
def test_an_epoch_counted_in_fractions_is_the_one_that_begins(fraction: float, epoch: int) -> None:
    criterion = splc()
    hf_epochs(criterion).on_epoch_begin(None, TrainerState(epoch=fraction), None)
    assert int(criterion.epoch) == epoch


def test_evaluation_reports_the_mean_over_known_labels(tmp_path: Path) -> None:
    runner = trainer(tmp_path, hf_loss(hill()), per_device_eval_batch_size=ROWS)
    reported = runner.evaluate(texts())["eval_loss"]
    rows = texts()
    targets = torch.stack([row["labels"] for row in rows])
    with torch.no_grad():
        logits = tiny_model()(torch.stack([row["input_ids"] for row in rows])).logits
    expected = hill()(logits, targets.masked_fill(targets == -100, torch.nan))
    assert reported == pytest.approx(float(expected), rel=1e-5)


def test_what_cannot_be_scaled_is_refused_in_words() -> None:
    with pytest.raises(ArgumentError, match="reduction of the criterion must be one of 'mean'"):
        hf_loss(hill(reduction="none"))
    with pytest.raises(ArgumentTypeError, match="criterion must be a Loss, but got BCEWithLogits"):
        hf_loss(torch.nn.BCEWithLogitsLoss())
    with pytest.raises(ArgumentError, match="The batch has no labels"):
        hf_loss(hill())({"logits": torch.zeros(1, 2)}, None)
