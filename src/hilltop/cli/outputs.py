"""The one check that no command writes over what it reads, or over another file unasked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from hilltop.data.files import check_outputs

Force = Annotated[
    bool, tyro.conf.arg(help="Replace a file of that name; what is read is never replaced.")
]

WRITTEN = ("out", "static", "write_renames")
"""Fields of commands that name what is written; every other path is read."""
BESIDE = (".classes.txt", ".names.parquet", ".provenance.csv", ".xml")
"""Endings of files that are written, or would be taken for its own, beside a file."""


def check_written(
    command: Any, *outputs: Path, inputs: Iterable[Path] = (), force: bool | None = None
) -> None:
    """Raise if a command would write over one of its inputs, or over another file unasked.

    Files that formats put beside a label file, such as its list of classes, count with it.

    Args:
        command: The command; all its paths but :data:`WRITTEN` are inputs.
        outputs: What it will write.
        inputs: What else it reads.
        force: Whether other files may be replaced; None for the command's own ``--force``.
    """
    allowed = bool(command.force) if force is None else force
    beside = [path for out in outputs if out.name for path in _beside(out)]
    check_outputs([*outputs, *beside], [*_inputs(command), *inputs], force=allowed)


def _beside(path: Path) -> Iterator[Path]:
    return (path.with_name(f"{path.name}{ending}") for ending in BESIDE)


def _inputs(part: Any) -> Iterator[Path]:
    """All paths in a command and its groups of options, but those that are written."""
    for item in fields(part):
        value = getattr(part, item.name)
        if is_dataclass(value):
            yield from _inputs(value)
        elif item.name not in WRITTEN:
            values = value if isinstance(value, tuple) else (value,)
            yield from (path for path in values if isinstance(path, Path) and path != Path())
