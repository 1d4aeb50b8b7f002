"""Joins label sets that were made by different people with different lists of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.label_table import LabelTable, Scopes, State, Step, merge_scopes
from hilltop.errors import ArgumentError

Contradictions = Literal["stop", "unknown"]


@dataclass(frozen=True)
class LabelSet:
    """Labels of one source, and what its people looked for.

    Attributes:
        name: What to call it.
        table: Its labels.
        looked_for: Names of the classes that were looked for; those of the table without it.
    """

    name: str
    table: LabelTable
    looked_for: Sequence[str] | None = None


class _Entries(NamedTuple):
    """Pairs of the joined table and what one source says of them."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    states: npt.NDArray[np.int8]


def join_tables(sets: Sequence[LabelSet], *, contradictions: Contradictions = "stop") -> LabelTable:
    """Put label sets into one table that knows which classes were looked for in which image.

    A pair that none of its image's sources looked for is neither negative nor missing: it takes no
    part in loss and metrics. What a source wrote down counts, even outside of what it looked for.
    An image in several sources has the labels of all; what is known wins over unknown. Unlisted
    pairs of the result are unknown, so the absents of a source whose unlisted pairs are absent
    are listed one by one.

    Args:
        sets: The sources, at least one, with different names.
        contradictions: What to do where one source says present and another absent: stop with
            the pairs, or take them for unknown.

    Raises:
        DataError: Sources contradict each other.

    Example:
        >>> cats = LabelTable.from_lists(["1", "2"], [["cat"], []], unlisted="unknown")
        >>> dogs = LabelTable.from_lists(["2", "3"], [[], ["dog"]], unlisted="absent")
        >>> joined = join_tables([LabelSet("cats", cats), LabelSet("dogs", dogs)])
        >>> joined.batch()[0]
        array([[ 1., nan],
               [ 0.,  0.],
               [nan,  1.]], dtype=float32)
    """
    if not sets or len({one.name for one in sets}) != len(sets):
        raise ArgumentError("Joining needs label sets with different names.")
    images = pa.chunked_array([one.table.images for one in sets], pa.string()).unique()
    classes = list(dict.fromkeys(name for one in sets for name in _class_names(one)))
    scopes, members = _scopes_of(sets, classes, images)
    found = [_entries(one, images, classes) for one in sets]
    rows, columns, states = (np.concatenate(parts) for parts in zip(*found, strict=True))
    details: dict[str, object] = {"sources": [one.name for one in sets]}
    notes = [f"{one.name}: {note}" for one in sets for note in one.table.notes]
    if contradictions == "unknown":
        keys = rows * len(classes) + columns
        both = np.intersect1d(keys[states == State.PRESENT], keys[states == State.ABSENT])
        agreed = ~np.isin(keys, both)
        rows, columns, states = rows[agreed], columns[agreed], states[agreed]
        details["contradictions"] = len(both)
    joined = LabelTable.from_coo(
        images,
        classes,
        rows,
        columns,
        states,
        unlisted=State.UNKNOWN,
        source=Path(" and ".join(one.name for one in sets)),
        notes=[*notes, _shared(members)],
    )
    earlier = (step for one in sets for step in one.table.history)
    return replace(joined, scopes=scopes, history=(*earlier, Step("join", details)))


def _class_names(one: LabelSet) -> list[str]:
    return [*one.table.classes, *(one.looked_for or ())]


def _looked_for(one: LabelSet) -> Sequence[str]:
    return one.table.classes if one.looked_for is None else one.looked_for


def _scopes_of(
    sets: Sequence[LabelSet], classes: list[str], images: pa.StringArray
) -> tuple[Scopes, npt.NDArray[np.bool_]]:
    """What was looked for in each image, and in which sources it is ``(images, sources)``."""
    number = {name: at for at, name in enumerate(classes)}
    names, looked_for, members, sources = [], [], [], []
    for one in sets:
        places = np.asarray(pc.index_in(one.table.images, value_set=images))
        inside = np.zeros(len(images), dtype=bool)
        inside[places] = True
        sources.append(inside)
        for name, found, rows in _own_scopes(one):
            looked = np.zeros(len(classes), dtype=bool)
            looked[[number[each] for each in found]] = True
            inside = np.zeros(len(images), dtype=bool)
            inside[places[rows]] = True
            names.append(name)
            looked_for.append(looked)
            members.append(inside)
    merged = merge_scopes(names, np.stack(members, axis=1), np.stack(looked_for))
    return merged, np.stack(sources, axis=1)


def _own_scopes(one: LabelSet) -> Iterator[tuple[str, Sequence[str], npt.NDArray[np.int64]]]:
    """Name, classes and rows of each scope of a source; one that was joined before has several."""
    scopes = one.table.scopes
    if scopes is None or one.looked_for is not None:
        yield one.name, _looked_for(one), np.arange(len(one.table))
        return
    for at, name in enumerate(scopes.names):
        found = [one.table.classes[column] for column in np.flatnonzero(scopes.looked_for[at])]
        yield f"{one.name}: {name}", found, np.flatnonzero(scopes.of_image == at)


def _entries(one: LabelSet, images: pa.StringArray, classes: list[str]) -> _Entries:
    table = one.table
    places = np.asarray(pc.index_in(table.images, value_set=images), dtype=np.int64)
    number = {name: at for at, name in enumerate(classes)}
    new = np.array([number[name] for name in table.classes], dtype=np.int64)
    listed = _Entries(places[table.rows], new[table.columns], table.states)
    if table.unlisted != State.ABSENT:
        return listed
    looked = np.array([number[name] for name in _looked_for(one)], dtype=np.int64)
    rest = np.zeros((len(table), len(classes)), dtype=bool)
    rest[:, looked] = True
    rest[table.rows, new[table.columns]] = False
    rows, columns = np.nonzero(rest)
    absent = np.full(len(rows), State.ABSENT, dtype=np.int8)
    return _Entries(
        np.concatenate([listed.rows, places[rows]]),
        np.concatenate([listed.columns, columns]),
        np.concatenate([listed.states, absent]),
    )


def _shared(members: npt.NDArray[np.bool_]) -> str:
    several = int(np.count_nonzero(members.sum(axis=1) > 1))
    are = pluralize(several, "image is", "images are")
    more = "; ids must be spelled alike to meet." if not several else "."
    return f"{are} in more than one source{more}"
