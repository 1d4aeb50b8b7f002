"""What a careful colleague wants to see of a table before training on it: counts and mistakes."""

from __future__ import annotations

import itertools
import shlex
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.class_names import spelling
from hilltop.data.label_table import LabelTable, State

_RARE = 0.1  # a typo is rare beside the class it was meant to be
_NOTHING = frozenset(
    ["none", "nothing", "no finding", "no findings", "normal", "negative", "no label", "no labels"]
)
_MOST_NAMED = 3  # more names that differ in case alone are told in one sentence
_SHORTEST = 5  # shorter names differ by one letter for good reasons: cat, car, cap


def likely_mistakes(table: LabelTable) -> list[str]:
    """Return one sentence for each thing that looks wrong."""
    return [
        *name_mistakes(table),
        *_same_but_for_case(table),
        *_inverted(table),
        *_mostly_present(table),
    ]


def name_mistakes(table: LabelTable) -> list[str]:
    """Return one sentence for each class whose name looks wrong."""
    counts = table.counts_by_class(State.PRESENT)
    typos, said = _typos(table), []
    spelled = [pair for pair in typos if len({spelling(table.classes[at]) for at in pair}) == 1]
    if len(spelled) > _MOST_NAMED:
        typos = [pair for pair in typos if pair not in spelled]
        said.append(_spelled_often(table, spelled))
    for rare, common in typos:
        one, other = table.classes[rare], table.classes[common]
        same = spelling(one) == spelling(other)
        remedy = " --merge-names makes them one." if same else ""
        said.append(
            f"class {one!r} ({_label_count(counts[rare])}) looks like a misspelling of {other!r}"
            f" ({_label_count(counts[common])}).{remedy}"
        )
    for name, count in zip(table.classes, counts, strict=True):
        if spelling(name) in _NOTHING and count:
            said.append(
                f"class {name!r} ({_label_count(count)}) seems to mean: looked at, nothing there."
                f" If so, --background-class {shlex.quote(name)} makes all other classes absent"
                " there."
            )
    return said


def _spelled_often(table: LabelTable, pairs: list[tuple[int, int]]) -> str:
    """Say once that many names differ only in how they are written."""
    names = {spelling(table.classes[common]): table.classes[common] for _, common in pairs}
    first = [
        f"{table.classes[rare]!r} and {table.classes[common]!r}"
        for rare, common in pairs[:_MOST_NAMED]
    ]
    written = pluralize(len(names), "class is", "classes are")
    return (
        f"{written} written in several ways, such as {', '.join(first)}. --merge-names makes them"
        " one."
    )


def likely_renames(table: LabelTable) -> dict[str, str]:
    """The name that each class with a likely misspelling was meant to have."""
    return {table.classes[rare]: table.classes[common] for rare, common in _typos(table)}


def _typos(table: LabelTable) -> list[tuple[int, int]]:
    """Rare classes, one letter, the case or a space away from a common one; both have labels."""
    counts = table.counts_by_class(State.PRESENT)
    found = []
    for one, other in sorted(_near_pairs(table.classes)):
        rare, common = sorted((one, other), key=lambda c: (counts[c], -c))
        same = _plain(table.classes[one]) == _plain(table.classes[other])
        if counts[rare] and (same or counts[rare] <= _RARE * counts[common]):
            found.append((rare, common))
    return found


def _label_count(count: np.int64) -> str:
    return pluralize(int(count), "label", "labels")


def _near_pairs(names: tuple[str, ...]) -> set[tuple[int, int]]:
    """Pairs of names that one deletion, insertion, change or swap of letters would make equal.

    Names are filed under everything that one deletion leaves of them, so that near names meet
    without comparing all pairs; those that meet are then compared.
    """
    filed: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        plain = _plain(name)
        cuts = {plain[:at] + plain[at + 1 :] for at in range(len(plain))}
        for key in {plain, *(cuts if len(plain) >= _SHORTEST else ())}:
            filed.setdefault(key, []).append(number)
    met = {pair for group in filed.values() for pair in itertools.combinations(group, 2)}
    return {(a, b) for a, b in met if _one_apart(_plain(names[a]), _plain(names[b]))}


def _one_apart(one: str, other: str) -> bool:
    """Whether two words differ in one letter, or in two neighbours swapped; numbers never do."""
    if one == other:
        return True
    if min(len(one), len(other)) < _SHORTEST:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    if any(letter.isdigit() for letter in a[:1] + b[:1]):
        return False
    swapped = len(a) > 1 and len(b) > 1 and a[:2] == b[1::-1] and a[2:] == b[2:]
    return swapped or a[1:] == b[1:] or a[1:] == b or a == b[1:]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _same_but_for_case(table: LabelTable) -> list[str]:
    lower = pc.utf8_lower(table.images)
    fewer = len(table) - pc.count_distinct(lower).as_py()
    if not fewer:
        return []
    return [
        f"{pluralize(fewer, 'image id differs', 'image ids differ')} from another one only in case."
    ]


def _inverted(table: LabelTable) -> list[str]:
    """Whether -1 and 0 look as if each meant what the other was read as."""
    for step in table.history:
        raw = step.details.get("raw_values")
        read_as = step.details.get("minus_one")
        if not raw or read_as is None:
            continue
        ones, zeros, minus = raw.get("1", 0), raw.get("0", 0), raw.get("-1", 0)
        cells = pluralize(minus, "cell", "cells")
        if read_as == "unknown" and minus > ones > zeros:
            return [
                f"-1 is the commonest value ({cells}) and 0 the rarest ({zeros}), as in files"
                " where -1 means absent, but -1 was read as unknown."
            ]
        if read_as == "absent" and minus < min(ones, zeros):
            return [
                f"-1 is the rarest value ({cells}, 0 has {zeros}), as in files where -1 means"
                " unknown, but it was read as absent."
            ]
    return []


def _mostly_present(table: LabelTable) -> list[str]:
    pairs = len(table) * len(table.classes)
    present = table.count(State.PRESENT)
    names_labels = any(step.details.get("format") == "list_column" for step in table.history)
    if names_labels or len(table.classes) < 3 or present <= pairs / 2:
        return []
    share = np.floor(100 * present / pairs)
    return [f"{share:.0f}% of all pairs are present. Are 0 and 1 the wrong way round?"]


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
