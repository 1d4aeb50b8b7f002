"""The script for zero-shot scores: real loading code, on small random weights made here."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch

from hilltop.inputs.extra_scores import read_extra_scores
from hilltop.inputs.synthetic import write_dataset

SCRIPT = Path(__file__).parents[2] / "reproduction" / "zero_shot_scores.py"
TOWER = {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16}
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures, class names, and the weights of a small model that open_clip is told of."""
    open_clip = pytest.importorskip("open_clip", reason="open_clip_torch is not installed")
    folder = tmp_path_factory.mktemp("zero")
    write_dataset(folder, images=9, size=32, seed=0)
    (folder / "names.txt").write_text("red circle\n\nblue square\n")
    (folder / "tiny.json").write_text(
        json.dumps({"embed_dim": 512, "vision_cfg": TOWER, "text_cfg": TEXT})
    )
    open_clip.add_model_config(folder / "tiny.json")
    torch.manual_seed(0)
    model = open_clip.create_model("tiny")
    torch.save(model.state_dict(), folder / "tiny.pt")
    return folder


def scores(folder: Path, monkeypatch: pytest.MonkeyPatch, *more: object) -> Path:
    out = folder / "extra.npz"
    words = [SCRIPT, "--images", folder / "images", "--classes", folder / "names.txt"]
    words += ["--model", "tiny", "--weights", folder / "tiny.pt", "--out", out, *more]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    return out


def test_scores_are_scaled_cosines_with_the_mean_of_the_sentences(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import open_clip
    from PIL import Image

    path = scores(folder, monkeypatch, "--batch-size", 4)
    found = np.load(path)
    assert found["classes"].tolist() == ["red circle", "blue square"]
    assert found["scores"].shape == (9, 2)
    model, pixels = open_clip.create_model_from_pretrained("tiny", str(folder / "tiny.pt"))
    name = str(found["ids"][4])
    with torch.inference_mode(), Image.open(folder / "images" / name) as image:
        seen = model.eval().encode_image(pixels(image.convert("RGB"))[None], normalize=True)[0]
        templates = ("a photo of a {}.", "a photo of the {}.", "a picture with a {} in it.")
        sentences = open_clip.get_tokenizer("tiny")([one.format("red circle") for one in templates])
        word = model.encode_text(sentences, normalize=True).mean(dim=0)
        expected = model.logit_scale.exp() * (seen @ word) / word.norm()
    assert found["scores"][4, 0] == pytest.approx(float(expected), rel=1e-4)
    import pyarrow as pa

    read = read_extra_scores(path, pa.array([name]), ("red circle", "green"), names={})
    assert np.isfinite(read[0, 0])
    assert np.isnan(read[0, 1])


def test_timm_gives_the_image_tower_where_it_has_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tower = timm.create_model("test_vit", num_classes=512)
    torch.save(tower.state_dict(), folder / "tower.pt")
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: tower)
    more = ["--image-model", "test_vit", "--image-weights", folder / "tower.pt"]
    assert np.load(scores(folder, monkeypatch, *more))["scores"].shape == (9, 2)


def test_towers_of_two_models_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tower = timm.create_model("test_vit")
    torch.save(tower.state_dict(), folder / "tower.pt")
    more = ["--image-model", "test_vit", "--image-weights", folder / "tower.pt"]
    with pytest.raises(SystemExit, match="1000 numbers, and tiny texts in 512"):
        scores(folder, monkeypatch, *more)
