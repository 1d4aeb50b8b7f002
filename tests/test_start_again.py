"""What ``start`` finds in its folder: taken for its own only if it is, and never lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hilltop.cli.main
from hilltop.cli.main import main
from hilltop.data.files import holding
from tests.test_start import photos  # noqa: F401 (a fixture)

Start = Callable[..., int]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The steps that were run; each only leaves the file that it is known by."""
    ran: list[list[str]] = []
    files = {"audit": "review.html", "train": "report.html", "resume": "report.html"}

    real = hilltop.cli.main.run_command

    def run_command(words: list[str], **options: Any) -> dict[str, Any] | None:
        if words[0] == "start":
            return real(words, **options)
        ran.append(words)
        named = words[1] if words[0] == "resume" else words[words.index("--out") + 1]
        made = Path(named) / files.get(words[0], "")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(words[0])
        return None

    monkeypatch.setattr("hilltop.cli.main.run_command", run_command)
    return ran


@pytest.fixture
def start(
    photos: tuple[Path, Path],  # noqa: F811
    commands: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Start:
    """Run the command on the pictures, in their folder."""
    monkeypatch.chdir(tmp_path)

    def run(*more: str, folder: str = "photos") -> int:
        words = ["start", folder, photos[1].name, "--unlisted", "unknown", "--out", "out"]
        return main([*words, "--weights", "none.pth", "--backbone", "test_resnet", *more])

    return run


@pytest.mark.parametrize("name", ["tags.csv", "features.npz", "run", "audit"])
def test_what_start_did_not_make_is_neither_taken_nor_lost(
    name: str, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    Path("out", name).write_text("precious")
    assert start() == 0
    kept = Path("out", name).with_stem(f"{Path(name).stem}-1")
    assert f"it is now {kept}" in capsys.readouterr().out
    assert kept.read_text() == "precious"


def test_tags_that_somebody_changed_are_not_written_over(start: Start) -> None:
    assert start() == 0
    assert start() == 0
    assert not Path("out/tags-1.csv").exists()
    Path("out/tags.csv").write_text("corrected by hand")
    assert start() == 0
    assert Path("out/tags-1.csv").read_text() == "corrected by hand"
    assert Path("out/tags.csv").read_text() == "predict"


def test_notes_of_somebody_else_are_told(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    assert start() == 0
    Path("out/start.json").write_text("[]")
    assert start() == 1
    assert "start.json: these are not the notes of `hilltop start`." in capsys.readouterr().err


def test_training_that_was_stopped_is_resumed(start: Start, commands: list[list[str]]) -> None:
    assert start() == 0
    Path("out/run/report.html").unlink()
    Path("out/run/resume.safetensors").touch()
    del commands[:]
    assert start() == 0
    assert [words[0] for words in commands] == ["resume", "predict"]


def test_results_inside_the_folder_of_photos_are_no_photos(
    start: Start,
    photos: tuple[Path, Path],  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    inside = str(photos[0] / "out")
    assert start("--out", inside) == 0
    photos[0].joinpath("out", "run", "curves.png").write_bytes(b"")
    assert start("--out", inside) == 0
    assert "130 photos\n" in capsys.readouterr().out


def test_two_starts_at_once_do_not_meet_in_a_folder(
    start: Start, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    with holding(Path("out")):
        assert start() == 1
    assert "out: another `hilltop start` works here. Wait for it." in capsys.readouterr().err
    assert not commands


def test_a_dash_before_a_name_makes_no_option_of_it(
    start: Start,
    photos: tuple[Path, Path],  # noqa: F811
    commands: list[list[str]],
) -> None:
    os.rename(photos[0], "-photos")
    assert start("--values=-9=unknown", folder="./-photos") == 0
    assert commands[0][1] == "./-photos"
    assert "--values=-9=unknown" in commands[1]


def test_labels_from_a_pipe_are_told_to_be_saved(
    start: Start,
    photos: tuple[Path, Path],  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    photos[1].unlink()
    os.mkfifo(photos[1])
    assert start() == 1
    assert "labels are read again and again; save them to a file." in capsys.readouterr().err


def test_complete_labels_end_with_tags_too(
    start: Start, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("--unlisted", "absent") == 0
    assert [words[0] for words in commands] == ["features", "train", "predict"]
    assert "hilltop review" not in capsys.readouterr().out
