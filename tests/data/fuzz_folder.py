"""Mutations of one file of a data set that has several."""

from __future__ import annotations

from pathlib import Path

from hilltop.data import ReadOptions, read_labels
from hilltop.errors import DataError
from tests.data.fuzz import _check, _check_message, mutations


def survives_in(
    folder: Path, file: Path, count: int, format: str, options: ReadOptions
) -> tuple[int, int]:
    """Read ``folder`` with ``count`` mutations of ``file``; return how many were tables, faults.

    ``folder`` may also be a file that is read together with ``file``.
    """
    content, tables, faults = file.read_bytes(), 0, 0
    for damaged in mutations(content, count):
        file.write_bytes(damaged)
        try:
            _check(read_labels(folder, format=format, options=options))
            tables += 1
        except DataError as error:
            _check_message(str(error), folder if folder.is_dir() else folder.parent)
            faults += 1
    file.write_bytes(content)
    return tables, faults
