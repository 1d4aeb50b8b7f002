"""What belongs to an input is no output either, and folders of others are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.audit.run import check_out
from hilltop.cli.main import main
from hilltop.data.scores import ScoreTable
from hilltop.errors import DataError
from hilltop.inputs.backbone import Backbone
from hilltop.inputs.shards import FeatureShards
from hilltop.training.run_folder import RunFolder
from tests.audit.conftest import audit, drawn  # noqa: F401 (fixtures)

READS = "this file is what the command reads"
TEXT = "image,class\na.jpg,cat\na.jpg,dog\nb.jpg,cat\n"


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text(TEXT)
    values = np.array([[0.9, 0.2], [0.4, 0.8]], dtype=np.float32)
    ScoreTable(pa.array(["a.jpg", "b.jpg"]), ("cat", "dog"), values).save("scores.npy")
    return tmp_path


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "labels.csv", "--by", "clarity", "--scores", "scores.npy", "--to", "long"],
        ["evaluate", "scores.npy", "labels.csv", "--unlisted=unknown", "--incomplete", "--plan=2"],
    ],
    ids=lambda words: words[0],
)
def test_names_beside_scores_are_not_written_over(
    words: list[str], link: bool, scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = Path("scores.npy.names.parquet")
    before, out = names.read_bytes(), names
    if link:
        out = Path("link.csv")
        out.symlink_to(names)
    assert main([*words, "--out", str(out), "--force"]) == 2
    assert READS in capsys.readouterr().err
    assert names.read_bytes() == before


def test_a_file_in_the_folder_of_labels_is_not_written_over(
    scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "labels.csv", "set", "--to", "yolo", "--unlisted=absent"]) == 0
    taken = next(path for path in Path("set").rglob("*.txt"))
    before = taken.read_bytes()
    words = ["convert", "set", str(taken), "--to", "long", "--unlisted=absent", "--force"]
    assert main(words) == 2
    assert "lies in the folder of labels that the command reads" in capsys.readouterr().err
    assert taken.read_bytes() == before


def test_a_file_of_weights_is_not_written_over(
    scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("photos").mkdir()
    weights = Path("weights.npz")
    weights.write_bytes(b"precious")
    assert main(["features", "photos", "--weights", "weights.npz", "--out", "weights.npz",
                 "--force"]) == 2  # fmt: skip
    assert READS in capsys.readouterr().err
    assert weights.read_bytes() == b"precious"


def test_an_image_that_is_read_is_not_written_over(
    audit: AuditFolder,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert audit.images is not None
    image = next(path for path in audit.images.iterdir())
    before = image.read_bytes()
    for words in (
        ["review", str(audit.path), "--static", str(image)],
        ["predict", "run", "--images", str(audit.images), "--to", "coco", "--out", str(image)],
    ):
        assert main([*words, "--force"]) == 2
        assert "lies in the folder of images that the command reads" in capsys.readouterr().err
        assert image.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "labels.csv", "--single", "--to", "long", "--out"],
        ["convert", "labels.csv", "--to", "paper_list", "--unlisted=absent", "--lossy"],
    ],
    ids=lambda words: words[0],
)
def test_a_folder_in_place_of_a_file_is_said(
    words: list[str], scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().iterdir())
    assert main([*words, "."]) == 1
    assert capsys.readouterr().err == "hilltop: .: this is a folder. Name a file.\n"
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize("out", ["nowhere/tags.csv", "nowhere/scores.npy"])
def test_predictions_for_a_missing_folder_are_not_computed(
    out: str, scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", "no-run", "--features=x.npz", "--out", out]) == 1
    assert f"{out}: its folder does not exist. Create it first." in capsys.readouterr().err


@pytest.mark.parametrize("file", ["suspects.parquet", "sample.csv", "estimates.csv"])
def test_no_file_of_an_audit_is_written_over(
    file: str,
    audit: AuditFolder,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = audit.path / file
    taken.write_text("precious")
    assert main(["apply", str(audit.path), "--out", str(taken), "--force"]) == 2
    assert READS in capsys.readouterr().err
    assert taken.read_text() == "precious"


@pytest.mark.parametrize("name", ["best.truth.safetensors", "report.html", "last_val_scores.npy"])
def test_a_run_takes_no_folder_that_holds_a_file_it_would_write(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(DataError, match=f"this folder holds {name}"):
        RunFolder(tmp_path).create({})
    assert (tmp_path / name).read_text() == "precious"


def test_tags_of_an_earlier_start_may_be_labels_and_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tags = tmp_path / "out" / "tags.csv"
    tags.parent.mkdir()
    tags.write_text("file,tags\na.jpg,cat\n")
    (tmp_path / "photos").mkdir()
    words = ["start", str(tmp_path / "photos"), str(tags), "--out", str(tags.parent)]
    assert main([*words, "--unlisted", "unknown"]) == 2
    assert READS in capsys.readouterr().err


def test_a_comparison_does_not_write_over_tables_of_others(
    scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("table.md").write_text("precious")
    words = ["compare", "--labels=labels.csv", "--val-labels=labels.csv", "--features=x.npz"]
    assert main([*words, "--keep=0.4", "--methods=bce", "--out=."]) == 2
    assert "table.md: there is such a file already. Choose another --out." in (
        capsys.readouterr().err
    )


def test_shards_do_not_remove_a_folder_of_somebody_else(tmp_path: Path) -> None:
    parts = tmp_path / "features.shards"
    parts.mkdir()
    (parts / "thesis.txt").write_text("precious")
    shards = FeatureShards(
        tmp_path, pa.array(["a.jpg"]), Backbone("resnet50", "none", 32), parts, size=64
    )
    with pytest.raises(DataError, match=r"holds 'thesis.txt'"):
        shards.begin()
    assert (parts / "thesis.txt").read_text() == "precious"
    (parts / "thesis.txt").unlink()
    (parts / "about.json").write_text(json.dumps({"of": "other images"}))
    (parts / "shard-000000.npz").write_text("old")
    shards.begin()
    assert [path.name for path in parts.iterdir()] == ["about.json"]


def test_an_audit_takes_no_folder_with_features_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "features.npz").write_text("precious")
    with pytest.raises(DataError, match="this folder holds other files"):
        check_out(tmp_path)
    np.savez(tmp_path / "features.npz", ids=["a"], X=[[1.0]])
    with pytest.raises(DataError, match="this folder holds other files"):
        check_out(tmp_path)
    np.savez(tmp_path / "features.npz", ids=["a"], X=[[1.0]], left_out="[]")
    check_out(tmp_path)
