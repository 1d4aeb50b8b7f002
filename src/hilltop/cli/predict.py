"""``predict``: tags and probabilities for new images, with a promise where one is asked for."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from hilltop import missing
from hilltop.checks import check_number, pluralize
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Force, Out
from hilltop.cli.promises import Asked, Scored, is_audit, promise_file, read_promise
from hilltop.data import read_labels
from hilltop.data.files import atomic_write, check_folder
from hilltop.data.tags import check_tag_file, choose_tags, write_tags
from hilltop.errors import ArgumentError
from hilltop.progress import say

if TYPE_CHECKING:
    from hilltop.cli.audit import Queue
    from hilltop.missing import Decision, Promise
    from hilltop.training.predict import TrainedModel


@dataclass(frozen=True)
class Predict:
    """Tag the images of a folder, or the rows of a features file, with the model of a run.

    Tags are those whose probability of being true exceeds the threshold of their class. The run
    found thresholds with the best expected F1 from its own labels; --min-precision and --top ask
    for others. Labels that the run was given of these images stay tags. With an --out that ends in
    .npy all probabilities are written instead.

    Example: hilltop predict runs/2026-01-31-labels-hill --images photos --out tags.csv

    --promise finds the threshold whose recall or precision is guaranteed, from answers of a person
    to the questions of `hilltop queue --for promise` about the same images. The promise is kept
    beside the tags, for other images. Without answers none is possible: the command says why, and
    what it takes.

    Example: hilltop predict run --images photos --promise recall=0.9 --answers ask.csv --out t.csv
    """

    run_folder: Path
    """The run folder. With --promise also the folder of an audit, or a file with probabilities by
    any model that did not learn from these images."""
    _: KW_ONLY
    out: Out
    """The .csv, .xlsx, .jsonl or .parquet file with the tags, any file with --to, or .npy for
    all scores."""
    images: Path | None = None
    """Folder with images; also for a run on features that hilltop features has computed."""
    features: Path | None = None
    """Features file, for a run that was trained on features."""
    labels: Path | None = None
    """Score the images in this label file alone; with --promise its labels are right."""
    allow_missing: bool = False
    """With --labels: go on without rows that have no image or features."""
    top: int | None = None
    """Most tags of an image; alone, so many of every image."""
    min_precision: float | None = None
    """Tag only what is expected to be right so often, from 0 to 1, in every class."""
    promise: str | None = None
    """recall=0.9, precision=0.7 or false-discovery=0.3: promise it, from --answers. Or the file
    TAGS.promise.json that an earlier promise left: tag other images by it."""
    confidence: float = 0.9
    """Probability that the promise holds."""
    over: Literal["new", "these"] | None = None
    """Promise it of new images like these, which adds a margin for the choice of images (new), or
    of these alone, which is exact. new is the default, but for an audit."""
    per: Literal["pair", "image"] = "pair"
    """Promise it of all pairs together, or of the mean over images, for which whole images are
    asked about."""
    answers: tuple[Path, ...] = ()
    """With --promise: what `hilltop queue --for promise` wrote, with a column answer (yes, no,
    unsure), in the order in which it was written; or the folder of an audit that was given it."""
    seed: int = 0
    """With --promise: of the random order of questions, the same as for `hilltop queue`."""
    to: str | None = None
    """Write the tags in this label format, such as coco or wide."""
    which: Literal["best", "last"] | None = None
    """Weights of the best epoch on the validation images, or of the last. Without it the last,
    unless the validation labels are known to be complete."""
    device: Device = "auto"
    force: Force = False
    needs: ClassVar = {
        "promise": ("confidence", "over", "per", "answers", "seed"),
        "labels": ("allow_missing",),
    }

    def run(self) -> dict[str, Any]:
        """Predict, decide and write."""
        from hilltop.training.run_folder import RunFolder

        self._check()
        check_folder(self.out)
        check_written(self, self.out, *self._kept_files(), inputs=RunFolder(self.run_folder).files)
        if self.promise is None:
            RunFolder(self.run_folder).check()
        scored, trained = score(self)
        probs, broken = scored.scores, scored.broken
        decision = None if trained is None else self._decision(trained)
        thresholds = np.full(len(probs.classes), 0.5)
        if decision is not None:
            thresholds = decision.thresholds
        promised = None
        if self.promise is not None:
            promised, thresholds = self._promised(scored)
        images = pluralize(len(probs.images), "image")
        found: dict[str, Any] = {"out": self.out, "images": len(probs.images)}
        if promised is not None:
            found["promise"] = promised.as_dict()
        if self.out.suffix == ".npy" and self.to is None:
            dataclasses.replace(probs, thresholds=tuple(thresholds.tolist())).save(self.out)
            listed = self.out.with_name(f"{self.out.name}.classes.txt")
            atomic_write(listed, "".join(f"{name}\n" for name in probs.classes))
            print(f"{self.out}: {images}, {pluralize(len(probs.classes), 'class', 'classes')}")
            print(f"{listed}: the class of every column, in the order of the label file")
            if scored.learned:
                told = "the run learned from {:,} of these images: do not judge it by their scores"
                print(told.format(scored.learned))
        else:
            alone = self.top is not None and self.min_precision is None
            explained = _explained(decision, self.top if alone else None)
            if promised is not None:
                explained = promised.describe()
            if self.top is not None and not alone:
                explained += (
                    f"; at most {pluralize(self.top, 'tag', 'tags')} an image, the most probable"
                )
            labelled, absent = scored.labelled, scored.absent
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
        return found | {"classes": len(probs.classes), "left_out": list(broken)}

    def _check(self) -> None:
        if self.promise is not None and (self.top, self.min_precision) != (None, None):
            raise ArgumentError("--promise goes with neither --top nor --min-precision.")
        if self.promise is not None and not self._asks and self.answers:
            raise ArgumentError(
                f"{self.promise} is the file of a promise that was made; it takes no --answers."
            )
        if self.min_precision is not None:
            check_number("--min-precision", self.min_precision, low=0, high=1, low_open=True)
        if self.to is not None or self.out.suffix != ".npy":
            check_tag_file(self.out, to=self.to)

    @property
    def _asks(self) -> bool:
        return self.promise is not None and "=" in self.promise

    def _kept_files(self) -> list[Path]:
        return [promise_file(self.out)] if self._asks else []

    def _promised(self, scored: Scored) -> tuple[Promise, npt.NDArray[np.float64]]:
        """What is promised, and thresholds; warn if images are not like those asked about."""
        assert self.promise is not None
        probs = scored.scores
        if self._asks:
            asked = Asked.parse(
                self.promise, confidence=self.confidence, over=self.over, per=self.per,
                seed=self.seed, audit=is_audit(self.run_folder),
            )  # fmt: skip
            kept = asked.keep(scored, self.answers, self.run_folder)
            promise, file = kept.promise, promise_file(self.out)
            kept.write(file, probs.classes)
            print(f"{file}: for other images like these, `--promise {file}`")
        else:
            promise = read_promise(Path(self.promise), probs)
            if warning := promise.differs(probs.values):
                say(warning)
        assert promise.threshold is not None
        return promise, np.full(len(probs.classes), promise.threshold)

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


def score(command: Predict | Queue) -> tuple[Scored, TrainedModel | None]:
    """Score the images that a command is about: by a run, or as an audit or a file has them."""
    from hilltop.inputs.matching import labelled_inputs
    from hilltop.training.predict import load_run, predict_run, run_labels, truth_probs
    from hilltop.training.run_folder import RunFolder

    path = command.run_folder
    if is_audit(path):
        return Scored.of_audit(path), None
    if path.is_file():
        return Scored.of_file(path, command.labels), None
    folder = RunFolder(path)
    trained = load_run(path, which=command.which)
    chosen, source = None, command.images or command.features
    if command.labels is not None and source is not None:
        allowed = command.allow_missing
        chosen = labelled_inputs(command.labels, source, allow_missing=allowed, say=say)
    scores, broken = predict_run(
        trained, images=command.images, features=command.features, chosen=chosen
    )
    probs = truth_probs(trained, scores)
    labelled, absent = run_labels(folder, probs)
    learned = 0
    if folder.train_labels.is_file():
        own = read_labels(folder.train_labels).images
        learned = int(pc.sum(pc.is_in(probs.images, value_set=own)).as_py() or 0)
    names = tuple(name for name, _ in broken)
    scored = Scored(probs, labelled, absent, missing.shrunk(probs.values), learned, names)
    if command.promise is not None and command.labels is not None:
        scored = scored.with_labels(command.labels, chosen)
    return scored, trained


def _explained(decision: Decision | None, top: int | None) -> str:
    if top is not None:
        return f"the {top} most probable tags of every image, however probable they are"
    if decision is None:
        return "scores above 0.5: what scores mean is found out with 20 images or more to train on"
    return decision.describe()
