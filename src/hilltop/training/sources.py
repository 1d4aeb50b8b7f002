"""Where labels and inputs of a run come from: training and validation, from one place or two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data import LabelTable, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.summary import name_mistakes
from hilltop.inputs.matching import Rows, matching_rows
from hilltop.training.config import TrainConfig


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
    return read_labels(path, format=config.val_format or config.format, options=options)


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
