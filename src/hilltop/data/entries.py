"""Sparse entries of a table as keys in order: row times width plus column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
States = npt.NDArray[np.int8]


def put_entries(keys: Ints, states: States, named: Ints, new: States) -> tuple[Ints, States]:
    """Return the entries with some changed or added; of a key named twice, the last holds.

    Args:
        keys: Keys of the entries, ascending.
        states: Their states.
        named: Keys to change or add, in any order.
        new: Their states.
    """
    # Turned round, so that the first of equal pairs is the one that was named last.
    edited, last = np.unique(named[::-1], return_index=True)
    new = new[::-1][last]
    at = np.searchsorted(keys, edited)
    here = np.append(keys, -1)[at] == edited
    entries = states.copy()
    entries[at[here]] = new[here]
    keys = np.insert(keys, at[~here], edited[~here])
    return keys, np.insert(entries, at[~here], new[~here])


def running_count(chosen: npt.NDArray[np.bool_]) -> Ints:
    """How many are chosen before each place, and behind the last one."""
    counts = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(chosen, out=counts[1:])
    return counts
