"""A closed list of classes for a file that names its own."""

from __future__ import annotations

from hilltop.data.formats.options import ReadOptions
from hilltop.data.label_table import LabelTable


def in_class_order(table: LabelTable, options: ReadOptions) -> LabelTable:
    """Return the table under the classes of ``--classes``, if given, which must have all of its."""
    closed = options.class_list()
    return table if closed is None else table.with_classes(closed)
