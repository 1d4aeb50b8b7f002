"""Labels that a review has put back: who said so stands beside the file that it was written to.

A review asks for the pairs that look most like labels. Once they are labels, all that looks like
one is one, as if hardly any had ever been lost; so how labels were lost is judged without them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from hilltop.audit.corrected import corrected
from hilltop.audit.patches.base import Change
from hilltop.data import LabelTable, State
from hilltop.data.faults import fault

PROVENANCE = ("image", "class", "answer", "reviewer", "time", "probability", "mode", "outcome")
_NOT_OURS = "these are not the answers of a review; move the file away if it is not ours"


def provenance_path(labels: Path) -> Path:
    """Where the answers stand that a file of labels was corrected by."""
    return labels.with_name(f"{labels.name}.provenance.csv")


def read_provenance(labels: Path) -> list[tuple[str, ...]]:
    """Return the answers that a file of labels was corrected by; none if there are none."""
    path = provenance_path(labels)
    if not path.is_file():
        return []
    try:
        lines = [tuple(row) for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8")))]
    except (ValueError, csv.Error) as error:
        raise fault(path, f"{_NOT_OURS}: {error}.") from None
    if not lines or lines[0] != PROVENANCE or any(len(row) != len(lines[0]) for row in lines):
        raise fault(path, f"{_NOT_OURS}; expected the columns {', '.join(PROVENANCE)}.")
    return lines[1:]


def write_provenance(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the text of a file of answers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PROVENANCE)
    writer.writerows(sorted(set(rows)))
    return text.getvalue()


def before_review(table: LabelTable, rows: Sequence[tuple[str, ...]]) -> LabelTable:
    """Return the labels as they were before a review: what it settled is unknown.

    Answers about pairs that the table does not have, or that are unknown now, change nothing.
    """
    image_of = {name: number for number, name in enumerate(table.images.to_pylist())}
    class_of = {name: number for number, name in enumerate(table.classes)}
    pairs = {
        (image_of[image], class_of[name]): (image, name)
        for image, name, *_, outcome in rows
        if outcome in ("present", "absent") and image in image_of and name in class_of
    }
    width = max(1, len(table.classes))
    listed = table.rows * width + table.columns
    known = set(listed[table.states != State.UNKNOWN].tolist())
    changes = [
        Change(row, column, *names, State.UNKNOWN)
        for (row, column), names in sorted(pairs.items())
        if row * width + column in known or table.unlisted != State.UNKNOWN
    ]
    return corrected(table, changes) if changes else table
