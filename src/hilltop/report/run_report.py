"""The report of one run: report.html and curves.png, from what its folder holds."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from hilltop.checks import pluralize
from hilltop.data import LabelTable, State, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.layout import option_words, read_options
from hilltop.data.scores import ScoreTable
from hilltop.data.small_files import read_yaml
from hilltop.inputs.image_files import find_images
from hilltop.metrics.epochs import best_epoch, in_per_cent, is_estimated
from hilltop.missing import Decision, MissingLabelModel
from hilltop.report.figures import (
    calibration_curve,
    loss_panel,
    metric_curves,
    metric_panel,
)
from hilltop.report.page import Picture, Tag, percent, write_page

SCORES = {"best": "val_scores.npy", "last": "last_val_scores.npy"}
"""Files with the scores of the validation images, by weights."""
_WHOLE_COUNTS = ("epoch", "best_epoch", "pseudo_labels")
_ENOUGH_LABELS = 100
"""Labels of validation images with which metrics are told without a caution."""
_EXAMPLES, CLASSES_SHOWN = 8, 8
_DOUBTED = 0.05
_MOST_TAGS = 8
_BINS = 10
_NO_TAGS = 0.005
"""Fewer tags an image than this are none: their precision would be that of nothing."""

Probs = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunMeaning:
    """What the report is told beside the files of a run.

    Attributes:
        truth: What scores mean, if that was found out.
        which: The weights that are used unless somebody says otherwise: ``last`` or ``best``.
        loss: What the loss says of itself: what was taken, and why.
        images: Folder with the validation images, if it is known.
    """

    truth: MissingLabelModel | None = None
    which: str = "best"
    loss: str | None = None
    images: Path | None = None


def expected_decisions(truth: MissingLabelModel) -> list[tuple[str, Decision]]:
    """What may be expected of thresholds for several aims, the default first."""
    return [
        ("all tags and rare classes alike (the default)", truth.thresholds()),
        ("rare classes", truth.thresholds("class_f1")),
        ("all tags together", truth.thresholds("f1")),
        ("precision 90%", truth.thresholds("precision", wanted=0.9)),
        ("recall 90%", truth.thresholds("recall", wanted=0.9)),
    ]


def forgotten_classes(truth: MissingLabelModel, classes: Sequence[str]) -> list[list[str]]:
    """Classes of which most labels were probably forgotten: labelled, and forgotten."""
    missing = truth.missing
    values = missing.by_class[0]
    if truth.kind in ("none", "complete"):
        return []
    most = np.argsort(-values, kind="stable")[:CLASSES_SHOWN].tolist()
    return [
        [classes[at], f"{missing.labelled[at]:,.0f}", missing.of_class(at).count()]
        for at in most
        if values[at] >= 1
    ]


def calibration(probs: Probs, labels: LabelTable) -> bytes:
    """Probabilities against the share of pairs that carry a label, as a picture."""
    targets, _ = labels.batch()
    known = ~np.isnan(targets) & ~np.isnan(probs)
    at = np.minimum((probs[known] * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(at, minlength=_BINS)
    filled = counts > 0
    means, shares = (
        np.bincount(at, values, _BINS)[filled] / counts[filled]
        for values in (probs[known], targets[known])
    )
    return calibration_curve(means, shares, counts[filled].astype(np.float64))


def expected_classes(truth: MissingLabelModel, labels: LabelTable) -> list[list[str]]:
    """Classes with their labels, and expected precision, recall and F1, the worst first."""
    shares = truth.thresholds().by_class
    counts = labels.counts_by_class(State.PRESENT).tolist()
    ranked = sorted(range(len(counts)), key=lambda at: (shares[2, at], labels.classes[at]))
    return [[labels.classes[at], f"{counts[at]:,}", *map(percent, shares[:, at])] for at in ranked]


def examples(
    folder: Path, probs: Probs, thresholds: Probs, labels: LabelTable
) -> list[tuple[Picture, list[Tag]]]:
    """Photographs with known, found and doubtful tags, as far as their files can be read."""
    targets, _ = labels.batch()
    said = probs > thresholds
    rows = _telling_rows(probs, said, targets)
    files = find_images(folder, labels.images.take(pa.array(rows)))
    cards: list[tuple[Picture, list[Tag]]] = []
    for row, file in zip(rows.tolist(), files.to_pylist(), strict=True):
        picture = None if file is None else Picture.thumbnail(folder / file)
        if picture is not None:
            cards.append((picture, _tags(probs[row], said[row], targets[row], labels.classes)))
        if len(cards) == _EXAMPLES:
            break
    return cards


def _telling_rows(
    probs: Probs, said: npt.NDArray[np.bool_], targets: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    """Validation images with known and with found labels, the surest finds first.

    Every fourth is one with a doubtful label, as long as there are some.
    """
    known = targets == 1
    found = np.nan_to_num(np.where(said & (targets == 0), probs, 0.0)).max(axis=1)
    doubtful = (known & (probs < _DOUBTED)).any(axis=1)
    order = np.argsort(-(found * known.any(axis=1)), kind="stable")
    order = order[~np.isnan(probs[order]).any(axis=1)]  # images that could not be read
    sure, doubted = (order[doubtful[order] == kind].tolist() for kind in (False, True))
    rows: list[int] = []
    while (sure or doubted) and len(rows) < 4 * _EXAMPLES:
        rows += sure[:3] + doubted[:1]
        del sure[:3], doubted[:1]
    return np.array(rows, dtype=np.int64)


def _tags(
    probs: Probs,
    said: npt.NDArray[np.bool_],
    targets: npt.NDArray[np.float32],
    classes: Sequence[str],
) -> list[Tag]:
    tags = []
    for at in np.argsort(-np.nan_to_num(probs), kind="stable").tolist():
        told = f"{classes[at]} {probs[at]:.0%}"
        if targets[at] == 1:
            doubted = probs[at] < _DOUBTED
            tags.append(Tag(told, "doubtful" if doubted else "known"))
        elif said[at]:
            tags.append(Tag(told, "found"))
    tags.sort(key=lambda tag: ("known", "found", "doubtful").index(tag.kind))
    return tags[:_MOST_TAGS]


def next_steps(run: Path, config: Mapping[str, Any], meaning: RunMeaning) -> list[tuple[str, str]]:
    """What to do now, and the commands for it.

    Args:
        run: Folder of the run.
        config: What it was trained with.
        meaning: What its scores mean; a run that knows photographs tags folders of others.
    """
    images = bool(config.get("images")) or meaning.images is not None
    source = "--images DIR" if images else "--features FILE"
    predict = shlex.join(["hilltop", "predict", str(run)])
    steps = [
        ("Tag new images", f"{predict} {source} --out tags.csv"),
        ("Fewer, surer tags", f"{predict} {source} --min-precision 0.9 --out tags.csv"),
    ]
    truth = meaning.truth
    if truth is not None and truth.kind != "complete":
        none = truth.kind == "none"
        aim = "See whether labels are missing" if none else "Find the labels that are missing"
        audit = _audit_beside(run, config)
        words = ["review", str(audit)] if audit else [*_audit_words(config), "--out", "audit"]
        steps.append((aim, shlex.join(["hilltop", *words])))
    return steps


def _audit_beside(run: Path, config: Mapping[str, Any]) -> Path | None:
    """The audit of the same labels that lies beside the run, as `hilltop start` makes it."""
    folder = run.parent / "audit"
    try:
        labels = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["labels"]
        same = Path(labels).resolve() == Path(config["labels"]).resolve()
    except (OSError, ValueError, KeyError, TypeError):  # none, or none that can be read
        return None
    return folder if same else None


def _audit_words(config: Mapping[str, Any]) -> list[str]:
    """An audit of the labels that a run was trained with, by what it learned from."""
    words = ["audit", "--labels", str(config.get("labels", "LABELS"))]
    words += option_words(read_options(config.get("reading") or {}))
    for name in ("format", "features", "images"):
        if config.get(name):
            words += [f"--{name}", str(config[name])]
    model = config.get("model")
    if config.get("images") and isinstance(model, Mapping):
        weights = model.get("weights", "none")
        words += ["--backbone", str(model.get("model"))]
        words += ["--weights", "timm" if weights == "none" else str(weights)]
    return [*words, "--allow-missing"] if config.get("allow_missing") else words


def write_run_report(folder: Path, meaning: RunMeaning | None = None) -> Path:
    """Write ``report.html`` and ``curves.png`` into a run folder and return the page.

    Args:
        folder: A run with config.yaml and metrics.csv; scores of the validation images and
            val_labels.parquet add examples and the classes that are found best and worst.
        meaning: What scores of the run mean, and what else its files do not tell.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    meaning = meaning or RunMeaning()
    truth = meaning.truth
    rows = _read_metrics(folder / "metrics.csv")
    config = _read_config(folder / "config.yaml")
    atomic_write(folder / "curves.png", metric_curves(rows))
    scores, labels = folder / SCORES[meaning.which], folder / "val_labels.parquet"
    judged = read_labels(labels) if labels.is_file() else None
    present = _ENOUGH_LABELS if judged is None else judged.count(State.PRESENT)
    of_scores: dict[str, Any] = {"classes": None, "examples": []}
    if truth is not None and judged is not None and scores.is_file():
        of_scores = _of_scores(ScoreTable.load(scores), judged, meaning, truth)
    page = folder / "report.html"
    write_page(
        page,
        "run.html",
        title=f"Tags learned from {Path(str(config.get('labels') or 'labels')).stem}",
        lead=_lead(folder, config),
        truth=truth,
        decisions=[] if truth is None else expected_decisions(truth),
        no_tags=_NO_TAGS,
        metrics=_numbers(rows),
        few=present if present < _ENOUGH_LABELS else None,
        judged=0 if judged is None else len(judged),
        kinds=(
            Tag("known: labelled", "known"),
            Tag("found: tagged, but not labelled", "found"),
            Tag(f"doubtful: labelled, but less than {_DOUBTED:.0%} probable", "doubtful"),
        ),
        most_classes=CLASSES_SHOWN,
        steps=[] if truth is None else next_steps(folder, config, meaning),
        loss=meaning.loss,
        estimated=is_estimated(rows[-1]),
        curves=(metric_panel(rows), loss_panel(rows)),
        head=list(rows[0]),
        rows=[[_cell(name, row[name]) for name in rows[0]] for row in rows],
        settings=_flat(config),
        **of_scores,
    )
    return page


def _of_scores(
    scores: ScoreTable, labels: LabelTable, meaning: RunMeaning, truth: MissingLabelModel
) -> dict[str, Any]:
    """What the page shows of the validation images: examples, classes and calibration."""
    values = np.asarray(scores.aligned(labels.images, labels.classes))
    logits = torch.logit(torch.from_numpy(np.array(values, dtype=np.float32)), eps=1e-6)
    probs = truth.probs(logits).double().numpy()
    shown: list[tuple[Picture, list[Tag]]] = []
    if meaning.images is not None:
        shown = examples(meaning.images, probs, truth.thresholds().thresholds, labels)
    return {
        "examples": shown,
        "forgotten": forgotten_classes(truth, labels.classes),
        "classes": expected_classes(truth, labels),
        "calibration": calibration(probs, labels),
        "incomplete": labels.unlisted == State.UNKNOWN,
    }


def _lead(folder: Path, config: Mapping[str, Any]) -> str:
    when = datetime.fromtimestamp((folder / "metrics.csv").stat().st_mtime)
    learned = folder / "train_labels.parquet"
    of_labels = ""
    if learned.is_file():
        table = read_labels(learned)
        images = pluralize(len(table), "image")
        labels = pluralize(table.count(State.PRESENT), "label")
        classes = pluralize(len(table.classes), "class", "classes")
        of_labels = f" with {labels} of {classes} for {images}"
    source = config.get("images") or config.get("features")
    read = f"{config.get('labels', '?')}{f', and {source}' if source else ''}"
    return f"Trained on {when.day} {when:%B %Y}{of_labels}. Labels: {read}. Run folder: {folder}."


def _numbers(rows: Sequence[Mapping[str, float]]) -> list[tuple[str, str]]:
    """MAP of the last epoch and of the best, with their captions; an estimate with its interval."""
    best = best_epoch(rows)
    numbers = []
    for row, which in ((rows[-1], "last epoch"), (best, f"best epoch ({best['epoch']:.0f})")):
        value, *interval = in_per_cent(row).rstrip(")").split(" (")
        told = [f"mAP, {which}", *(["estimated"] if is_estimated(row) else [])]
        numbers.append((": ".join([", ".join(told), *interval]), value))
    return numbers


def _cell(name: str, value: float) -> str:
    return f"{value:.0f}" if name in _WHOLE_COUNTS else f"{value:.4g}"


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", "" if value is None else str(value)))
    return pairs


def _read_metrics(path: Path) -> list[dict[str, float]]:
    if not path.is_file():
        raise data_error(path, "there is no such file; a report needs the metrics of a run.")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        rows = [{key: float(value) for key, value in line.items()} for line in lines]
    except (TypeError, ValueError, csv.Error):
        raise data_error(
            path, "this is not a table of numbers; train again or restore it."
        ) from None
    for name in ("epoch", "loss", "mAP"):
        if not rows or name not in rows[0]:
            what = "there is no epoch" if not rows else f"there is no column {name!r}"
            raise data_error(path, f"{what}; a report needs at least one epoch with loss and mAP.")
    return rows


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise data_error(path, "there is no such file; a report needs the configuration of a run.")
    try:
        values = read_yaml(path)
    except ValueError as error:
        raise data_error(path, str(error)) from None
    return values if isinstance(values, dict) else {}
