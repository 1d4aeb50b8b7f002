"""The report of the demo: what each method made of the same labels, in numbers and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.report.demo_audit import DemoAudit, missing_section, review_section
from hilltop.report.figures import probability_histogram
from hilltop.report.page import (
    Html,
    Picture,
    Tag,
    bar,
    figure,
    gallery,
    key_numbers,
    legend,
    paragraph,
    percent,
    section,
    side_by_side,
    table,
    write_page,
)

Mask = npt.NDArray[np.bool_]
Probs = npt.NDArray[np.floating[Any]]

_EXAMPLES = 12


@dataclass(frozen=True)
class DemoMethod:
    """One trained method.

    Attributes:
        name: What to call it.
        metrics: Its metrics on the test images, F1 at probability one half.
        tags: The same with tags at the thresholds that were found from the labels it was shown.
        train_probs: Its probabilities on the training images ``(images, classes)``.
    """

    name: str
    metrics: Mapping[str, float]
    tags: Mapping[str, float]
    train_probs: Probs

    @property
    def values(self) -> list[float]:
        """MAP, overall and per-class F1 at one half, and both at the thresholds that were found."""
        half = [float(self.metrics[name]) for name in ("mAP", "OF1", "CF1")]
        return [*half, *(float(self.tags[name]) for name in ("OF1", "CF1"))]


@dataclass(frozen=True)
class DemoPairs:
    """The training pairs, on the rows and columns of the probabilities.

    Attributes:
        images: File of each training image.
        classes: Class names.
        known: Labels that training saw.
        missing: Labels that were removed before training.
    """

    images: Sequence[Path]
    classes: Sequence[str]
    known: Mask
    missing: Mask

    @property
    def absent(self) -> Mask:
        """Pairs that are in truth absent."""
        return ~(self.known | self.missing)


def gap_closed(method: DemoMethod, baseline: DemoMethod, ceiling: DemoMethod) -> float | None:
    """Share of the mAP between baseline and ceiling that a method wins back; None without a gap."""
    gap = ceiling.metrics["mAP"] - baseline.metrics["mAP"]
    return (method.metrics["mAP"] - baseline.metrics["mAP"]) / gap if gap > 0 else None


def highest_unlabelled(probs: Probs, pairs: DemoPairs) -> Mask:
    """The unlabelled pairs with the highest probabilities, as many as labels were removed."""
    scores = np.where(pairs.known, -np.inf, probs).ravel()
    order = np.argsort(-scores, kind="stable")[: int(pairs.missing.sum())]
    found = np.zeros(scores.shape, dtype=bool)
    found[order] = True
    return found.reshape(pairs.known.shape)


def share_found(method: DemoMethod, pairs: DemoPairs) -> float:
    """Share of the removed labels that are among the highest unlabelled pairs."""
    found = highest_unlabelled(method.train_probs, pairs)
    return float((found & pairs.missing).sum() / max(1, pairs.missing.sum()))


def write_demo_report(
    path: Path,
    *,
    ceiling: DemoMethod,
    methods: Sequence[DemoMethod],
    pairs: DemoPairs,
    audit: DemoAudit,
    test_images: int,
    seconds: float,
) -> Path:
    """Write the page and return its path.

    Args:
        path: The HTML file.
        ceiling: BCE trained on the complete labels.
        methods: What was trained on the labels that are left; the first one is the baseline.
        pairs: The training pairs.
        audit: What the audit found in them.
        test_images: Number of test images, for the text.
        seconds: How long the whole demo took, for the text.
    """
    best = max(methods, key=lambda method: method.metrics["mAP"])
    sections = [
        section(
            "In one look", key_numbers(_summary(ceiling, methods, audit)), paragraph(_story(pairs))
        ),
        _examples(best, pairs),
        missing_section(audit),
        section("Tags", _tag_table(ceiling, methods), paragraph(_ABOUT_TAGS)),
        section("Methods", _method_table(ceiling, methods, pairs), *_about_methods(methods)),
        review_section(audit),
        section("Probabilities on the training images", *_histograms(methods, pairs)),
    ]
    lead = (
        f"{len(pairs.images):,} pictures drawn by the program, {len(pairs.classes)} classes, labels"
        " removed by the paper's rule, every method trained in the same way and judged on"
        f" {test_images:,} other pictures with complete labels; {seconds:.0f} seconds in all."
    )
    write_page(path, title="Training when labels are missing", lead=lead, sections=sections)
    return path


def result_rows(
    ceiling: DemoMethod, methods: Sequence[DemoMethod], pairs: DemoPairs
) -> list[tuple[str, list[float], float | None, float | None]]:
    """Name, metrics, share of the gap closed and share of labels found; the ceiling comes last."""
    rows: list[tuple[str, list[float], float | None, float | None]] = []
    for method in methods:
        closed = gap_closed(method, methods[0], ceiling)
        rows.append((method.name, method.values, closed, share_found(method, pairs)))
    # It was shown the removed labels, so how many of them it finds says nothing.
    rows.append((ceiling.name, ceiling.values, gap_closed(ceiling, methods[0], ceiling), None))
    return rows


def _summary(
    ceiling: DemoMethod, methods: Sequence[DemoMethod], audit: DemoAudit
) -> list[tuple[str, str]]:
    """What the rest of the page shows, in numbers."""
    baseline, default = methods[0], methods[-1]
    closed = gap_closed(default, baseline, ceiling)
    first = audit.rows()[0]
    half, found = f"{baseline.metrics['OF1']:.0%}", f"{default.tags['OF1']:.0%}"
    return [
        ("labels left", f"{audit.labels / (audit.labels + audit.truly_missing):.0%}"),
        ("F1, BCE at one half", half),
        ("F1, default and found thresholds", found),
        ("mAP gap closed by default", "none" if closed is None else percent(closed)),
        (f"first {first[0]:,} candidates right", percent(first[1])),
    ]


def _story(pairs: DemoPairs) -> str:
    total = int(pairs.known.sum() + pairs.missing.sum())
    mean = total / max(1, len(pairs.images))
    return (
        f"The training images truly have {total:,} labels, {mean:.1f} an image;"
        f" {int(pairs.missing.sum()):,} of them were removed. What is left looks like the work of"
        " annotators who named some of what they saw: a class that is not named may be absent or"
        " merely not written down. Only the test images have complete labels."
    )


_ABOUT_TAGS = (
    "A tag is a score above a threshold. A model that learned from incomplete labels learned that"
    " unlabelled means absent: at probability one half it tags too little. The thresholds of the"
    " columns \N{LEFT DOUBLE QUOTATION MARK}found\N{RIGHT DOUBLE QUOTATION MARK} belong to the"
    " probability of being truly present, estimated from validation images with equally incomplete"
    " labels. OF1 counts all tags together, CF1 is the mean over classes."
)
_WHY = {
    "BCE": "takes every missing label for an absent one",
    "Hill": "reduces the gradient of negatives that the model is confident about",
    "SPLC, as released": "turns confident scores into labels once the model can be asked",
    "Auto (the default)": (
        "asks cross-validated heads, on a description of the pictures that never saw a label, which"
        " entries are probably missing labels, and leaves those out of the loss"
    ),
}


def _tag_table(ceiling: DemoMethod, methods: Sequence[DemoMethod]) -> Html:
    """F1 at one half and at the thresholds that were found."""
    every = [*methods, ceiling]
    lines: list[list[str | Html]] = []
    for one in every:
        shares = (one.metrics["OF1"], one.tags["OF1"], one.metrics["CF1"], one.tags["CF1"])
        lines.append([one.name, *(bar(float(share)) for share in shares)])
    head = ["method", "OF1 at ½", "OF1, found", "CF1 at ½", "CF1, found"]
    best = max(range(len(methods)), key=lambda number: methods[number].tags["OF1"])
    return table(head, lines, strong=[best])


def _method_table(ceiling: DemoMethod, methods: Sequence[DemoMethod], pairs: DemoPairs) -> Html:
    rows = result_rows(ceiling, methods, pairs)
    best = max(range(len(methods)), key=lambda number: rows[number][1][0])
    lines: list[list[str | Html]] = []
    for name, values, closed, found in rows:
        share = "\N{EN DASH}" if closed is None else bar(closed)
        lines.append(
            [name, f"{100 * values[0]:.1f}", share, "" if found is None else percent(found)]
        )
    return table(["method", "mAP", "gap closed", "labels found"], lines, strong=[best])


def _about_methods(methods: Sequence[DemoMethod]) -> list[Html]:
    baseline = methods[0]
    why = " ".join(f"{one.name} {_WHY[one.name]}." for one in methods if one.name in _WHY)
    columns = (
        f"The gap is that between {baseline.name} on the labels that are left (0%) and on complete"
        " labels (100%). The last column is about the training images: among the unlabelled pairs"
        " with the highest probabilities, as many as labels were removed, the share that really are"
        " removed labels. All numbers are of the last epoch and of one seed."
    )
    below = [one.name for one in methods[1:] if one.metrics["mAP"] < baseline.metrics["mAP"]]
    if below:
        columns += f" Below {baseline.name} in this run: {', '.join(below)}."
    return [paragraph(why), paragraph(columns)]


def _histograms(methods: Sequence[DemoMethod], pairs: DemoPairs) -> list[Html]:
    kinds = {"present": pairs.known, "missing": pairs.missing, "absent": pairs.absent}
    panels = []
    for method in methods:
        probs = {kind: method.train_probs[mask] for kind, mask in kinds.items()}
        histogram = probability_histogram(method.name, probs)
        panels.append(figure(histogram, alt=f"Histogram of the probabilities of {method.name}"))
    text = (
        "Each kind of pair is drawn as a share of its own number, on a square-root scale. A method"
        " that copes with missing labels gives removed labels (red) probabilities like those of"
        " the labels that it was shown (green), not like those of absent ones (grey)."
    )
    return [side_by_side(*panels), paragraph(text)]


def _examples(method: DemoMethod, pairs: DemoPairs) -> Html:
    found = highest_unlabelled(method.train_probs, pairs)
    rows = np.flatnonzero(pairs.missing.any(axis=1))[:_EXAMPLES]
    cards = [
        (Picture.whole(pairs.images[row]), _tags(method, pairs, found, int(row))) for row in rows
    ]
    meaning = [
        Tag("known label", "known"),
        Tag("found 0.87", "found"),
        Tag("missed 0.05", "missed"),
        Tag("found, but wrong 0.60", "wrong"),
    ]
    text = (
        f"The first {len(cards)} training images from which a label was removed, not picked by"
        f" hand, with the probabilities of {method.name}, the method with the highest mAP."
    )
    return section("What was forgotten", paragraph(text), legend(meaning), gallery(cards))


def _tags(method: DemoMethod, pairs: DemoPairs, found: Mask, row: int) -> list[Tag]:
    """Known labels, then found, missed and wrong ones, each with the highest probability first."""
    kinds = {
        "known": pairs.known[row],
        "found": found[row] & pairs.missing[row],
        "missed": ~found[row] & pairs.missing[row],
        "wrong": found[row] & pairs.absent[row],
    }
    probs, tags = method.train_probs[row], []
    for kind, mask in kinds.items():
        for column in sorted(np.flatnonzero(mask).tolist(), key=lambda at: -probs[at]):
            number = "" if kind == "known" else f" {probs[column]:.2f}"
            tags.append(Tag(f"{pairs.classes[column]}{number}", kind))
    return tags
