"""fastText: a text on every line, with ``__label__cat __label__dog`` before or behind it.

Lines have no names: ids are their numbers, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.record_rows import (
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_PREFIX = "__label__"
_LABEL = re.compile(rf"(?<!\S){_PREFIX}(\S+)")


def fits(source: LabelSource) -> bool:
    """Whether the first line holds a label."""
    if source.is_folder or source.head.lstrip()[:1] in ("{", "["):
        return False
    first = next((line for line in source.head.split("\n") if line.strip()), "")
    return _LABEL.search(first) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of every line that is not blank."""
    lines = [line for _, line in read_lines(source.path) if line.strip()]
    records = [
        {IMAGE: str(number), LABELS: list(dict.fromkeys(_LABEL.findall(line)))}
        for number, line in enumerate(lines)
    ]
    return table_from_records(source.path, records, options, format="fasttext")


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Put labels before the lines; only "present" can be said."""
    wanted = by_image(of_state(changes, State.PRESENT))
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    filled = [at for at, line in enumerate(lines) if line.strip(" \t\r\ufeff")]
    for number, at in enumerate(filled):
        new = wanted.get(str(number), [])
        lines[at] = "".join(f"{_PREFIX}{one.class_name} " for one in new) + lines[at]
    yield Patched("\n".join(lines).encode(), original.options, absents=False)


FORMAT = Format(
    name="fasttext",
    summary="fastText: lines of text with labels such as __label__cat.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("fastText files hold the texts themselves"),
    patch=patch,
)
