"""Training from a block on: what is frozen and kept, resuming, several processes, wrong names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from hilltop.cli.main import main
from hilltop.data import drop_positives, read_labels, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.inputs import ImageInputs, list_images
from hilltop.losses.base import Evidence
from hilltop.models import build_image_model
from hilltop.training import frozen, heads
from hilltop.training.folds import CrossValidation
from hilltop.training.recipe import HEADS
from hilltop.training.run_folder import RunFolder
from tests.training.conftest import finish, image_command, stop

SIZE = 64  # so that blocks far down still have pixels


@pytest.fixture(scope="module")
def picture_size() -> int:
    return SIZE


def words(pictures: Path, out: Path, *more: object) -> list[str]:
    held = ("--workers", 0, "--ema", 0.9, "--learning-rate", 1e-2, "--loss", "hill")
    from_block = ("--epochs", 3, "--freeze-below", "layer3")
    return image_command(pictures, out, *held, *from_block, *more, size=SIZE)


@pytest.fixture(scope="module")
def unbroken(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folder") / "runs" / "unbroken"
    assert main(words(pictures, out)) == 0
    return out


def test_what_lies_below_keeps_its_weights_and_statistics(
    unbroken: Path, pictures: Path, tmp_path: Path
) -> None:
    assert main(words(pictures, tmp_path / "run", "--epochs", 1)) == 0
    one, three = (load_file(run / "last.safetensors") for run in (tmp_path / "run", unbroken))
    below = ("conv1", "bn1", "layer1", "layer2")
    for name, value in one.items():
        if name.endswith(("weight", "running_mean")):
            assert torch.equal(value, three[name]) == name.startswith(below), name
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "nothing is left beside a run"


def test_the_model_that_is_kept_is_whole(unbroken: Path, pictures: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.npy"
    folder = str(pictures / "images")
    assert main(["predict", str(unbroken), "--images", folder, "--out", str(scores)]) == 0
    table, val = ScoreTable.load(scores), ScoreTable.load(unbroken / "val_scores.npy")
    # Outputs on disk are in half precision, and so are not quite those of the pixels.
    np.testing.assert_allclose(table.aligned(val.images, val.classes), val.values, atol=2e-3)


def test_outputs_are_computed_once_for_runs_side_by_side(
    unbroken: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(pictures, unbroken.with_name("other"), "--loss", "bce")) == 0
    said = capsys.readouterr().out
    assert "outputs below layer3:" not in said, "they are there"
    assert "training from layer3: 23 tensors of weights learn, all below is frozen;" in said
    assert "crops and mirroring are applied to the outputs, not to the pixels" in said


@pytest.mark.parametrize(
    "more", [("--seed", 1), ("--image-size", 96), ("--freeze-below", "layer4")]
)
def test_other_weights_sizes_and_blocks_have_outputs_of_their_own(
    unbroken: Path, pictures: Path, more: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = unbroken.with_name("-".join(map(str, more)))
    assert main(words(pictures, out, *more, "--epochs", 1)) == 0
    assert "of 48 images" in capsys.readouterr().out


@pytest.mark.parametrize(
    "steps", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(5, marks=pytest.mark.slow)]
)
def test_a_resumed_run_equals_an_unbroken_one(
    unbroken: Path, pictures: Path, tmp_path: Path, steps: int
) -> None:
    out = tmp_path / "run"
    code, _ = stop(words(pictures, out), "SIGINT", steps=steps)
    assert code != 0
    finish(["resume", str(out)])
    assert RunFolder(out).recorded() == RunFolder(unbroken).recorded()
    expected, actual = (load_file(run / "last.safetensors") for run in (unbroken, out))
    assert all(torch.equal(value, actual[name]) for name, value in expected.items())


@pytest.mark.distributed
def test_two_processes_write_the_outputs_of_one(
    unbroken: Path, pictures: Path, tmp_path: Path
) -> None:
    finish(words(pictures, tmp_path / "runs" / "two", "--freeze-norms"), processes=2)
    for file in (tmp_path / "runs" / "outputs").glob("*/outputs.npy"):
        expected = np.load(unbroken.parent / "outputs" / file.parent.name / "outputs.npy")
        np.testing.assert_allclose(np.load(file), expected, rtol=2e-3, atol=2e-3)
    assert len(list((tmp_path / "runs" / "outputs").iterdir())) == 2


def test_a_picture_that_cannot_be_read_is_left_out(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sorted((pictures / "images").iterdir())[3]
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    try:
        run = tmp_path / "run"
        assert main(words(pictures, run, "--skip-broken")) == 0
        assert main(words(pictures, tmp_path / "again", "--skip-broken")) == 0
    finally:
        file.write_bytes(content)
    for name in ("run", "again"):
        assert file.name in (tmp_path / name / "broken.txt").read_text()
    assert capsys.readouterr().out.count("1 image could not be read and was left out") == 2


def test_outputs_that_were_stopped_half_way_go_on(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = ImageInputs(
        pictures / "images", list_images(pictures / "images"), size=64, augment="none", seed=0,
        workers=0, skip_broken=False,
    )  # fmt: skip
    model = build_image_model("test_resnet", 5, weights="none")
    monkeypatch.setattr(frozen, "_BATCH", 8)
    monkeypatch.setattr(frozen, "_BATCHES_KEPT", 2)
    whole = frozen.FrozenBlocks(model, "layer3", tmp_path / "whole").inputs_from(images, crop=False)
    seen: list[int] = []
    compute = frozen.outputs_below

    def stopping(model: nn.Module, block: str, pixels: torch.Tensor) -> torch.Tensor:
        seen.append(len(pixels))
        if len(seen) == 6:  # the first looks at two blank images
            raise KeyboardInterrupt
        return compute(model, block, pixels)

    monkeypatch.setattr(frozen, "outputs_below", stopping)
    blocks = frozen.FrozenBlocks(model, "layer3", tmp_path / "part")
    with pytest.raises(KeyboardInterrupt):
        blocks.inputs_from(images, crop=False)
    again = blocks.inputs_from(images, crop=False)
    np.testing.assert_array_equal(again.values, whole.values)
    assert seen[6:] == [2, 8, 8, 8, 4], "32 of 60 were there"


def test_classifier_inputs_are_those_of_the_whole_model(pictures: Path, tmp_path: Path) -> None:
    images = ImageInputs(
        pictures / "images", list_images(pictures / "images"), size=64, augment="none", seed=0,
        workers=0, skip_broken=False,
    )  # fmt: skip
    model = build_image_model("test_resnet", 5, weights="none").eval()
    ((_, pixels),) = images.loader([range(60)], None)
    with torch.no_grad():
        expected = model.forward_head(model.forward_features(pixels), pre_logits=True)
    inputs, _ = frozen.train_from(model, "layer3", tmp_path, images, images, crop=False)
    actual = frozen.classifier_inputs(model, inputs)
    torch.testing.assert_close(actual, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("default::hilltop.errors.HilltopWarning")
def test_auto_looks_for_evidence_in_pretrained_outputs(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = tmp_path / "weights.safetensors"
    save_file(build_image_model("test_resnet", 3, weights="none").state_dict(), weights)
    more = ("--loss", "auto", "--weights", weights, "--epochs", 1)
    assert main(words(pictures, tmp_path / "runs" / "one", *more)) == 0
    said = capsys.readouterr()
    assert "starts anew" in said.err
    assert "every pair is known to be present or absent: cross-entropy" in said.out
    assert main(words(pictures, tmp_path / "runs" / "two", "--loss", "auto", "--epochs", 1)) == 0
    assert "nothing is known of how labels were lost" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::hilltop.errors.HilltopWarning")
def test_auto_asks_pretrained_features_before_all_of_a_network_is_trained(
    pictures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heads, "LEAST_EVIDENCE_ROWS", 40)
    monkeypatch.setattr(
        heads,
        "cross_validate",
        lambda features, targets, *_, **__: CrossValidation(
            features[:, :1].expand_as(targets).contiguous(), HEADS
        ),
    )
    weigh, limits = heads.mask_evidence, []

    def weighted(*given: Any, **options: Any) -> Evidence:
        limits.append(given[-1])
        return weigh(*given, **options)

    monkeypatch.setattr(heads, "mask_evidence", weighted)
    weights, labels = tmp_path / "weights.safetensors", tmp_path / "left.parquet"
    save_file(build_image_model("test_resnet", 5, weights="none").state_dict(), weights)
    table = read_labels(pictures / "labels.parquet")
    write_labels(drop_positives(table, 0.5, seed=0).table, labels)
    given = words(pictures, tmp_path / "runs" / "one", "--loss", "auto", "--weights", weights)
    given = [word for word in given if word not in ("--freeze-below", "layer3")]
    assert main([*given, "--labels", str(labels), "--epochs", "1"]) == 0
    said = capsys.readouterr().out
    assert "outputs below fc: 48 of 48 images" in said
    assert "nothing is known of how labels were lost" not in said
    assert limits == [heads.NETWORK_LEAST_ABSENT]
    assert main([*given, "--epochs", "1", "--out", str(tmp_path / "runs" / "two")]) == 0
    said = capsys.readouterr().out
    assert "every pair is known to be present or absent: cross-entropy" in said
    assert "outputs below" not in said, "complete labels leave nothing to ask"


def test_features_of_a_whole_network_are_what_its_classifier_is_given(
    pictures: Path, tmp_path: Path
) -> None:
    folder = pictures / "images"
    images = ImageInputs(
        folder, list_images(folder), size=64, augment="light", seed=0, workers=0, skip_broken=False
    )
    model = build_image_model("test_resnet", 5, weights="none", normalise=True).eval()
    ((_, pixels),) = images.loader([range(60)], None)
    with torch.no_grad():
        inner = model.backbone
        shifted = (pixels - model.mean) / model.std
        expected = inner.forward_head(inner.forward_features(shifted), pre_logits=True)
    features = frozen.pretrained_features(model, images, tmp_path)
    assert features is not None
    torch.testing.assert_close(features(), expected, rtol=1e-2, atol=1e-2)
    assert frozen.pretrained_features(nn.Flatten(), images, tmp_path) is None


def test_both_stages_of_pseudo_labels_share_outputs(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--pseudo-label", 0.5, "--epochs", 1, "--loss", "bce")
    assert main(words(pictures, tmp_path / "runs" / "twice", *more)) == 0
    assert capsys.readouterr().out.count("48 of 48 images") == 1
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["outputs", "twice"]


def test_tokens_are_neither_cropped_nor_mirrored(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--model", "test_vit", "--image-size", 64, "--freeze-below", "blocks.4", "--epochs", 1)
    assert main(words(pictures, tmp_path / "run", *more)) == 0
    assert "crops and mirroring are left out" in capsys.readouterr().out


def test_an_unknown_block_is_answered_with_those_there_are(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(pictures, tmp_path / "run", "--freeze-below", "layer9")) != 0
    said = capsys.readouterr().err
    assert "There is no block 'layer9' in this model. Did you mean 'layer" in said
    assert "layer2, layer2.0, layer3, layer3.0, layer4, layer4.0, global_pool, fc." in said


def test_a_block_inside_a_branch_is_refused_before_anything_is_computed(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs" / "run"
    assert main(words(pictures, out, "--freeze-below", "layer4.0.conv2")) != 0
    assert "cannot be trained from 'layer4.0.conv2'" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "outputs").exists()


def test_augmentation_of_pixels_is_refused(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(pictures, tmp_path / "run", "--augment", "strong")) == 2
    assert "augment 'strong' changes pixels" in capsys.readouterr().err
