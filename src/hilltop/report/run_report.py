"""The report of one run: report.html and curves.png, from what its folder holds."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hilltop.checks import pluralize
from hilltop.data import LabelTable, State, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.scores import ScoreTable
from hilltop.data.small_files import read_yaml
from hilltop.metrics import average_precision
from hilltop.missing import MissingLabelModel
from hilltop.report.epochs import best_epoch, in_per_cent, is_estimated
from hilltop.report.figures import (
    loss_panel,
    metric_curves,
    metric_panel,
    probability_histogram,
)
from hilltop.report.page import (
    Html,
    details,
    figure,
    key_numbers,
    paragraph,
    section,
    side_by_side,
    table,
    with_interval,
    write_page,
)
from hilltop.report.run_decisions import (
    RunMeaning,
    average_precision_title,
    calibration_section,
    class_section,
    decision_section,
    example_section,
    forgotten_section,
    next_steps,
)

SCORES = {"best": "val_scores.npy", "last": "last_val_scores.npy"}
"""Files with the scores of the validation images, by weights."""
_CLASSES_SHOWN = 8
_ENOUGH_LABELS = 100
"""Labels of validation images with which metrics are told without a caution."""
_WHOLE_COUNTS = ("epoch", "best_epoch", "pseudo_labels")


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
    if scores.is_file() and labels.is_file():
        sections += _score_sections(ScoreTable.load(scores), read_labels(labels), meaning)
    if meaning.truth is not None:
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


def _score_sections(scores: ScoreTable, labels: LabelTable, meaning: RunMeaning) -> list[Html]:
    """What the scores of the validation images show."""
    values = np.asarray(scores.aligned(labels.images, labels.classes))
    if meaning.truth is not None:
        return _truth_sections(values, labels, meaning, meaning.truth)
    judged = np.where(np.isnan(values), np.nan, labels.eval_targets())
    probs = {"present": values[judged == 1], "absent": values[judged == 0]}
    note = "Each kind of pair as a share of its own number, on a square-root scale."
    if labels.unlisted == State.UNKNOWN:
        note += (
            " The validation labels are not known to be complete: pairs without a label count as"
            " absent where no absent ones are listed, and are left out otherwise."
        )
    histogram = probability_histogram("validation pairs", probs)
    shown = figure(histogram, alt="Histogram of probabilities", caption=note)
    parts = [section("Probabilities, best epoch", side_by_side(shown))]
    ranked = _by_average_precision(values, judged, labels.classes)
    if ranked:
        title = average_precision_title(labels)
        parts.append(section("Classes, best epoch", *_class_tables(ranked, title)))
    return parts


def _truth_sections(
    values: Any, labels: LabelTable, meaning: RunMeaning, truth: MissingLabelModel
) -> list[Html]:
    """Examples, expected tags, calibration and classes."""
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


def _by_average_precision(
    values: Any, judged: Any, classes: Sequence[str]
) -> list[tuple[float, str, int]]:
    """Average precision, name and number of labels of each class that has any, worst first."""
    found = average_precision(values, judged, known=~np.isnan(judged)).tolist()
    counts = (judged == 1).sum(axis=0).tolist()
    ranked = zip(found, classes, counts, strict=True)
    return sorted((value, name, count) for value, name, count in ranked if count)


def _class_tables(ranked: Sequence[tuple[float, str, int]], title: str) -> list[Html]:
    """The hardest and the easiest classes, or all of them if there are few."""

    def rows(chosen: Sequence[tuple[float, str, int]]) -> Html:
        lines = [[name, f"{count:,}", f"{100 * value:.1f}"] for value, name, count in chosen]
        return table(["class", "labels", title], lines)

    if len(ranked) <= 2 * _CLASSES_SHOWN:
        return [rows(ranked)]
    return [
        paragraph(f"The {_CLASSES_SHOWN} classes that are found worst:"),
        rows(ranked[:_CLASSES_SHOWN]),
        details("All classes", rows(ranked)),
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
