"""The files that commands on pages name, at a size that takes seconds."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import timm
import torch
from PIL import Image

from hilltop.data import read_labels, write_labels
from hilltop.data.scores import ScoreTable

CLASSES = ("boat", "car", "dog", "person", "tree")
_TRAIN, _ALL = 140, 180


def write_small_data(folder: Path) -> None:
    """Write photos, features, complete labels and reduced ones into a folder."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(_ALL, 8)).astype(np.float32)
    truth = values @ rng.normal(size=(8, len(CLASSES))) > 1.0
    truth[np.arange(_ALL), rng.integers(len(CLASSES), size=_ALL)] = True
    ids = [f"{number:04}.jpg" for number in range(_ALL)]
    np.savez(folder / "features.npz", ids=np.array(ids), X=values)
    left = truth & (rng.random(truth.shape) < 0.6)
    left[np.arange(_ALL), truth.argmax(axis=1)] = True
    _write(folder / "labels.csv", ids[:_TRAIN], left[:_TRAIN])
    _write(folder / "full.csv", ids[:_TRAIN], truth[:_TRAIN])
    _write(folder / "val.csv", ids[_TRAIN:], truth[_TRAIN:])
    _write(folder / "test.csv", ids[_TRAIN:], left[_TRAIN:])
    _write_scores(folder, ids[_TRAIN:], truth[_TRAIN:], rng)
    table = read_labels(folder / "labels.csv", unlisted="unknown")
    write_labels(table, folder / "tags.xlsx", format="list_column")
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=3)
    torch.save(model.state_dict(), folder / "weights.pth")
    (folder / "photos").mkdir()
    for name in ids:
        pixels = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / name)


def _write_scores(
    folder: Path, ids: list[str], truth: npt.NDArray[np.bool_], rng: np.random.Generator
) -> None:
    """Probabilities by two models, and answers about some pairs."""
    for name, noise in (("one.npy", 1.0), ("two.npy", 3.0)):
        logits = 3.0 * truth - 2 + rng.normal(0, noise, truth.shape)
        ScoreTable(pa.array(ids), CLASSES, 1 / (1 + np.exp(-logits))).save(folder / name)
    with (folder / "answered.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "class", "answer", "sampled_with"])
        rows.writerows(
            [ids[row], "dog", "yes" if truth[row, 2] else "no", 0.25] for row in range(9)
        )


def _write(path: Path, ids: list[str], present: npt.NDArray[np.bool_]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "class"])
        rows.writerows([ids[row], CLASSES[column]] for row, column in np.argwhere(present))
