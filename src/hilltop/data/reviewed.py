"""Labels that a review has put back: who said so stands beside the file that it was written to.

A review asks for the pairs that look most like labels. Once they are labels, all that looks like
one is one, as if hardly any had ever been lost; so how labels were lost is judged without them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import data_error
from hilltop.data.label_table import LabelTable, State

PROVENANCE = ("image", "class", "answer", "reviewer", "time", "probability", "mode", "outcome")
_NOT_OURS = "these are not the answers of a review; move the file away if it is not ours"


def provenance_path(labels: Path) -> Path:
    """Where the answers stand that a file of labels was corrected by."""
    return labels.parent / f"{labels.name}.provenance.csv"


def read_provenance(labels: Path) -> list[tuple[str, ...]]:
    """Return the answers that a file of labels was corrected by; none if there are none."""
    path = provenance_path(labels)
    if not path.is_file():
        return []
    try:
        lines = [tuple(row) for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8")))]
    except (ValueError, csv.Error) as error:
        raise data_error(path, f"{_NOT_OURS}: {error}.") from None
    if not lines or lines[0] != PROVENANCE or any(len(row) != len(lines[0]) for row in lines):
        raise data_error(path, f"{_NOT_OURS}; expected the columns {', '.join(PROVENANCE)}.")
    return lines[1:]


def write_provenance(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the text of a file of answers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PROVENANCE)
    writer.writerows(sorted(set(rows)))
    return text.getvalue()


def before_review(table: LabelTable, rows: Sequence[tuple[str, ...]]) -> LabelTable | None:
    """Return the labels as they were before a review: what it settled is unknown.

    None if there was no review, or no label before it, since nothing follows from that.

    Answers about pairs that the table does not have change nothing.
    """
    class_of = {name: number for number, name in enumerate(table.classes)}
    said = [
        (image, class_of[name])
        for image, name, *_, outcome in rows
        if outcome in ("present", "absent") and name in class_of
    ]
    images = pa.array([image for image, _ in said], pa.string())
    places = pc.index_in(images, value_set=table.images).fill_null(-1).to_numpy()
    here = places >= 0
    width = len(table.classes)
    settled = (places * width + np.array([column for _, column in said], dtype=np.int64))[here]
    listed = table.rows * width + table.columns
    stays = ~np.isin(listed, settled)
    settled = np.unique(settled)
    keys = np.concatenate([listed[stays], settled])
    states = np.concatenate([table.states[stays], np.full(len(settled), State.UNKNOWN)])
    before = assemble(
        table.images, table.classes, keys // width, keys % width, states, unlisted=table.unlisted
    )
    return before if len(settled) and before.count(State.PRESENT) else None
