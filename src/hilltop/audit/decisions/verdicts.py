"""From answers to changes: which pairs are in another state now, and who said so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.data import LabelTable, State, Step
from hilltop.data.format import Change
from hilltop.data.review_record import Outcome, ReviewRecord

_STATES: dict[Outcome, State] = {"present": State.PRESENT, "absent": State.ABSENT}


@dataclass(frozen=True)
class Verdicts:
    """What the answers say about a table.

    Attributes:
        changes: Pairs whose state is another one now, ordered by image and class.
        struck: Those of them that were labels and are wrong, by row and column.
        reviewers: Whose answers they follow.
        outcomes: Number of answered pairs with each outcome.
        foreign: Number of answered pairs that the table does not have.
    """

    changes: tuple[Change, ...]
    struck: frozenset[tuple[int, int]]
    reviewers: tuple[str, ...]
    outcomes: Counter[Outcome]
    foreign: int

    def count(self, state: State) -> int:
        """Number of pairs that are present or absent now, struck labels apart."""
        return sum(one.state == state for one in self.changes if not self.is_struck(one))

    def is_struck(self, change: Change) -> bool:
        """Whether a change takes a label away."""
        return (change.row, change.column) in self.struck


def verdicts(table: LabelTable, answers: Answers) -> Verdicts:
    """Resolve all answers and compare them with the table."""
    pairs = [(image, name, resolve(votes.values())) for image, name, votes in answers.all()]
    images = pa.array([image for image, _, _ in pairs], pa.string())
    rows = pc.index_in(images, value_set=table.images).fill_null(-1).to_pylist()
    column_of = {name: column for column, name in enumerate(table.classes)}
    outcomes: Counter[Outcome] = Counter()
    changes: list[Change] = []
    struck: set[tuple[int, int]] = set()
    reviewers: set[str] = set()
    foreign = 0
    for row, (image, name, outcome) in zip(rows, pairs, strict=True):
        if row < 0 or name not in column_of:
            foreign += 1
            continue
        outcomes[outcome] += 1
        state = _STATES.get(outcome)
        column = column_of[name]
        before = _state(table, row, column)
        if state is not None and before != state:
            if before == State.PRESENT:
                struck.add((row, column))
            changes.append(Change(row, column, image, name, state, before))
            reviewers |= set(answers.votes(name, image))
    changes.sort(key=lambda change: (change.row, change.column))
    by = tuple(sorted(reviewers))
    return Verdicts(tuple(changes), frozenset(struck), by, outcomes, foreign)


def apply_changes(
    table: LabelTable, changes: Sequence[Change], *, reviewers: Iterable[str] = ()
) -> LabelTable:
    """Return the table with the changes made.

    Example:
        >>> from hilltop.data import LabelTable
        >>> before = LabelTable.from_coo(["a"], ["cat", "dog"], [0], [0], State.PRESENT,
        ...                   unlisted=State.UNKNOWN)
        >>> change = Change(0, 1, "a", "dog", State.ABSENT)
        >>> after = apply_changes(before, [change], reviewers=["Ann"])
        >>> after.labels_of(0), after.labels_of(0, State.ABSENT), str(after.history[-1])
        (('cat',), ('dog',), 'review: changes=1, by=Ann')
    """
    return table.with_states(
        [change.row for change in changes],
        [change.column for change in changes],
        np.array([change.state for change in changes], dtype=np.int8),
        step=Step("review", {"changes": len(changes)}, by=", ".join(reviewers)),
    )


def review_records(answers: Answers) -> list[ReviewRecord]:
    """Every answer that holds, with what all answers to its pair amount to."""
    return [
        ReviewRecord(
            image=image,
            class_name=name,
            answer=vote.answer,
            reviewer=vote.reviewer,
            time=vote.time,
            probability=vote.probability,
            mode=vote.mode,
            outcome=resolve(votes.values()),
        )
        for image, name, votes in answers.all()
        for vote in votes.values()
    ]


def _state(table: LabelTable, row: int, column: int) -> State:
    entries = slice(table.indptr[row], table.indptr[row + 1])
    found = np.flatnonzero(table.columns[entries] == column)
    return State(int(table.states[entries][found[0]])) if len(found) else table.unlisted
