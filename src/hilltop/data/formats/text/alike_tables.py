"""Folders of tables with one header, such as a file for each category: joined to one table."""

from __future__ import annotations

import re
from pathlib import Path

from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.folder_files import files_in
from hilltop.data.formats.text.known_names import PART_NAMES

_ENDINGS = (".csv", ".tsv")
_FEWEST = 2


def find_alike(folder: Path) -> list[Path]:
    """Tables of a folder if all have the same header; none where they are parts of a data set.

    Who has ``train.csv`` and ``test.csv`` wants one of them, and not both together.
    """
    files = [path for path in files_in(folder).values() if path.suffix.lower() in _ENDINGS]
    words = {word for path in files for word in re.split(r"[\W_\d]+", path.stem.lower())}
    if len(files) < _FEWEST or words & PART_NAMES:
        return []
    sources = [LabelSource(path) for path in files]
    first = sources[0]
    alike = all(
        one.header == first.header
        and one.dialect.header
        and one.dialect.separator == first.dialect.separator
        for one in sources
    )
    return files if alike and len(first.header) > 1 else []


def join_tables(files: list[Path]) -> bytes:
    """The lines of all tables below the header of the first."""
    joined: list[str] = []
    for path in files:
        lines = [line for _, line in read_lines(path)][LabelSource(path).dialect.comments :]
        joined += lines if not joined else lines[1:]
    return "\n".join([*joined, ""]).encode()
