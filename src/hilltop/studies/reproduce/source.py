"""What tables and figures are made from: labels with complete truth, and features or images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data import LabelTable, State, drop_positives
from hilltop.errors import ArgumentError
from hilltop.studies.compare import COMPLETE, Level, parse_level
from hilltop.studies.compare.level import given_level
from hilltop.studies.compare.study import read_complete, read_reduced
from hilltop.studies.reproduce.recipe import Setting
from hilltop.training.config import TrainConfig

EVERY = ""
"""Key of a source that stands for every data set of the paper."""


@dataclass(frozen=True)
class Source:
    """A data set, and how runs on it are trained.

    Attributes:
        name: What to call it in tables.
        about: One sentence on it.
        base: Its complete labels, validation labels, inputs, and the settings of every run.
        reduced: Reduced label files by the name of their level, instead of the paper's rule.
        pictures: Folder with its images, if they can be shown.
        backbones: For backbones of the paper, what is trained in their place and how.
        folder: Where its runs lie in the folder of a reproduction.
        only_read: Nothing is trained on it; what earlier calls measured is shown.
        paper_sizes: Training images, test images and classes that the paper has of it.
    """

    name: str
    about: str
    base: TrainConfig
    reduced: Mapping[str, Level] = field(default_factory=dict)
    pictures: Path | None = None
    backbones: Mapping[str, TrainConfig] = field(default_factory=dict)
    folder: str = ""
    only_read: bool = False
    paper_sizes: tuple[int, int, int] | None = None

    def level(self, name: str) -> Level:
        """The level of a name, with reduced labels where they were given."""
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
        base = self.base
        if setting.model is not None:
            # Asked with [] and not with get: a source may know every backbone.
            try:
                base = self.backbones[setting.model]
            except KeyError:
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

    def facts(self) -> dict[str, str]:
        """What recipes may ask of a data set: its mean number of labels, as ROLE is told it."""
        table = self.complete_labels()
        mean = table.count(State.PRESENT) / max(1, len(table))
        return {"labels_per_image": f"{mean:.1f}"}


def _with_own_weights(config: TrainConfig) -> TrainConfig:
    """The settings with the file of their backbone, where weights are a folder of such files."""
    folder, name = Path(config.model.weights), config.model.model
    if not folder.is_dir() or (folder / "config.json").is_file():  # the folder of one model
        return config
    named = (path for path in sorted(folder.iterdir()) if path.name.startswith(f"{name}."))
    found = folder / name if (folder / name).is_dir() else next(named, folder / f"{name}.pth")
    return dataclasses.replace(config, model=dataclasses.replace(config.model, weights=str(found)))


def given_source(base: TrainConfig, *, name: str | None, reduced: Sequence[str] = ()) -> Source:
    """A data set that the user has; backbones are those of the paper if there are images."""
    if base.val_labels is None:
        raise ArgumentError("reproduce needs --val-labels: complete labels to judge by.")
    levels = {level.name: level for level in map(given_level, reduced)}
    what = base.features if base.features is not None else base.images
    backbones: Mapping[str, TrainConfig] = {} if base.images is None else Backbones(base)
    return Source(
        name=name or base.labels.stem,
        about=f"Labels {base.labels}, trained on {what}.",
        base=base,
        reduced=levels,
        pictures=base.images,
        backbones=backbones,
    )


class Backbones(dict[str, TrainConfig]):
    """Every backbone by its own name, trained like the usual one."""

    def __init__(self, base: TrainConfig) -> None:
        """Keep how the usual one is trained."""
        super().__init__()
        self._base = base

    def __missing__(self, model: str) -> TrainConfig:
        return dataclasses.replace(
            self._base, model=dataclasses.replace(self._base.model, model=model)
        )


def source_of(data: str, sources: Mapping[str, Source]) -> Source | None:
    """The source for a data set of the paper: its own, or one that stands for all of them."""
    return sources.get(data) or sources.get(EVERY)


def all_levels(source: Source, names: Sequence[str]) -> dict[str, Level]:
    """Levels by name, the complete labels among them."""
    return {COMPLETE.name: COMPLETE, **{name: source.level(name) for name in names}}
