"""Hugging Face's description of columns: which of them hold class numbers, and their names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hilltop.data.data_errors import ErrorCollector, data_error

KEY = b"huggingface"
"""Under which key of a schema's metadata Hugging Face keeps its description."""


def described_features(schema: pa.Schema) -> Any:
    """The description in the metadata of a schema; None where there is none or it is damaged."""
    try:
        content = json.loads((schema.metadata or {}).get(KEY, b"{}"))
        return content["info"]["features"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def class_labels(features: Any) -> dict[str, list[str]]:
    """Names of the classes of every column that holds class numbers, one or a list of them."""
    if not isinstance(features, dict):
        return {}
    return {name: names for name, names in _found(features) if names}


def _found(features: dict[str, Any], outer: str = "") -> Iterator[tuple[str, list[str]]]:
    for name, feature in features.items():
        inner = _inner(feature)
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            names = inner.get("names")
            whole = isinstance(names, list) and all(isinstance(one, str) and one for one in names)
            yield f"{outer}{name}", names if whole and names is not None else []
        elif isinstance(inner, dict) and "_type" not in inner and not outer:
            yield from _found(inner, f"{name}.")


def _inner(feature: Any) -> Any:
    """What a list is a list of; anything else is itself."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    if isinstance(feature, dict) and feature.get("_type") in ("Sequence", "List", "LargeList"):
        return feature.get("feature")
    return feature


def named_lists(path: Path, column: pa.Array, names: list[str]) -> pa.ListArray:
    """Class numbers, one or a list in a cell, as lists of names; -1 and null are no label."""
    if len(set(names)) < len(names):
        raise data_error(path, "a class stands twice in the description. Names must differ.")
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (pa.types.is_integer(kind) or (is_list and pa.types.is_integer(kind.value_type))):
        raise data_error(path, f"class numbers were described, but the column holds {kind}.")
    cells = column.to_pylist()
    errors = ErrorCollector(path)
    lists = []
    for row, cell in enumerate(cells, 1):
        numbers = cell if isinstance(cell, list) else [cell]
        known = [number for number in numbers if number is not None and number != -1]
        wrong = next((number for number in known if not 0 <= number < len(names)), None)
        if wrong is not None:
            errors.add(
                f"{wrong} is no number of a class (0 to {len(names) - 1}).",
                line=row,
            )
            known = []
        lists.append(known)
    errors.check()
    ends = np.concatenate([[0], np.cumsum([len(numbers) for numbers in lists])])
    flat = [number for numbers in lists for number in numbers]
    words = pa.array(names, pa.string()).take(pa.array(flat, pa.int64()))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), words)


def description(columns: dict[str, Any]) -> dict[bytes, bytes]:
    """The metadata that lets Hugging Face's datasets know the types of columns."""
    return {KEY: json.dumps({"info": {"features": columns}}).encode()}
