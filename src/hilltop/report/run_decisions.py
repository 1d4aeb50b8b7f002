"""The parts of a run's report about decisions: what scores mean, tags, examples, next steps."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.data import LabelTable, State
from hilltop.data.layout import option_words, read_options
from hilltop.inputs.image_files import find_images
from hilltop.missing import Decision, MissingLabelModel
from hilltop.report.figures import calibration_curve
from hilltop.report.page import (
    Html,
    Picture,
    Tag,
    code,
    details,
    figure,
    gallery,
    legend,
    paragraph,
    section,
    side_by_side,
    table,
    with_interval,
)

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


def average_precision_title(labels: LabelTable) -> str:
    """What average precision is called; by incomplete labels it is too low."""
    if labels.unlisted == State.UNKNOWN and not (labels.states == State.ABSENT).any():
        return "average precision by labels as they are, too low where some are missing"
    return "average precision"


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
