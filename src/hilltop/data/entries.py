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


def entries_of(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Places of the entries of some rows, row after row, and how many each row has.

    Takes time by these rows alone: blocks of a large table would otherwise cost their square.

    Args:
        indptr: Row ``i`` has the entries ``indptr[i]:indptr[i + 1]``.
        rows: The rows.

    Example:
        >>> entries_of(np.array([0, 2, 2, 5]), np.array([2, 0]))
        (array([2, 3, 4, 0, 1]), array([3, 2]))
    """
    starts = indptr[rows]
    lengths = indptr[rows + 1] - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum()), lengths
