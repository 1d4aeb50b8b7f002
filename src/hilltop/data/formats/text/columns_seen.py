"""What to say of a table that no format fits: its columns, what it is nearest to, and a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import cell_kind
from hilltop.data.formats.text.column_roles import Sample, image_candidates
from hilltop.data.formats.text.known_names import is_label_name
from hilltop.data.formats.text.sample import peek_columns
from hilltop.data.formats.text.separators import find_separator
from hilltop.data.formats.text.wide_cells import is_class_like

_SHOWN = 12
_LONGEST = 20


def describe_columns(source: LabelSource) -> str | None:
    """Return the columns seen, the nearest kind of table and a command; None for no table."""
    sample, options = peek_columns(source), source.options or ReadOptions()
    if len(sample) < 2:
        return None
    shown = [f"{name} ({_example(cells)})" for name, cells in list(sample.items())[:_SHOWN]]
    more = f" and {len(sample) - _SHOWN} more" if len(sample) > _SHOWN else ""
    image = options.image_column or (image_candidates(sample) or list(sample))[0]
    classes = [name for name in sample if name != image and _is_class(name, sample[name])]
    kind, further = _nearest(sample, image, classes)
    command = ready_command(
        source.path,
        options,
        unlisted=options.unlisted or "unknown",
        **({} if options.image_column else {"image_column": image}),
        **further,
    )
    return f"Columns: {', '.join(shown)}{more}. It is nearest to {kind}, for example: {command}"


def _nearest(sample: Sample, image: str, classes: list[str]) -> tuple[str, dict[str, str]]:
    if len(classes) > 1:
        return "a table with a column for each class", {"class_columns": ",".join(classes)}
    others = [name for name in sample if name != image]
    named = [name for name in others if is_label_name(name)]
    label = (named or sorted(others, key=lambda name: len(set(map(str, sample[name])))))[0]
    separator = find_separator(str(cell) for cell in sample[label] if cell is not None)
    unclear = {} if separator.certain or not separator.mark else {"delimiter": separator.mark}
    return "a table with one column of labels", {"label_column": label, **unclear}


def _is_class(name: str, cells: Sequence[Any]) -> bool:
    return is_class_like(name, np.array([cell_kind(cell) for cell in cells]))


def _example(cells: Sequence[Any]) -> str:
    text = next((str(cell) for cell in cells if cell is not None and str(cell).strip()), "blank")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
