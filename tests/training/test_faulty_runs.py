"""Run folders and configurations that cannot be used: a sentence, and nothing left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from hilltop.cli.main import main
from hilltop.data import read_labels, write_labels
from hilltop.training.run_folder import RunFolder
from tests.training.conftest import command, finish


@pytest.fixture(scope="module")
def whole_run(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "whole"
    finish(command(problem, out, "--epochs", 2, "--loss", "bce"))
    return out


@pytest.fixture
def run_copy(whole_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole_run, tmp_path / "run"))


ODD = [
    ("--learning-rate", "-1", "learning_rate must be greater than 0, but got -1.0."),
    ("--learning-rate", "nan", "learning_rate must be greater than 0, but got nan."),
    ("--learning-rate", "inf", "learning_rate must be greater than 0, but got inf."),
    ("--weight-decay", "-1", "weight_decay must be at least 0, but got -1.0."),
    ("--weight-decay", "nan", "weight_decay must be at least 0, but got nan."),
    ("--seed", "-1", "seed must be at least 0, but got -1."),
    ("--epochs", "0", "epochs must be at least 1, but got 0."),
    ("--batch-size", "-4", "batch_size must be at least 1, but got -4."),
    ("--workers", "-1", "workers must be at least 0, but got -1."),
    ("--hidden", "0", "hidden must be at least 1, but got 0."),
    ("--image-size", "0", "image_size must be at least 1, but got 0."),
    ("--warmup", "nan", "warmup must be at least 0, but got nan."),
    ("--ema", "2", "ema must be at least 0 and at most 1, but got 2.0."),
    ("--head-rate", "-1", "head_rate must be greater than 0, but got -1.0."),
    ("--val-format", "cocoa", "val_format: 'cocoa' is not known. Did you mean 'coco'?"),
]


@pytest.mark.parametrize(
    ("option", "value", "message"), ODD, ids=[" ".join(one[:2]) for one in ODD]
)
def test_odd_numbers_are_said_and_leave_no_folder(
    problem: Path,
    tmp_path: Path,
    option: str,
    value: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    assert main(command(problem, out, f"{option}={value}")) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_run_that_failed_before_its_first_step_leaves_no_folder(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, labels = tmp_path / "run", tmp_path / "labels.csv"
    labels.write_text("not a label file\n")
    words = command(problem, out, "--epochs", 1)
    words[words.index("--labels") + 1] = str(labels)
    assert main(words) != 0
    assert not out.exists()
    features = tmp_path / "features.npz"
    np.savez(
        features, ids=np.array([f"{row}.jpg" for row in range(401)]), X=np.full((401, 3), np.nan)
    )
    words = command(problem, out, "--epochs", 1)
    words[words.index("--features") + 1] = str(features)
    assert main(words) == 1
    assert "are not finite" in capsys.readouterr().err
    assert not out.exists()


def test_what_others_keep_in_the_folder_stays(problem: Path, tmp_path: Path) -> None:
    out, labels = tmp_path / "run", tmp_path / "labels.csv"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    labels.write_text("not a label file\n")
    words = command(problem, out, "--epochs", 1)
    words[words.index("--labels") + 1] = str(labels)
    assert main(words) != 0
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


CONFIGS = [
    ("", "it must name one of images and features"),
    ("[1]", "expected names and values, but got list"),
    ("epochs: many", "epochs cannot be 'many'; expected a whole number"),
    ("a: [", "this is not YAML"),
    ("batch_size: 0", "batch_size must be at least 1, but got 0."),
]


@pytest.mark.parametrize(("text", "message"), CONFIGS)
def test_a_run_folder_with_an_odd_configuration_is_said(
    run_copy: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_copy / "config.yaml").write_text(text)
    assert main(["resume", str(run_copy)]) == 2
    message_given = capsys.readouterr().err
    assert message in message_given
    assert str(run_copy / "config.yaml") in message_given


@pytest.mark.parametrize(
    "text", ["epoch,loss\n1,0.5\n2", "epoch,loss\n1,half\n", "epoch,loss\nx,1\n"]
)
def test_metrics_that_are_cut_are_said(
    run_copy: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_copy / "metrics.csv").write_text(text)
    assert main(["resume", str(run_copy)]) == 1
    assert "metrics.csv: this is not a table of numbers" in capsys.readouterr().err


def test_two_processes_do_not_train_in_one_folder(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunFolder(run_copy).locked():
        assert main(["resume", str(run_copy)]) == 1
        assert f"{run_copy}: another process trains in this folder." in capsys.readouterr().err
    assert main(["resume", str(run_copy)]) == 0


@pytest.mark.parametrize("name", ["train_labels.parquet", "val_labels.parquet", "config.yaml"])
def test_a_cut_file_of_a_run_is_named(
    run_copy: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run_copy / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert main(["resume", str(run_copy)]) != 0
    assert name in capsys.readouterr().err


def test_one_validation_image_is_enough(problem: Path, tmp_path: Path) -> None:
    """A tensor of one row number is a plain number to numpy."""
    val = read_labels(problem / "val.parquet")
    one = val.select(np.flatnonzero(val.labels_per_image())[:1])
    write_labels(one, tmp_path / "val.parquet")
    words = ["--val-labels", tmp_path / "val.parquet", "--epochs", 1, "--loss", "hill"]
    assert main(command(problem, tmp_path / "run", *words)) == 0
    assert RunFolder(tmp_path / "run").val_scores.is_file()


def test_a_question_on_validation_labels_is_settled_by_an_option_for_them(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test file is mostly complete, whatever the training labels are."""
    val = read_labels(problem / "val.parquet")
    write_labels(val, tmp_path / "val.json", format="coco")
    words = command(problem, tmp_path / "run", "--val-labels", tmp_path / "val.json", "--epochs", 1)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "val.json: This format does not say" in said
    assert "--val-unlisted absent" in said
    assert " --unlisted" not in said
    assert main([*words, "--val-unlisted", "absent"]) == 0
