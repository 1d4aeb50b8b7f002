"""What a person sees of a run: progress in the terminal, events, and the report at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilltop.checks import pluralize
from hilltop.data.files import atomic_write
from hilltop.data.small_files import read_json
from hilltop.metrics.epochs import best_epoch, in_per_cent
from hilltop.progress import ProgressLog, say
from hilltop.training.calibration import lists_positives_alone, load_truth, usual_weights
from hilltop.training.config import TrainConfig
from hilltop.training.recipe import HEADS
from hilltop.training.run_folder import RunFolder
from hilltop.training.task import Task, uses_solver

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from hilltop.report import RunMeaning

_SECONDS_BETWEEN = 5.0
"""From one line about an epoch to the next."""


STEPS = (
    "select hyperparameters",
    "cross-validate",
    "fit the missing-label model",
    "train",
    "calibrate",
)
"""What a run does, in this order."""


class Steps:
    """Names the steps of a run as they begin, and keeps what came of each in ``steps.json``.

    Args:
        folder: The run folder.
        quiet: Whether another process says and writes it.
    """

    def __init__(self, folder: RunFolder, *, quiet: bool) -> None:
        """Take up what a run that was stopped has kept."""
        self._path, self._quiet = folder.steps, quiet
        self.found: dict[str, dict[str, Any]] = {}
        if folder.steps.is_file():
            self.found = read_json(folder.steps, "Delete it: the steps are done again.")

    @contextmanager
    def step(self, name: str) -> Iterator[dict[str, Any]]:
        """Say that a step begins, and keep what the block puts into the dictionary."""
        if not self._quiet:
            say(f"step {STEPS.index(name) + 1} of {len(STEPS)}: {name}")
        began, found = time.perf_counter(), {}  # type: float, dict[str, Any]
        yield found
        found["seconds"] = round(time.perf_counter() - began, 3)
        self.found[name] = found
        if not self._quiet:
            text = json.dumps({name: self.found[name] for name in STEPS if name in self.found})
            atomic_write(self._path, text + "\n")


class Reporter:
    """Logs progress with rate and time left, and what came of each epoch; nothing if quiet."""

    def __init__(self, config: TrainConfig, folder: RunFolder, task: Task, fabric: Fabric) -> None:
        """Say what is about to happen."""
        quiet = not fabric.is_global_zero
        self._config, self._folder, self._quiet = config, folder, quiet
        self._task = task
        self._images, self._began = 0, time.perf_counter()
        self._sizes = {"images": len(task.train), "val_images": len(task.val)}
        self._progress: ProgressLog | None = None
        self._said = 0.0
        self._fabric = fabric
        if quiet:
            return
        images = pluralize(len(task.train), "image", "images")
        classes = pluralize(len(task.train.classes), "class", "classes")
        self._say(
            f"training {config.model.model} with {config.loss} on {images} ({classes}),"
            f" validating on {len(task.val):,}"
        )
        if config.kind == "images" and config.model.weights == "none":
            self._say(
                f"{config.model.model} starts from random weights, which takes many images and"
                " epochs; --weights timm, or a file, starts from pretrained ones"
            )
        usual = (HEADS.batch_size, HEADS.warmup)
        if (config.batch_size, config.warmup) != usual and uses_solver(
            config, task.recipe, task.loss
        ):
            self._say(
                "a linear head of this loss is solved by conjugate gradients: --batch-size and"
                " --warmup have no effect. Pass --learning-rate to train it by steps."
            )
        if lists_positives_alone(task.val):
            self._say(
                "the validation labels are not known to be complete: the true metrics are estimated"
                " when training is done"
            )
        note = task.loss.describe()
        if note is not None:
            self._say(note)

    def step(self, epoch: int, step: int, steps: int, loss: float, images: int) -> None:
        """Move the bar by one step."""
        if not self._images and not self._quiet:  # a run that made no step leaves no trace
            self._folder.event("start", **self._sizes)
        self._images += images
        if self._quiet:
            return
        done = epoch * steps + step
        if self._progress is None:
            total = self._config.epochs * steps
            self._progress = ProgressLog("training", total, "steps", start=done - 1)
        rate = self._images / (time.perf_counter() - self._began)
        note = f"epoch {epoch + 1}, loss {loss:.4f}, {rate:,.0f} images/s"
        self._progress.update(done, note)

    def epoch(self, row: dict[str, Any], seconds: float) -> None:
        """Report on a finished epoch."""
        self._folder.event("epoch", epoch=row["epoch"], seconds=round(seconds, 3), mAP=row["mAP"])
        self._fabric.log_dict(row, step=row["epoch"])
        now = time.perf_counter()
        if now - self._said < _SECONDS_BETWEEN and row["epoch"] < self._config.epochs:
            return  # epochs that fly by are in metrics.csv
        self._said = now
        if self._progress is not None:
            self._progress.postpone()
        self._say(
            f"epoch {row['epoch']:3}/{self._config.epochs}  loss {row['loss']:.4f}"
            f"  {_quality(row)}  {seconds:.1f} s"
        )

    def finish(self, rows: Sequence[dict[str, Any]], broken: Sequence[tuple[str, str]]) -> None:
        """Write the report and say where it is."""
        if self._progress is not None:
            self._progress.finish()
        for logger in self._fabric.loggers:
            logger.finalize("success")
        unique = sorted(set(broken))
        if unique:
            text = "".join(f"{image}\t{reason}\n" for image, reason in unique)
            atomic_write(self._folder.path / "broken.txt", text)
            were = pluralize(
                len(unique), "image could not be read and was", "images could not be read and were"
            )
            self._say(f"{were} left out: see broken.txt")
        if self._config.report:
            from hilltop.report import write_run_report  # the page alone needs it

            write_run_report(self._folder.path, self._meaning())
        self._folder.event("end", broken=len(unique))
        if rows:
            best = best_epoch(rows)
            self._say(
                f"last epoch mAP {in_per_cent(rows[-1])}; best {in_per_cent(best)}"
                f" in epoch {best['epoch']} (chosen on the validation images)"
            )
        truth = load_truth(self._folder, usual_weights(self._folder))
        if truth is not None:
            images = pluralize(truth.images, "image", "images")
            self._say(f"labels of {images}: {truth.describe()}")
            self._say(f"tags: {truth.thresholds().describe()}")
        self._say(f"run folder: {self._folder.path}")

    def _meaning(self) -> RunMeaning:
        """What the page is told beside the files of the run."""
        from hilltop.report import RunMeaning

        which = usual_weights(self._folder)
        images = self._config.val_images or self._config.images
        if images is None:
            folder = getattr(self._task.val_inputs, "images_folder", None)
            images = None if folder is None else Path(folder)
        truth = load_truth(self._folder, which)
        found = images if images is not None and images.is_dir() else None
        return RunMeaning(truth, which, self._task.loss.describe(), found)

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(text)


def _quality(row: dict[str, Any]) -> str:
    """How good an epoch is; incomplete labels tell only which of two epochs is better."""
    if "OF1" in row:
        return f"mAP {in_per_cent(row)}  OF1 {in_per_cent(row, 'OF1')}"
    return f"mAP {100 * row['mAP']:.2f} by the labels as they are"
