"""The scripts that fine-tune from a block on, and all layers, on drawn pictures."""

from __future__ import annotations

import csv
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch

from hilltop.inputs.synthetic import write_dataset
from hilltop.training import RunFolder, TrainConfig

SCRIPT = Path(__file__).parents[3] / "reproduction" / "from_block.py"
ALL_LAYERS = SCRIPT.with_name("all_layers.py")
TRAINING, IMAGES, CLASSES = 12_000, 36, 3


def fake_slice(folder: Path) -> list[object]:
    """Options of the scripts: a slice of drawn pictures, and random weights under other names."""
    write_dataset(folder, images=IMAGES, size=32, seed=0)
    names = sorted(path.name for path in (folder / "images").iterdir())
    ids = np.array([f"none/{row}.jpg" for row in range(TRAINING + 8)])
    ids[:28], ids[TRAINING:] = names[:28], names[28:]
    labels = (np.random.default_rng(0).random((len(ids), CLASSES)) < 0.5).astype(np.uint8)
    left = labels * (np.random.default_rng(1).random(labels.shape) < 0.6)
    np.savez(folder / "slice.npz", ids=ids, Y_full=labels, Y_04left=left, Y_single=left)
    weights = timm.create_model("tf_efficientnet_lite0").state_dict()
    renamed = {
        f"other_{number}.{name.rpartition('.')[2]}": value
        for number, (name, value) in enumerate(weights.items())
    }
    torch.save(renamed, folder / "weights.pth")
    return [
        "--slice", folder / "slice.npz", "--images", folder / "images",
        "--weights", folder / "weights.pth",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hilltop.errors.HilltopWarning")
def test_every_method_gets_its_rows_and_is_not_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [SCRIPT, *fake_slice(tmp_path), "--out", tmp_path / "runs"]
    words += ["--training", 16, "--aside", 12, "--judging", 8, "--image-size", 64, "--epochs", 2]
    stopped = tmp_path / "runs" / "runs" / "complete-bce-0" / "config.yaml"  # in its first epoch
    stopped.parent.mkdir(parents=True)
    stopped.write_text("epochs: 2\n")
    other = "splc:tau=0.7+average+boost"
    for methods in ("complete", other, f"{other},complete"):
        monkeypatch.setattr(sys, "argv", [str(word) for word in (*words, "--methods", methods)])
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert capsys.readouterr().out.count(" s of CPU") == 2
    with (tmp_path / "runs" / "from_block-0.4.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["level"], row["method"], row["rule"]) for row in rows] == [
        ("0.4", other, "last"),
        ("0.4", other, "best"),
        ("complete", "bce", "last"),
        ("complete", "bce", "best"),
    ]
    assert all(0 < float(row["mAP"]) <= 1 for row in rows)
    assert [bool(row["own_OF1"]) for row in rows] == [True, False] * 2
    folder = tmp_path / "runs" / "runs" / "0.4-splc-tau=0.7+average+boost-0"
    config = (folder / "config.yaml").read_text()
    assert "ask_average: true" in config
    assert "boost: 5.0" in config
    picture = tmp_path / "curves.png"
    monkeypatch.setattr(sys, "argv", [str(word) for word in (*words, "--figure", picture)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert picture.stat().st_size > 10_000


def test_choosing_keeps_away_from_the_rows_that_judge_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [SCRIPT, "--choosing", "--training", 9000, "--aside", 1000, "--judging", 2001]
    for name in ("--slice", "--images", "--weights", "--out"):
        words += [name, tmp_path / "none"]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    with pytest.raises(SystemExit):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "by the first 12,000 rows alone" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hilltop.errors.HilltopWarning")
@pytest.mark.filterwarnings("ignore::hilltop.metrics.functional.EmptyClassWarning")
def test_runs_of_all_layers_go_on_in_turn_from_where_they_were_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    words = [ALL_LAYERS, *fake_slice(tmp_path), "--out", out, "--runs", "hill,complete"]
    words += ["--first", 0, "--training", 12, "--skip", 0, "--judging", 8, "--sample", 6]
    words += ["--image-size", 32, "--schedule", 4]
    stopped = out / "runs" / "hill-0" / "config.yaml"  # in its first epoch
    stopped.parent.mkdir(parents=True)
    stopped.write_text("epochs: 1\n")

    def run(*more: object) -> None:
        monkeypatch.setattr(sys, "argv", [str(word) for word in (*words, *more)])
        monkeypatch.syspath_prepend(ALL_LAYERS.parent)
        runpy.run_path(str(ALL_LAYERS), run_name="__main__")

    threads = torch.get_num_threads()
    try:
        run("--epochs", 1)
        run("--epochs", 2)
    finally:
        torch.set_num_threads(threads)
    run("--table", tmp_path / "layers.csv", "--figure", tmp_path / "layers.png")
    with (tmp_path / "layers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["run"], row["epoch"]) for row in rows] == [
        ("complete", "1"), ("complete", "2"), ("hill", "1"), ("hill", "2"),
    ]  # fmt: skip
    assert all(0 < float(row["train_mAP_average"]) <= 1 for row in rows)
    rates = [row["learning_rate"] for row in RunFolder(out / "runs" / "hill-0").recorded()]
    assert rates[1] > 0, "two of four epochs: the schedule is that of the whole cycle"
    config = TrainConfig.from_file(out / "runs" / "hill-0" / "config.yaml")
    assert (config.model.train_from, config.augment) == (None, "paper")
    assert (config.model.head_rate, config.ema_choice, config.schedule_epochs) == (1, "better", 4)
    assert config.ema == pytest.approx(1 - 1 / (5 * 12 / 32)), "it remembers five epochs"
    assert (tmp_path / "layers.png").stat().st_size > 10_000
