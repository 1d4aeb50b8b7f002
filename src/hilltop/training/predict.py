"""A finished run put to use: its model, and its scores for other images or features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import torch
from torch import nn

from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.inputs.image_files import list_images
from hilltop.models import FeatureHead, build_image_model
from hilltop.training.checkpoint import load_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import launch
from hilltop.training.loop import predict
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Inputs


@dataclass(frozen=True)
class TrainedModel:
    """A model with the configuration it was trained with and the names of its classes."""

    model: nn.Module
    config: TrainConfig
    classes: tuple[str, ...]
    epoch: int

    @property
    def learning_rate(self) -> float:
        """Peak of the learning rate that it was trained with."""
        return self.config.recipe.rate_for(self.input_shape[0])

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        if isinstance(self.model, FeatureHead):
            return tuple(self.model.mean.shape)
        size = self.config.model.image_size
        return (3, size, size)


def load_run(path: Path, *, which: str = "best") -> TrainedModel:
    """Load the model of a run folder; ``which`` is best or last."""
    folder = RunFolder(path)
    folder.check()
    config = TrainConfig.from_file(folder.config)
    tensors, note = load_tensors(folder.best if which == "best" else folder.last)
    classes = tuple(note["classes"])
    if config.kind == "features":
        hidden = config.model.hidden if config.model.model == "mlp" else None
        features = int(tensors["mean"].numel())
        model: nn.Module = FeatureHead(features, len(classes), hidden=hidden)
    else:
        model = build_image_model(
            config.model.model,
            len(classes),
            weights="none",
            image_size=config.model.image_size,
            normalise=bool(config.model.normalise),
        )
    model.load_state_dict(tensors)
    return TrainedModel(model.eval(), config, classes, int(note["epoch"]))


def predict_run(
    trained: TrainedModel,
    *,
    images: Path | None = None,
    features: Path | None = None,
    chosen: pa.StringArray | None = None,
) -> tuple[ScoreTable, list[tuple[str, str]]]:
    """Score the images of a folder, or the rows of a features file: all, or the chosen ones.

    Returns:
        The scores, and the images that could not be read with the reason for each; those are
        left out of the scores if the run was trained with skip_broken, and stop it otherwise.
    """
    config = trained.config
    given = images if config.kind == "images" else features
    if given is None or (images is not None and features is not None):
        raise ArgumentError(
            f"This run was trained on {config.kind}: give --{config.kind}, and nothing else."
        )
    ids = _all_ids(config, given) if chosen is None else chosen
    inputs = _inputs_of(config, given, ids)
    fabric = launch(config.precision)
    scores = predict(trained.model.to(fabric.device), inputs, len(ids), config, fabric)
    readable = ~torch.isnan(scores).any(dim=1)
    kept = ids.filter(pa.array(readable.numpy()))
    table = ScoreTable(kept, trained.classes, scores[readable].numpy())
    return table, inputs.broken


def predict_rows(trained: TrainedModel, images: pa.StringArray) -> ScoreTable:
    """Score some of the images, or rows of features, that a run was trained or validated on."""
    config = trained.config
    given = config.images if config.kind == "images" else config.features
    assert given is not None
    fabric = launch(config.precision)
    inputs = _inputs_of(config, given, images)
    scores = predict(trained.model.to(fabric.device), inputs, len(images), config, fabric)
    return ScoreTable(images, trained.classes, scores.numpy())


def _all_ids(config: TrainConfig, given: Path) -> pa.StringArray:
    return list_images(given) if config.kind == "images" else read_features(given).images


def _inputs_of(config: TrainConfig, given: Path, ids: pa.StringArray) -> Inputs:
    if config.kind == "features":
        return FeatureInputs(read_features(given), ids)
    from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not

    return ImageInputs(
        given,
        ids,
        size=config.model.image_size,
        augment="none",
        seed=config.seed,
        workers=config.workers,
        skip_broken=config.skip_broken,
    )
