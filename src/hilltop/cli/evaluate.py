"""``evaluate`` and ``export``: a finished run judged and put to use elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from hilltop import missing
from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, MaybeOut, Out, Reading
from hilltop.data import LabelTable, ReadOptions, State, read_labels
from hilltop.data.scores import ScoreTable, read_scores
from hilltop.data.small_files import format_rows
from hilltop.errors import ArgumentError, DataError
from hilltop.report.tables import Sheet

if TYPE_CHECKING:
    from hilltop.metrics import PerClass
    from hilltop.missing import (
        EstimatedReport,
        Evaluation,
        Interval,
        ModelComparison,
        PlannedPairs,
        SampledAnswers,
    )


@dataclass(frozen=True)
class Evaluate:
    """Measure scores against labels: mAP, and precision, recall and F1 at a threshold.

    Example: hilltop evaluate scores.npy labels.csv --unlisted absent

    Where labels are incomplete, --incomplete estimates the true values, with intervals.
    """

    scores: Path
    """Scores, as written by predict or train; or a table (.csv, .parquet): a column of image ids,
    and a column for each class."""
    labels: Path
    """The labels to judge by."""
    _: KW_ONLY
    threshold: float | None = None
    """Scores above it are predictions; without it those that predict wrote with the scores, or
    0.5."""
    fit: bool = False
    """Find the best threshold of each class on these labels instead (optimistic)."""
    cf1: Literal["mean", "harmonic"] = "mean"
    """CF1 as in the paper, or the harmonic mean of CP and CR."""
    most_classes: int = 20
    """Most classes in the table below, those with most labels; 0 for none."""
    incomplete: bool = False
    """Labels are incomplete: estimate the true values, each with a 90% interval."""
    answers: tuple[Path, ...] = ()
    """With --incomplete: CSV files with image, class, answer (yes, no, unsure) and sampled_with,
    one for each sample, in the order in which they were drawn; or the folder of an audit whose
    review was given plans."""
    against: Path | None = None
    """With --incomplete: scores of another model to compare with."""
    plan: int | None = None
    """With --incomplete: choose this many pairs to ask a person about next, and write them to
    --out."""
    out: MaybeOut = None
    """The CSV file for --plan; without it the pairs are printed."""
    seed: int = 0
    """The same seed draws the same sample for --plan."""
    allow_missing: bool = False
    """Leave out images and classes of the labels that have no scores, instead of stopping."""
    force: Force = False
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)
    needs: ClassVar = {"incomplete": ("answers", "against", "plan"), "plan": ("out",)}
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Join by name, measure, print."""
        from hilltop.metrics import classification_report, fit_thresholds

        if self.incomplete:
            return self._run_incomplete()
        table = read_labels(self.labels, format=self.format, options=self.reading)
        scores = read_scores(self.scores)
        table = self._scored_part(table, [scores])
        values = scores.aligned(table.images, table.classes)
        targets = table.eval_targets()
        threshold, source = self._threshold(scores, table)
        if self.fit:
            threshold = fit_thresholds(values, targets)
            source = "fitted to these labels, which is optimistic"
        report = classification_report(
            values, targets, threshold, cf1=self.cf1, class_names=table.classes
        )
        treated = describe_unknown(table, targets)
        estimates = estimated(table, values, threshold)
        print(report)
        print("\n" + LETTERS)
        print(f"thresholds: {source}")
        print(treated)
        if estimates:
            said = ", ".join(f"{name} {one}" for name, one in estimates.items())
            print(f"if labels are missing, the true values are about: {said}")
        if self.most_classes:
            class_table(report.per_class, self.most_classes).print()
        found = {**report.as_dict(), "empty_classes": list(report.empty_classes)}
        found["estimates"] = {name: one.as_dict() for name, one in estimates.items()}
        return {**found, "thresholds": source, "unknown": treated}

    def _run_incomplete(self) -> dict[str, Any]:
        """Print estimates of all metrics, and how two models compare; or what to ask next."""
        if self.fit:
            raise ArgumentError("--fit needs complete labels; leave it out with --incomplete.")
        if self.out is not None:
            check_written(self, self.out)
        table = read_labels(self.labels, format=self.format, options=self._open_reading())
        paths = (self.scores,) if self.against is None else (self.scores, self.against)
        models = [read_scores(path) for path in paths]
        table, test = self._test(self._scored_part(table, models), models)
        if self.plan is not None:
            return write_plan(test.plan(self.plan, seed=self.seed), table, self.out)
        reports = [test.report(number) for number in range(len(models))]
        compared = test.compare() if len(models) == 2 else None
        _print(test, paths, reports, compared)
        return _as_dict(test, reports, compared, table.classes)

    def _test(
        self, table: LabelTable, models: Sequence[ScoreTable]
    ) -> tuple[LabelTable, Evaluation]:
        """Join by name, leave out images without scores, and find out what is probably true."""
        if table.unlisted == State.ABSENT:
            raise ArgumentError(
                "With --incomplete, pairs that are not listed are not known to be absent."
                " Say --unlisted unknown."
            )
        probs = [scores.aligned(table.images, table.classes) for scores in models]
        readable = ~np.isnan(np.concatenate(probs, axis=1)).any(axis=1)
        if not readable.all():
            table, probs = table.select(np.flatnonzero(readable)), [one[readable] for one in probs]
            ends = "image has no scores and takes", "images have no scores and take"
            print(f"{pluralize(int((~readable).sum()), *ends)} no part.", file=sys.stderr)
        targets, observed = table.batch()
        test = missing.Evaluation(
            probs,
            targets,
            verified=observed,
            answers=read_answers(self.answers, table),
            thresholds=[self._threshold(scores, table)[0] for scores in models],
            harmonic=self.cf1 == "harmonic",
        )
        return table, test

    def _scored_part(self, table: LabelTable, models: Sequence[ScoreTable]) -> LabelTable:
        """The labels of images and classes that all models have scores of.

        Raises:
            DataError: Something has no scores, and nobody said to leave it out.
        """
        rows, columns = np.ones(len(table), dtype=bool), np.ones(len(table.classes), dtype=bool)
        for scores in models:
            rows &= np.asarray(pc.is_in(table.images, value_set=scores.images))
            columns &= np.isin(table.classes, scores.classes)
        if rows.all() and columns.all():
            return table
        images = pluralize(int((~rows).sum()), "image")
        names = [name for name, there in zip(table.classes, columns, strict=True) if not there]
        told = images if not rows.all() else ""
        if names:
            classes = pluralize(len(names), "class", "classes")
            told += f"{' and ' if told else ''}{classes} ({shorten(', '.join(names), 60)})"
        if not self.allow_missing or not (rows.any() and columns.any()):
            way = "" if not rows.any() else " Pass --allow-missing to leave them out."
            raise DataError(f"{self.labels}: there are no scores for {told}.{way}")
        print(f"{self.labels}: left out, without scores: {told}", file=sys.stderr)
        return table.select(rows).only_classes(columns)

    def _open_reading(self) -> ReadOptions:
        """Labels that are said to be incomplete leave unlisted pairs open."""
        if self.reading.unlisted is not None:
            return self.reading
        return replace(self.reading, unlisted="unknown")

    def _threshold(self, scores: ScoreTable, table: LabelTable) -> tuple[Any, str]:
        """Thresholds of the classes of a table, and where they come from."""
        if self.threshold is not None:
            return self.threshold, f"{self.threshold:g}, as asked"
        if scores.thresholds is None:
            return 0.5, "0.5; scores do not say which suit them"
        of_class = dict(zip(scores.classes, scores.thresholds, strict=True))
        found = np.array([of_class[name] for name in table.classes], dtype=np.float64)
        return found, "those that stand with the scores"


LETTERS = """\
mAP  mean over classes of average precision: how well scores rank images, whatever the threshold
CP, CR, CF1  precision, recall and F1 of each class, averaged: rare classes count like others
OP, OR, OF1  the same over all pairs of image and class together
precision: share of the tags that are right; recall: share of the true labels that are found"""


def describe_unknown(table: LabelTable, targets: npt.NDArray[np.float32]) -> str:
    """Say how pairs were treated of which nobody knows whether they are present."""
    unknown = table.count(State.UNKNOWN)
    if not unknown:
        return "every pair is known to be present or absent"
    pairs = pluralize(unknown, "pair is", "pairs are")
    if np.isnan(targets).any():
        return f"{pairs} unknown and left out"
    return (
        f"{pairs} unknown, and counted as absent for want of anything else: labels that are"
        " missing make precision look worse than it is. If the labels are complete, pass"
        " --unlisted absent; if not, --incomplete."
    )


def estimated(table: LabelTable, values: npt.NDArray[Any], threshold: Any) -> dict[str, Interval]:
    """Metrics that complete labels would give; none where labels are complete, or too few."""
    from hilltop.training.calibration import (
        ESTIMATED,
        LEAST_IMAGES,
        LEAST_LABELS,
        lists_positives_alone,
    )

    rows = ~np.isnan(values).any(axis=1)
    targets = table.eval_targets()[rows]
    few = len(targets) < LEAST_IMAGES or (targets == 1).sum() < LEAST_LABELS
    probable = np.nanmin(values) >= 0 and np.nanmax(values) <= 1
    if few or not probable or not lists_positives_alone(table):
        return {}
    metrics = (
        missing.Evaluation([values[rows]], targets, threshold=np.asarray(threshold))
        .report()
        .metrics
    )
    return {name: metrics[name] for name in ESTIMATED}


def class_table(per_class: PerClass, most: int) -> Sheet:
    """The classes with most labels."""
    numbers = (per_class.average_precision, per_class.precision, per_class.recall, per_class.f1)
    rows = tuple(
        (
            per_class.names[at],
            f"{per_class.positives[at]:,}",
            f"{per_class.predicted[at]:,}",
            *(f"{100 * values[at]:.1f}" for values in numbers),
            f"> {per_class.threshold[at]:.3f}",
        )
        for at in np.argsort(-per_class.positives, kind="stable")[:most].tolist()
    )
    left = len(per_class.names) - len(rows)
    every = f"--most-classes {len(per_class.names)}"
    more = (f"and {pluralize(left, 'class', 'classes')} more: {every}",) if left else ()
    head = ("class", "labels", "tags", "AP", "precision", "recall", "F1", "threshold")
    return Sheet("", head, rows, more)


@dataclass(frozen=True)
class Export:
    """Write the model of a run for use elsewhere.

    Example: hilltop export runs/2026-01-31-labels-hill --to onnx --out model.onnx
    """

    run_folder: Path
    """The run folder."""
    _: KW_ONLY
    out: Out
    """The file (onnx) or folder (hub-folder) to write."""
    to: Literal["onnx", "hub-folder", "safetensors"] = "onnx"
    """An ONNX file, or a folder as the Hugging Face Hub holds models: weights that load with timm
    and transformers, thresholds and a model card. `safetensors` is an older name of hub-folder."""
    which: Literal["best", "last"] | None = None
    """Weights of the best epoch on the validation images, or of the last. Without it the last,
    unless the validation labels are known to be complete."""
    force: Force = False

    def run(self) -> dict[str, Any]:
        """Load and write."""
        from hilltop.training.export import export_folder, export_onnx, folder_files
        from hilltop.training.predict import load_run
        from hilltop.training.run_folder import RunFolder

        files = [self.out] if self.to == "onnx" else folder_files(self.out)
        check_written(self, *files, inputs=RunFolder(self.run_folder).files)
        trained = load_run(self.run_folder, which=self.which)
        if self.to == "onnx":
            export_onnx(trained, self.out)
        else:
            export_folder(trained, self.run_folder, self.out)
        classes = pluralize(len(trained.classes), "class", "classes")
        print(f"{self.out}: {trained.config.model.model}, {classes}")
        return {"out": self.out, "model": trained.config.model.model, "classes": trained.classes}


def write_plan(pairs: PlannedPairs, table: LabelTable, out: Path | None) -> dict[str, Any]:
    """Write the pairs to ask about next, or print them."""
    if out is None:
        rows = missing.planned_rows(pairs, table)
        print(format_rows(missing.PLAN_COLUMNS, rows), end="")
        cells = [(image, name, float(prob), float(drawn)) for image, name, prob, drawn in rows]
        return {"pairs": [dict(zip(missing.PLAN_COLUMNS, row, strict=True)) for row in cells]}
    missing.write_planned_pairs(pairs, table, out)
    print(
        f"{out}: {pluralize(len(pairs.rows), 'pair')} to ask about. Write yes, no or unsure into a"
        f" column 'answer', and pass the file to --answers; or answer them in a page, with"
        f" `hilltop review AUDIT --queue {out}`, and pass the folder AUDIT."
    )
    return {"out": out, "pairs": len(pairs.rows)}


def read_answers(paths: tuple[Path, ...], table: LabelTable) -> SampledAnswers:
    """Read files with answers, or what the review of one audit with plans has found."""
    if not any(path.is_dir() for path in paths):
        return missing.read_sampled_answers(paths, table)
    if len(paths) > 1:
        raise ArgumentError("--answers takes the folder of one audit, or files, not both.")
    from hilltop.audit.folder import AuditFolder
    from hilltop.audit.review.queues import answered_plans

    return missing.sampled_answers(answered_plans(AuditFolder.read(paths[0])), table)


def _as_dict(
    test: Evaluation,
    reports: list[EstimatedReport],
    compared: ModelComparison | None,
    classes: tuple[str, ...],
) -> dict[str, Any]:
    models = [
        {name: found.as_dict() for name, found in report.metrics.items()}
        | {"classes": {name: one.as_dict() for name, one in _named(classes, report)}}
        for report in reports
    ]
    result: dict[str, Any] = {
        "answers": len(test.answers),
        "summary": test.describe(),
        "missing": test.missing.as_dict(),
    }
    if compared is None:
        return result | models[0]
    return result | {
        "models": models,
        "difference": {name: one.as_dict() for name, one in compared.differences.items()},
        "first_better": compared.first_better,
        "answers_needed": compared.answers_needed,
    }


def _named(classes: tuple[str, ...], report: EstimatedReport) -> Any:
    return zip(classes, report.average_precision, strict=True)


def _print(
    test: Evaluation,
    paths: tuple[Path, ...],
    reports: list[EstimatedReport],
    compared: ModelComparison | None,
) -> None:
    answers = pluralize(len(test.answers), "answer")
    print(test.describe())
    print(f"Estimates of the true values, with 90% intervals, from labels and {answers}:")
    if compared is None:
        for name, found in reports[0].metrics.items():
            print(f"{name:>5}  {found}")
        return
    columns = [path.name for path in paths]
    rows = tuple(
        (name, *(str(report.metrics[name]) for report in reports), str(difference))
        for name, difference in compared.differences.items()
    )
    Sheet("", ("", *columns, "difference"), rows).print()
    print(_verdict(columns, compared))


def _verdict(names: list[str], compared: ModelComparison) -> str:
    """Say which of two models has the higher mAP, and how sure that is."""
    ahead = compared.first_better >= 0.5
    sure = compared.first_better if ahead else 1 - compared.first_better
    words = f"{sure:.0%}" if sure < 0.99 else "more than 99%"
    sentence = f"{names[0] if ahead else names[1]} has the higher mAP: {words} sure."
    if compared.answers_needed == 0:
        return sentence
    if compared.answers_needed is None:
        return f"{sentence} The models are too much alike to tell."
    more = pluralize(compared.answers_needed, "more answer")
    return f"{sentence} About {more} would make it 95%; --plan chooses what to ask."
