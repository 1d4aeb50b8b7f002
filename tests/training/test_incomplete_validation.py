"""Epochs on validation labels that may be incomplete are judged by estimates of the truth."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hilltop.training.incomplete_validation import EstimatedMap, IncompleteValidation

from hilltop.cli.main import main
from hilltop.cli.train import describe_run
from hilltop.data import LabelTable, State, assemble, keep_each, read_labels, write_labels
from hilltop.metrics import mean_average_precision
from tests.training.conftest import command

Array = npt.NDArray[np.float64]


def simulated(
    *, images: int = 400, unlisted: State = State.UNKNOWN
) -> tuple[LabelTable, Array, npt.NDArray[np.bool_]]:
    """Incomplete labels, scores and the truth."""
    rng = np.random.default_rng(0)
    probs = 1 / (1 + np.exp(-rng.normal(-2, 3, (images, 4))))
    true = rng.random(probs.shape) < probs
    kept = true & (rng.random(probs.shape) < 0.5)
    names = [f"{row}.jpg" for row in range(images)]
    table = assemble(names, list("abcd"), *kept.nonzero(), State.PRESENT, unlisted=unlisted)
    return table, probs, true


def test_the_estimate_is_near_the_truth_where_the_labels_are_not() -> None:
    labels, probs, true = simulated()
    validation = IncompleteValidation.of(labels)
    assert validation is not None
    found = validation.judge(probs).metrics["mAP"]
    naive = mean_average_precision(probs, labels.eval_targets())
    assert naive < found.low < mean_average_precision(probs, true) < found.high


@pytest.mark.parametrize("kind", [{"unlisted": State.ABSENT}, {"images": 20}])
def test_complete_or_few_labels_are_left_alone(kind: dict[str, object]) -> None:
    assert IncompleteValidation.of(simulated(**kind)[0]) is None  # type: ignore[arg-type]


def test_many_classes_leave_enough_images_to_look_at() -> None:
    targets = np.zeros((2000, 1500), dtype=np.float32)
    targets[:, :3] = 1
    validation = IncompleteValidation.of_targets(targets)
    assert validation is not None
    assert len(validation.rows) >= 60


def test_intervals_are_wider_where_some_of_the_images_are_looked_at() -> None:
    labels, probs, _ = simulated(images=400)
    targets = labels.eval_targets()
    alone = IncompleteValidation(np.arange(0, 400, 4), targets[::4])
    within = alone.judge(probs)
    shown = IncompleteValidation(np.arange(100), targets[::4]).judge(probs[::4])
    assert shown.metrics["mAP"].estimate == within.metrics["mAP"].estimate
    assert within.metrics["mAP"].low < shown.metrics["mAP"].low - 0.001


def test_a_worse_epoch_gains_less_and_the_same_one_nothing() -> None:
    labels, probs, _ = simulated()
    validation = IncompleteValidation.of(labels)
    assert validation is not None
    worse = np.random.default_rng(1).permutation(probs)
    gain = validation.judge(worse, rival=probs).gain
    assert gain is not None
    assert gain < -0.1
    assert validation.judge(probs, rival=probs).gain == 0


def test_images_that_could_not_be_read_take_no_part() -> None:
    labels, probs, _ = simulated()
    validation = IncompleteValidation.of(labels)
    assert validation is not None
    broken = probs.copy()
    broken[::2] = np.nan
    assert validation.judge(broken).metrics["mAP"].estimate > 0.5
    broken[3:] = np.nan
    assert np.isnan(validation.judge(broken).columns()["mAP_estimate"])


def test_scores_of_epochs_add_up_what_the_best_ones_gained() -> None:
    labels, probs, _ = simulated()
    validation = IncompleteValidation.of(labels)
    assert validation is not None
    scorer, worse = EstimatedMap(validation), np.random.default_rng(1).permutation(probs)
    first, second, third = scorer(worse), scorer(probs), scorer(worse)
    assert first < second
    assert third == pytest.approx(first, abs=1e-6)


def test_the_best_epoch_of_a_run_is_the_one_that_estimates_chose(tmp_path: Path) -> None:
    rows = [(1, 0.4, 0.5, 1), (2, 0.3, 0.6, 2)]  # labels as they are prefer the first
    names = "epoch,mAP,mAP_estimate,best_epoch"
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "metrics.csv").write_text(f"{names}\n{text}")
    assert describe_run(tmp_path)["best"]["epoch"] == 2


def test_a_run_on_incomplete_validation_labels_records_and_says_estimates(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reduced = keep_each(read_labels(problem / "val.parquet"), 0.6, seed=0).table
    write_labels(reduced, tmp_path / "val.parquet")
    options = ("--epochs", 2, "--loss", "bce", "--ema", 0.9, "--ema-choice", "better")
    words = command(problem, tmp_path / "run", *options, report=True)
    words[words.index("--val-labels") + 1] = str(tmp_path / "val.parquet")
    assert main(words) == 0
    with (tmp_path / "run" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    last = {name: float(value) for name, value in rows[-1].items()}
    assert last["mAP_low"] < last["mAP_estimate"] < last["mAP_high"]
    for name in ("CF1", "OF1"):
        assert last[f"{name}_low"] <= last[f"{name}_estimate"] <= last[f"{name}_high"]
    for which in ("average", "plain"):
        assert last[f"mAP_{which}"] < last[f"mAP_{which}_estimate"] < last[f"mAP_{which}_high"]
    assert last["best_epoch"] in (1, 2)
    said = capsys.readouterr().out
    assert "not known to be complete" in said
    interval = f"({100 * last['mAP_low']:.1f} to {100 * last['mAP_high']:.1f})"
    assert f"{interval}, {100 * last['mAP']:.2f} by labels as they are" in said
    page = (tmp_path / "run" / "report.html").read_text()
    assert "by labels as they are" in page
    # Estimates of two epochs, made apart, may contradict the choice.
    assert "mAP, best epoch" not in page
    assert re.search(r"The best was epoch \d+\.", page)
    assert re.search(r"; best in epoch \d+ \(chosen on the validation images\)", said)
    assert "90% intervals" in page
