"""The script that fine-tunes from a block on, on drawn pictures and random weights."""

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
from hilltop.training import ModelConfig, TrainConfig

SCRIPT = Path(__file__).parents[3] / "reproduction" / "from_block.py"
TRAINING, IMAGES, CLASSES = 12_000, 36, 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hilltop.errors.HilltopWarning")
def test_every_method_gets_its_rows_and_is_not_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(tmp_path, images=IMAGES, size=32, seed=0)
    names = sorted(path.name for path in (tmp_path / "images").iterdir())
    ids = np.array([f"none/{row}.jpg" for row in range(TRAINING + 8)])
    ids[:28], ids[TRAINING:] = names[:28], names[28:]
    labels = (np.random.default_rng(0).random((len(ids), CLASSES)) < 0.5).astype(np.uint8)
    np.savez(tmp_path / "slice.npz", ids=ids, Y_full=labels, Y_04left=labels, Y_single=labels)
    weights = timm.create_model("tf_efficientnet_lite0").state_dict()
    renamed = {
        f"other_{number}.{name.rpartition('.')[2]}": value
        for number, (name, value) in enumerate(weights.items())
    }
    torch.save(renamed, tmp_path / "weights.pth")
    words = [SCRIPT, "--slice", tmp_path / "slice.npz", "--images", tmp_path / "images"]
    words += ["--weights", tmp_path / "weights.pth", "--out", tmp_path / "runs"]
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


def test_all_layers_learn_as_in_the_paper() -> None:
    made = runpy.run_path(str(SCRIPT))["as_in_paper"]
    made.__globals__["read_labels"] = lambda path: range(3200)  # so many images
    found = made(TrainConfig(model=ModelConfig(train_from="blocks.6")))
    assert found.model.train_from is None
    assert (found.augment, found.model.head_rate, found.ema_choice) == ("paper", 1, "better")
    assert found.ema == pytest.approx(1 - 1 / 500), "five epochs of a hundred steps"


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
