"""What a format cannot express of a table: an error, or left out with ``lossy``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hilltop.data.faults import Faults
from hilltop.data.label_table import LabelTable, State


def check_expressible(
    table: LabelTable,
    path: Path,
    lossy: bool,
    *,
    states: tuple[State, ...] = tuple(State),
    images_without_entries: bool = True,
    unused_classes: bool = True,
) -> None:
    """Raise if the table says something that the format has no words for, unless ``lossy``.

    Args:
        table: What is to be written.
        path: Where to, for the message.
        lossy: Whether to leave it out instead.
        states: The states that can be listed.
        images_without_entries: Whether an image of which nothing is listed can be written.
        unused_classes: Whether a class that no entry mentions can be written.
    """
    if lossy:
        return
    faults = Faults(path)
    for state in State:
        count = int(np.count_nonzero(table.states == state))
        if state not in states and count:
            faults.add(_lost(f"{count} pairs that are {state.name.lower()}"))
    silent = int(np.count_nonzero(np.diff(table.indptr) == 0))
    if silent and not images_without_entries:
        faults.add(_lost(f"{silent} images of which nothing is listed"))
    unused = len(table.classes) - len(np.unique(table.columns))
    if unused and not unused_classes:
        faults.add(_lost(f"{unused} classes that no image has"))
    faults.check()


def _lost(what: str) -> str:
    return (
        f"this format cannot express {what}."
        " Write another format, or pass --lossy to leave them out."
    )
