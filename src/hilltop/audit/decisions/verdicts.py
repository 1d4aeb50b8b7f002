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
from hilltop.data.formats import Change
from hilltop.data.review_record import Outcome, ReviewRecord

_STATES: dict[Outcome, State] = {"present": State.PRESENT, "absent": State.ABSENT}


@dataclass(frozen=True)
class Verdicts:
    """What the answers say about a table.

    Attributes:
        changes: Pairs whose state is another one now, ordered by image and class.
        reviewers: Whose answers they follow.
        outcomes: Number of answered pairs with each outcome.
        foreign: Number of answered pairs that the table does not have.
    """

    changes: tuple[Change, ...]
    reviewers: tuple[str, ...]
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
    reviewers: set[str] = set()
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
            reviewers |= set(answers.votes(name, image))
    changes.sort(key=lambda change: (change.row, change.column))
    return Verdicts(tuple(changes), tuple(sorted(reviewers)), outcomes, foreign)


def apply_changes(
    table: LabelTable, changes: Sequence[Change], *, reviewers: Iterable[str] = ()
) -> LabelTable:
    """Return the table with the changes made.

    Example:
        >>> from hilltop.data import assemble
        >>> before = assemble(["a"], ["cat", "dog"], [0], [0], State.PRESENT,
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
