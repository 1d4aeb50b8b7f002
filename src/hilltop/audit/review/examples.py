"""Labelled examples of a class, to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.review.thumbnails import ImageStore
from hilltop.data import LabelTable, State

MOST_EXAMPLES = 6


def labelled_examples(
    labels: LabelTable, suspects: CandidateIndex | None, pictures: ImageStore | None, column: int
) -> list[dict[str, Any]]:
    """Images with a label and a picture, evenly from the surer half of a class.

    The surest alone would all look the same.
    """
    if suspects is not None and suspects.count(column):
        rows = suspects.class_rows(column)[::-1].astype(np.int64)
    else:
        entries = np.flatnonzero((labels.columns == column) & (labels.states == State.PRESENT))
        rows = np.searchsorted(labels.indptr, entries, side="right") - 1
    surer = rows[: max(MOST_EXAMPLES, len(rows) // 2)]
    places = np.linspace(0, len(surer) - 1, min(MOST_EXAMPLES, len(surer))).astype(int)
    return [
        {"row": int(row), "image": labels.images[int(row)].as_py()}
        for row in surer[places]
        if pictures is not None and int(row) in pictures
    ]
