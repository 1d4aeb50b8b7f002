"""``predict``: tags and probabilities for new images."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_number, check_whole, pluralize
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Force, Out
from hilltop.data.files import atomic_write, check_folder
from hilltop.data.tags import check_tag_file, choose_tags, write_tags
from hilltop.errors import ArgumentError
from hilltop.progress import say

if TYPE_CHECKING:
    from hilltop.data.scores import ScoreTable
    from hilltop.missing import Decision
    from hilltop.training.predict import TrainedModel


@dataclass(frozen=True)
class Predict:
    """Tag the images of a folder, or the rows of a features file, with the model of a run.

    Tags are those whose probability of being true exceeds the threshold of their class. The run
    found thresholds with the best expected F1 from its own labels; --min-precision and --top ask
    for others. Labels that the run was given of these images stay tags. With an --out that ends in
    .npy all probabilities are written instead.

    Example: hilltop predict runs/2026-01-31-labels-hill --images photos --out tags.csv
    """

    run_folder: Path
    """The run folder."""
    _: KW_ONLY
    out: Out
    """The .csv, .jsonl or .parquet file with the tags, any file with --to, or .npy for scores."""
    images: Path | None = None
    """Folder with images; also for a run on features that hilltop features has computed."""
    features: Path | None = None
    """Features file, for a run that was trained on features."""
    labels: Path | None = None
    """Score the images in this label file alone."""
    allow_missing: bool = False
    """With --labels: go on without rows that have no image or features."""
    top: int | None = None
    """Most tags of an image; alone, so many of every image."""
    min_precision: float | None = None
    """Tag only what is expected to be right so often, from 0 to 1, in every class."""
    promise: Path | None = None
    """Tag at the threshold that `hilltop promise --out` wrote for scores of this run."""
    to: str | None = None
    """Write the tags in this label format, such as coco or wide."""
    which: Literal["best", "last"] | None = None
    """Weights of the best epoch on the validation images, or of the last. Without it the last,
    unless the validation labels are known to be complete."""
    device: Device = "auto"
    force: Force = False

    def run(self) -> dict[str, Any]:
        """Predict, decide and write."""
        from hilltop.inputs.matching import labelled_inputs
        from hilltop.training.predict import load_run, predict_run, run_labels, truth_probs
        from hilltop.training.run_folder import RunFolder

        self._check()
        check_folder(self.out)
        check_written(self, self.out, inputs=RunFolder(self.run_folder).files)
        trained = load_run(self.run_folder, which=self.which)
        chosen, source = None, self.images or self.features
        if self.labels is not None and source is not None:
            allowed = self.allow_missing
            chosen = labelled_inputs(self.labels, source, allow_missing=allowed, say=say)
        scores, broken = predict_run(
            trained, images=self.images, features=self.features, chosen=chosen
        )
        probs = truth_probs(trained, scores)
        decision = self._decision(trained)
        thresholds = np.full(len(probs.classes), 0.5)
        if decision is not None:
            thresholds = decision.thresholds
        promised = None
        if self.promise is not None:
            promised, thresholds = _promised(self.promise, probs)
        images = pluralize(len(probs.images), "image", "images")
        found: dict[str, Any] = {"out": self.out, "images": len(probs.images)}
        if self.out.suffix == ".npy" and self.to is None:
            dataclasses.replace(probs, thresholds=tuple(thresholds.tolist())).save(self.out)
            listed = self.out.with_name(f"{self.out.name}.classes.txt")
            atomic_write(listed, "".join(f"{name}\n" for name in probs.classes))
            print(f"{self.out}: {images}, {pluralize(len(probs.classes), 'class', 'classes')}")
            print(f"{listed}: the class of every column, in the order of the label file")
        else:
            alone = self.top is not None and self.min_precision is None
            explained = promised or _explained(decision, self.top if alone else None)
            if self.top is not None and not alone:
                explained += (
                    f"; at most {pluralize(self.top, 'tag', 'tags')} an image, the most probable"
                )
            labelled, absent = run_labels(RunFolder(self.run_folder), probs)
            known = np.where(labelled, 1.0, np.where(absent, -2.0, probs.values))
            chosen = dataclasses.replace(probs, values=known)
            said = choose_tags(chosen, -1.0 if alone else thresholds, top=self.top)
            own = labelled & said if labelled.any() else None
            write_tags(self.out, probs, said, labelled=own, to=self.to)
            print(f"{self.out}: {images}, {pluralize(int(said.sum()), 'tag', 'tags')}")
            print(explained)
            found |= {"tags": int(said.sum()), "explained": explained}
            if own is not None:
                kept = pluralize(int(own.sum()), "tag is a label", "tags are labels")
                print(f"{kept} of the run's own label file, in the column 'labelled'")
                found["labelled"] = int(own.sum())
        if broken:
            print(f"left out: {pluralize(len(broken), 'image', 'images')} that could not be read")
        return found | {"classes": len(probs.classes), "left_out": [name for name, _ in broken]}

    def _check(self) -> None:
        if self.top is not None:
            check_whole("--top", self.top, low=1)
        if self.promise is not None and (self.top, self.min_precision) != (None, None):
            raise ArgumentError("--promise goes with neither --top nor --min-precision.")
        if self.min_precision is not None:
            check_number("--min-precision", self.min_precision, low=0, high=1, low_open=True)
        if self.to is not None or self.out.suffix != ".npy":
            check_tag_file(self.out, to=self.to)

    def _decision(self, trained: TrainedModel) -> Decision | None:
        if trained.truth is None:
            if self.min_precision is not None:
                raise ArgumentError(
                    "--min-precision needs a run that knows what its scores mean; this one was"
                    " trained on fewer than 20 images, or before runs did. Train it again."
                )
            return None
        if self.min_precision is not None:
            return trained.truth.thresholds("precision", wanted=self.min_precision)
        return trained.truth.thresholds()


def _promised(path: Path, probs: ScoreTable) -> tuple[str, npt.NDArray[np.float64]]:
    """What is promised, and thresholds; warn if these images are not like those asked about."""
    from hilltop.cli.promise import read_promise

    promise, classes = read_promise(path)
    if promise.threshold is None:
        raise ArgumentError(f"{path}: nothing could be promised. {promise.describe()}")
    if classes != probs.classes:
        raise ArgumentError(f"{path}: this promise is about other classes than the run has.")
    if warning := promise.differs(probs.values):
        say(warning)
    return promise.describe(), np.full(len(probs.classes), promise.threshold)


def _explained(decision: Decision | None, top: int | None) -> str:
    if top is not None:
        return f"the {top} most probable tags of every image, however probable they are"
    if decision is None:
        return "scores above 0.5: what scores mean is found out with 20 images or more to train on"
    return decision.describe()
