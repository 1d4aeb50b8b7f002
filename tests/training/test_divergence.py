"""A run that diverges stops with a sentence and a code, and the last good state is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.cli.main import main
from hilltop.errors import DivergenceError
from hilltop.losses import LOSSES, LabelStats, bce, build
from hilltop.training import loop
from hilltop.training.checkpoint import load_tensors
from hilltop.training.heads import fit_head
from hilltop.training.recipe import Recipe
from tests.training.conftest import command


class NanAfter:
    """A step that works, until after some calls the logits are NaN."""

    def __init__(self, calls: int) -> None:
        self.calls, self.step = calls, loop.Learner.step

    def __call__(
        self, learner: loop.Learner, logits: Tensor, *more: Tensor, **named: Tensor
    ) -> float:
        self.calls -= 1
        if self.calls < 0:
            logits = logits * torch.nan
        return self.step(learner, logits, *more, **named)  # type: ignore[arg-type]


def test_the_first_loss_that_is_not_finite_stops_the_run(
    problem: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "run"
    spoilt = NanAfter(70)  # in the second epoch of 50 steps
    monkeypatch.setattr(loop.Learner, "step", lambda *given, **named: spoilt(*given, **named))
    assert main(command(problem, out, "--epochs", 4, "--loss", "bce")) == 1
    message = capsys.readouterr().err
    assert "epoch 2: Training diverged: the loss became nan." in message
    assert "The state after epoch 1 is kept." in message
    assert "Try a lower --learning-rate (its peak was 0.003)." in message
    assert load_tensors(out / "resume.safetensors")[1]["progress"]["epoch"] == 1
    monkeypatch.undo()
    assert main(["resume", str(out)]) == 0


def test_a_rate_beyond_all_bounds_exits_with_1(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(problem, tmp_path / "run", "--epochs", 3, "--loss", "hill")
    words[words.index("--learning-rate") + 1] = "1e38"
    assert main(words) == 1
    said = capsys.readouterr()
    assert "diverged" in said.err or "not finite" in said.err
    assert "best nan" not in said.out


def test_scores_that_are_not_finite_are_no_unreadable_images(
    problem: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "sigmoid", lambda logits: logits * torch.nan)
    assert main(command(problem, tmp_path / "run", "--epochs", 1, "--loss", "bce")) == 1
    assert "scores that are not finite numbers" in capsys.readouterr().err


def test_a_head_in_memory_stops_too() -> None:
    features = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32))
    targets = (features > 0).float()
    with pytest.raises(DivergenceError, match="Try a lower learning rate"):
        fit_head(
            features,
            lambda rows: (targets[rows], None),
            bce(reduction="sum"),
            classes=3,
            recipe=Recipe(epochs=5, learning_rate=1e38, weight_decay=0.0),
        )


@pytest.mark.parametrize("name", list(LOSSES))
def test_logits_that_are_nan_give_a_loss_that_is_nan(name: str) -> None:
    loss = build(name, reduction="sum")
    targets = (torch.arange(40).reshape(8, 5) % 3 == 0).float()
    loss.prepare(LabelStats.of(targets, epochs=2))
    loss.set_epoch(1)
    logits = torch.full((8, 5), torch.nan, requires_grad=True)
    assert loss(logits, targets, index=torch.arange(8)).isnan()
