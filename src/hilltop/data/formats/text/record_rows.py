"""Tables from labels that a reader has found record by record, and what read-only formats say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hilltop.data.formats.options import ReadOptions, option_words
from hilltop.data.formats.text.json_lines import JsonRecords
from hilltop.data.formats.text.label_cells import table_from_cells
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

IMAGE, LABELS, ABSENT = "image", "labels", "absent"


def table_from_records(
    path: Path,
    records: Sequence[dict[str, Any]],
    options: ReadOptions,
    *,
    format: str,
    notes: Sequence[str] = (),
) -> LabelTable:
    """Build a table from objects with the keys ``image``, ``labels`` and perhaps ``absent``."""
    rows = JsonRecords(path, list(records))
    rows.notes += notes
    columns = {State.PRESENT: LABELS}
    if ABSENT in rows.names:
        columns[State.ABSENT] = ABSENT
    plain = replace(options, label_column=None, image_column=None)
    try:
        return table_from_cells(rows, IMAGE, columns, plain, format=format)
    except OptionNeeded as error:
        said = option_words(
            ReadOptions(image_column=options.image_column, label_column=options.label_column)
        )
        if not said:
            raise
        raise OptionNeeded(f"{error} {shlex.join(said)}") from None
