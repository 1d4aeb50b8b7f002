"""From JPEG files to scores: a small backbone on drawn pictures, and pictures that are broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file

from hilltop.cli.main import main
from hilltop.data.scores import ScoreTable
from hilltop.inputs.synthetic import write_dataset
from hilltop.training.predict import load_run
from tests.training.conftest import finish, image_command


def words(pictures: Path, out: Path, *more: object) -> list[str]:
    return image_command(pictures, out, "--epochs", 1, *more)


def test_a_backbone_trains_predicts_and_exports(pictures: Path, tmp_path: Path) -> None:
    import onnxruntime

    run, scores, model = tmp_path / "run", tmp_path / "s.npy", tmp_path / "m.onnx"
    assert main(image_command(pictures, run, "--epochs", 1, "--workers", 1, report=True)) == 0
    assert (run / "report.html").is_file()
    folder = pictures / "images"
    assert main(["predict", str(run), "--images", str(folder), "--out", str(scores)]) == 0
    table = ScoreTable.load(scores)
    assert len(table.images) == 60
    val = ScoreTable.load(run / "val_scores.npy")
    np.testing.assert_allclose(table.aligned(val.images, val.classes), val.values, atol=1e-5)
    if torch.__version__.startswith("2.6."):
        pytest.skip("torch 2.6 cannot write batch norms as ONNX beside the onnxscript of today")
    assert main(["export", str(run), "--out", str(model)]) == 0
    from hilltop.inputs.images import ImageInputs

    inputs = ImageInputs(
        folder, table.images, size=32, augment="none", seed=0, workers=0, skip_broken=False
    )
    ((rows, batch),) = inputs.loader([[0, 7, 9]], None)
    session = onnxruntime.InferenceSession(model)
    (probs,) = session.run(None, {"inputs": batch.contiguous().numpy()})
    np.testing.assert_allclose(probs, table.values[rows], atol=1e-4)


@pytest.fixture
def damaged(pictures: Path) -> Path:
    """The same pictures with one cut off in the middle, put back afterwards."""
    file = sorted((pictures / "images").iterdir())[3]
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    yield file
    file.write_bytes(content)


def test_a_broken_picture_stops_the_run_with_its_name(
    pictures: Path, damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(pictures, tmp_path / "run", "--workers", 0)) == 1
    message = capsys.readouterr().err
    assert damaged.name in message
    assert "Traceback" not in message


def test_broken_pictures_can_be_left_out_and_are_listed(
    pictures: Path, damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(words(pictures, run, "--workers", 0, "--skip-broken")) == 0
    assert damaged.name in (run / "broken.txt").read_text()
    assert "1 image could not be read and was left out" in capsys.readouterr().out


@pytest.mark.distributed
def test_pictures_that_other_processes_could_not_read_are_listed(
    pictures: Path, tmp_path: Path
) -> None:
    files = sorted((pictures / "images").iterdir())[10:34]  # of 24, some fall to the second one
    contents = [file.read_bytes() for file in files]
    for file in files:
        file.write_bytes(b"no picture")
    run = tmp_path / "run"
    try:
        finish(words(pictures, run, "--workers", 0, "--skip-broken"), processes=2)
    finally:
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
    listed = (run / "broken.txt").read_text()
    assert [file.name for file in files if file.name not in listed] == []


def test_a_missing_picture_is_named_before_training(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sorted((pictures / "images").iterdir())[5]
    moved = file.rename(tmp_path / file.name)
    try:
        assert main(words(pictures, tmp_path / "run")) == 1
    finally:
        moved.rename(file)
    assert file.name in capsys.readouterr().err


@pytest.mark.filterwarnings("default::hilltop.errors.HilltopWarning")
@pytest.mark.parametrize("frozen", [True, False])
def test_pretrained_batch_norms_keep_their_statistics_unless_told_otherwise(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], frozen: bool
) -> None:
    weights, run = tmp_path / "weights.safetensors", tmp_path / "run"
    before = timm.create_model("test_resnet", num_classes=3).state_dict()
    save_file(before, weights)
    more = [] if frozen else ["--no-freeze-norms"]
    assert main(words(pictures, run, "--weights", weights, *more)) == 0
    assert "starts anew" in capsys.readouterr().err
    after = load_file(run / "last.safetensors")
    for name in ("bn1.running_mean", "layer1.0.bn1.running_var"):
        assert torch.equal(after[f"backbone.{name}"], before[name]) == frozen
    assert not torch.equal(after["backbone.bn1.weight"], before["bn1.weight"])


def test_random_weights_are_said(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(words(pictures, tmp_path / "run"))
    assert "test_resnet starts from random weights" in capsys.readouterr().out


def test_scores_of_a_network_are_calibrated_by_images_it_did_not_learn_from(
    tmp_path: Path,
) -> None:
    write_dataset(tmp_path / "more", images=230, size=32, seed=1)
    assert main(words(tmp_path / "more", tmp_path / "run", "--val-share", 0.45)) == 0
    for which in ("last", "best"):
        trained = load_run(tmp_path / "run", which=which)
        assert trained.truth is not None
        assert trained.truth.counts.rows == 104
        assert len(trained.truth.thresholds().thresholds) == len(trained.classes)
    tags = tmp_path / "tags.csv"
    images = tmp_path / "more" / "images"
    run = str(tmp_path / "run")
    assert main(["predict", run, "--images", str(images), "--out", str(tags)]) == 0
    assert len(tags.read_text().splitlines()) == 231
