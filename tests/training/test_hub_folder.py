"""The folder for the Hugging Face Hub, loaded as its card says by a Python without Hilltop."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hilltop.cli.main import main
from hilltop.data import LabelTable, State, write_labels
from hilltop.training.predict import load_run

CLASSES = ("boat", "car", "dog")
ROWS = 400

STRANGER = """
import sys
import numpy as np

class NoHilltop:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hilltop":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoHilltop())
folder = sys.argv[1]
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images whose colour channels are their labels, features of them, and labels."""
    folder = tmp_path_factory.mktemp("hub")
    rng = np.random.default_rng(0)
    truth = rng.random((ROWS, len(CLASSES))) < 0.5
    (folder / "images").mkdir()
    names = [f"{row}.png" for row in range(ROWS)]
    for name, row in zip(names, truth, strict=True):
        pixels = np.where(row, 220, 30) + rng.integers(-20, 20, (40, 48, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / name)
    matrix = truth @ rng.standard_normal((3, 70)) + 0.3 * rng.standard_normal((ROWS, 70))
    np.savez(folder / "features.npz", X=matrix.astype(np.float32), ids=np.array(names))
    rows, columns = np.nonzero(truth & (rng.random(truth.shape) < 0.7))
    table = LabelTable.from_coo(
        names, CLASSES, rows, columns, State.PRESENT, unlisted=State.UNKNOWN
    )
    write_labels(table, folder / "labels.parquet")
    return folder


def exported(problem: Path, out: Path, *words: str) -> Path:
    labels = [
        "--labels",
        str(problem / "labels.parquet"),
        "--epochs",
        "2",
        "--seed",
        "1",
        "--no-report",
    ]
    assert main(["train", *labels, *words, "--out", str(out / "run"), "--quiet"]) == 0
    assert main(["export", str(out / "run"), "--to", "hub-folder", "--out", str(out / "hub")]) == 0
    return out / "hub"


def snippets(folder: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)


def stranger(code: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRANGER + code, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("model", [("linear",), ("mlp", "--hidden", "8")], ids=lambda one: one[0])
def test_a_head_loads_as_its_card_says(
    problem: Path, tmp_path: Path, model: tuple[str, ...]
) -> None:
    features = str(problem / "features.npz")
    folder = exported(problem, tmp_path, "--features", features, "--model", *model)
    (code,) = snippets(folder)
    out = tmp_path / "theirs.npz"
    given = f"import torch\nfeatures = torch.from_numpy(np.load({features!r})['X'])\n"
    ending = f"\nnp.savez({str(out)!r}, logits=logits.numpy(), tags=tags.numpy())"
    stranger(given + code + ending, folder)
    trained, theirs = load_run(tmp_path / "run"), np.load(out)
    with torch.no_grad():
        logits = trained.model(torch.from_numpy(np.load(features)["X"]))
    np.testing.assert_allclose(theirs["logits"], logits, atol=1e-4)
    assert trained.truth is not None
    decision = trained.truth.thresholds()
    tags = trained.truth.probs(logits) > torch.as_tensor(decision.thresholds)
    assert (theirs["tags"] == tags.numpy()).mean() > 0.99  # ties of rounding


def test_image_models_load_with_transformers_and_timm(problem: Path, tmp_path: Path) -> None:
    images, picture = str(problem / "images"), str(problem / "images" / "3.png")
    common = ("--images", images, "--image-size", "64", "--weights", "none", "--loss", "bce")
    kinds = {
        "plain": ("--model", "test_resnet"),
        "normalised": ("--model", "test_resnet", "--normalise"),
        "one size": ("--model", "test_vit"),
    }
    code = f"from PIL import Image\nimage = Image.open({picture!r})\n"
    for number, (name, options) in enumerate(kinds.items()):  # one stranger loads all of them
        folder = exported(problem, tmp_path / name, *common, *options)
        transformers, timm = snippets(folder)
        code += (
            f"folder = {str(folder)!r}\n{transformers}\n"
            "first, config = logits.numpy(), model.config\n"
            f"{timm}\nnp.savez({str(tmp_path / f'{number}.npz')!r}, first=first,"
            " second=logits.numpy(), kind=config.problem_type,"
            " names=list(config.id2label.values()), tags=tags)\n"
        )
    stranger(code, tmp_path)
    squashed = Image.open(picture).resize((64, 64), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.asarray(squashed, dtype=np.float32) / 255).permute(2, 0, 1)
    for number, name in enumerate(kinds):
        theirs, trained = np.load(tmp_path / f"{number}.npz"), load_run(tmp_path / name / "run")
        assert str(theirs["kind"]) == "multi_label_classification"
        assert theirs["names"].tolist() == list(CLASSES)
        with torch.no_grad():
            logits = trained.model(pixels[None])
        np.testing.assert_allclose(theirs["first"], logits, atol=1e-4)
        np.testing.assert_allclose(theirs["second"], logits, atol=1e-4)


def test_the_card_lists_metrics_with_intervals(problem: Path, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    folder = exported(problem, tmp_path, "--features", str(problem / "features.npz"))
    data = ModelCard.load(folder / "README.md", ignore_metadata_errors=False).data
    assert data.to_dict()["problem_type"] == "multi_label_classification"
    (metric,) = [one for one in data.eval_results if one.metric_type == "mAP"]
    assert metric.metric_args["low"] <= metric.metric_value <= metric.metric_args["high"]
    assert set(json.loads((folder / "thresholds.json").read_text())) >= {"classes", "logits"}
