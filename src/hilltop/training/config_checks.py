"""Numbers and names of a configuration that cannot be used, each with a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hilltop.checks import did_you_mean
from hilltop.data import FORMATS

if TYPE_CHECKING:
    from hilltop.training.config import TrainConfig

_LARGEST_SEED = 2**63 - 1
_WHOLE = {
    "epochs": 1, "batch_size": 1, "seed": 0, "workers": 0, "schedule_epochs": 1,
    "model.hidden": 1, "model.image_size": 1,
}  # fmt: skip
"""Whole numbers and their least value."""
_POSITIVE = ("learning_rate", "model.head_rate")
_SHARES = {"warmup": 1.0, "val_share": 0.9, "ema": 1.0, "weight_decay": math.inf}
"""Numbers from 0 to here."""


def number_faults(config: TrainConfig) -> Iterator[str]:
    """Say what is wrong with the numbers of a configuration."""
    for name, low in _WHOLE.items():
        value = _value(config, name)
        if value is not None and not low <= value <= _LARGEST_SEED:
            yield f"{_last(name)} must be at least {low}, but is {value}."
    for name in _POSITIVE:
        value = _value(config, name)
        if value is not None and not (value > 0 and math.isfinite(value)):
            yield f"{_last(name)} must be greater than 0, but is {value}."
    for name, high in _SHARES.items():
        value = _value(config, name)
        if value is not None and not (0 <= value <= high and math.isfinite(value)):
            bounds = "at least 0" if high == math.inf else f"between 0 and {high:g}"
            yield f"{name} must be {bounds}, but is {value}."
    if config.pseudo_label is not None and not 0 < config.pseudo_label < 1:
        yield f"pseudo_label must be between 0 and 1, but is {config.pseudo_label}."
    if config.schedule_epochs is not None and config.schedule_epochs < config.epochs:
        yield (
            f"schedule_epochs ({config.schedule_epochs}) must not be below epochs"
            f" ({config.epochs})."
        )


def name_faults(config: TrainConfig) -> Iterator[str]:
    """Say which names of a configuration nobody knows."""
    from hilltop.losses import LOSSES

    if config.loss not in LOSSES:
        hint = did_you_mean(config.loss, LOSSES)
        yield f"loss: {config.loss!r} is not known.{hint} Known: {', '.join(LOSSES)}."
    for name in ("format", "val_format"):
        given = getattr(config, name)
        if given is not None and given not in FORMATS:
            yield f"{name}: {given!r} is not known.{did_you_mean(given, FORMATS)}"


def _value(config: TrainConfig, name: str) -> Any:
    part, _, field = name.rpartition(".")
    return getattr(getattr(config, part) if part else config, field)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def part_faults(config: TrainConfig) -> list[str]:
    """What is wrong with options that train a part of a network, or change how it is trained."""
    faults = []
    model = config.model
    if not 0 <= config.head_epochs <= config.epochs:
        faults.append(
            f"head_epochs must be between 0 and epochs ({config.epochs}), but is"
            f" {config.head_epochs}."
        )
    if config.head_epochs and config.kind == "features":
        faults.append("head_epochs is for images; on features there is nothing but a head.")
    if config.ask_average and not config.resolved().ema:
        faults.append("ask_average needs a moving average; give --ema, such as 0.9997.")
    if model.boost < 1:
        faults.append(f"boost must be at least 1, but is {model.boost:g}.")
    if model.boost != 1 and config.kind == "features":
        faults.append("boost is for images; features have no class activations.")
    if model.train_from is not None and config.kind == "features":
        faults.append("train_from is for images; features have no blocks.")
    if model.train_from is not None and config.augment in ("strong", "paper"):
        faults.append(
            f"augment {config.augment!r} changes pixels, which blocks below train_from see only"
            " once; use light or none."
        )
    return faults
