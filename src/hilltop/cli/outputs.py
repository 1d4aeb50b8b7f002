"""The one check that no command writes over what it reads, or over another file unasked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from hilltop.data.files import check_outputs
from hilltop.data.folders import IMAGE_ENDINGS
from hilltop.errors import ArgumentError

WRITTEN = ("out", "static", "write_class_map")
"""Fields of commands that name what is written; every other path is read."""
BESIDE = (".classes.txt", ".names.parquet", ".provenance.csv", ".xml")
"""Endings of files that are written or read, or would be taken for its own, beside a file."""


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
    read = [*_inputs(command), *inputs]
    read += [path for one in read if one.name for path in _beside(one)]
    told = {} if hasattr(command, "force") else {"remedy": "Choose another --out."}
    check_outputs([*outputs, *beside], read, force=allowed, **told)
    for out in filter(os.path.isfile, outputs):
        for path in read:
            labels = _is_labels(command, path)
            if not labels and out.suffix.lower() not in IMAGE_ENDINGS:
                continue
            if os.path.isdir(path) and out.resolve().is_relative_to(path.resolve()):
                what = "labels" if labels else "images"
                raise ArgumentError(
                    f"{out}: this file lies in the folder of {what} that the command reads, and"
                    " may be one of them. Choose another place."
                )


def _is_labels(command: Any, path: Path) -> bool:
    """Whether labels are read from a path, as far as a command's options tell."""
    return path in (getattr(command, "labels", None), getattr(command, "source", None))


def _beside(path: Path) -> Iterator[Path]:
    yield from (path.parent / f"{path.name}{ending}" for ending in BESIDE)
    if path.suffix == ".npy":
        yield from (path.with_suffix(ending) for ending in (".ids.txt", ".ids.npy"))


def _inputs(part: Any) -> Iterator[Path]:
    """All paths in a command and its groups of options, but those that are written."""
    for item in fields(part):
        value = getattr(part, item.name)
        if is_dataclass(value):
            yield from _inputs(value)
        elif item.name not in WRITTEN:
            values = value if isinstance(value, tuple) else (value,)
            # A file of weights is named by a text, which may be a word as well.
            named = (Path(one) for one in values if isinstance(one, Path | str))
            yield from (path for path in named if path != Path())
