"""Near-duplicates: pictures so alike that one answer does for all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilltop.audit.find.candidate_index import Ints

ALIKE = 0.95
"""Cosine between directions of features from which two pictures are near-duplicates: copies and
frames of one film. Different zebras reach 0.94 on 4,000 photographs of COCO."""
MOST_COMPARED = 2000
"""The first candidates of a class, which are compared with one another; nobody gets further."""


def find_leaders(directions: npt.NDArray[np.float32]) -> Ints:
    """For each picture, the place of the first one that it is a near-duplicate of; else its own.

    Args:
        directions: Features of pictures in the order in which they are shown ``(N, D)``; what is
            behind the first 2,000 stays alone. Pictures without features, all 0, do too.

    Example:
        >>> find_leaders(np.array([[1, 0], [0, 1], [1, 0.01]], dtype=np.float32)).tolist()
        [0, 1, 0]
    """
    leaders: Ints = np.arange(len(directions), dtype=np.int64)
    some = directions[:MOST_COMPARED]
    length = np.linalg.norm(some, axis=1, keepdims=True)
    unit = some / np.where(length > 0, length, 1)
    alike = unit @ unit.T >= ALIKE
    np.fill_diagonal(alike, False)
    for place in np.flatnonzero(alike.any(axis=1)):
        if leaders[place] == place:
            followers = np.flatnonzero(alike[place])
            followers = followers[(followers > place) & (leaders[followers] == followers)]
            leaders[followers] = place
    return leaders


def put_together(order: Ints, leaders: Ints) -> Ints:
    """The same order, in which near-duplicates follow the first of them.

    Args:
        order: Places, in the order in which to show them.
        leaders: Of every place, see :func:`find_leaders`.

    Example:
        >>> put_together(np.array([3, 1, 0, 2]), np.array([0, 1, 0, 1])).tolist()
        [3, 1, 0, 2]
        >>> put_together(np.array([1, 0, 3, 2]), np.array([0, 1, 0, 1])).tolist()
        [1, 3, 0, 2]
    """
    first = np.full(int(leaders.max(initial=-1)) + 1, len(order))
    np.minimum.at(first, leaders[order], np.arange(len(order)))
    return order[np.argsort(first[leaders[order]], kind="stable")]
