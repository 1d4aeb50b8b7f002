"""Metrics of every epoch in the loggers of Fabric, without a network."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.errors import MissingExtra
from hilltop.training import distributed
from hilltop.training.config import TrainConfig
from hilltop.training.run_folder import RunFolder
from tests.training.conftest import command

EPOCHS = 3


def logged(problem: Path, out: Path, name: str) -> list[float]:
    """Train with a logger, and return the mAP that the run itself recorded."""
    assert main(command(problem, out, "--epochs", EPOCHS, "--loss", "hill", "--logger", name)) == 0
    return [row["mAP"] for row in RunFolder(out).recorded()]


def test_csv_files_have_the_metrics_of_every_epoch(problem: Path, tmp_path: Path) -> None:
    recorded = logged(problem, tmp_path / "run", "csv")
    (file,) = (tmp_path / "run" / "csv").rglob("metrics.csv")
    with file.open() as opened:
        rows = list(csv.DictReader(opened))
    assert [float(row["mAP"]) for row in rows] == pytest.approx(recorded)
    assert [row["step"] for row in rows] == ["1", "2", "3"]


def test_tensorboard_events_have_the_metrics_of_every_epoch(problem: Path, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    recorded = logged(problem, tmp_path / "run", "tensorboard")
    found = events.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    assert [one.value for one in found.Scalars("mAP")] == pytest.approx(recorded)


@pytest.mark.filterwarnings("default")
def test_wandb_works_offline(
    problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    logged(problem, tmp_path / "run", "wandb")
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))


@pytest.mark.filterwarnings("default")
def test_mlflow_works_without_a_server(
    problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    recorded = logged(problem, tmp_path / "run", "mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'run' / 'mlflow.db'}")
    (run,) = mlflow.search_runs(experiment_names=["hilltop"], output_format="list")
    assert run.data.metrics["mAP"] == pytest.approx(recorded[-1])


def test_a_logger_that_is_not_installed_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(distributed._LOGGERS, "wandb", ("hilltop_has_no_such_module", "Logger"))
    with pytest.raises(MissingExtra, match=r"--logger wandb needs the package .*\[wandb\]"):
        distributed.build_logger("wandb", tmp_path)


def test_the_option_of_earlier_releases_still_works() -> None:
    values = {"labels": "a.csv", "features": "f.npz", "tensorboard": True}
    assert TrainConfig.from_dict(values).logger == "tensorboard"
    assert TrainConfig.from_dict({**values, "tensorboard": False}).logger is None
