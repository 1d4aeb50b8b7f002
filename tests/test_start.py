"""One command from photos and a spreadsheet to tags."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import hilltop.cli.main
from hilltop.cli.main import main
from hilltop.cli.start import StepNotes
from hilltop.data.files import holding

Start = Callable[..., int]
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, Path]:
    """Pictures in up to three colours with a table of some of their names, in a messy folder."""
    rng, folder = np.random.default_rng(0), tmp_path / "photos" / "2024"
    folder.mkdir(parents=True)
    lines = ["Photo;Who;Tags"]
    for number in range(130):
        chosen = [name for name in COLOURS if rng.random() < 0.5]
        pixels = np.zeros((32, 32, 3), dtype=np.uint8)
        for at, name in enumerate(chosen):
            pixels[10 * at : 10 * at + 10] = COLOURS[name]
        Image.fromarray(pixels).save(folder / f"{number}.png")
        if number < 120:
            lines.append(f"{number}.png;Ann;{', '.join(chosen)}")
    lines.append("gone.png;Bo;red")
    labels = tmp_path / "tags.csv"
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "photos", labels


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Weights of a very small network; random ones tell colours apart, too."""
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    path = tmp_path / "weights.pth"
    torch.save(timm.create_model("test_resnet", num_classes=3).state_dict(), path)
    return path


def test_start_ends_with_tags_of_every_photo(
    photos: tuple[Path, Path],
    weights: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, labels = photos
    out = tmp_path / "out"
    words = ["start", str(folder), str(labels), "--unlisted", "unknown", "--out", str(out)]
    words += ["--weights", str(weights), "--backbone", "test_resnet"]
    assert main(words) == 0
    said = capsys.readouterr().out
    for command in ("features", "audit", "train", "predict"):
        assert f"$ hilltop {command} " in said
    assert "130 photos" in said
    with (out / "tags.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 130
    assert (out / "run" / "report.html").is_file()
    assert (out / "audit" / "candidates.csv").is_file()

    assert main(words) == 0  # what is there is not made again
    assert capsys.readouterr().out.count("is there already") == 3

    labels.write_text(labels.read_text(encoding="utf-8").replace("red", "crimson"), "utf-8")
    assert main(words) == 0  # but what was made from other labels is, and nothing is lost
    said = capsys.readouterr().out
    assert said.count("is there already") == 1
    assert f"{out / 'run'} was made from something else: it is now {out / 'run-1'}" in said
    assert "crimson" in (out / "tags.csv").read_text(encoding="utf-8")
    assert "red" in (out / "audit-1" / "candidates.csv").read_text(encoding="utf-8")

    (out / "run" / "report.html").unlink()  # as if it had been killed
    assert main(words) == 0
    assert (out / "run" / "report.html").is_file()
    assert "run-2" not in capsys.readouterr().out


def test_what_unlisted_means_is_asked_for(
    photos: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, labels = photos
    assert main(["start", str(folder), str(labels), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"hilltop start {folder} {labels} --unlisted unknown --out {tmp_path / 'out'}" in said
    assert not (tmp_path / "out").exists()


def test_photos_of_other_names_are_told(
    photos: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = photos
    other = tmp_path / "other.csv"
    other.write_text("image,labels\nx.jpg,red\ny.jpg,blue\n", encoding="utf-8")
    assert main(["start", str(folder), str(other), "--unlisted", "unknown"]) == 1
    assert "'x.jpg'" in capsys.readouterr().err


def test_a_file_without_a_label_ends_before_anything_is_computed(
    photos: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "empty.csv"
    labels.write_text("image,tags\n" + "".join(f"{number}.png,\n" for number in range(9)))
    out = tmp_path / "out"
    words = ["start", str(photos[0]), str(labels), "--unlisted", "unknown", "--out", str(out)]
    assert main(words) == 1
    assert "there is not one label of the 9 photos in it" in capsys.readouterr().err
    assert not out.exists()


def test_photos_and_labels_the_wrong_way_round_are_told(
    photos: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, labels = photos
    assert main(["start", str(labels), str(folder)]) == 1
    assert f"comes first: hilltop start {folder} {labels}" in capsys.readouterr().err


def test_what_else_must_be_said_is_told_as_a_command_of_its_own(
    photos: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "unclear.csv"
    labels.write_text("image,tags\n0.png,red fox\n1.png,none\n")
    words = ["start", str(photos[0]), str(labels), "--unlisted", "unknown"]
    assert main([*words, "--backbone", "resnet18"]) == 2
    error = capsys.readouterr().err
    assert (
        f"hilltop start {photos[0]} {labels} --unlisted unknown --backbone resnet18 --de" in error
    )
    assert "hilltop inspect" not in error


def test_what_was_noticed_while_reading_is_said(
    photos: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "noticed.csv"
    lines = ["red, blue", "red", "blue", "none", "none", "blue, green", "green"]
    lines = [f'{number}.png,"{tags}"' for number, tags in enumerate(lines)]
    labels.write_text("\n".join(["image,tags", *lines, ""]))
    assert main(["start", str(photos[0]), str(labels)]) == 2
    said = capsys.readouterr().out
    assert "labels in 'tags' separated by ','" in said
    assert "--background-class none makes all other classes absent there." in said


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hilltop 0.")


def test_the_one_question_is_asked_until_it_is_answered(
    photos: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    folder, labels = photos
    asked: list[list[str]] = []

    def run_command(words: list[str]) -> None:
        asked.append(words)

    monkeypatch.setattr("sys.stdin", Keyboard("x\nu\n"))
    monkeypatch.setattr("hilltop.cli.start.Start._step", lambda _, __, words: run_command(words))
    assert main(["start", str(folder), str(labels), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert said.err.count("u or a? ") == 2
    assert "130 photos" in said.out
    assert "1 of 121 labelled images has no image here" in said.out
    assert all("unknown" in words for words in asked if words[0] in ("audit", "train"))
    assert "The same in single commands:" in said.out

    monkeypatch.setattr("sys.stdin", Keyboard("\n"))
    asked.clear()
    assert main(["start", str(folder), str(labels), "--out", str(tmp_path / "enter")]) == 0
    assert capsys.readouterr().err.count("u or a? [u] ") == 1
    assert all("unknown" in words for words in asked if words[0] in ("audit", "train"))


def test_names_in_several_spellings_are_one_class_and_photos_are_found_in_any_case(
    photos: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, labels = photos
    text = labels.read_text(encoding="utf-8").replace("red", "Red", 20).replace(".png", ".PNG ", 9)
    labels.write_text(text, encoding="utf-8")
    asked: list[list[str]] = []
    monkeypatch.setattr("hilltop.cli.start.Start._step", lambda _, __, words: asked.append(words))
    words = ["start", str(folder), str(labels), "--unlisted", "unknown"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "of 3 classes" in said
    assert "1 class is written in several ways, as 'Red' and 'red'" in said
    assert "merged into" not in said, "one line for all names, not one for each"
    assert "1 of 121 labelled images has no image here" in said
    assert "--merge-names" in asked[1]


def test_files_beside_photos_do_not_make_their_features_anew(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, _ = photos
    out = folder / "results"
    notes = StepNotes(out, folder)
    words = ["features", str(folder), "--out", str(out / "features.npz")]
    notes.begin(words)
    (out / "features.npz").write_bytes(b"1")
    (folder / "tags.csv").write_text("image,class\n", encoding="utf-8")
    assert notes.is_same(words)
    (folder / "2024" / "0.png").write_bytes((folder / "2024" / "1.png").read_bytes() + b"0")
    assert not notes.is_same(words)


def test_label_files_in_a_folder_count(tmp_path: Path) -> None:
    notes, folder = StepNotes(tmp_path / "out"), tmp_path / "labels"
    folder.mkdir()
    (folder / "a.txt").write_text("red", encoding="utf-8")
    words = ["train", "--labels", str(folder)]
    notes.begin(words)
    assert notes.is_same(words)
    (folder / "a.txt").write_text("blue", encoding="utf-8")
    assert not notes.is_same(words)


# What `start` finds in its folder: taken for its own only if it is, and never lost.


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
    photos: tuple[Path, Path],
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
    photos: tuple[Path, Path],
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
    photos: tuple[Path, Path],
    commands: list[list[str]],
) -> None:
    os.rename(photos[0], "-photos")
    assert start("--values=-9=unknown", folder="./-photos") == 0
    assert commands[0][1] == "./-photos"
    assert "--values=-9=unknown" in commands[1]


def test_labels_from_a_pipe_are_told_to_be_saved(
    start: Start,
    photos: tuple[Path, Path],
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
