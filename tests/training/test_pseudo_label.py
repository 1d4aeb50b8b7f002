"""Training twice, with pseudo labels between."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from hilltop.cli.main import main
from hilltop.data import LabelTable, State, read_labels
from hilltop.training.stages import add_confident
from tests.training.conftest import command


def test_unknown_pairs_above_the_threshold_become_labels_and_nothing_else_changes() -> None:
    states = [State.PRESENT, State.ABSENT]
    table = LabelTable.from_coo(
        ["a", "b"], ["x", "y"], [0, 0], [0, 1], states, unlisted=State.UNKNOWN
    )
    scores = np.array([[0.1, 0.9], [0.6, 0.5]], dtype=np.float32)
    added = add_confident(table, scores, 0.5)
    assert added.dense().tolist() == [
        [State.PRESENT, State.ABSENT],
        [State.PRESENT, State.UNKNOWN],
    ]
    unreadable = np.full((2, 2), np.nan, dtype=np.float32)
    assert add_confident(table, unreadable, 0.5).dense().tolist() == table.dense().tolist()


@pytest.fixture(scope="module")
def twice(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("twice") / "run"
    assert main(command(problem, out, "--epochs", 6, "--pseudo-label", 0.4, report=True)) == 0
    return out


def test_the_second_stage_trains_on_more_labels_and_the_same_images(twice: Path) -> None:
    before = read_labels(twice / "first" / "train_labels.parquet")
    after = read_labels(twice / "train_labels.parquet")
    assert after.images.equals(before.images)
    assert after.count(State.PRESENT) > before.count(State.PRESENT)
    kept = before.dense() == State.PRESENT
    assert (after.dense()[kept] == State.PRESENT).all()
    assert (twice / "report.html").is_file()
    assert not (twice / "first" / "report.html").exists()


def test_a_run_stopped_between_the_stages_resumes_to_the_same_end(
    twice: Path, tmp_path: Path
) -> None:
    stopped = tmp_path / "run"
    shutil.copytree(twice, stopped)
    for file in [*stopped.glob("*.safetensors"), *stopped.glob("*_labels.parquet")]:
        file.unlink()
    (stopped / "metrics.csv").unlink()
    for file in stopped.glob("state*"):
        file.unlink()
    assert main(["resume", str(stopped)]) == 0
    assert (stopped / "metrics.csv").read_text() == (twice / "metrics.csv").read_text()


def test_a_threshold_that_is_no_probability_is_refused(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(problem, tmp_path / "r", "--pseudo-label", 1.5)) == 2
    assert "pseudo_label must be between 0 and 1, but got 1.5." in capsys.readouterr().err
