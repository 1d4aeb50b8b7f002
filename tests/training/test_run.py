"""Whole runs: what they leave behind, and that nothing can stop them for good."""

from __future__ import annotations

import csv
import json
import random
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.cli.main import main
from hilltop.data import State, read_labels
from hilltop.data.scores import ScoreTable
from hilltop.training.checkpoint import load_tensors
from hilltop.training.predict import load_run, truth_probs
from hilltop.training.reporter import STEPS
from tests.processes import run
from tests.sample import of_losses
from tests.training.conftest import CLASSES, command, finish, stop

RESULTS = ("metrics.csv", "best.safetensors", "last.safetensors", "val_scores.npy")


def metrics(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def assert_same_run(one: Path, other: Path) -> None:
    assert (one / "metrics.csv").read_text() == (other / "metrics.csv").read_text()
    for name in ("best.safetensors", "last.safetensors"):
        tensors, note = load_tensors(one / name)
        others, other_note = load_tensors(other / name)
        assert note == other_note
        for key, tensor in tensors.items():
            assert torch.equal(tensor, others[key]), f"{name}: {key}"
    scores = [ScoreTable.load(folder / "val_scores.npy").values for folder in (one, other)]
    np.testing.assert_array_equal(*scores)


@pytest.fixture(scope="module")
def unbroken(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six epochs that was never stopped, in a process of its own."""
    out = tmp_path_factory.mktemp("runs") / "unbroken"
    words = command(problem, out, "--epochs", 6, "--loss", "splc", "--ema", 0.9, report=True)
    output = finish(words)
    assert "epoch   6/6" in output
    return out


def test_a_run_learns_and_leaves_everything_behind(unbroken: Path) -> None:
    rows = metrics(unbroken)
    assert [row["epoch"] for row in rows] == list("123456")
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    names = {file.name for file in unbroken.iterdir()}
    assert {*RESULTS, "config.yaml", "events.jsonl", "report.html", "curves.png"} <= names
    assert not [name for name in names if name.endswith(".writing")]
    scores = ScoreTable.load(unbroken / "val_scores.npy")
    assert scores.classes == CLASSES
    assert len(scores.images) == 101
    best = max(float(row["mAP"]) for row in rows)
    assert best > 0.85
    events = [json.loads(line) for line in (unbroken / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", *["epoch"] * 6, "end"]


def test_a_run_names_its_five_steps_and_keeps_what_came_of_them(
    problem: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    said = finish(command(problem, out, "--loss", "auto", "--epochs", 6))
    names = list(STEPS)
    assert [f"step {number} of 5: {name}" in said for number, name in enumerate(names, 1)] == [
        True
    ] * 5
    found = json.loads((out / "steps.json").read_text())
    assert list(found) == names
    assert found["select hyperparameters"]["recipe"]["weight_decay"] > 0
    train = read_labels(out / "train_labels.parquet")
    assert found["cross-validate"]["images"] == len(train)
    # The scores of cross-validation are kept, and an audit of the same images takes them.
    scores = ScoreTable.load(out / "out_of_fold.npy")
    assert scores.images.equals(train.images)
    audit = finish(["audit", str(out / "train_labels.parquet"), "--scores", str(out),
                    "--out", str(tmp_path / "audit")])  # fmt: skip
    assert "no head is trained" in audit
    found = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert found["summary"] in said, "one model of missing labels for both"
    # Training was finished, calibration was not: a resumed run ends with the same thresholds.
    truth = (out / "last.truth.safetensors").read_bytes()
    (out / "last.truth.safetensors").unlink()
    finish(["resume", str(out)])
    assert (out / "last.truth.safetensors").read_bytes() == truth


def test_the_split_is_made_from_the_seed_and_stored(problem: Path, tmp_path: Path) -> None:
    words = command(problem, tmp_path / "r", "--epochs", 1, "--val-share", "0.2")
    at = words.index("--val-labels")
    del words[at : at + 2]
    assert main(words) == 0
    parts = [read_labels(tmp_path / "r" / f"{name}_labels.parquet") for name in ("train", "val")]
    assert [len(part) for part in parts] == [240, 60]
    assert not set(parts[0].images.to_pylist()) & set(parts[1].images.to_pylist())


@pytest.mark.parametrize("name", of_losses(("auto", "splc", "role")))
def test_every_loss_trains_and_does_not_collapse(problem: Path, tmp_path: Path, name: str) -> None:
    assert main(command(problem, tmp_path / "r", "--epochs", 4, "--loss", name)) == 0
    assert float(metrics(tmp_path / "r")[-1]["mAP"]) > 0.3


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_a_run_killed_at_any_moment_resumes_to_the_same_end(
    problem: Path, unbroken: Path, tmp_path: Path, seed: int
) -> None:
    out = tmp_path / "killed"
    words = command(problem, out, "--epochs", 6, "--loss", "splc", "--ema", 0.9)
    chance = random.Random(seed)
    for again in (words, ["resume", str(out)], ["resume", str(out)]):
        moment = {"steps": chance.randint(40, 90), "files": chance.randint(0, 8)}
        code, errors = stop(again, "SIGKILL", **moment)
        assert code == -signal.SIGKILL, errors
    finish(["resume", str(out)])
    assert_same_run(unbroken, out)


@pytest.mark.parametrize("moments", [(60, 90), (130, 150)])
def test_a_solved_head_killed_in_any_step_resumes_to_the_same_end(
    problem: Path, solved: Path, tmp_path: Path, moments: tuple[int, int]
) -> None:
    out, again = tmp_path / "killed", ["resume", str(tmp_path / "killed")]
    for words, files in zip((solved_words(problem, out), again), moments, strict=True):
        code, errors = stop(words, "SIGKILL", steps=0, files=files)
        assert code == -signal.SIGKILL, errors
    finish(again)
    assert_same_run(solved, out)
    for name in ("out_of_fold.npy", "last.truth.safetensors", "resume.safetensors"):
        assert (out / name).read_bytes() == (solved / name).read_bytes()
    kinds = [json.loads(line)["event"] for line in (out / "events.jsonl").read_text().splitlines()]
    assert kinds[-1] == "end"


def solved_words(problem: Path, out: Path) -> list[str]:
    """Words of a run whose head is solved: no learning rate, no penalty."""
    words = command(problem, out, "--loss", "auto")
    for option in ("--learning-rate", "--weight-decay"):
        at = words.index(option)
        del words[at : at + 2]
    return words


@pytest.fixture(scope="module")
def solved(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that solves its head, never stopped, in a process of its own."""
    out = tmp_path_factory.mktemp("runs") / "solved"
    finish(solved_words(problem, out))
    return out


def test_ctrl_c_saves_in_the_middle_of_an_epoch_and_exits_with_130(
    problem: Path, tmp_path: Path
) -> None:
    # With a given loss every step is one of the run, none of a search for evidence.
    words = ("--epochs", 5, "--batch-size", 2, "--loss", "hill")
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    finish(command(problem, whole, *words))
    code, errors = stop(command(problem, stopped, *words), "SIGINT", steps=200)
    assert code == 130, errors
    assert "interrupted" in errors
    _, note = load_tensors(stopped / "resume.safetensors")
    assert note["progress"]["epoch"] == 1
    assert note["progress"]["step"] == 50, "of 150, in the middle of an epoch"
    finish(["resume", str(stopped)])
    assert_same_run(whole, stopped)


@pytest.mark.distributed
def test_two_processes_give_the_metrics_of_one(problem: Path, tmp_path: Path) -> None:
    words = ("--epochs", 3, "--loss", "hill")
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(command(problem, one, *words)) == 0
    output = run("-m", "hilltop", *command(problem, two, *words), processes=2)
    assert output.count("run folder:") == 1, "one process speaks for all"
    for row, other in zip(metrics(one), metrics(two), strict=True):
        for name, value in row.items():
            assert float(other[name]) == pytest.approx(float(value), abs=1e-4), name
    assert len(ScoreTable.load(two / "val_scores.npy").images) == 101, "an odd number, no padding"
    # Adam's steps do not depend on the size of gradients; what it remembers of them does.
    remembered = [load_tensors(folder / "resume.safetensors")[0] for folder in (one, two)]
    squares = [name for name in remembered[0] if name.endswith(".exp_avg_sq")]
    assert squares
    for name in squares:
        sizes = [float(tensors[name].sum()) for tensors in remembered]
        assert sizes[1] == pytest.approx(sizes[0], rel=0.01), name


def test_a_folder_in_use_is_left_alone(
    problem: Path, unbroken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.read_bytes() for file in unbroken.iterdir() if file.is_file()}
    assert main(command(problem, unbroken, "--epochs", 1)) == 1
    assert "there is a run here already" in capsys.readouterr().err
    assert before == {file: file.read_bytes() for file in unbroken.iterdir() if file.is_file()}


def test_resuming_a_finished_run_changes_nothing(unbroken: Path) -> None:
    before = (unbroken / "metrics.csv").read_text()
    assert main(["resume", str(unbroken)]) == 0
    assert (unbroken / "metrics.csv").read_text() == before


def test_resuming_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(tmp_path)]) == 1
    assert "there is no run here: config.yaml is missing" in capsys.readouterr().err


def test_a_damaged_state_is_named(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r"
    assert main(command(problem, out, "--epochs", 1)) == 0
    (out / "resume.safetensors").write_bytes(b"\x08")
    assert main(["resume", str(out)]) == 1
    assert "resume.safetensors: this is not a whole safetensors file" in capsys.readouterr().err


def test_predict_evaluate_and_export(
    problem: Path, unbroken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime

    out = tmp_path / "scores.npy"
    features = problem / "features.npz"
    assert main(["predict", str(unbroken), "--features", str(features), "--out", str(out)]) == 0
    scores = ScoreTable.load(out)
    assert len(scores.images) == 401
    listed = (tmp_path / "scores.npy.classes.txt").read_text().splitlines()
    assert tuple(listed) == scores.classes == read_labels(problem / "train.parquet").classes
    val = ScoreTable.load(unbroken / "val_scores.npy")
    trained = load_run(unbroken, which="best")
    assert trained.truth is not None
    meant = truth_probs(trained, val).values
    np.testing.assert_allclose(scores.aligned(val.images, val.classes), meant, atol=1e-5)
    thresholds = trained.truth.thresholds().thresholds
    assert scores.thresholds == pytest.approx(thresholds.tolist())
    assert re.search(r"the run learned from \d+ of these images", capsys.readouterr().out)
    assert main(["evaluate", str(out), str(problem / "val.parquet"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    best = max(float(row["mAP"]) for row in metrics(unbroken))
    assert report["mAP"] == pytest.approx(best, abs=1e-6)
    assert report["thresholds"] == "those that stand with the scores"
    assert "every pair is known" in report["unknown"]
    assert main(["evaluate", str(out), str(problem / "val.parquet"), "--fit"]) == 0

    model = tmp_path / "model.onnx"
    assert main(["export", str(unbroken), "--to", "onnx", "--out", str(model)]) == 0
    session = onnxruntime.InferenceSession(model)
    for rows in (1, 7):
        values = np.load(features)["X"][:rows]
        (probs,) = session.run(None, {"inputs": values})
        np.testing.assert_allclose(probs, scores.values[:rows], atol=1e-4)
    properties = session.get_modelmeta().custom_metadata_map
    assert json.loads(properties["classes"]) == list(CLASSES)
    assert json.loads(properties["thresholds"]) == pytest.approx(thresholds.tolist(), abs=1e-6)
    assert "precision" in properties["expected"]

    folder = tmp_path / "card"
    assert main(["export", str(unbroken), "--to", "hub-folder", "--out", str(folder)]) == 0
    card, exported = (folder / "README.md").read_text(), folder / "thresholds.json"
    assert "| mAP |" in card
    assert (
        "thresholds for the best mean of overall F1 and per-class F1; expected: precision" in card
    )
    config = json.loads(exported.read_text())
    assert config["classes"] == list(CLASSES)
    assert config["thresholds"] == pytest.approx(thresholds.tolist())


def test_predict_wants_what_the_run_was_trained_on(
    unbroken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", str(unbroken), "--images", str(tmp_path), "--out", str(tmp_path / "s.npy")]
    assert main(words) == 2
    assert "does not say which network made" in capsys.readouterr().err
    assert main([*words, "--features", str(tmp_path / "f.npz")]) == 2
    assert "This run was trained on features: give --features" in capsys.readouterr().err


def test_labels_without_any_label_stop_the_run(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hilltop.data import LabelTable, write_labels

    empty = LabelTable.from_coo(
        ["0.jpg", "1.jpg"], CLASSES, [], [], State.PRESENT, unlisted=State.ABSENT
    )
    write_labels(empty, tmp_path / "empty.parquet")
    words = command(problem, tmp_path / "r", "--epochs", 1)
    words[words.index("--labels") + 1] = str(tmp_path / "empty.parquet")
    assert main(words) == 1
    assert "There is no label at all among the 2 training images" in capsys.readouterr().err


def test_predict_writes_tags_by_what_is_wanted(
    problem: Path, unbroken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features = str(problem / "features.npz")

    def tags(name: str, *options: str) -> list[dict[str, str]]:
        out = tmp_path / f"{name}.csv"
        words = ["predict", str(unbroken), "--features", features, "--out", str(out), *options]
        assert main(words) == 0
        with out.open(newline="") as file:
            return list(csv.DictReader(file))

    usual = tags("usual")
    assert len(usual) == 401
    assert "thresholds for the best mean of overall F1 and per-class F1; expected: precision" in (
        capsys.readouterr().out
    )
    counts = [row["tags"].count(";") + bool(row["tags"]) for row in usual]
    assert sum(counts) > 100
    careful = tags("careful", "--min-precision", "0.98")
    assert 0 < sum(bool(row["tags"]) for row in careful) < sum(map(bool, counts))
    two = tags("two", "--top", "2")
    assert all(row["tags"].count(";") == 1 for row in two)
    words = ["predict", str(unbroken), "--features", features, "--out", str(tmp_path / "x.csv")]
    assert main([*words, "--top", "0"]) == 2
    assert "--top must be at least 1" in capsys.readouterr().err


def test_a_run_stores_what_its_scores_mean_and_a_resumed_one_the_same(
    problem: Path, unbroken: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    words = command(problem, again, "--epochs", 6, "--loss", "splc", "--ema", 0.9)
    assert main(words) == 0
    for which in ("last", "best"):
        one, other = (load_tensors(run / f"{which}.truth.safetensors") for run in (unbroken, again))
        assert one[1] == other[1]
        assert all(torch.equal(tensor, other[0][key]) for key, tensor in one[0].items())
