"""Cells of zeros and ones: which kind of value each one is, however it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Kinds = npt.NDArray[np.int8]
ONE, ZERO, MINUS_ONE, BLANK, OTHER = range(5)
_NUMBERS = {1.0: ONE, 0.0: ZERO, -1.0: MINUS_ONE}
_WORDS = {
    **dict.fromkeys(["1", "1.0", "1.", "true", "yes", "y", "x", "\u2713", "\u2714"], ONE),
    **dict.fromkeys(["0", "0.0", "0.", "false", "no", "n"], ZERO),
    **dict.fromkeys(["-1", "-1.0", "-1."], MINUS_ONE),
    **dict.fromkeys(["", "nan", "na", "n/a", "null"], BLANK),
}


def cell_kinds(column: pa.Array) -> Kinds:
    """Which kind of value every cell of a column is."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        column = column.cast(pa.float64(), safe=False)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        column = column.cast(pa.string())
    else:
        return np.full(len(column), OTHER, dtype=np.int8)
    coded = column.dictionary_encode(null_encoding="encode")
    kinds = np.array(
        [cell_kind(value) for value in coded.dictionary.to_pylist()] or [0], dtype=np.int8
    )
    codes: npt.NDArray[np.int64] = coded.indices.to_numpy(zero_copy_only=False)
    return kinds[codes]


def cell_kind(value: Any) -> int:
    """Which kind of value one cell is."""
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower(), OTHER)
    if value is None or value != value:
        return BLANK
    return _NUMBERS.get(float(value), OTHER) if isinstance(value, int | float) else OTHER
