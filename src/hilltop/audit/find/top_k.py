"""Pairs as sortable numbers, and the first of very many of them within a bound on memory.

A pair is one whole number: its probability in the upper 26 bits, its place in the lower 38. Sorting
those is several times faster than sorting indices, and a pair takes 8 bytes. Probabilities are
rounded to 19 bits after the first, a relative error of 5e-7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_whole
from hilltop.errors import DataError

Keys = npt.NDArray[np.uint64]
HUGE = 10_000_000
"""Unlabelled pairs beyond which only the most probable are kept, unless told otherwise."""
MOST_OF_HUGE = 1_000_000
"""How many are then kept, and again as many shared out over classes, the first of each."""
_PLACE_BITS = np.uint64(38)
_DROPPED_BITS = 4  # of a float32, so that 2^38 places fit beside it
_ONE = np.uint32(0x3F800000)  # the bits of 1.0: no probability has greater ones
_BLOCK_ENTRIES = 1 << 18  # what a block needs stays near the processor


@dataclass(frozen=True)
class TopKSpec:
    """How many pairs to keep, in total and of each class.

    Attributes:
        top: So many of all.
        each: Of every class at least so many: else rare classes would have none.
    """

    top: int
    each: int = 0

    @classmethod
    def of(cls, pairs: int, width: int, top: int | None) -> TopKSpec:
        """Return what is wanted of so many pairs of so many classes.

        Example:
            >>> TopKSpec.of(500, 10, None), TopKSpec.of(10**9, 1000, None)
            (TopKSpec(top=500, each=0), TopKSpec(top=1000000, each=1000))
        """
        if top is not None:
            return cls(min(pairs, check_whole("top", top, low=1)))
        return cls(pairs) if pairs <= HUGE else cls.first_of_huge(width)

    @classmethod
    def first_of_huge(cls, width: int) -> TopKSpec:
        """Return what is wanted of more than can be looked at."""
        return cls(MOST_OF_HUGE, MOST_OF_HUGE // max(1, width))

    def most(self, width: int) -> int:
        """Return how many are kept at most of so many classes."""
        return self.top + self.each * width


def block_rows(width: int) -> int:
    """How many rows of so many classes to look at together."""
    return max(1, _BLOCK_ENTRIES // max(1, width))


def check_places(images: int, width: int) -> None:
    """Raise if a table has more pairs than a key can tell apart."""
    if images * width > 1 << int(_PLACE_BITS):
        raise DataError(f"{images} x {width} pairs are more than 2^38; audit them in parts.")


def entry_keys(probs: npt.NDArray[np.float32], places: npt.NDArray[np.integer]) -> Keys:
    """Keys of pairs whose places are known, see :func:`places_of`."""
    below = (_ONE - probs.view(np.uint32) + np.uint32(1 << (_DROPPED_BITS - 1))) >> _DROPPED_BITS
    keys: Keys = (below.astype(np.uint64) << _PLACE_BITS) | places.astype(np.uint64)
    return keys


def probabilities_of(keys: Keys) -> npt.NDArray[np.float32]:
    """Probabilities that keys hold."""
    below = (keys >> _PLACE_BITS).astype(np.uint32) << np.uint32(_DROPPED_BITS)
    return (_ONE - below).view(np.float32)


def places_of(keys: Keys) -> npt.NDArray[np.int64]:
    """Places that keys hold: image number times classes, plus class number."""
    low_bits = (np.uint64(1) << _PLACE_BITS) - np.uint64(1)
    return (keys & low_bits).astype(np.int64)


class TopK:
    """The k most probable pairs so far, as sorted keys."""

    def __init__(self, wanted: TopKSpec, pairs: int, width: int) -> None:
        """Make room: for all of so many pairs if they are wanted, else for twice as many as are."""
        self._wanted, self._width = wanted, width
        room = 2 * wanted.most(width) + max(_BLOCK_ENTRIES, width)
        room = pairs if wanted.top >= pairs else room
        self._keys = np.empty(min(room, pairs), dtype=np.uint64)
        self._used = 0
        self._least = np.zeros(width, dtype=np.float32)

    def add(self, keys: Keys) -> None:
        """Take in keys."""
        for first in range(0, len(keys), _BLOCK_ENTRIES):
            part = keys[first : first + _BLOCK_ENTRIES]
            if self._used + len(part) > len(self._keys):
                self._shrink()
            self._keys[self._used : self._used + len(part)] = part
            self._used += len(part)

    @property
    def least(self) -> npt.NDArray[np.float32]:
        """Probability below which a pair of each class can no longer be among the first."""
        return self._least * np.float32(1 - 2e-6)  # keys are rounded

    def sorted(self) -> Keys:
        """Return the first ones in order."""
        self._shrink()
        keys = self._keys[: self._used]
        keys.sort()
        return keys

    def _shrink(self) -> None:
        top, used = self._wanted.top, self._keys[: self._used]
        if self._used <= top:
            return
        used.partition(top - 1)
        self._least[:] = probabilities_of(used[top - 1 : top])[0]
        rest = self._first_of_each(used) if self._wanted.each else used[:0]
        used[top : top + len(rest)] = rest
        self._used = top + len(rest)

    def _first_of_each(self, used: Keys) -> Keys:
        """Keys beyond the first of all that are among the first of their class."""
        top, each = self._wanted.top, self._wanted.each
        by_key = np.concatenate([np.sort(used[:top]), np.sort(used[top:])])
        columns = places_of(by_key) % self._width
        small = np.uint16 if self._width <= 1 << 16 else np.uint32  # 16 bits: sorted by radix
        by_class = np.argsort(columns.astype(small), kind="stable")
        counts = np.bincount(columns, minlength=self._width)
        starts = np.cumsum(counts) - counts
        within = np.arange(len(by_key)) - np.repeat(starts, counts)
        full = counts >= each
        last = by_key[by_class[(starts + each - 1)[full]]]
        limits = np.where(full, np.float32(1), np.float32(0))
        limits[full] = probabilities_of(last)
        self._least = np.minimum(self._least, limits)
        chosen = by_class[(within < each) & (by_class >= top)]
        return by_key[chosen]
