"""The head first, then all: what is held, the two cycles, resuming, and several processes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from hilltop.cli.main import main
from hilltop.errors import ArgumentError
from hilltop.losses import build
from hilltop.training import Recipe
from hilltop.training.learner import Learner
from hilltop.training.run_folder import RunFolder
from tests.training.conftest import finish, image_command, stop


def words(pictures: Path, out: Path, *more: object) -> list[str]:
    held = ("--workers", 0, "--ema", 0.9, "--learning-rate", 1e-2, "--loss", "hill")
    return image_command(pictures, out, *held, *more)


@pytest.fixture(scope="module")
def unbroken(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "unbroken"
    assert main(words(pictures, out, "--epochs", 4, "--head-epochs", 2)) == 0
    return out


def body(path: Path) -> dict[str, torch.Tensor]:
    return {name: value for name, value in load_file(path).items() if not name.startswith("fc.")}


def test_in_head_epochs_nothing_but_the_head_moves(pictures: Path, tmp_path: Path) -> None:
    ends = {}
    for epochs in (1, 2):
        out = tmp_path / str(epochs)
        assert main(words(pictures, out, "--epochs", epochs, "--head-epochs", epochs)) == 0
        ends[epochs] = out / "last.safetensors"
    held = [body(path) for path in ends.values()]
    assert all(torch.equal(value, held[1][name]) for name, value in held[0].items())
    heads = [load_file(path)["fc.weight"] for path in ends.values()]
    assert not torch.equal(*heads)


def rates(recipe: Recipe, first: int, last: int) -> list[float]:
    """Learning rate of every step of some epochs, with 16 rows in 4 batches."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    head = list(model[1].parameters())
    learner = Learner.build(model, build("bce"), recipe, rows=16, head=head)
    made = []
    for epoch in range(first, last):
        learner.begin_epoch(epoch, step=0)
        for _ in range(4):
            made.append(learner.optimizer.param_groups[0]["lr"])
            rows = torch.randn(4, 3)
            learner.step(model(rows), torch.zeros(4, 2), observed=None, index=torch.arange(4))
    return made


def test_each_part_has_a_cycle_of_its_own() -> None:
    plain = Recipe(epochs=5, batch_size=4, learning_rate=0.1, weight_decay=0.0, least_steps=1)
    both = rates(dataclasses.replace(plain, head_epochs=2), 0, 5)
    assert both[:8] == pytest.approx(rates(dataclasses.replace(plain, epochs=2), 0, 2))
    assert both[8:] == pytest.approx(rates(dataclasses.replace(plain, epochs=3), 0, 3))
    longer = dataclasses.replace(plain, head_epochs=2, schedule_epochs=8)
    expected = rates(dataclasses.replace(plain, epochs=6), 0, 3)
    assert rates(longer, 0, 5)[8:] == pytest.approx(expected)


def test_the_body_moves_after_the_head_epochs(
    unbroken: Path, pictures: Path, tmp_path: Path
) -> None:
    assert main(words(pictures, tmp_path / "run", "--epochs", 2, "--head-epochs", 2)) == 0
    before, after = (body(run / "last.safetensors") for run in (tmp_path / "run", unbroken))
    assert not torch.equal(before["layer1.0.conv1.weight"], after["layer1.0.conv1.weight"])


@pytest.mark.parametrize(  # in the first cycle, at its end, in the second
    "steps", [pytest.param(4, marks=pytest.mark.slow), 6, pytest.param(8, marks=pytest.mark.slow)]
)
def test_a_resumed_run_equals_an_unbroken_one(
    unbroken: Path, pictures: Path, tmp_path: Path, steps: int
) -> None:
    out = tmp_path / "run"
    code, _ = stop(words(pictures, out, "--epochs", 4, "--head-epochs", 2), "SIGINT", steps=steps)
    assert code != 0
    finish(["resume", str(out)])
    assert RunFolder(out).recorded() == RunFolder(unbroken).recorded()
    expected, actual = (load_file(run / "last.safetensors") for run in (unbroken, out))
    assert all(torch.equal(value, actual[name]) for name, value in expected.items())


@pytest.mark.distributed
def test_two_processes_give_the_head_of_one(pictures: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for out, processes in ((one, 1), (two, 2)):
        finish(words(pictures, out, "--epochs", 3, "--head-epochs", 2), processes=processes)
    rows = [RunFolder(run).recorded() for run in (one, two)]
    for row, other in zip(*rows, strict=True):
        if row["epoch"] <= 2:  # from then on batch norms see batches of other sizes
            assert other["loss"] == pytest.approx(row["loss"], rel=1e-4)
            assert other["mAP"] == pytest.approx(row["mAP"], abs=1e-4)


def test_a_model_without_a_known_head_cannot_learn_it_first() -> None:
    recipe = Recipe(learning_rate=0.1, weight_decay=0.0, epochs=2, head_epochs=1)
    with pytest.raises(ArgumentError, match="head_epochs needs a model whose classifier is known"):
        Learner.build(nn.Linear(3, 2), build("bce"), recipe, rows=8)


def test_wrong_numbers_of_head_epochs_are_named(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(pictures, tmp_path / "run", "--epochs", 1, "--head-epochs", 2)) == 2
    assert "head_epochs must be between 0 and epochs (1), but got 2." in capsys.readouterr().err
