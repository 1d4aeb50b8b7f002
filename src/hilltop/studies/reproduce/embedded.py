"""The embedded data set: pictures that the project draws, and a fixed description of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from hilltop.data import write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, replacing
from hilltop.data.small_files import read_json
from hilltop.inputs.descriptor import describe_files
from hilltop.inputs.synthetic import write_dataset
from hilltop.studies.reproduce.source import Source
from hilltop.training.config import ModelConfig, TrainConfig

SEED = 2022  # of pictures and filters; the seeds of runs are others


@dataclass(frozen=True)
class EmbeddedSize:
    """How much is drawn and trained.

    Number of filters, rate and penalty were chosen with BCE on complete labels alone, on pictures
    of another seed.
    """

    train_images: int = 3500
    val_images: int = 1500
    image_size: int = 64
    filters: int = 256
    filter_side: int = 9
    epochs: int = 15
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 1.0
    backbone_epochs: int = 4


# Small relatives of the paper's backbones, with random weights: they train on two cores. There is
# none for Swin: a small transformer does not learn these few pictures within minutes.
STAND_INS = {
    "mobilenetv3_large_100.ra_in1k": "test_efficientnet",
    "resnet101.tv_in1k": "test_resnet",
}


def embedded_source(folder: Path, size: EmbeddedSize | None = None) -> Source:
    """Draw and describe the pictures, unless the folder holds them already.

    Args:
        folder: Where pictures, labels and features are kept.
        size: How much; without it what two cores do in half an hour for all tables.
    """
    chosen = size or EmbeddedSize()
    done = folder / "done.json"
    if done.is_file():
        if read_json(done, "Delete the folder to draw anew.") != asdict(chosen):
            raise data_error(
                folder, "there are pictures of another size here; choose another --out."
            )
    else:
        _make(folder, chosen)
        atomic_write(done, json.dumps(asdict(chosen)) + "\n")
    labels, val = folder / "complete.parquet", folder / "val.parquet"
    base = TrainConfig(
        labels=labels,
        val_labels=val,
        features=folder / "features.npz",
        epochs=chosen.epochs,
        batch_size=chosen.batch_size,
        learning_rate=chosen.learning_rate,
        weight_decay=chosen.weight_decay,
        ema=0.0,
        workers=0,
        model=ModelConfig(model="linear"),
    )
    pictures = folder / "pictures" / "images"
    return Source(
        name="embedded pictures",
        about=(
            f"{chosen.train_images:,} training and {chosen.val_images:,} validation pictures drawn"
            f" by the program, each described by {6 * chosen.filters:,} fixed numbers (responses of"
            " random patches); a linear classifier is trained on them."
        ),
        base=base,
        pictures=pictures,
        backbones={
            name: _small(base, model, pictures, chosen) for name, model in STAND_INS.items()
        },
    )


def _small(base: TrainConfig, model: str, pictures: Path, size: EmbeddedSize) -> TrainConfig:
    return TrainConfig(
        labels=base.labels,
        val_labels=base.val_labels,
        images=pictures,
        epochs=size.backbone_epochs,
        batch_size=32,
        learning_rate=1e-2,
        ema=0.0,  # few steps are too few for an average
        augment="none",
        workers=0,
        model=ModelConfig(model=model, image_size=size.image_size),
    )


def _make(folder: Path, size: EmbeddedSize) -> None:
    images = size.train_images + size.val_images
    table = write_dataset(folder / "pictures", images=images, size=size.image_size, seed=SEED)
    parts = {"complete": range(size.train_images), "val": range(size.train_images, images)}
    for name, rows in parts.items():
        write_labels(table.select(rows), folder / f"{name}.parquet", format="hilltop")
    names = table.images.to_pylist()
    values = describe_files(
        folder / "pictures" / "images",
        names,
        filters=size.filters,
        side=size.filter_side,
        seed=SEED,
    )
    features = values.numpy().astype(np.float16)
    with replacing(folder / "features.npz") as temporary:
        np.savez(temporary, ids=np.array(names), X=features)
