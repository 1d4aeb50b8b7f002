"""What a careful colleague wants to see of a table before training on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hilltop.data.label_table import LabelTable
from hilltop.data.mistakes import likely_mistakes
from hilltop.data.state import State

_SHOWN = 10


@dataclass(frozen=True)
class Summary:
    """Counts of a table, and what looks wrong in it."""

    images: int
    classes: int
    present: int
    absent: int
    unknown: int
    not_looked_for: int
    unlisted: str
    labels_per_image: dict[str, float]
    images_by_labels: dict[str, int]
    images_without_label: int
    first_without_label: list[str]
    sources: dict[str, int]
    commonest: dict[str, int]
    rarest: dict[str, int]
    classes_without_label: list[str]
    notes: list[str]
    likely_mistakes: list[str]
    history: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return a page of text."""
        mean, most = self.labels_per_image["mean"], self.labels_per_image["max"]
        empty = len(self.classes_without_label)
        lines = [
            f"images    {self.images:>13,}    without any label: {self.images_without_label:,}",
            f"classes   {self.classes:>13,}    without any label: {empty:,}",
            f"present   {self.present:>13,}    {mean:.2f} an image, at most {most:.0f}",
            f"absent    {self.absent:>13,}    confirmed by a person",
            f"unknown   {self.unknown:>13,}",
            f"pairs that are not listed are {self.unlisted}",
        ]
        if self.sources:
            text = f"beyond    {self.not_looked_for:>13,}    not looked for, so they take no part"
            lines[-1] = f"{text}\nother pairs that are not listed are {self.unlisted}"
        lines += _block("images by source", self.sources)
        lines += _block("images by number of labels", self.images_by_labels)
        lines += _block("commonest classes", self.commonest)
        lines += _block("rarest classes", self.rarest)
        lines += _items("images without any label, the first", self.first_without_label)
        lines += _items("classes without any label", self.classes_without_label[:_SHOWN])
        lines += _items("how it was made", self.history)
        lines += _items("noticed while reading", self.notes)
        lines += _items("likely mistakes", self.likely_mistakes)
        return "\n".join(lines)


def summarise(table: LabelTable) -> Summary:
    """Count everything once."""
    per_image = table.labels_per_image()
    by_class = table.counts_by_class(State.PRESENT)
    order = np.argsort(-by_class, kind="stable")
    used = order[by_class[order] > 0]
    empty = np.flatnonzero(per_image == 0)
    return Summary(
        images=len(table),
        classes=len(table.classes),
        present=table.count(State.PRESENT),
        absent=table.count(State.ABSENT),
        unknown=table.count(State.UNKNOWN),
        not_looked_for=int(table.not_looked_for().sum()),
        unlisted=table.unlisted.name.lower(),
        sources=_sources(table),
        labels_per_image={
            "mean": float(per_image.mean()) if len(table) else 0.0,
            "median": float(np.median(per_image)) if len(table) else 0.0,
            "max": float(per_image.max(initial=0)),
        },
        images_by_labels=_histogram(per_image),
        images_without_label=len(empty),
        first_without_label=[table.images[int(row)].as_py() for row in empty[:3]],
        commonest={table.classes[c]: int(by_class[c]) for c in used[:_SHOWN]},
        rarest={table.classes[c]: int(by_class[c]) for c in used[::-1][:_SHOWN]},
        classes_without_label=[table.classes[c] for c in np.flatnonzero(by_class == 0)],
        notes=list(table.notes),
        likely_mistakes=likely_mistakes(table),
        history=[str(step) for step in table.history],
    )


def _sources(table: LabelTable) -> dict[str, int]:
    """Number of images of each scope of a joined table."""
    if table.scopes is None:
        return {}
    images = np.bincount(table.scopes.of_image, minlength=len(table.scopes.names))
    return dict(zip(table.scopes.names, images.tolist(), strict=True))


def statistics_row(table: LabelTable) -> dict[str, float]:
    """Samples, classes, labels and labels per image: a row of the paper's data set table."""
    labels = table.count(State.PRESENT)
    return {
        "samples": len(table),
        "classes": len(table.classes),
        "labels": labels,
        "avg.label/img": labels / len(table) if len(table) else 0.0,
    }


def _histogram(per_image: Any) -> dict[str, int]:
    """Images with 0, 1, ... 9 labels, and with more."""
    counts = np.bincount(np.minimum(per_image, _SHOWN), minlength=1)
    names = [str(n) for n in range(_SHOWN)] + [f"{_SHOWN} or more"]
    return {name: int(count) for name, count in zip(names, counts, strict=False)}


def _block(title: str, counts: dict[str, int]) -> list[str]:
    if not counts:
        return []
    width = max(len(name) for name in counts)
    return ["", f"{title}:", *(f"  {name:<{width}}  {n:>10,}" for name, n in counts.items())]


def _items(title: str, items: list[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {item}" for item in items)] if items else []
