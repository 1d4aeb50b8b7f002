"""Heads on features train with the threads that help, and leave the number as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hilltop.cli.main import main
from hilltop.losses import bce
from hilltop.training import learner, logistic
from hilltop.training.heads import cross_validate, fit_head
from hilltop.training.learner import SMALL_STEP, step_threads
from hilltop.training.recipe import Recipe
from tests.processes import run
from tests.training.conftest import command


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of threads at every step of training."""
    found: list[int] = []
    step = learner.Learner.step

    def noting(*given: object, **named: object) -> float:
        found.append(torch.get_num_threads())
        return step(*given, **named)  # type: ignore[arg-type]

    solver_step = logistic.LogisticSolver.step

    def noting_solver(solver: logistic.LogisticSolver) -> float:
        found.append(torch.get_num_threads())
        return solver_step(solver)

    monkeypatch.setattr(learner.Learner, "step", noting)
    monkeypatch.setattr(logistic.LogisticSolver, "step", noting_solver)
    return found


@pytest.mark.usefixtures("three_threads")
def test_a_small_head_takes_one_thread(used: list[int]) -> None:
    features = torch.eye(4).repeat(20, 1)
    fit_head(
        features,
        lambda rows: (features[rows], None),
        bce(reduction="sum"),
        classes=4,
        recipe=Recipe(epochs=1),
    )
    cross_validate(features, features, bce(reduction="sum"), recipe=Recipe(epochs=1))
    assert set(used) == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_the_command_takes_one_too(used: list[int], problem: Path, tmp_path: Path) -> None:
    assert main(command(problem, tmp_path / "r", "--epochs", 1, "--loss", "bce")) == 0
    assert set(used) == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_a_large_one_takes_all_and_a_fault_changes_nothing() -> None:
    with step_threads(128, 2048, SMALL_STEP):
        assert torch.get_num_threads() == 3

    def fail() -> None:
        with step_threads(1, 1, 1):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert torch.get_num_threads() == 3


def test_threads_sleep_while_they_wait_unless_the_user_wants_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    code = (
        "import os; from hilltop.cli.main import main; main([]);"
        " print(os.environ['OMP_WAIT_POLICY'])"
    )
    assert run("-c", code).splitlines()[-1] == "PASSIVE"
    chosen = f"import os; os.environ['OMP_WAIT_POLICY'] = 'ACTIVE'; {code}"
    assert run("-c", chosen).splitlines()[-1] == "ACTIVE"


def test_the_command_does_not_import_torch_before_it_says_so() -> None:
    code = "import sys; import hilltop.cli.main; print('torch' in sys.modules)"
    assert run("-c", code).strip() == "False"
