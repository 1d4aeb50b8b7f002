"""``train`` and ``resume``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from cyclopts import Parameter

from hilltop.cli.parser import Device, MaybeOut
from hilltop.training.config import TrainConfig
from hilltop.training.run_folder import RunFolder, default_folder

# How the help groups the options of a run; those of model and label file follow.
GROUPS = {
    "Data": (
        "labels", "val_labels", "true_labels", "images", "val_images", "features", "val_features",
        "val_share", "val_split", "val_unlisted", "val_format", "allow_missing", "allow_overlap",
    ),
    "Loss": ("loss", "pseudo_label", "ema_teacher", "extra_scores", "extra_names"),
    "Training": (
        "device", "epochs", "head_epochs", "batch_size", "learning_rate", "weight_decay", "warmup",
        "schedule_epochs", "ema", "ema_ramp", "ema_choice", "augment", "precision", "seed",
        "workers", "skip_broken",
    ),
    "Model": (
        "model", "weights", "freeze_below", "bias_init", "head_rate", "freeze_norms", "boost",
        "hidden", "image_size", "normalise",
    ),
    "Files": ("out", "config", "report", "logger", "dry_run"),
}  # fmt: skip

RunOptions = Annotated[TrainConfig, Parameter(name="*")]


@dataclass(frozen=True)
class Train:
    """Train a classifier on images or features and leave a run folder with everything in it.

    Example: hilltop train labels.csv --unlisted unknown --images photos --weights timm
    """

    run_options: RunOptions = field(default_factory=TrainConfig)
    _: KW_ONLY
    out: MaybeOut = None
    """The run folder; without it runs/<date>-<name of the label file>-<loss>."""
    config: Path | None = None
    """YAML file with any of these options; what stands on the command line wins."""
    dry_run: bool = False
    """Say how much time, memory and disk it will take, measured on a part; write nothing."""
    device: Device = "auto"
    groups: ClassVar = GROUPS
    usage: ClassVar = "Usage: hilltop train [OPTIONS] LABELS"

    def base(self) -> Train | None:
        """Options from the file named by ``--config``, for the command line to change."""
        return None if self.config is None else Train(TrainConfig.from_file(self.config))

    def run(self) -> dict[str, Any]:
        """Train."""
        from hilltop.training.stages import train

        options = self.run_options
        folder = self.out or default_folder(f"{options.labels.stem}-{options.loss}")
        if self.dry_run:
            return self._dry_run(folder)
        return describe_run(train(options, folder))

    def _dry_run(self, out: Path) -> dict[str, Any]:
        """Say what it will take."""
        from hilltop.cli import dry_run
        from hilltop.data import ReadOptions, read_labels, write_labels

        options = self.run_options
        table = read_labels(options.labels, format=options.format, options=options.reading)

        def make(images: int, folder: Path) -> Train:
            labels, part = folder / "labels.parquet", options
            write_labels(dry_run.some_of(table, images), labels, format="hilltop")
            if options.val_labels is not None:
                format = options.val_format or options.format
                val = read_labels(options.val_labels, format=format, options=options.reading)
                write_labels(val, folder / "val.parquet", format="hilltop")
                part = replace(part, val_labels=folder / "val.parquet", val_format="hilltop")
            part = replace(part, labels=labels, format="hilltop", reading=ReadOptions())
            return replace(self, run_options=part, out=folder / "run", config=None, dry_run=False)

        cost, images = dry_run.cost_of_images(make, len(table))
        return dry_run.tell(cost, out, total=len(table), measured=images)


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped, to the same end as if it had not been.

    Example: hilltop resume runs/2026-01-31-labels-hill
    """

    folder: Path
    """The run folder."""
    _: KW_ONLY
    device: Device = "auto"

    def run(self) -> dict[str, Any]:
        """Resume."""
        from hilltop.training.stages import resume

        return describe_run(resume(self.folder))


def describe_run(path: Path) -> dict[str, Any]:
    """What a finished run says of itself: where it is, and the metrics of its epochs."""
    from hilltop.metrics.epochs import best_epoch
    from hilltop.training.calibration import load_truth, usual_weights

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
