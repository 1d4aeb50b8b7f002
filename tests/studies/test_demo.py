"""The demo, at a small size: it runs from pictures to report, and shows what happened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hilltop.data import State, read_labels
from hilltop.errors import DataError
from hilltop.metrics import EmptyClassWarning, mean_average_precision
from hilltop.studies.demo import METHODS, DemoSize, run_demo
from hilltop.training.predict import load_run, predict_run

SMALL = DemoSize(
    train_images=48, val_images=24, test_images=24, image_size=32, epochs=1, batch_size=16
)


@pytest.mark.slow
def test_the_demo_shows_the_metrics_of_its_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = run_demo(tmp_path / "demo", size=SMALL).read_text(encoding="utf-8")
    printed = capsys.readouterr().out
    test = read_labels(tmp_path / "demo" / "test.parquet")
    for run in ["complete-bce", *(f"left-{loss}" for loss in METHODS)]:
        trained = load_run(tmp_path / "demo" / "runs" / run, which="last")
        scores, _ = predict_run(trained, images=tmp_path / "demo" / "pictures" / "images")
        values = scores.aligned(test.images, test.classes)
        with pytest.warns(EmptyClassWarning):  # 24 images do not have all classes
            found = mean_average_precision(values, test.dense() == State.PRESENT)
        number = f"{100 * found:.1f}"
        assert f'<td class="number">{number}</td>' in page
        assert re.search(rf"^\S.* {re.escape(number)} ", printed, re.MULTILINE)


@pytest.mark.slow
def test_a_second_demo_replaces_the_first(tmp_path: Path) -> None:
    first = run_demo(tmp_path / "demo", size=SMALL).stat().st_mtime_ns
    assert run_demo(tmp_path / "demo", size=SMALL).stat().st_mtime_ns > first


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match="this folder holds other files; choose an empty one"):
        run_demo(tmp_path, size=SMALL)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
