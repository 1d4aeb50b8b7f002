"""``train`` and ``resume``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import tyro

from hilltop.errors import ArgumentError
from hilltop.report.epochs import best_epoch
from hilltop.training.config import TrainConfig
from hilltop.training.run_folder import RunFolder, default_folder

# How the help groups the options of a run; those of model and label file follow.
GROUPS = {
    "data": (
        "labels", "val_labels", "true_labels", "images", "val_images", "features", "val_features",
        "val_share", "val_split", "val_unlisted", "val_format", "allow_missing", "allow_overlap",
    ),
    "loss": ("loss", "pseudo_label", "ask_average"),
    "training": (
        "epochs", "head_epochs", "batch_size", "learning_rate", "weight_decay", "warmup",
        "schedule_epochs", "ema", "ema_ramp", "ema_choice", "augment", "precision", "seed",
        "workers", "skip_broken",
    ),
    "model": (
        "model", "weights", "train_from", "head_rate", "freeze_norms", "boost", "hidden",
        "image_size", "normalise",
    ),
    "files": ("out", "config", "report", "tensorboard"),
}  # fmt: skip


@dataclass(frozen=True)
class Train:
    """Train a classifier on images or features and leave a run folder with everything in it.

    Example: hilltop train --labels labels.csv --unlisted unknown --images photos --weights timm
    """

    out: Path | None = None
    """The run folder; without it runs/<date>-<name of the label file>-<loss>."""
    config: Path | None = None
    """YAML file with any of these options; what stands on the command line wins."""
    run_options: TrainConfig = field(default_factory=TrainConfig)
    groups: ClassVar = GROUPS
    needs: ClassVar = ("labels",)

    @classmethod
    def defaults(cls, words: Sequence[str]) -> Train:
        """Options from the file named by ``--config``, for the command line to change."""
        return cls(run_options=options_from_file(words))

    def run(self) -> dict[str, Any]:
        """Train."""
        from hilltop.training.stages import train

        options = self.run_options
        folder = self.out or default_folder(f"{options.labels.stem}-{options.loss}")
        return describe_run(train(options, folder))


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped, to the same end as if it had not been.

    Example: hilltop resume runs/2026-01-31-labels-hill
    """

    folder: tyro.conf.Positional[Path]
    """The run folder."""

    def run(self) -> dict[str, Any]:
        """Resume."""
        from hilltop.training.stages import resume

        return describe_run(resume(self.folder))


def describe_run(path: Path) -> dict[str, Any]:
    """What a finished run says of itself: where it is, and the metrics of its epochs."""
    from hilltop.training.decisions import load_truth, usual_weights

    folder = RunFolder(path)
    epochs, report = folder.recorded(), path / "report.html"
    truth = load_truth(folder, usual_weights(folder))
    return {
        "missing": None if truth is None else truth.missing.total.as_dict(),
        "summary": None if truth is None else truth.describe(),
        "run": path,
        "report": report if report.is_file() else None,
        "last": epochs[-1] if epochs else None,
        "best": best_epoch(epochs) if epochs else None,
    }


def options_from_file(words: Sequence[str]) -> TrainConfig:
    """Options from the file named by ``--config`` among the words, or the usual ones."""
    path = None
    for at, word in enumerate(words):
        if word == "--config":
            if at + 1 == len(words):
                raise ArgumentError("--config needs the name of a file.")
            path = words[at + 1]
        elif word.startswith("--config="):
            path = word.partition("=")[2]
    return TrainConfig() if path is None else TrainConfig.from_file(Path(path))
