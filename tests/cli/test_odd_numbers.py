"""Whole numbers out of their bounds get a sentence before anything is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.cli.main import main

AUDIT = ["audit", "--labels", "l.csv", "--features", "f.npz", "--out", "a"]
ODD = [
    (["simulate", "l.csv", "--single", "--out", "o.csv"], "--seed", "-1", "at least 0"),
    (["simulate", "l.csv", "--single", "--out", "o.csv"], "--seed", str(10**40), "less than 2"),
    (AUDIT, "--seed", "-1", "at least 0"),
    (AUDIT, "--folds", "1", "at least 2"),
    (AUDIT, "--top", "0", "at least 1"),
    (AUDIT, "--page", "-1", "at least 0"),
    (AUDIT, "--workers", "-1", "at least 0"),
    (["advise", "l.csv"], "--draws", "0", "at least 1"),
    (["advise", "l.csv"], "--seed", "-1", "at least 0"),
    (["demo", "--out", "d"], "--seed", "-1", "at least 0"),
    (["features", "p", "--out", "f.npz"], "--image-size", "0", "at least 1"),
    (["features", "p", "--out", "f.npz"], "--workers", "-2", "at least 0"),
    (["compare", "--labels", "l.csv"], "--jobs", "0", "at least 1"),
    (AUDIT, "--shard", "0", "at least 1"),
    (["queue", "a", "--out", "q.csv"], "--number", "0", "at least 1"),
    (["review", "a"], "--port", "-1", "at least 0"),
    (["review", "a"], "--gold", "0", "at least 1"),
    (["evaluate", "s.npy", "l.csv"], "--most-classes", "-1", "at least 0"),
    (["evaluate", "s.npy", "l.csv", "--incomplete"], "--plan", "0", "at least 1"),
    (["predict", "run", "--out", "t.csv"], "--top", "0", "at least 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "option", "value", "bound"), ODD, ids=[f"{one[0][0]} {one[1]}" for one in ODD]
)
def test_a_number_out_of_its_bounds_is_said(
    words: list[str],
    option: str,
    value: str,
    bound: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, f"{option}={value}"]) == 2
    message = capsys.readouterr().err
    assert f"{option} must be {bound}" in message
    assert f"but got {value}." in message
    assert list(tmp_path.iterdir()) == []


def test_seeds_that_no_generator_takes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--labels", "l.csv", "--val-labels", "v.csv", "--keep", "0.4"]
    assert main([*words, "--seeds", str(10**40)]) == 2
    assert "seeds must have at most 18 digits" in capsys.readouterr().err


def test_statistics_of_nothing_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statistics"]) == 2
    assert "statistics needs LABELS." in capsys.readouterr().err


@pytest.mark.parametrize("scores", ["", ".", ".."])
def test_a_folder_in_place_of_scores_is_said(
    scores: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("image,class\na.jpg,cat\n")
    assert main(["evaluate", scores, str(labels), "--unlisted=unknown"]) == 1
    assert "there is no such file; scores are a .npy file" in capsys.readouterr().err
