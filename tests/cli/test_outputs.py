"""No command writes over what it reads, or over another file unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from tests.audit.conftest import audit, drawn  # noqa: F401 (fixtures)
from tests.training.conftest import command, problem  # noqa: F401 (fixtures)

READS = "this file is what the command reads"
TEXT = "image,class\na.jpg,cat\na.jpg,dog\nb.jpg,cat\n"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(TEXT)
    return path


def run(*words: object) -> int:
    return main([str(word) for word in words])


def own_input_commands() -> list[list[str]]:
    usual = ["--unlisted", "unknown"]
    return [
        ["convert", "labels.csv", "labels.csv", "--to", "long", *usual],
        ["convert", "labels.csv", "link.csv", "--to", "long", *usual],
        ["convert", "labels.csv", "hard.csv", "--to", "long", *usual],
        ["simulate", "labels.csv", "--single", "--out", "labels.csv", "--to", "long"],
        ["simulate", "labels.csv", "--keep", "keep.csv", "--out", "keep.csv", "--to", "long"],
        ["simulate", "x.dropped.parquet", "--single", "--out", "x.csv", "--to", "long"],
        ["join", "labels.csv", "other.csv", "--out", "other.csv", *usual],
        ["inspect", "labels.csv", "--write-class-map", "labels.csv", *usual],
        ["features", "features.npz", "--out", "features.npz"],
    ]


@pytest.mark.parametrize("words", own_input_commands(), ids=" ".join)
@pytest.mark.parametrize("force", [False, True])
def test_a_command_does_not_write_over_its_input(
    words: list[str],
    force: bool,
    labels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link.csv").symlink_to(labels)
    Path("hard.csv").hardlink_to(labels)
    for name in ("other.csv", "keep.csv", "features.npz", "x.dropped.parquet"):
        Path(name).write_text("precious")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(*words, *(["--force"] if force else [])) == 2
    assert READS in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_file_is_replaced_with_force_alone(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    words = ["convert", labels, out, "--to", "long", "--unlisted", "unknown"]
    assert run(*words) == 2
    assert f"{out}: there is such a file already." in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert run(*words, "--force") == 0
    assert "cat" in out.read_text()


def test_a_list_of_names_beside_the_output_counts_with_it(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = tmp_path / "new.txt.classes.txt"
    beside.write_text("precious")
    words = ["convert", labels, tmp_path / "new.txt", "--to", "paper_list", "--unlisted", "absent"]
    assert run(*words) == 2
    assert str(beside) in capsys.readouterr().err
    assert beside.read_text() == "precious"


def test_a_folder_may_be_called_as_its_labels_without_the_ending(
    labels: Path, tmp_path: Path
) -> None:
    words = ["convert", labels, tmp_path / "labels", "--to", "yolo", "--unlisted", "absent"]
    assert run(*words) == 0
    assert labels.read_text() == TEXT


@pytest.mark.parametrize("file", ["labels.csv", "audit/candidates.parquet", "audit/audit.json"])
@pytest.mark.parametrize(
    "words",
    [
        ["apply", "audit", "--out"],
        ["apply", "audit", "--candidates", "--format", "fiftyone", "--out"],
        ["review", "audit", "--static"],
    ],
    ids=" ".join,
)
def test_an_audit_and_its_labels_are_not_written_over(
    words: list[str],
    file: str,
    audit: AuditFolder,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = Path(file).read_bytes()
    assert run(*words, file, "--force") == 2
    assert READS in capsys.readouterr().err
    assert Path(file).read_bytes() == before


def test_labels_in_a_folder_are_not_written_over(
    audit: AuditFolder,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "there").mkdir()
    kept = tmp_path / "there" / "labels.json"
    kept.write_text("precious")
    words = ["apply", audit.path, "--candidates", "--format", "fiftyone", "--out", kept.parent]
    assert run(*words, "--force") == 1
    assert f"{kept}: there is such a file already." in capsys.readouterr().err
    assert kept.read_text() == "precious"


def test_a_run_does_not_write_over_labels_of_the_same_name(
    problem: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = tmp_path / "train_labels.parquet"
    content = (problem / "train.parquet").read_bytes()
    taken.write_bytes(content)
    words = command(problem, tmp_path, "--epochs", 1)
    words[words.index("--labels") + 1] = str(taken)
    assert main(words) == 1
    assert "this folder holds train_labels.parquet" in capsys.readouterr().err
    assert taken.read_bytes() == content
