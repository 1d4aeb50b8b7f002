"""From answers to a corrected table: which pairs change, and the labels with them changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, Outcome, resolve
from hilltop.data import LabelTable, State, Step, assemble
from hilltop.data.patches.base import Change

_STATES: dict[Outcome, State] = {"present": State.PRESENT, "absent": State.ABSENT}


@dataclass(frozen=True)
class Verdicts:
    """What the answers say about a table.

    Attributes:
        changes: Pairs whose state is another one now, ordered by image and class.
        outcomes: Number of answered pairs with each outcome.
        foreign: Number of answered pairs that the table does not have.
    """

    changes: tuple[Change, ...]
    outcomes: Counter[Outcome]
    foreign: int


def verdicts(table: LabelTable, answers: Answers) -> Verdicts:
    """Resolve all answers and compare them with the table."""
    pairs = [(image, name, resolve(votes.values())) for image, name, votes in answers.all()]
    images = pa.array([image for image, _, _ in pairs], pa.string())
    rows = pc.index_in(images, value_set=table.images).fill_null(-1).to_pylist()
    column_of = {name: column for column, name in enumerate(table.classes)}
    outcomes: Counter[Outcome] = Counter()
    changes: list[Change] = []
    foreign = 0
    for row, (image, name, outcome) in zip(rows, pairs, strict=True):
        if row < 0 or name not in column_of:
            foreign += 1
            continue
        outcomes[outcome] += 1
        state = _STATES.get(outcome)
        column = column_of[name]
        if state is not None and _state(table, row, column) != state:
            changes.append(Change(row, column, image, name, state))
    changes.sort(key=lambda change: (change.row, change.column))
    return Verdicts(tuple(changes), outcomes, foreign)


def corrected(table: LabelTable, changes: Sequence[Change]) -> LabelTable:
    """Return the table with the changes made.

    Example:
        >>> before = assemble(["a"], ["cat", "dog"], [0], [0], State.PRESENT,
        ...                   unlisted=State.UNKNOWN)
        >>> after = corrected(before, [Change(0, 1, "a", "dog", State.ABSENT)])
        >>> after.labels_of(0), after.labels_of(0, State.ABSENT)
        (('cat',), ('dog',))
    """
    width = max(1, len(table.classes))
    new = np.array([change.row * width + change.column for change in changes], dtype=np.int64)
    keys = table.rows * width + table.columns
    kept = ~np.isin(keys, new)
    states = np.array([change.state for change in changes], dtype=np.int8)
    both = np.concatenate([keys[kept], new])
    step = Step("review", {"changes": len(changes)})
    made = assemble(
        table.images,
        table.classes,
        both // width,
        both % width,
        np.concatenate([table.states[kept], states]),
        unlisted=table.unlisted,
    )
    return replace(made, history=(*table.history, step), notes=table.notes)


def _state(table: LabelTable, row: int, column: int) -> State:
    entries = slice(table.indptr[row], table.indptr[row + 1])
    found = np.flatnonzero(table.columns[entries] == column)
    return State(int(table.states[entries][found[0]])) if len(found) else table.unlisted
