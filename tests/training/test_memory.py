"""What losses remember and learn, with many processes and over an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hilltop.cli.main import main
from hilltop.training.checkpoint import load_tensors
from tests.forked import run_forked
from tests.training.conftest import command, finish, stop
from tests.training.memory_worker import prepared, see, shares, state
from tests.training.test_run import assert_same_run, metrics

WORKER = Path(__file__).with_name("memory_worker.py")


@pytest.mark.distributed
def test_processes_share_what_their_losses_remember_and_learn(tmp_path: Path) -> None:
    run_forked(WORKER, tmp_path, processes=2)
    for name in ("ll_cp", "em_apl", "role"):
        alone = prepared(name)
        for epoch in range(3):
            alone.set_epoch(epoch)
            alone.zero_grad()
            for rows in shares(epoch):
                see(alone, rows, epoch)
        alone.set_epoch(3)
        expected = state(alone)
        if "gradient" in expected:
            expected["gradient"] /= 2  # ranks average, as for the model
        for rank in (0, 1):
            actual = torch.load(tmp_path / f"{name}{rank}.pt")
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("name", ["ll_cp", "em_apl", "role", "splc_adaptive"])
def test_a_run_trains_says_what_it_keeps_and_saves_it(
    problem: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main(command(problem, out, "--epochs", 4, "--loss", name)) == 0
    said = capsys.readouterr().out
    key, kept = {
        "ll_cp": ("correction.memory", "ll_cp keeps one bit"),
        "em_apl": ("correction.surprise", "em_apl keeps the last score"),
        "role": ("moved", "role keeps an estimate"),
        "splc_adaptive": ("correction.scores", ""),
    }[name]
    assert kept in said
    assert "300 images x 5 classes" in said or name == "splc_adaptive"
    tensors, _ = load_tensors(out / "resume.safetensors")
    assert tensors[f"loss.{key}"].any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ll_cp", "em_apl", "role", "splc_adaptive"])
def test_a_run_with_memory_resumes_to_the_same_end(
    problem: Path, tmp_path: Path, name: str
) -> None:
    more = ("--epochs", 8, "--loss", name)
    finish(command(problem, tmp_path / "unbroken", *more))
    out = tmp_path / "killed"
    code, errors = stop(command(problem, out, *more), "SIGINT", steps=125)
    assert code == 130, errors
    assert len(metrics(out)) == 2, "it was stopped in the third epoch of 50 steps"
    finish(["resume", str(out)])
    assert_same_run(tmp_path / "unbroken", out)
