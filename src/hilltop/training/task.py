"""What a run works on: labels, inputs, model and loss, built from a configuration."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor, nn

from hilltop.checks import pluralize
from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.layout import Ambiguous, Question
from hilltop.data.review_record import (
    before_review,
    provenance_path,
    read_provenance,
    with_answers,
    write_provenance,
)
from hilltop.data.scores import ScoreTable
from hilltop.data.summary import name_mistakes
from hilltop.errors import AmbiguousInputError, DataError, DivergenceError
from hilltop.inputs.descriptor import describe_inputs
from hilltop.inputs.extra_scores import read_extra_scores, read_names
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.inputs.matching import Rows, matching_rows
from hilltop.inputs.outputs import OutputInputs
from hilltop.losses import LabelStats, Loss, build
from hilltop.losses.compose import with_ema_teacher
from hilltop.losses.corrections import EmaTeacher
from hilltop.models import FeatureHead, build_image_model
from hilltop.progress import say_of_inputs
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import all_reduce_sum, place_in_world, shard
from hilltop.training.folds import CrossValidation
from hilltop.training.heads import (
    LEAST_ABSENT,
    NETWORK_LEAST_ABSENT,
    SCRATCH_LEAST_ABSENT,
    FoldEvidence,
    KnownLabels,
    cross_validate_heads,
    tell_loss,
)
from hilltop.training.learner import head_loss, start_head
from hilltop.training.logistic import is_cross_entropy
from hilltop.training.recipe import HEADS, LabelBatch, Recipe
from hilltop.training.run_folder import RunFolder

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from hilltop.inputs.images import ImageInputs


def input_source(config: TrainConfig, *, val: bool = False) -> Path:
    """The folder of images or the file of features, of training or of validation."""
    if config.kind == "features":
        given = (config.val_features if val else None) or config.features
    else:
        given = (config.val_images if val else None) or config.images
    assert given is not None
    return given


def _read_labels(config: TrainConfig, say: Callable[[str], None]) -> LabelTable:
    table = read_labels(config.labels, format=config.format, options=config.reading)
    for mistake in name_mistakes(table):
        say(f"{config.labels}: {mistake}")
    return table


def read_training(config: TrainConfig, say: Callable[[str], None]) -> LabelTable:
    """Read the training labels, of whose images some will be set aside for validation."""
    table = _read_labels(config, say)
    return table.select(_rows(config, table.images, input_source(config), say))


def read_both(config: TrainConfig, say: Callable[[str], None]) -> tuple[LabelTable, LabelTable]:
    """Read labels to train on and labels to validate on.

    Raises:
        DataError: Images are in both, or have no input, and that is not allowed.
    """
    train = _read_labels(config, say)
    path = config.val_labels or config.labels
    val = _read_validation(config, path).with_classes(train.classes)
    _check_apart(config, path, train, val)
    sources = input_source(config), input_source(config, val=True)
    if sources[0] != sources[1]:
        rows = [
            _rows(config, table.images, source, say)
            for table, source in zip((train, val), sources, strict=True)
        ]
        return train.select(rows[0]), val.select(rows[1])
    # In one place, an image without training labels may have validation labels.
    together = pa.chunked_array([train.images, val.images]).combine_chunks()
    both = _rows(config, together, sources[0], say)
    return train.select(both[both < len(train)]), val.select(both[both >= len(train)] - len(train))


def _read_validation(config: TrainConfig, path: Path) -> LabelTable:
    """As the training labels, but for what was said of these."""
    options = replace(
        config.reading,
        unlisted=config.val_unlisted or config.reading.unlisted,
        split=config.val_split or config.reading.split,
    )
    try:
        return read_labels(path, format=config.val_format or config.format, options=options)
    except AmbiguousInputError as error:
        if not isinstance(error.ambiguous, Ambiguous):
            raise
        raise _about_validation(error.ambiguous).error() from None


def _about_validation(asked: Ambiguous) -> Ambiguous:
    """The questions that a file of labels to judge by leaves open, with options for it alone."""
    questions = [
        Question(
            "This format does not say what pairs that are not listed mean: pass --val-unlisted"
            " absent (these labels are complete, as those of a test set mostly are) or"
            " --val-unlisted unknown (nobody may have looked).",
            {},
        )
        if "unlisted" in question.answers
        else question
        for question in asked.questions
    ]
    return replace(asked, questions=questions)


def _rows(
    config: TrainConfig, images: pa.StringArray, source: Path, say: Callable[[str], None]
) -> Rows:
    if config.skip_broken and config.kind == "images" and not config.allow_missing:
        return np.arange(len(images))  # what is not there is listed with the broken ones at the end
    return matching_rows(images, source, allow_missing=config.allow_missing, say=say)


def _check_apart(config: TrainConfig, path: Path, train: LabelTable, val: LabelTable) -> None:
    shared = val.images.filter(pc.is_in(val.images, value_set=train.images))
    if not len(shared) or config.allow_overlap:
        return
    are = pluralize(len(shared), "validation image is", "validation images are")
    raise data_error(
        path,
        f"{are} among the training images too, the first is {shared[0].as_py()!r}; on these a model"
        " only shows what it learned by heart. Name another part with --val-split or another file"
        " with --val-labels, or pass --allow-overlap.",
    )


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
    """Labels and inputs for training and validation, what is trained, and what the steps found.

    ``known`` are the training labels if images could be cross-validated, ``heads`` the heads if
    labels were enough, and ``evidence`` the missing-label model that was fitted to their scores;
    ``initial_loss`` is the loss before the first step: what scores of the trained model mean is
    found out by both.
    ``before`` holds the training labels before a review, if people answered some of them, and
    ``extra_scores`` logits of another model for training and validation images, if there are any.
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
    known: KnownLabels | None = None
    heads: CrossValidation | None = None
    evidence: FoldEvidence | None = None
    initial_loss: Loss | None = None
    before: LabelTable | None = None
    extra_scores: tuple[Tensor | None, Tensor | None] = (None, None)

    def labels(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Targets of some training images, and which of them a person confirmed."""
        return training_batch(self.train, rows.numpy())

    @property
    def labels_before(self) -> LabelBatch | None:
        """The same before a review; None if there was none."""
        before = self.before
        return None if before is None else lambda rows: training_batch(before, rows.numpy())


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


def read_task(config: TrainConfig, folder: RunFolder) -> Task:
    """Read the run folder's own labels and their inputs, and build the model and the loss."""
    train, val = read_labels(folder.train_labels), read_labels(folder.val_labels)
    # Summed, as in the paper: as a mean over batch and classes the gradient is so small that the
    # L2 penalty of Adam would outweigh it, and most so for losses with small gradients.
    make = head_loss if config.kind == "features" else build
    loss = make(config.loss, **{"reduction": "sum", **config.loss_options})
    correction = None
    if config.ask_average:
        loss, correction = with_ema_teacher(loss)
    if config.kind == "features":
        assert config.features is not None
        features = read_features(config.features)
        train_inputs: Inputs = FeatureInputs(features, train.images)
        val_features = read_features(input_source(config, val=True))
        val_inputs: Inputs = FeatureInputs(val_features, val.images)
        model = build_model(config, len(train.classes), features=features.values.shape[1])
    else:
        model = build_model(config, len(train.classes), weights=config.model.weights)
        train_inputs, val_inputs = _image_inputs(config, train, val, model, folder)
    return Task(
        train,
        val,
        train_inputs,
        val_inputs,
        model,
        loss,
        config.recipe,
        true_labels=_true_labels(config, train),
        judged=correction,
        before=before_review(train, read_provenance(folder.train_labels)),
        extra_scores=_extra_scores(config, train, val),
    )


def _extra_scores(
    config: TrainConfig, train: LabelTable, val: LabelTable
) -> tuple[Tensor | None, Tensor | None]:
    """Logits of another model for training images, and for validation images if it has any."""
    if config.extra_scores is None:
        return None, None
    path, names = config.extra_scores, read_names(config.extra_names)
    found = torch.from_numpy(read_extra_scores(path, train.images, train.classes, names=names))
    try:
        val_scores = read_extra_scores(path, val.images, val.classes, names=names)
    except DataError:  # these images calibrate a network, and that goes without
        return found, None
    return found, torch.from_numpy(val_scores)


def select_hyperparameters(config: TrainConfig, task: Task) -> Task:
    """Choose penalty, scaling and rate of a head, where they are left open, by cross-validation."""
    if not isinstance(task.model, FeatureHead):
        return task
    assert isinstance(task.train_inputs, FeatureInputs)
    recipe = task.recipe.for_head(
        task.model,
        task.train_inputs.values,
        task.labels,
        seed=config.seed,
        before=task.labels_before,
    )
    return replace(task, recipe=recipe)


def cross_validate_task(
    config: TrainConfig, task: Task, folder: RunFolder, *, calibrate: bool
) -> Task:
    """Score the training images by heads that never saw their labels, and keep the scores.

    For a loss that asks which labels are missing, and for calibration, which on features goes by
    the training images.
    """
    calibrates = calibrate and isinstance(task.train_inputs, FeatureInputs)
    if not (task.loss.wants_evidence or calibrates):
        return task
    features = _features(config, task.model, task.train_inputs, folder)
    if features is None:
        return task
    known = KnownLabels.of(task.labels, len(task.train), before=task.labels_before)
    task = replace(task, known=known)
    if not (known.can_calibrate if calibrates else not known.nothing_to_ask):
        return task
    recipe = task.recipe.for_evidence if task.before is None else HEADS
    heads = cross_validate_heads(features(), known, seed=config.seed, recipe=recipe)
    if place_in_world()[0] == 0:
        scores = torch.sigmoid(heads.logits).numpy()
        ScoreTable(task.train.images, task.train.classes, scores).save(folder.out_of_fold)
    return replace(task, heads=heads)


def fit_missing_labels(config: TrainConfig, task: Task) -> Task:
    """Fit the missing-label model to cross-validated scores, and tell the loss of the labels."""
    stats = label_stats(task.train, config.epochs, before=task.before)
    evidence = None
    if task.known is None:
        task.loss.prepare(stats)
    else:
        if task.heads is not None:
            extra = task.extra_scores[0]
            evidence = FoldEvidence.fit(task.heads, task.known, extra_scores=extra)
        limit = _least_absent(config)
        tell_loss(task.loss, stats, evidence, task.known, least_absent=limit)
    if config.model.head_start == "prior" and not uses_solver(config, task.recipe, task.loss):
        start_head(classifier_of(task.model), task.loss, task.labels, len(task.train))
    return replace(task, evidence=evidence, initial_loss=copy.deepcopy(task.loss))


def _least_absent(config: TrainConfig) -> float:
    """Below which probability of being absent an unlabelled entry is masked out of the loss."""
    if config.kind == "features":
        return LEAST_ABSENT
    return SCRATCH_LEAST_ABSENT if config.model.weights == "none" else NETWORK_LEAST_ABSENT


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


def build_model(
    config: TrainConfig, classes: int, *, features: int = 0, weights: str = "none"
) -> nn.Module:
    """Build a head for so many features, or a network on images that starts from weights."""
    model = config.model
    if config.kind == "features":
        if model.model not in ("linear", "mlp"):
            raise DataError(f"For features --model is linear or mlp, but got {model.model!r}.")
        return FeatureHead(features, classes, hidden=model.hidden_width)
    return build_image_model(
        model.model,
        classes,
        weights=weights,
        image_size=model.image_size,
        normalise=bool(model.normalise),
        boost=model.boost,
        silent=model.head_start == "prior",
    )


def image_inputs(
    config: TrainConfig, folder: Path, images: pa.StringArray, *, augment: str
) -> ImageInputs:
    """Serve images of a folder as a run says."""
    from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not

    return ImageInputs(
        folder,
        images,
        size=config.model.image_size,
        augment=augment,
        seed=config.seed,
        workers=config.workers,
        skip_broken=config.skip_broken,
    )


def _features(
    config: TrainConfig, model: nn.Module, inputs: Inputs, folder: RunFolder
) -> Callable[[], Tensor] | None:
    """Gives features of the training images that never saw their labels, if they can be had."""
    if isinstance(inputs, FeatureInputs):
        return lambda: inputs.values
    from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not
    from hilltop.training.frozen import MOST_IMAGES, classifier_inputs, pretrained_features

    if config.model.weights == "none":
        # The network's own features are of no use: after some epochs they have seen the labels.
        if not isinstance(inputs, ImageInputs) or len(inputs.images) > MOST_IMAGES:
            return None
        return lambda: describe_inputs(inputs, seed=config.seed)
    if isinstance(inputs, OutputInputs):
        return lambda: classifier_inputs(model, inputs)
    assert isinstance(inputs, ImageInputs)
    return pretrained_features(model, inputs, folder.outputs)


def _image_inputs(
    config: TrainConfig, train: LabelTable, val: LabelTable, model: nn.Module, folder: RunFolder
) -> tuple[Inputs, Inputs]:
    """Images to learn from and to judge by, or what the frozen blocks of the model make of them."""
    from hilltop.training.frozen import train_from  # needs torchvision, which features do not

    images = [
        image_inputs(
            config, input_source(config, val=table is val), table.images, augment=config.augment
        )
        for table in (train, val)
    ]
    block = config.model.train_from
    if block is None:
        return images[0], images[1]
    crop = config.augment != "none"
    return train_from(model, block, folder.outputs, *images, crop=crop)


def predict(
    model: nn.Module,
    inputs: Inputs,
    rows: int,
    config: TrainConfig,
    fabric: Fabric,
    *,
    done: Callable[[int], None] | None = None,
) -> Tensor:
    """Probabilities for all rows, on every rank; rows that cannot be read are NaN.

    ``done`` is told how many rows there are already.
    """
    model.eval()
    mine = shard(range(rows), fabric.global_rank, fabric.world_size)
    plan = [mine[at : at + config.batch_size] for at in range(0, len(mine), config.batch_size)]
    scores, read = None, torch.zeros(rows, device=fabric.device)
    with torch.no_grad(), fabric.autocast():
        for number, (at, batch) in enumerate(inputs.loader(plan, None), start=1):
            probs = torch.sigmoid(model(placed(batch, fabric)).float())
            if scores is None:
                scores = torch.zeros(rows, probs.shape[1], device=fabric.device)
            if not bool(probs.isfinite().all()):  # never to be taken for an image without a score
                raise DivergenceError(
                    "The model gives scores that are not finite numbers. Try a lower learning rate."
                )
            where = torch.from_numpy(at).to(fabric.device)
            scores[where], read[where] = probs, 1.0
            if done is not None:
                done(min(rows, number * config.batch_size * fabric.world_size))
    if scores is None:
        raise DataError("There is nothing to predict: not one image could be read.")
    scores, read = all_reduce_sum(scores), all_reduce_sum(read)
    scores[read == 0] = torch.nan
    return scores.cpu()


def placed(batch: Tensor, fabric: Fabric) -> Tensor:
    """Put a batch where the model is, images in the layout that convolutions like best."""
    layout = torch.channels_last if batch.ndim == 4 else torch.contiguous_format
    return batch.to(fabric.device, memory_format=layout)
