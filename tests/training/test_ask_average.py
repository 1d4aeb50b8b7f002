"""Runs whose corrections ask the moving average."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.training.run_folder import RunFolder
from tests.training.conftest import command, finish, stop


def test_a_run_asks_the_average_and_resumes_as_if_unbroken(problem: Path, tmp_path: Path) -> None:
    words = ("--epochs", 4, "--loss", "splc", "--ema", 0.99)
    rows = {}
    for name, more in (("own", ()), ("asked", ("--ask-average",))):
        assert main(command(problem, tmp_path / name, *words, *more)) == 0
        rows[name] = RunFolder(tmp_path / name).recorded()
    assert rows["own"][0] == rows["asked"][0], "in the first epoch nothing is corrected"
    assert rows["own"][-1] != rows["asked"][-1]
    out = tmp_path / "stopped"
    stop(command(problem, out, *words, "--ask-average"), "SIGINT", steps=120)
    finish(["resume", str(out)])
    assert RunFolder(out).recorded() == rows["asked"]


def test_without_an_average_there_is_nobody_to_ask(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(problem, tmp_path / "run", "--loss", "splc", "--ask-average")) == 2
    assert "ask_average needs a moving average" in capsys.readouterr().err
