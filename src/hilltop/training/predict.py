"""A finished run put to use: its model, and its scores for other images or features."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import nn

from hilltop.data import State, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError
from hilltop.inputs.backbone import Backbone, extract_features
from hilltop.inputs.features import FeatureInputs, Features, read_features
from hilltop.inputs.image_files import list_images
from hilltop.missing.model import MissingLabelModel
from hilltop.models import FeatureHead
from hilltop.progress import ProgressLog, say
from hilltop.training.calibration import Which, load_truth, score_logits, usual_weights
from hilltop.training.checkpoint import check_weights_finite, load_tensors
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import launch
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Inputs, build_model, image_inputs, predict


@dataclass(frozen=True)
class TrainedModel:
    """A model with the configuration it was trained with and the names of its classes.

    ``truth`` says what its scores mean, where that was found out; ``backbone`` is the network that
    made the features it was trained on, where their file names it.
    """

    model: nn.Module
    config: TrainConfig
    classes: tuple[str, ...]
    epoch: int
    truth: MissingLabelModel | None = None
    backbone: Backbone | None = None

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


def load_run(path: Path, *, which: Which | None = None) -> TrainedModel:
    """Load the model of a run folder.

    Args:
        path: The run folder.
        which: Weights of the best epoch on the validation images, or of the last; None for the
            last, or the best where the validation labels are known to be complete: on incomplete
            ones the best epoch is often a bad one.
    """
    folder = RunFolder(path)
    folder.check()
    which = which or usual_weights(folder)
    config = TrainConfig.from_file(folder.config)
    file = folder.best if which == "best" else folder.last
    tensors, note = load_tensors(file)
    check_weights_finite(file, tensors)
    if not {"classes", "epoch"} <= note.keys():
        raise data_error(file, "these are not the weights of a run: it names no classes.")
    classes = tuple(note["classes"])
    width = int(tensors["mean"].numel()) if "mean" in tensors else 0
    model = build_model(config, len(classes), features=width)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise data_error(
            file, f"these weights do not fit the model of config.yaml: {reason}."
        ) from None
    network = note.get("backbone")
    return TrainedModel(
        model.eval(),
        config,
        classes,
        int(note["epoch"]),
        load_truth(folder, which),
        None if network is None else Backbone.from_json(file, json.dumps(network)),
    )


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
    if config.kind == "features" and images is not None and features is None:
        inputs, ids, broken = _extracted(trained, images, chosen)
    else:
        given = images if config.kind == "images" else features
        if given is None or (images is not None and features is not None):
            ways = {"images": "--images", "features": "--features, or --images, but not both"}
            raise ArgumentError(f"This run was trained on {config.kind}: give {ways[config.kind]}.")
        ids = _all_ids(config, given) if chosen is None else chosen
        inputs, broken = _inputs_of(config, given, ids), []
    fabric = launch(config.precision)
    model = trained.model.to(fabric.device)
    with ProgressLog("predicting", len(ids), config.kind) as said:
        scores = predict(model, inputs, len(ids), config, fabric, done=said.update)
    readable = ~torch.isnan(scores).any(dim=1)
    kept = ids.filter(pa.array(readable.numpy()))
    table = ScoreTable(kept, trained.classes, scores[readable].numpy())
    return table, [*broken, *inputs.broken]


def out_of_sample_scores(path: Path) -> ScoreTable:
    """Return scores of the images of a run on features by weights that did not learn from them.

    Training images have those of its cross-validated heads, validation images those of its head.

    Raises:
        DataError: The run was trained on images, or cross-validated no heads.
    """
    folder = RunFolder(path)
    folder.check()
    files = (folder.out_of_fold, folder.last_scores)
    if TrainConfig.from_file(folder.config).kind != "features" or not all(map(Path.exists, files)):
        raise data_error(
            path,
            "this run has no cross-validated scores of all its images, as finished runs on features"
            " have. Give features, or a file of out-of-sample scores.",
        )
    train, val = (ScoreTable.load(file) for file in files)
    new = pc.invert(pc.is_in(val.images, value_set=train.images))
    images = pa.concat_arrays([train.images, val.images.filter(new)])
    own = np.array(val.values)[new.to_numpy(zero_copy_only=False)]
    return ScoreTable(images, train.classes, np.concatenate([np.array(train.values), own]))


def truth_probs(trained: TrainedModel, scores: ScoreTable) -> ScoreTable:
    """The probability that labels are true instead of the scores of the model.

    Where it was not found out what scores mean, as in runs on few images, they stay as they are.
    """
    if trained.truth is None:
        return scores
    logits = score_logits(torch.from_numpy(np.array(scores.values)))
    return ScoreTable(scores.images, scores.classes, trained.truth.probs(logits).numpy())


def run_labels(
    folder: RunFolder, scores: ScoreTable
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Labels and verified absent entries of these images that the run was trained or judged with.

    Returns:
        Which entries are labels, and which are known to be absent ``(images, classes)``.
    """
    shape = (len(scores.images), len(scores.classes))
    labelled, absent = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for path in (folder.train_labels, folder.val_labels):
        if not path.is_file():
            continue
        table = read_labels(path)
        rows = pc.index_in(scores.images, value_set=table.images).fill_null(-1).to_numpy()
        there = np.flatnonzero(rows >= 0)
        if len(there) and set(scores.classes) <= set(table.classes):
            columns = [table.classes.index(name) for name in scores.classes]
            states = table.select(rows[there]).dense()[:, columns]
            labelled[there] |= states == State.PRESENT
            if table.unlisted == State.UNKNOWN:
                absent[there] |= states == State.ABSENT
    return labelled, absent


def _extracted(
    trained: TrainedModel, folder: Path, chosen: pa.StringArray | None
) -> tuple[Inputs, pa.StringArray, list[tuple[str, str]]]:
    """Features of images by the network that made those of the training, and what was not read."""
    config, backbone = trained.config, trained.backbone
    if backbone is None:
        raise ArgumentError(
            "This run was trained on features, and their file does not say which network made"
            " them. Compute those of the images with the same network (hilltop features, or your"
            " own) and give them with --features."
        )
    ids = list_images(folder) if chosen is None else chosen
    values, names = extract_features(
        folder,
        ids,
        backbone,
        workers=config.workers,
        skip_broken=config.skip_broken,
        say=say,
    )
    unread = sorted(set(ids.to_pylist()) - set(names.to_pylist()))
    inputs = FeatureInputs(Features(folder, names, values.numpy()), names)
    return inputs, names, [(name, "could not be read") for name in unread]


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
    return image_inputs(config, given, ids, augment="none")
