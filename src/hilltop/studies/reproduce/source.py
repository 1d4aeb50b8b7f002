"""What tables and figures are made from: labels with complete truth, and features or images."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from hilltop.data import LabelTable, State, drop_positives, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, replacing
from hilltop.data.small_files import read_json
from hilltop.errors import ArgumentError
from hilltop.inputs.descriptor import describe_files
from hilltop.inputs.synthetic import write_dataset
from hilltop.studies.compare import COMPLETE, Level, Method, parse_level
from hilltop.studies.compare.level import given_level
from hilltop.studies.compare.study import read_complete, read_reduced
from hilltop.studies.reproduce.recipe import LABELS_PER_IMAGE, Setting
from hilltop.training.config import ModelConfig, TrainConfig

T = TypeVar("T")

EVERY = ""
"""Key of what stands for every data set of the paper."""


def of_data(data: str, known: Mapping[str, T]) -> T | None:
    """What is known of a data set of the paper: its own, or what stands for all of them."""
    return known.get(data) or known.get(EVERY)


@dataclass(frozen=True)
class Source:
    """A data set, and how runs on it are trained.

    Attributes:
        name: What to call it in tables.
        about: One sentence on it.
        base: Its complete labels, validation labels, inputs, and the settings of every run.
        reduced: Reduced label files by the name of their level, instead of the paper's rule.
        pictures: Folder with its images, if they can be shown.
        stand_ins: What is trained in place of backbones of the paper. Without any, images are
            trained with the backbones themselves.
        folder: Where its runs lie in the folder of a reproduction.
        only_read: Nothing is trained on it; what earlier calls measured is shown.
        paper_sizes: Training images, test images and classes that the paper has of it.
    """

    name: str
    about: str
    base: TrainConfig
    reduced: Mapping[str, Level] = field(default_factory=dict)
    pictures: Path | None = None
    stand_ins: Mapping[str, TrainConfig] = field(default_factory=dict)
    folder: str = ""
    only_read: bool = False
    paper_sizes: tuple[int, int, int] | None = None

    def level(self, name: str) -> Level:
        """The level of a name, with reduced labels where they were given."""
        if name == COMPLETE.name:
            return COMPLETE
        return self.reduced.get(name) or parse_level(name)

    def complete_labels(self) -> LabelTable:
        """Read the complete training labels."""
        return read_complete(self.base.labels, self.base)

    def test_labels(self) -> LabelTable:
        """Read the labels to judge by."""
        assert self.base.val_labels is not None
        return read_complete(self.base.val_labels, self.base)

    def other_sizes(self) -> str:
        """What the paper has of it, in words; nothing if that is the same here, or not known."""
        train = self.complete_labels()
        own = (len(train), len(self.test_labels()), len(train.classes))
        if self.paper_sizes in (None, own):
            return ""
        images, judged, classes = self.paper_sizes or own
        return f"{images:,} and {judged:,} images, {classes} classes"

    def labels_at(self, level: Level, seed: int) -> LabelTable:
        """The training labels of a level."""
        if level.labels is not None:
            return read_reduced(level.labels, self.base)
        complete = self.complete_labels()
        return complete if level.r is None else drop_positives(complete, level.r, seed=seed).table

    def settings(self, setting: Setting) -> TrainConfig | None:
        """How runs with another backbone or fewer epochs are trained; None if they cannot be."""
        base: TrainConfig | None = self.base
        if setting.model is not None:
            base = self.stand_ins.get(setting.model)
            if not self.stand_ins and self.base.images is not None:
                base = _with_model(self.base, model=setting.model)
        if base is None:
            return None
        base = _with_own_weights(base)
        if setting.epochs is None:
            return base
        # Stopped early on the schedule of the whole run: the same as that run after so many epochs.
        return dataclasses.replace(
            base,
            epochs=min(setting.epochs, base.epochs),
            schedule_epochs=base.schedule_epochs or base.epochs,
        )

    def parse(self, method: str) -> Method:
        """Read a method of a recipe, with what it asks of this data set."""
        if LABELS_PER_IMAGE in method:
            table = self.complete_labels()
            mean = table.count(State.PRESENT) / max(1, len(table))
            method = method.replace(LABELS_PER_IMAGE, f"{mean:.1f}")
        return Method.parse(method)


def _with_model(config: TrainConfig, **changes: str) -> TrainConfig:
    model = dataclasses.replace(config.model, **changes)  # type: ignore[arg-type]
    return dataclasses.replace(config, model=model)


def _with_own_weights(config: TrainConfig) -> TrainConfig:
    """The settings with the file of their backbone, where weights are a folder of such files."""
    folder, name = Path(config.model.weights), config.model.model
    if not folder.is_dir() or (folder / "config.json").is_file():  # the folder of one model
        return config
    named = (path for path in sorted(folder.iterdir()) if path.name.startswith(f"{name}."))
    found = folder / name if (folder / name).is_dir() else next(named, folder / f"{name}.pth")
    return _with_model(config, weights=str(found))


def given_source(base: TrainConfig, *, name: str | None, reduced: Sequence[str] = ()) -> Source:
    """A data set that the user has; backbones are those of the paper if there are images."""
    if base.val_labels is None:
        raise ArgumentError("reproduce needs --val-labels: complete labels to judge by.")
    what = base.features if base.features is not None else base.images
    return Source(
        name=name or base.labels.stem,
        about=f"Labels {base.labels}, trained on {what}.",
        base=base,
        reduced={level.name: level for level in map(given_level, reduced)},
        pictures=base.images,
    )


SEED = 2022  # of embedded pictures and filters; the seeds of runs are others

# Small relatives of the paper's backbones, with random weights: they train on two cores. There is
# none for Swin: a small transformer does not learn these few pictures within minutes.
STAND_INS = {
    "mobilenetv3_large_100.ra_in1k": "test_efficientnet",
    "resnet101.tv_in1k": "test_resnet",
}


@dataclass(frozen=True)
class EmbeddedSize:
    """How many pictures are drawn, how they are described, and how long runs on them are.

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


def embedded_source(folder: Path, size: EmbeddedSize | None = None) -> Source:
    """Draw and describe the embedded pictures, unless the folder holds them already.

    Args:
        folder: Where pictures, labels and features are kept.
        size: How much; without it what two cores do in half an hour for all tables.
    """
    chosen = size or EmbeddedSize()
    done = folder / "done.json"
    if not done.is_file():
        _draw(folder, chosen)
        atomic_write(done, json.dumps(asdict(chosen)) + "\n")
    elif read_json(done, "Delete the folder to draw anew.") != asdict(chosen):
        raise data_error(folder, "there are pictures of another size here; choose another --out.")
    pictures = folder / "pictures" / "images"
    base = TrainConfig(
        labels=folder / "complete.parquet",
        val_labels=folder / "val.parquet",
        features=folder / "features.npz",
        epochs=chosen.epochs,
        batch_size=chosen.batch_size,
        learning_rate=chosen.learning_rate,
        weight_decay=chosen.weight_decay,
        ema=0.0,  # few steps are too few for an average
        workers=0,
        model=ModelConfig(model="linear"),
    )
    network = dataclasses.replace(
        base,
        features=None,
        images=pictures,
        epochs=chosen.backbone_epochs,
        batch_size=32,
        learning_rate=1e-2,
        weight_decay=None,
        augment="none",
        model=ModelConfig(image_size=chosen.image_size),
    )
    return Source(
        name="embedded pictures",
        about=(
            f"{chosen.train_images:,} training and {chosen.val_images:,} validation pictures drawn"
            f" by the program, each described by {6 * chosen.filters:,} fixed numbers (responses of"
            " random patches); a linear classifier is trained on them."
        ),
        base=base,
        pictures=pictures,
        stand_ins={name: _with_model(network, model=model) for name, model in STAND_INS.items()},
    )


def _draw(folder: Path, size: EmbeddedSize) -> None:
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
