"""The moving average of weights against a loop in plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from hilltop.cli.main import main
from hilltop.training.learner import moving_average, update_average
from hilltop.training.run_folder import RunFolder
from tests.training.conftest import command

FAST, SLOW = 0.3, 0.9997


class Counter(nn.Module):
    """A weight, a buffer of numbers and one of whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0]))
        self.register_buffer("mean", torch.tensor([0.5]))
        self.register_buffer("seen", torch.tensor([3]))

    @torch.no_grad()
    def move(self, step: int) -> None:
        self.weight.copy_(torch.tensor([float(step**2), 1.0 / (step + 1)]))
        self.mean.fill_(10.0 - step)
        self.seen.add_(step)


def averaged(values: list[float], decay: float) -> list[float]:
    """The decay of update n is n / (9 + n) at most."""
    average, path = values[0], []
    for update, value in enumerate(values[1:], start=1):
        kept = min(decay, update / (9 + update))
        average = kept * average + (1 - kept) * value
        path.append(average)
    return path


@pytest.mark.parametrize("decay", [FAST, SLOW])
def test_weights_and_buffers_follow_with_a_decay_that_warms_up(decay: float) -> None:
    model = Counter()
    average = moving_average(model, decay)
    start = [*model.weight.tolist(), *model.mean.tolist()]
    seen: dict[str, list[list[float]]] = {"model": [start], "average": []}
    for step in range(12):
        model.move(step)
        update_average(average, model)
        for name, one in (("model", model), ("average", average.module)):
            seen[name].append([*one.weight.tolist(), *one.mean.tolist()])
        assert average.module.seen.tolist() == model.seen.tolist(), "whole numbers are copied"
        assert average.module.seen.dtype == torch.int64
    for number in range(3):
        values, path = ([row[number] for row in seen[name]] for name in ("model", "average"))
        assert path == pytest.approx(averaged(values, decay), rel=1e-5)


def test_without_a_ramp_the_decay_counts_from_the_start() -> None:
    model = Counter()
    average = moving_average(model, FAST, ramp=False)
    expected = model.weight[0].item()
    for step in range(3):
        model.move(step)
        update_average(average, model)
        expected = FAST * expected + (1 - FAST) * model.weight[0].item()
        assert average.module.weight[0].item() == pytest.approx(expected)


def test_the_average_stays_when_the_model_moves_on() -> None:
    model = Counter()
    average = moving_average(model, SLOW)
    update_average(average, model)
    before = average.module.weight.clone()
    model.move(5)
    assert torch.equal(average.module.weight, before)


@pytest.mark.parametrize(
    ("words", "better"),
    [
        (
            ("--ema", 0.9997, "--no-ema-ramp", "--model", "mlp"),
            "mAP_plain",
        ),
        (
            ("--ema", 0.99, "--learning-rate", 1.0, "--loss", "bce"),
            "mAP_average",
        ),  # steps are far too long
    ],
)
def test_the_better_of_average_and_plain_model_is_kept_and_both_are_recorded(
    words: tuple[object, ...], better: str, problem: Path, tmp_path: Path
) -> None:
    more = ("--epochs", 3, "--schedule-epochs", 9, "--ema-choice", "better", *words)
    assert main(command(problem, tmp_path / "run", *more)) == 0
    rows = RunFolder(tmp_path / "run").recorded()
    for row in rows:
        assert row["mAP"] == max(row["mAP_average"], row["mAP_plain"])
    assert rows[-1]["mAP"] == rows[-1][better]
    assert rows[-1]["mAP_average"] != rows[-1]["mAP_plain"]
