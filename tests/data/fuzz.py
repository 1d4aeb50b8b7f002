"""Mutations of a label file: each must end in a table or in a DataError, never in anything else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from hilltop.data import ReadOptions, read_labels
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError

_SPICE = [
    b"",
    b",",
    b'"',
    b"\n",
    b"\r",
    b"\x00",
    b"\xff\xfe",
    b"-1",
    b"nan",
    b"[",
    b"}",
    b"1e999",
    b" ",
]


def mutations(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Yield damaged copies: bytes changed, lost, doubled or inserted, lines moved, ends cut off."""
    chance = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            at = chance.randrange(len(damaged) + 1)
            to = min(len(damaged), at + chance.choice([1, 1, 2, 8, 40]))
            kind = chance.randrange(6)
            if kind == 0 and at < len(damaged):
                damaged[at] = chance.randrange(256)
            elif kind == 1:
                del damaged[at:to]
            elif kind == 2:
                damaged[at:at] = damaged[at:to]
            elif kind == 3:
                damaged[at:at] = chance.choice(_SPICE)
            elif kind == 4:
                lines = bytes(damaged).split(b"\n")
                chance.shuffle(lines)
                damaged = bytearray(b"\n".join(lines))
            else:
                del damaged[at:]
        yield bytes(damaged)


def survives(
    path: Path, count: int, format: str, options: ReadOptions, *, file: Path | None = None
) -> tuple[int, int]:
    """Read ``count`` mutations of ``path`` in place; return how many were tables and faults.

    Any exception but DataError, or a table that contradicts itself, is raised.

    Args:
        path: What is read.
        count: How many mutations.
        format: Name of the format.
        options: How it is read.
        file: What is damaged instead: a file in the folder ``path``, or one that is read with it.
    """
    mutated = path if file is None else file
    named = path.parent if file is not None and path.is_file() else path
    content, tables, faults = mutated.read_bytes(), 0, 0
    for damaged in mutations(content, count):
        mutated.write_bytes(damaged)
        try:
            _check(read_labels(path, format=format, options=options))
            tables += 1
        except DataError as error:
            _check_message(str(error), named)
            faults += 1
    mutated.write_bytes(content)
    return tables, faults


def _check_message(message: str, path: Path) -> None:
    assert path.name in message, message
    assert len(message.splitlines()) <= 21


def _check(table: LabelTable) -> None:
    assert len(table.indptr) == len(table) + 1
    assert table.indptr[-1] == len(table.columns) == len(table.states)
    assert len(set(table.images.to_pylist())) == len(table)
    assert len(set(table.classes)) == len(table.classes)
    assert all(table.images.to_pylist()), "an image without a name"
    assert all(table.classes), "a class without a name"
