"""What a training run is made of: one dataclass for Python, file and command line."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hilltop.checks import check_number, did_you_mean
from hilltop.data import FORMATS, ReadOptions
from hilltop.data.small_files import read_yaml
from hilltop.errors import ArgumentError, ConfigError

if TYPE_CHECKING:
    from hilltop.training.recipe import Recipe


def plain_value(value: Any) -> Any:
    """Return a value that YAML and JSON can hold."""
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else value


def build_dataclass(cls: type, values: dict[str, Any], prefix: str, faults: list[str]) -> Any:
    """Build a dataclass from a dictionary, field by field, collecting faults."""
    hints = typing.get_type_hints(cls)
    known = {item.name for item in dataclasses.fields(cls)}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in known:
            faults.append(f"{prefix}{key} is not known.{did_you_mean(name, known)}")
            continue
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            if isinstance(value, dict):
                arguments[name] = build_dataclass(
                    typing.cast(type, hint), value, f"{name}.", faults
                )
            else:
                faults.append(f"{prefix}{name} must hold names and values, but got {value!r}.")
            continue
        converted = _convert(value, hint)
        if converted is _WRONG:
            faults.append(f"{prefix}{name} cannot be {value!r}; expected {_words(hint)}.")
        else:
            arguments[name] = converted
    return cls(**arguments)


_WRONG = object()


def _convert(value: Any, hint: Any) -> Any:
    """Return the value as one of the types of ``hint``, or the mark that none fits."""
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return str(value) if str(value) in choices else _WRONG
    if choices and typing.get_origin(hint) is not dict:
        if value is None and type(None) in choices:
            return None
        for choice in choices:
            converted = _WRONG if choice is type(None) else _convert(value, choice)
            if converted is not _WRONG:
                return converted
        return _WRONG
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)  # YAML reads 1e-4 as text
        except (ValueError, OverflowError):
            return _WRONG
    plain = typing.get_origin(hint) or hint
    wrong_bool = isinstance(value, bool) and plain is not bool
    return value if isinstance(value, plain) and not wrong_bool else _WRONG


def _words(hint: Any) -> str:
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return " or ".join(choices)
    if choices and typing.get_origin(hint) is not dict:
        return " or ".join(_words(choice) for choice in choices)
    return {"NoneType": "nothing", "str": "text", "float": "a number", "int": "a whole number"}.get(
        getattr(hint, "__name__", ""), str(getattr(hint, "__name__", hint))
    )


_LARGEST_WHOLE = 2**63 - 1
_NUMBERS = {
    **dict.fromkeys(("epochs", "batch_size", "schedule_epochs"), (1, _LARGEST_WHOLE)),
    **dict.fromkeys(("model.hidden", "model.image_size"), (1, _LARGEST_WHOLE)),
    **dict.fromkeys(("seed", "workers"), (0, _LARGEST_WHOLE)),
    **dict.fromkeys(("learning_rate", "model.head_rate", "weight_decay"), (0, math.inf)),
    "model.boost": (1, math.inf),
    **dict.fromkeys(("warmup", "ema"), (0, 1)),
    "val_share": (0, 0.9),
}
"""Numbers, their least and their largest value."""
_ABOVE = ("learning_rate", "model.head_rate")
"""Numbers that must be greater than their least value."""


_PATHS = {
    "labels": "file or folder", "val_labels": "file or folder", "true_labels": "file or folder",
    "extra_scores": "file", "extra_names": "file", "images": "folder", "features": "file",
    "val_images": "folder", "val_features": "file",
}  # fmt: skip
"""Paths that are read, and what stands there."""


def number_faults(config: TrainConfig) -> Iterator[str]:
    """Say what is wrong with the numbers of a configuration."""
    for name, (low, high) in _NUMBERS.items():
        value, last = attrgetter(name)(config), name.rpartition(".")[2]
        if value is None:
            continue
        try:
            check_number(last, value, low=low, low_open=name in _ABOVE)
            check_number(last, value, low=low, high=high)
        except ArgumentError as error:
            yield str(error)
    if config.pseudo_label is not None and not 0 < config.pseudo_label < 1:
        yield f"pseudo_label must be between 0 and 1, but got {config.pseudo_label}."
    if config.schedule_epochs is not None and config.schedule_epochs < config.epochs:
        yield (
            f"schedule_epochs ({config.schedule_epochs}) must not be below epochs"
            f" ({config.epochs})."
        )
    if not 0 <= config.head_epochs <= config.epochs:
        yield (
            f"head_epochs must be between 0 and epochs ({config.epochs}), but got"
            f" {config.head_epochs}."
        )


def path_faults(config: TrainConfig) -> Iterator[str]:
    """Say which files and folders a configuration lacks, or names though they are not there."""
    if config.labels == Path():
        yield "Name the label file: hilltop train LABELS, or --labels."
    if (config.images is None) == (config.features is None):
        yield "Give one of --images and --features."
    for name, kind in _PATHS.items():
        path = getattr(config, name)
        if path is None or path == Path():
            continue
        there = "folder" if path.is_dir() else "file"
        if not path.exists():
            yield f"{name}: there is no {kind.partition(' ')[0]} {str(path)!r}."
        elif there not in kind:
            yield f"{name}: {str(path)!r} is a {there}; expected a {kind}."
    if config.extra_names is not None and config.extra_scores is None:
        yield "extra_names belongs to extra_scores."


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


def part_faults(config: TrainConfig) -> Iterator[str]:
    """Say which options do not go together."""
    model = config.model
    if config.kind == "features":
        if config.head_epochs:
            yield "head_epochs is for images; on features there is nothing but a head."
        if model.boost != 1:
            yield "boost is for images; features have no class activations."
        if model.train_from is not None:
            yield "train_from is for images; features have no blocks."
    if config.ask_average and not config.resolved().ema:
        yield "ask_average needs a moving average; give --ema, such as 0.9997."
    if model.train_from is not None and config.augment in ("strong", "paper"):
        yield (
            f"augment {config.augment!r} changes pixels, which blocks below train_from see only"
            " once; use light or none."
        )


@dataclass(frozen=True)
class ModelConfig:
    """What is trained."""

    model: str = "auto"
    """timm name of a backbone (images), linear or mlp (features); auto: resnet50, linear."""
    weights: str = "none"
    """Where a backbone starts: none (at random), timm (asks the hub once), a file or a package."""
    hidden: int = 512
    """Width of the hidden layer of mlp."""
    image_size: int = 448
    """Images are squashed to this many pixels a side."""
    head_rate: float | None = None
    """How many times as fast as its backbone a classifier learns; without it 10 with weights."""
    freeze_norms: Annotated[bool | None, Parameter(negative="--no-freeze-norms")] = None
    """Keep the statistics of batch norms as the weights have them; without it if there are any."""
    head_start: Annotated[Literal["prior", "default"], Parameter(name="--bias-init")] = "prior"
    """Where a classifier starts: where the loss is least on the labels, or as torch starts it."""
    train_from: Annotated[str | None, Parameter(name="--freeze-below")] = None
    """Block of a backbone: those below are frozen, their outputs computed once and kept on disk."""
    boost: float = 1.0
    """Factor on class activations above 0 before they are pooled (BoostLU has 5); 1 for none."""
    normalise: Annotated[bool | None, Parameter(negative="--no-normalise")] = None
    """Scale pixels as the weights expect (not in the paper); without this only if there are any."""

    @property
    def hidden_width(self) -> int | None:
        """Width of the hidden layer of a head on features; None for a linear one."""
        return self.hidden if self.model == "mlp" else None


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides how a run goes."""

    labels: Path = field(default=Path(), kw_only=False)
    """Training labels, in any format."""
    val_labels: Path | None = None
    """Validation labels; without them --val-share of the images."""
    true_labels: Path | None = None
    """Complete labels of the training images, if known: what the loss turns over is checked."""
    images: Path | None = None
    """Folder with the images, also in folders inside it."""
    features: Path | None = None
    """Features instead of images: .npz with ids and X, .npy with ids beside it, or Parquet."""
    val_images: Path | None = None
    """Folder with the validation images, if it is another one."""
    val_features: Path | None = None
    """Features of the validation images, if they are in another file."""
    extra_scores: Path | None = None
    """Another model's scores, to find missing labels: .npz with ids, classes and scores."""
    extra_names: Path | None = None
    """CSV of two columns: class names of --extra-scores, and yours."""
    allow_missing: bool = False
    """Go on without rows of the labels that have no image or features."""
    allow_overlap: bool = False
    """Go on though some images are in both training and validation labels."""
    loss: str = "auto"
    """Name of the loss; auto: cross-entropy without pairs that were probably forgotten."""
    loss_options: Annotated[dict[str, Any], Parameter(parse=False)] = field(default_factory=dict)
    """Options of the loss, from a file: for example {tau: 0.65}."""
    pseudo_label: float | None = None
    """Train twice: before the second time, unknown pairs above this probability become labels."""
    epochs: int = 20
    """Passes through the training images; at most so many where heads are solved."""
    batch_size: int = 128
    """Images in a step, over all processes together; without effect where heads are solved."""
    learning_rate: Annotated[float | None, Parameter(alias="--lr")] = None
    """Peak of the one-cycle schedule; without it 1e-4 on images and 3e-4 for 1,280 features (more
    for fewer), while linear heads of bce and auto on features are solved."""
    weight_decay: float | None = None
    """On matrices and filters; without it 1e-4 on images, by cross-validation on features."""
    warmup: float = 0.2
    """Share of the schedule in which the learning rate rises."""
    head_epochs: int = 0
    """The first so many epochs train the classifier alone, in a cycle of their own; then all."""
    schedule_epochs: int | None = None
    """Length of the schedule if it is longer than the run (the paper: 80, stopped after 31)."""
    ema: float | None = None
    """Decay of the moving average of weights, 0 for none; without it 0.9997 (images) or 0."""
    ema_ramp: Annotated[
        bool,
        Parameter(negative="--no-ema-ramp", help="Use the decay of --ema from the first step on."),
    ] = True
    """Let the decay of the moving average grow in the first steps, so that it forgets the start."""
    ema_choice: Literal["average", "better"] = "average"
    """What is kept: the moving average, or the better of it and the plain weights (the paper)."""
    ask_average: Annotated[bool, Parameter(name="--ema-teacher")] = False
    """Corrections (splc, ll_ct, ...) take predictions from the moving average of the weights."""
    augment: Literal["light", "strong", "paper", "none"] = "light"
    """light: crop and mirror; strong: cutout and RandAugment; paper: those of the released code."""
    precision: Literal["auto", "32", "16-mixed", "bf16-mixed"] = "auto"
    """auto: 16-mixed on a GPU, 32 elsewhere (bfloat16 is slow on most CPUs)."""
    seed: int = 0
    """The same seed gives the same run."""
    workers: int = 2
    """Processes that decode images."""
    skip_broken: bool = False
    """Leave out images that cannot be read, and list them."""
    val_share: float = 0.1
    """Share of the images set aside for validation if there are no validation labels."""
    format: str | None = None
    """Format of the label files; recognised from the content without it."""
    val_format: str | None = None
    """Format of the validation labels, if it is another one."""
    val_unlisted: Literal["unknown", "absent"] | None = None
    """What unlisted pairs of the validation labels mean, if it is not what --unlisted says."""
    val_split: str | None = None
    """Which part of the data set to validate on, if not that of --split."""
    report: Annotated[bool, Parameter(negative="--no-report", help="Do not write report.html.")] = (
        True
    )
    """Write report.html and curves.png at the end."""
    logger: Literal["csv", "tensorboard", "wandb", "mlflow"] | None = None
    """Log each epoch there, too."""
    reading: Annotated[ReadOptions, Parameter(name="*")] = field(default_factory=ReadOptions)
    model: Annotated[ModelConfig, Parameter(name="*")] = field(default_factory=ModelConfig)

    @property
    def kind(self) -> Literal["images", "features"]:
        """What the model sees."""
        return "features" if self.features is not None else "images"

    @property
    def _usual(self) -> Recipe:
        from hilltop.training.recipe import HEADS, IMAGES  # loads torch, which help does not need

        return IMAGES if self.kind == "images" else HEADS

    @property
    def recipe(self) -> Recipe:
        """The numbers that training goes by, of a resolved configuration."""
        return dataclasses.replace(
            self._usual,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            warmup=self.warmup,
            schedule_epochs=self.schedule_epochs,
            head_epochs=self.head_epochs,
            ema=self.ema or 0.0,
            ema_ramp=self.ema_ramp,
        )

    def resolved(self) -> TrainConfig:
        """Return the same run with every automatic choice made that does not need the data."""
        images = self.kind == "images"
        usual, given = self._usual, self.model
        name = given.model
        if name == "auto":
            name = "resnet50" if images else "linear"
        pretrained = images and given.weights != "none"
        model = dataclasses.replace(
            given,
            model=name,
            normalise=pretrained if given.normalise is None else given.normalise,
            freeze_norms=pretrained if given.freeze_norms is None else given.freeze_norms,
            head_rate=(10.0 if pretrained else 1.0) if given.head_rate is None else given.head_rate,
        )
        rate, decay, ema = self.learning_rate, self.weight_decay, self.ema
        return dataclasses.replace(
            self,
            learning_rate=usual.learning_rate if rate is None else rate,
            weight_decay=usual.weight_decay if decay is None else decay,
            ema=usual.ema if ema is None else ema,
            model=model,
        )

    def check(self) -> None:
        """Raise with all faults at once."""
        faults = [*path_faults(self), *name_faults(self), *number_faults(self), *part_faults(self)]
        if faults:
            raise ConfigError("\n".join(faults))

    def check_stored(self, path: Path) -> None:
        """Raise with all faults of a configuration that stands in a run folder."""
        faults = [*name_faults(self), *number_faults(self)]
        if (self.images is None) == (self.features is None):
            faults.append("it must name one of images and features, as every run does.")
        if self.model.model == "auto" or self.ema is None:
            faults.append("it is not complete; restore it, or train again.")
        if faults:
            raise ConfigError("\n".join(f"{path}: {fault}" for fault in faults))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values that YAML and JSON can hold."""
        return typing.cast(dict[str, Any], plain_value(dataclasses.asdict(self)))

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "configuration") -> TrainConfig:
        """Build from plain values; unknown keys and wrong types are reported together."""
        faults: list[str] = []
        values = dict(values)
        if values.pop("tensorboard", False):  # what an earlier release called it
            values["logger"] = "tensorboard"
        built = build_dataclass(cls, values, "", faults)
        if faults:
            raise ConfigError("\n".join(f"{source}: {fault}" for fault in faults))
        return typing.cast(TrainConfig, built)

    @classmethod
    def from_file(cls, path: Path) -> TrainConfig:
        """Read YAML."""
        if not path.is_file():
            raise ConfigError(f"{path}: there is no such configuration file.")
        try:
            values = read_yaml(path) or {}
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
        if not isinstance(values, dict):
            kind = type(values).__name__
            raise ConfigError(f"{path}: expected names and values, but got {kind}.")
        return cls.from_dict(values, str(path))
