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
from hilltop.report.page import (
    Html,
    Picture,
    Tag,
    code,
    details,
    figure,
    gallery,
    key_numbers,
    legend,
    paragraph,
    section,
    side_by_side,
    table,
    with_interval,
    write_page,
)

SCORES = {"best": "val_scores.npy", "last": "last_val_scores.npy"}
"""Files with the scores of the validation images, by weights."""
_WHOLE_COUNTS = ("epoch", "best_epoch", "pseudo_labels")
_ENOUGH_LABELS = 100
"""Labels of validation images with which metrics are told without a caution."""
_EXAMPLES, _CLASSES_SHOWN = 8, 8
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


def decision_section(truth: MissingLabelModel) -> Html:
    """What may be expected of thresholds for several aims."""
    aims: list[tuple[str, Decision]] = [
        ("all tags and rare classes alike (the default)", truth.thresholds()),
        ("rare classes", truth.thresholds("class_f1")),
        ("all tags together", truth.thresholds("f1")),
        ("precision 90%", truth.thresholds("precision", wanted=0.9)),
        ("recall 90%", truth.thresholds("recall", wanted=0.9)),
    ]
    rows: list[list[str | Html]] = [
        [aim, *_shares(decision), f"{decision.expected.tags:.1f}"] for aim, decision in aims
    ]
    head = ["best for", "precision", "recall", "F1", "tags an image"]
    return section(
        "Fewer and surer tags, or more of them",
        paragraph(
            "Thresholds decide which tags an image gets. Precision is the share of the tags that"
            " are right, recall the share of the true labels that are found, with 90% intervals."
        ),
        table(head, rows),
    )


def forgotten_section(truth: MissingLabelModel, classes: Sequence[str]) -> Html:
    """How many labels were probably forgotten, and of which classes."""
    missing, parts = truth.missing, [paragraph(truth.describe())]
    values = missing.by_class[0]
    if truth.kind not in ("none", "complete") and values.sum() > 0:
        most = np.argsort(-values, kind="stable")[:_CLASSES_SHOWN]
        rows = [
            [classes[at], f"{missing.labelled[at]:,.0f}", missing.of_class(at).count()]
            for at in most.tolist()
            if values[at] >= 1
        ]
        head = ["class", "labelled", "probably forgotten"]
        parts += [paragraph("Most were forgotten of these classes:"), table(head, rows)]
    return section("What was forgotten", *parts)


def _shares(decision: Decision) -> list[str | Html]:
    """Precision, recall and F1; of an aim that no class reaches, nothing is tagged or right."""
    expected = decision.expected
    if expected.tags < _NO_TAGS:
        return ["not reached", "\N{EN DASH}", "\N{EN DASH}"]
    every = (expected.precision, expected.recall, expected.f1)
    return [with_interval(one.value, one.low, one.high) for one in every]


def calibration_section(probs: Probs, labels: LabelTable) -> Html:
    """Probabilities against the share of pairs that carry a label."""
    targets, _ = labels.batch()
    known = ~np.isnan(targets) & ~np.isnan(probs)
    at = np.minimum((probs[known] * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(at, minlength=_BINS)
    filled = counts > 0
    means, shares = (
        np.bincount(at, values, _BINS)[filled] / counts[filled]
        for values in (probs[known], targets[known])
    )
    note = "On the dotted line, as many pairs carry a label as the probability says."
    if labels.unlisted == State.UNKNOWN:
        note += (
            " Probabilities are of labels being true. Where some were never written down, fewer"
            " carry one, and the curve lies below the line."
        )
    drawn = calibration_curve(means, shares, counts[filled].astype(np.float64))
    shown = figure(drawn, alt="Calibration curve", caption=note)
    return section("What probabilities mean", side_by_side(shown))


def class_section(truth: MissingLabelModel, labels: LabelTable) -> Html:
    """Classes by expected F1, best and worst first."""
    precision, recall, f1 = truth.thresholds().by_class
    counts = labels.counts_by_class(State.PRESENT).tolist()
    lines = [
        (
            float(f1[at]),
            [
                name,
                f"{counts[at]:,}",
                f"{precision[at]:.0%}",
                f"{recall[at]:.0%}",
                f"{f1[at]:.0%}",
            ],
        )
        for at, name in enumerate(labels.classes)
    ]
    ranked = [line for _, line in sorted(lines, key=lambda one: (one[0], one[1][0]))]
    head = ["class", "labels", "precision", "recall", "F1"]
    told = paragraph(
        "Precision, recall and F1 are what to expect with the default thresholds; labels are those"
        " of the validation images."
    )
    if len(ranked) <= 2 * _CLASSES_SHOWN:
        return section("Classes", told, table(head, ranked))
    return section(
        "Classes",
        told,
        paragraph(f"The {_CLASSES_SHOWN} classes that are found worst:"),
        table(head, ranked[:_CLASSES_SHOWN]),
        paragraph(f"The {_CLASSES_SHOWN} that are found best:"),
        table(head, ranked[: -_CLASSES_SHOWN - 1 : -1]),
        details("All classes", table(head, ranked)),
    )


def example_section(
    folder: Path, probs: Probs, thresholds: Probs, labels: LabelTable
) -> Html | None:
    """Photographs with known, found and doubtful tags; None if none of them is there."""
    targets, _ = labels.batch()
    said = probs > thresholds
    rows = _telling_rows(probs, said, targets)
    files = find_images(folder, labels.images.take(pa.array(rows)))
    cards: list[tuple[Picture, list[Tag]]] = []
    for row, file in zip(rows.tolist(), files.to_pylist(), strict=True):
        if file is None or len(cards) == _EXAMPLES:
            continue
        picture = Picture.thumbnail(folder / file)
        if picture is not None:
            cards.append((picture, _tags(probs[row], said[row], targets[row], labels.classes)))
    if not cards:
        return None
    kinds = (
        Tag("known: labelled", "known"),
        Tag("found: tagged, but not labelled", "found"),
        Tag(f"doubtful: labelled, but less than {_DOUBTED:.0%} probable", "doubtful"),
    )
    return section("Tags of some images", legend(kinds), gallery(cards))


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
        if targets[at] == 1:
            doubted = probs[at] < _DOUBTED
            tags.append(Tag(_told(classes[at], probs[at]), "doubtful" if doubted else "known"))
        elif said[at]:
            tags.append(Tag(_told(classes[at], probs[at]), "found"))
    tags.sort(key=lambda tag: ("known", "found", "doubtful").index(tag.kind))
    return tags[:_MOST_TAGS]


def _told(name: str, prob: float) -> str:
    return f"{name} {prob:.0%}"


def next_steps(run: Path, config: Mapping[str, Any], meaning: RunMeaning) -> Html:
    """What to do now, as commands.

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
    return section(
        "Next",
        table(["what", "command"], [[what, code(step)] for what, step in steps], text_columns=2),
    )


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
    rows = _read_metrics(folder / "metrics.csv")
    config = _read_config(folder / "config.yaml")
    atomic_write(folder / "curves.png", metric_curves(rows))
    curves = side_by_side(
        figure(metric_panel(rows), alt="Metrics by epoch"),
        figure(loss_panel(rows), alt="Training loss by epoch"),
    )
    scores, labels = folder / SCORES[meaning.which], folder / "val_labels.parquet"
    sections = [_result(rows, meaning, _few(read_labels(labels)) if labels.is_file() else "")]
    if meaning.truth is not None:
        if scores.is_file() and labels.is_file():
            table_, read = ScoreTable.load(scores), read_labels(labels)
            sections += _score_sections(table_, read, meaning, meaning.truth)
        sections.append(next_steps(folder, config, meaning))
    how = [] if meaning.loss is None else [paragraph(f"Loss: {meaning.loss}")]
    told = key_numbers(_numbers(rows)), paragraph(_rule(rows))
    sections += [section("How it was trained", *how, *told, curves), _appendix(rows, config)]
    page = folder / "report.html"
    write_page(page, title=_title(config), lead=_lead(folder, config, meaning), sections=sections)
    return page


def _title(config: Mapping[str, Any]) -> str:
    """What was done, with what, in the words of the user's own files."""
    labels = config.get("labels")
    return f"Tags learned from {Path(str(labels)).stem}" if labels else "Tags learned from labels"


def _lead(folder: Path, config: Mapping[str, Any], meaning: RunMeaning) -> str:
    when = datetime.fromtimestamp((folder / "metrics.csv").stat().st_mtime)
    learned = folder / "train_labels.parquet"
    parts = [f"Trained on {when.day} {when:%B %Y}"]
    if learned.is_file():
        table_ = read_labels(learned)
        images = pluralize(len(table_), "image", "images")
        labels = pluralize(table_.count(State.PRESENT), "label", "labels")
        classes = pluralize(len(table_.classes), "class", "classes")
        parts.append(f"with {labels} of {classes} for {images}")
    source = config.get("images") or config.get("features")
    where = f", and {source}" if source else ""
    return f"{' '.join(parts)}. Labels: {config.get('labels', '?')}{where}. Run folder: {folder}."


def _numbers(rows: Sequence[Mapping[str, float]]) -> list[tuple[str, str]]:
    last, best = rows[-1], best_epoch(rows)
    return [
        _number(last, "mAP", "last epoch"),
        _number(best, "mAP", f"best epoch ({best['epoch']:.0f})"),
    ]


def _number(row: Mapping[str, float], metric: str, which: str) -> tuple[str, str]:
    """A metric with its title; an estimate with its interval and what labels as they are say."""
    if not is_estimated(row, metric):
        return f"{metric}, {which}", in_per_cent(row, metric)
    low, high = (100 * row.get(f"{metric}_{end}", float("nan")) for end in ("low", "high"))
    interval = "" if low != low else f": {low:.1f} to {high:.1f}"
    title = f"{metric}, {which}, estimated{interval}"
    return title, f"{100 * row[f'{metric}_estimate']:.1f}"


def _rule(rows: Sequence[Mapping[str, float]]) -> str:
    trained = f"{pluralize(len(rows), 'epoch was', 'epochs were')} trained."
    sentence = (
        f"{trained} The best epoch was chosen on the same validation images that it is judged by,"
        " so its number is a little too good; the last epoch's is not."
    )
    if is_estimated(rows[-1]):
        sentence += (
            " The validation labels are not known to be complete: numbers are estimates of what"
            " complete ones would say, with 90% intervals. Answers of a person about 200 pairs make"
            " the intervals narrow: hilltop evaluate --incomplete --plan 200."
        )
    return sentence


def _few(labels: LabelTable) -> str:
    """A caution where metrics rest on few labels; empty where there are enough."""
    present = labels.count(State.PRESENT)
    if present >= _ENOUGH_LABELS:
        return ""
    there = pluralize(present, "label", "labels")
    images = pluralize(len(labels), "validation image", "validation images")
    return (
        f"These metrics rest on {there} of {images} only: take them for a hint, not a measurement."
    )


def _result(rows: Sequence[Mapping[str, float]], meaning: RunMeaning, caution: str) -> Html:
    """How good tags will be; without that, how well scores rank the validation images."""
    told = [paragraph(caution)] if caution else []
    if meaning.truth is None:
        return section("How good it is", key_numbers(_numbers(rows)), *told)
    expected = meaning.truth.thresholds().expected
    shares = {
        "of the tags are right (precision)": expected.precision,
        "of the true labels are found (recall)": expected.recall,
    }
    numbers: list[tuple[str, str]] = [
        (what, with_interval(share.value, share.low, share.high)) for what, share in shares.items()
    ]
    numbers.append(("tags an image", f"{expected.tags:.1f}"))
    explained = (
        "What to expect of the tags of images like these, with 90% intervals. It is estimated from"
        " the labels alone, whether or not some of them are missing."
    )
    return section("How good the tags will be", key_numbers(numbers), paragraph(explained), *told)


def _score_sections(
    scores: ScoreTable, labels: LabelTable, meaning: RunMeaning, truth: MissingLabelModel
) -> list[Html]:
    """Examples, expected tags, what was forgotten, classes and calibration."""
    values = np.asarray(scores.aligned(labels.images, labels.classes))
    logits = torch.logit(torch.from_numpy(np.array(values, dtype=np.float32)), eps=1e-6)
    probs = truth.probs(logits).double().numpy()
    examples = None
    if meaning.images is not None:
        thresholds = truth.thresholds().thresholds
        examples = example_section(meaning.images, probs, thresholds, labels)
    return [
        *([] if examples is None else [examples]),
        decision_section(truth),
        forgotten_section(truth, labels.classes),
        class_section(truth, labels),
        calibration_section(probs, labels),
    ]


def _appendix(rows: Sequence[Mapping[str, float]], config: Mapping[str, Any]) -> Html:
    names = list(rows[0])
    lines = [[_cell(name, row[name]) for name in names] for row in rows]
    settings = [[key, value] for key, value in _flat(config)]
    return section(
        "Everything else",
        details("Metrics of every epoch", table(names, lines, text_columns=0)),
        details("Configuration", table(["setting", "value"], settings, text_columns=2)),
    )


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
