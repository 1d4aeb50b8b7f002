"""What a run works on: labels, inputs, model and loss, built from a configuration."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.data.files import atomic_write
from hilltop.data.review_record import (
    before_review,
    provenance_path,
    read_provenance,
    with_answers,
    write_provenance,
)
from hilltop.errors import DataError
from hilltop.inputs.features import FeatureInputs, Features, read_features
from hilltop.inputs.outputs import OutputInputs
from hilltop.losses import LabelStats, Loss, build
from hilltop.losses.compose import with_ema_teacher
from hilltop.losses.corrections import EmaTeacher
from hilltop.models import FeatureHead, build_image_model
from hilltop.progress import say_of_inputs
from hilltop.training.config import TrainConfig
from hilltop.training.evidence import (
    LEAST_ABSENT,
    NETWORK_LEAST_ABSENT,
    FoldEvidence,
    prepare_loss,
)
from hilltop.training.learner import head_loss, start_head
from hilltop.training.logistic import is_cross_entropy
from hilltop.training.recipe import HEADS, Recipe
from hilltop.training.run_folder import RunFolder
from hilltop.training.sources import input_source, read_both, read_training


class Inputs(Protocol):
    """Serves what the model sees."""

    @property
    def broken(self) -> list[tuple[str, str]]:
        """Images that could not be read so far, and why."""
        ...

    def loader(
        self, plan: Sequence[Sequence[int]], epoch: int | None
    ) -> Iterator[tuple[npt.NDArray[np.int64], Tensor]]:
        """Yield the rows that could be read and their inputs; ``epoch`` None is evaluation."""
        ...


@dataclass(frozen=True)
class Task:
    """Labels and inputs for training and validation, and what is trained.

    ``evidence`` is what the loss was told of missing labels, ``untrained`` the loss before the
    first step: what scores of the trained model mean is found out by both. ``before`` holds the
    training labels before a review, if people answered some of them.
    """

    train: LabelTable
    val: LabelTable
    train_inputs: Inputs
    val_inputs: Inputs
    model: nn.Module
    loss: Loss
    recipe: Recipe
    true_labels: LabelTable | None = None
    judged: EmaTeacher | None = None
    evidence: FoldEvidence | None = None
    untrained: Loss | None = None
    before: LabelTable | None = None


def store_labels(config: TrainConfig, folder: RunFolder) -> None:
    """Read the labels, split them if need be, and keep both parts in the run folder."""
    if config.val_labels is not None or config.val_split is not None:
        train, val = read_both(config, say_of_inputs)
    else:
        train, val = split(read_training(config, say_of_inputs), config.val_share, config.seed)
    for name, table in (("training", train), ("validation", val)):
        if not table.count(State.PRESENT):
            raise DataError(f"There is no label at all among the {len(table)} {name} images.")
    answers = read_provenance(config.labels)
    write_labels(with_answers(train, answers), folder.train_labels)
    if answers:
        atomic_write(provenance_path(folder.train_labels), write_provenance(answers))
    write_labels(val, folder.val_labels)


def split(table: LabelTable, share: float, seed: int) -> tuple[LabelTable, LabelTable]:
    """Set a share of the images aside, drawn from the seed."""
    order = np.argsort(np.random.PCG64(seed).random_raw(len(table)), kind="stable")
    aside = round(share * len(table))
    if not 0 < aside < len(table):
        raise DataError(
            f"A share of {share:g} of {len(table)} images leaves nothing to train or to validate"
            " on. Pass --val-labels or another --val-share."
        )
    return table.select(np.sort(order[aside:])), table.select(np.sort(order[:aside]))


def build_task(config: TrainConfig, folder: RunFolder) -> Task:
    """Build everything from the run folder's own labels."""
    train, val = read_labels(folder.train_labels), read_labels(folder.val_labels)
    # Summed, as in the paper: as a mean over batch and classes the gradient is so small that the
    # L2 penalty of Adam would outweigh it, and most so for losses with small gradients.
    make = head_loss if config.kind == "features" else build
    loss = make(config.loss, **{"reduction": "sum", **config.loss_options})
    correction = None
    if config.ask_average:
        loss, correction = with_ema_teacher(loss)
    before = before_review(train, read_provenance(folder.train_labels))
    recipe = config.recipe

    def labels(rows: Tensor) -> tuple[Tensor, Tensor]:
        return training_batch(train, rows.numpy())

    def labels_before(rows: Tensor) -> tuple[Tensor, Tensor]:
        return training_batch(train if before is None else before, rows.numpy())

    earlier = None if before is None else labels_before

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if config.kind == "features":
            assert config.features is not None
            features = read_features(config.features)
            inputs = FeatureInputs(features, train.images)
            val_features = read_features(input_source(config, val=True))
            val_inputs: Inputs = FeatureInputs(val_features, val.images)
            head = _feature_model(config, features, train)
            train_inputs: Inputs = inputs
            model: nn.Module = head
            recipe = recipe.for_head(
                head,
                inputs.values,
                labels,
                seed=config.seed,
                before=earlier,
            )
        else:
            model = build_image_model(
                config.model.model,
                len(train.classes),
                weights=config.model.weights,
                image_size=config.model.image_size,
                normalise=bool(config.model.normalise),
                boost=config.model.boost,
                silent=config.model.head_start == "prior",
            )
            train_inputs, val_inputs = _image_inputs(config, train, val, model, folder)
        stats = label_stats(train, config.epochs, before=before)
        features_of = _features(config, model, train_inputs, folder)
        evidence = None
        if loss.wants_evidence and features_of is not None:
            evidence = prepare_loss(
                loss,
                stats,
                features_of,
                labels,
                seed=config.seed,
                before=earlier,
                least_absent=(LEAST_ABSENT if config.kind == "features" else NETWORK_LEAST_ABSENT),
                recipe=recipe.for_evidence if before is None else HEADS,
            )
        else:
            loss.prepare(stats)
    if config.model.head_start == "prior" and not uses_solver(config, recipe, loss):
        start_head(classifier_of(model), loss, labels, len(train))
    true_labels = _true_labels(config, train)
    untrained = copy.deepcopy(loss)
    return Task(
        train,
        val,
        train_inputs,
        val_inputs,
        model,
        loss,
        recipe,
        true_labels,
        correction,
        evidence,
        untrained,
        before,
    )


def uses_solver(config: TrainConfig, recipe: Recipe, loss: Loss) -> bool:
    """Whether a run fits a linear head of cross-entropy, which needs no steps."""
    linear = config.model.model == "linear" and config.model.head_start == "prior"
    return linear and recipe.uses_newton and not config.ema and is_cross_entropy(loss)


def label_stats(table: LabelTable, epochs: int, *, before: LabelTable | None = None) -> LabelStats:
    """What a loss may know of the labels, now and before a review, before training starts."""

    def labels_per_image(labels: LabelTable) -> Tensor:
        return torch.from_numpy(np.bincount(labels.labels_per_image()))

    return LabelStats(
        images=len(table),
        positives=torch.from_numpy(table.counts_by_class(State.PRESENT)),
        labels_per_image=labels_per_image(table),
        epochs=epochs,
        before_review=None if before is None else labels_per_image(before),
    )


def _true_labels(config: TrainConfig, train: LabelTable) -> LabelTable | None:
    """The complete labels of the training images, in their order, if they were given."""
    if config.true_labels is None:
        return None
    table = read_labels(config.true_labels, format=config.format, options=config.reading)
    table = table.with_classes(train.classes)
    return table.select(table.find(train.images))


def classifier_of(model: nn.Module) -> nn.Module:
    """The part of the model that gives the logits: what timm calls its classifier, or all of it."""
    part: object = getattr(model, "get_classifier", lambda: model)()
    return part if isinstance(part, nn.Module) else model


def training_batch(table: LabelTable, rows: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Targets and which of them a person confirmed, for some rows."""
    targets, observed = table.batch(rows)
    return torch.from_numpy(targets), torch.from_numpy(observed)


def _feature_model(config: TrainConfig, features: Features, train: LabelTable) -> FeatureHead:
    name = config.model.model
    if name not in ("linear", "mlp"):
        raise DataError(f"For features --model is linear or mlp, but got {name!r}.")
    hidden = config.model.hidden if name == "mlp" else None
    return FeatureHead(features.values.shape[1], len(train.classes), hidden=hidden)


def _features(
    config: TrainConfig, model: nn.Module, inputs: Inputs, folder: RunFolder
) -> Callable[[], Tensor] | None:
    """Gives features of the training images that never saw their labels, if they can be had."""
    if isinstance(inputs, FeatureInputs):
        return lambda: inputs.values
    if config.model.weights == "none":
        return None
    from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not
    from hilltop.training.frozen import classifier_inputs, pretrained_features

    if isinstance(inputs, OutputInputs):
        return lambda: classifier_inputs(model, inputs)
    assert isinstance(inputs, ImageInputs)
    return pretrained_features(model, inputs, folder.outputs)


def _image_inputs(
    config: TrainConfig, train: LabelTable, val: LabelTable, model: nn.Module, folder: RunFolder
) -> tuple[Inputs, Inputs]:
    """Images to learn from and to judge by, or what the frozen blocks of the model make of them."""
    from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not
    from hilltop.training.frozen import train_from

    images = [
        ImageInputs(
            input_source(config, val=table is val),
            table.images,
            size=config.model.image_size,
            augment=config.augment,
            seed=config.seed,
            workers=config.workers,
            skip_broken=config.skip_broken,
        )
        for table in (train, val)
    ]
    block = config.model.train_from
    if block is None:
        return images[0], images[1]
    crop = config.augment != "none"
    return train_from(model, block, folder.outputs, *images, crop=crop)
