"""Likely mistakes in a table: things that are allowed, but that a colleague would ask about."""

from __future__ import annotations

import itertools
import shlex

import numpy as np
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.class_names import spelling
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

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
            f"class {one!r} ({_labels(counts[rare])}) looks like a misspelling of {other!r}"
            f" ({_labels(counts[common])}).{remedy}"
        )
    for name, count in zip(table.classes, counts, strict=True):
        if spelling(name) in _NOTHING and count:
            said.append(
                f"class {name!r} ({_labels(count)}) seems to mean: looked at, nothing there. If so,"
                f" --background-class {shlex.quote(name)} makes all other classes absent there."
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


def _labels(count: np.int64) -> str:
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
    if len(table.classes) < 3 or present <= pairs / 2:
        return []
    share = np.floor(100 * present / pairs)
    return [f"{share:.0f}% of all pairs are present. Are 0 and 1 the wrong way round?"]
