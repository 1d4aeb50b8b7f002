"""Writing a row for each statement: image, class and state."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hilltop.data.formats.text.arrow_files import write_arrow
from hilltop.data.formats.text.express import check_expressible, check_lines
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

IMAGE, CLASS, STATE = "image", "class", "state"


def write_statements(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write one row an entry; images without any entry cannot be expressed."""
    check_expressible(table, path, lossy, images_without_entries=False, unused_classes=False)
    check_lines(table, path)
    words = pa.array([state.name.lower() for state in sorted(State)], pa.string())
    content = pa.table(
        {
            IMAGE: table.images.take(pa.array(table.rows)),
            CLASS: pa.array(table.classes, pa.string()).take(pa.array(table.columns)),
            STATE: words.take(pa.array(table.states)),
        }
    )
    write_arrow(content, path)
