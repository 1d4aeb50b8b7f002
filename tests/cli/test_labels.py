"""The commands about label files, run as a user runs them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.data import ReadOptions, State, read_labels
from tests.data.patched import found_format


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    rows = [f"{i}.jpg,class{c}" for i in range(40) for c in range(i % 6)]
    path.write_text("\n".join(["image,class", *rows]) + "\n")
    return path


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_alone_it_says_where_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert "hilltop inspect LABELS" in capsys.readouterr().out


def test_inspect_prints_text_or_json(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", labels, "--unlisted", "unknown") == 0
    assert "present" in capsys.readouterr().out
    assert run("inspect", labels, "--unlisted", "absent", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["images"], summary["classes"], summary["unknown"]) == (33, 5, 0)


def test_inspect_says_whether_labels_can_be_changed_in_place(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", labels, "--unlisted", "unknown") == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("; can be changed in place")
    packed = labels.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(labels.read_bytes()))
    assert run("inspect", packed, "--unlisted", "unknown") == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("; read only")


def test_what_is_left_open_is_asked_for_with_exit_code_2(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", labels) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"hilltop: {labels}: This format does not say")
    assert "--unlisted unknown" in message


def test_bad_files_exit_with_1_and_one_sentence(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with labels.open("a") as file:
        file.write("lonely\n")
    assert run("inspect", labels, "--unlisted", "unknown") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "row 98 has 1 cell" in captured.err
    assert "Traceback" not in captured.err


def test_simulate_writes_what_stayed_and_what_was_dropped(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "reduced.parquet"
    assert run("simulate", labels, "--missing-ratio", "0.8", "--seed", "0", "--out", out) == 0
    kept, dropped = read_labels(out), read_labels(tmp_path / "reduced.dropped.parquet")
    assert kept.count(State.PRESENT) + dropped.count(State.PRESENT) == 96
    assert kept.labels_per_image().max() == 2
    assert f"{dropped.count(State.PRESENT)} labels dropped" in capsys.readouterr().out
    assert kept.unlisted == State.UNKNOWN


def test_simulate_keeps_the_format_where_the_ending_stays(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "reduced.csv"
    assert run("simulate", labels, "--single", "--out", out) == 0
    assert found_format(out) == found_format(labels) == "long"
    assert run("simulate", labels, "--single", "--out", tmp_path / "reduced.tsv") == 2


def test_simulate_by_class_from_a_file(labels: Path, tmp_path: Path) -> None:
    keep = tmp_path / "keep.csv"
    keep.write_text("class,keep\n" + "".join(f"class{c},{c % 2}\n" for c in range(5)))
    out = tmp_path / "k.parquet"
    assert run("simulate", labels, "--keep", keep, "--out", out) == 0
    assert read_labels(out).counts_by_class(State.PRESENT)[0] == 0
    assert run("simulate", labels, "--keep", "0.5", "--out", out, "--force") == 0
    keep.write_text("class,keep\nclass0,many\n")
    assert run("simulate", labels, "--keep", keep, "--out", out, "--force") == 1


@pytest.mark.parametrize(
    "words", [(), ("--missing-ratio", "0.8", "--single"), ("--r", "2"), ("--keep", "x")]
)
def test_simulate_wants_one_rule(
    labels: Path, tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.parquet"
    assert run("simulate", labels, "--out", out, *words) == 2
    assert not out.exists()
    assert capsys.readouterr().err.startswith("hilltop: ")


def test_convert_and_back(labels: Path, tmp_path: Path) -> None:
    native, back = tmp_path / "t.parquet", tmp_path / "back.csv"
    assert run("convert", labels, native, "--unlisted", "absent") == 0
    assert run("convert", native, back, "--to", "long") == 0
    assert run("convert", back, tmp_path / "u.parquet", "--unlisted", "absent") == 0
    assert read_labels(native) == read_labels(tmp_path / "u.parquet")


def test_statistics(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("statistics", labels, labels) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].split() == [str(labels), "33", "5", "96", "2.91"]


def test_wrong_words_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspct") == 2
    assert "Did you mean 'inspect'?" in capsys.readouterr().err
    assert run("inspect", "labels.csv", "--fromat", "wide") == 2
    assert "Did you mean '--format'?" in capsys.readouterr().err


def test_debug_shows_the_traceback(labels: Path) -> None:
    command = [sys.executable, "-m", "hilltop", "inspect", str(labels), "--debug"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert "Traceback" in finished.stderr


def test_a_lossy_conversion_says_what_the_output_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "a.csv", tmp_path / "b.json"
    source.write_text("image,class,state\n1.jpg,cat,present\n1.jpg,dog,absent\n")
    words = ["convert", str(source), str(out), "--unlisted", "unknown", "--to", "coco", "--lossy"]
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{out}: 1 image, 2 classes, 1 label"
    assert "1 confirmed absent; the rest cannot be expressed" in said[1]
    again = ["convert", str(out), str(tmp_path / "c.json"), "--unlisted", "unknown", "--to", "coco"]
    assert main(again) == 0
    assert "boxes, segmentations and sizes of images are left out" in capsys.readouterr().out


def test_classes_with_numbers_stand_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\na.jpg,c10;c2\nb.jpg,c1;c2;a\n", encoding="utf-8")
    table = read_labels(path, options=ReadOptions(unlisted="unknown"))
    assert table.classes == ("a", "c1", "c2", "c10")
