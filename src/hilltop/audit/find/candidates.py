"""Candidates: unlabelled pairs, ranked by the probability that their label is missing.

A pair is one whole number: its probability in the upper bits, its place in the lower. Sorting those
is several times faster than sorting indices, and a candidate takes 8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import torch

from hilltop.audit.find.estimate import Tally
from hilltop.audit.find.score_blocks import LogitBlocks, label_block
from hilltop.calibration.keep_rate import Fitted
from hilltop.calibration.posterior import present_probability
from hilltop.checks import check_whole
from hilltop.data import LabelTable, State
from hilltop.data.csv_rows import FORMULA_PATTERN
from hilltop.data.files import replacing
from hilltop.errors import DataError

Keys = npt.NDArray[np.uint64]
HUGE = 10_000_000
"""Unlabelled pairs beyond which only the most probable are kept, unless told otherwise."""
MOST_OF_HUGE = 1_000_000
"""How many are then kept."""
_PLACE_BITS = np.uint64(34)
_ONE = np.uint32(0x3F800000)  # the bits of 1.0: no probability has greater ones
_BLOCK_ENTRIES = 1 << 18  # what a block needs stays near the processor
_WRITE_ROWS = 1 << 18
_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("class", pa.string()),
        ("probability", pa.float32()),
        ("rank", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Candidates:
    """Unlabelled pairs, the most probable first.

    Attributes:
        keys: Probability and place of each.
        classes: Number of classes of the table they belong to.
    """

    keys: Keys
    classes: int

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.keys)

    def probabilities(self, part: slice = slice(None)) -> npt.NDArray[np.float32]:
        """Probabilities of some candidates that their label is missing."""
        return (_ONE - (self.keys[part] >> _PLACE_BITS).astype(np.uint32)).view(np.float32)

    def rows(self, part: slice = slice(None)) -> npt.NDArray[np.int64]:
        """Image numbers of some candidates."""
        return self._places(part) // self.classes

    def columns(self, part: slice = slice(None)) -> npt.NDArray[np.int64]:
        """Class numbers of some candidates."""
        return self._places(part) % self.classes

    def _places(self, part: slice) -> npt.NDArray[np.int64]:
        low_bits = (np.uint64(1) << _PLACE_BITS) - np.uint64(1)
        return (self.keys[part] & low_bits).astype(np.int64)


def rank_candidates(
    labels: LabelTable,
    logits: LogitBlocks,
    model: Fitted,
    *,
    top: int | None = None,
    rows: npt.NDArray[np.int64] | None = None,
    before: LabelTable | None = None,
) -> tuple[Candidates, Tally]:
    """Rank unlabelled pairs, and add up what they say of each class.

    Memory grows with the number of candidates that are kept, not with that of pairs.

    Args:
        labels: The labels; those that are neither present nor confirmed absent are ranked. No
            label was kept where nobody looked: such a pair is as probable as its scores say.
        logits: Out-of-sample logits of images in the order of ``rows``.
        model: How labels were lost, and how logits become probabilities.
        top: How many to keep; all without it, or a million of more than ten million.
        rows: Image numbers that have logits; all without it.
        before: The labels as they were lost, if some were put back since.

    Raises:
        DataError: Every pair is known already, or there are too many.
    """
    unknown = labels.count(State.UNKNOWN) + int(labels.not_looked_for().sum())
    if not unknown:
        raise DataError(
            "No pair is unknown: each is a label or confirmed absent. If unlisted pairs mean that"
            " nobody looked, pass --unlisted unknown."
        )
    width = len(labels.classes)
    if len(labels) * width > 1 << int(_PLACE_BITS):
        raise DataError(f"{len(labels)} x {width} pairs are more than 2^34; audit them in parts.")
    if top is None:
        top = unknown if unknown <= HUGE else MOST_OF_HUGE
    kept = KeptKeys(check_whole("top", top, low=1), unknown)
    tally = Tally(width)
    images = np.arange(len(labels)) if rows is None else rows
    step = block_rows(width)
    for first in range(0, len(images), step):
        chosen = images[first : first + step]
        targets, observed, open_pairs = label_block(labels, chosen)
        beyond = None if labels.scopes is None else torch.isnan(targets).numpy()
        if before is not None:
            targets, observed, _ = label_block(before, chosen)
        moved = model.calibration(logits(first, first + len(chosen)).float())
        present = present_probability(model.loss, moved, targets, observed=observed).numpy()
        tally.add(present, open_pairs, beyond)
        kept.add(pair_keys(present, open_pairs, chosen))
    return Candidates(kept.sorted(), width), tally


def block_rows(width: int) -> int:
    """How many rows of so many classes to look at together."""
    return max(1, _BLOCK_ENTRIES // max(1, width))


class KeptKeys:
    """The smallest keys so far, within a bound on memory."""

    def __init__(self, top: int, unknown: int) -> None:
        """Make room: for all keys if they are wanted, else for twice as many as are."""
        self._top = top
        room = unknown if top >= unknown else 2 * top + _BLOCK_ENTRIES
        self._keys = np.empty(min(room, unknown), dtype=np.uint64)
        self._used = 0
        self._largest = np.iinfo(np.uint64).max

    def add(self, keys: Keys) -> None:
        """Take in keys; those that can no longer be among the first are dropped at once."""
        if self._largest < np.iinfo(np.uint64).max:
            keys = keys[keys < self._largest]
        if self._used + len(keys) > len(self._keys):
            self._shrink()
        self._keys[self._used : self._used + len(keys)] = keys
        self._used += len(keys)

    def sorted(self) -> Keys:
        """Return the first ones in order."""
        self._shrink()
        keys = self._keys[: self._used]
        keys.sort()
        return keys

    def _shrink(self) -> None:
        if self._used > self._top:
            used = self._keys[: self._used]
            used.partition(self._top - 1)
            self._largest = used[self._top - 1]
            self._used = self._top


def pair_keys(
    present: npt.NDArray[np.float32],
    open_pairs: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
) -> Keys:
    """Keys of some pairs.

    Args:
        present: Probability of every pair of a block.
        open_pairs: Which pairs are wanted.
        rows: Image numbers of the block.
    """
    width = present.shape[1]
    places = (rows[:, None] * width + np.arange(width))[open_pairs].astype(np.uint64)
    below = _ONE - present[open_pairs].view(np.uint32)
    keys: Keys = (below.astype(np.uint64) << _PLACE_BITS) | places
    return keys


def write_candidates(
    candidates: Candidates, labels: LabelTable, folder: Path, *, name: str = "candidates"
) -> None:
    """Write ``candidates.parquet`` and ``candidates.csv``, each completely or not at all."""
    with (
        replacing(folder / f"{name}.csv") as for_people,
        replacing(folder / f"{name}.parquet") as for_us,
        pq.ParquetWriter(for_us, _SCHEMA, compression="zstd") as table,
        pyarrow.csv.CSVWriter(for_people, _SCHEMA) as text,
    ):
        for part in _batches(candidates, labels):
            table.write_batch(part)
            text.write_batch(_marked(part))


def candidate_rows(candidates: Candidates, labels: LabelTable) -> pa.Table:
    """The candidates with the names of images and classes."""
    return pa.Table.from_batches(_batches(candidates, labels), _SCHEMA)


def _marked(part: pa.RecordBatch) -> pa.RecordBatch:
    """The names so that a spreadsheet does not run them."""
    for at in (0, 1):
        names = part.column(at)
        formulas = pc.match_substring_regex(names, FORMULA_PATTERN)
        marked = pc.binary_join_element_wise("'", names, "")
        part = part.set_column(at, _SCHEMA.field(at), pc.if_else(formulas, marked, names))
    return part


def _batches(candidates: Candidates, labels: LabelTable) -> Iterator[pa.RecordBatch]:
    names = pa.array(labels.classes, pa.string())
    for first in range(0, max(1, len(candidates)), _WRITE_ROWS):
        part = slice(first, min(first + _WRITE_ROWS, len(candidates)))
        yield pa.record_batch(
            [
                labels.images.take(pa.array(candidates.rows(part))),
                names.take(pa.array(candidates.columns(part))),
                pa.array(candidates.probabilities(part)),
                pa.array(np.arange(part.start + 1, part.stop + 1)),
            ],
            schema=_SCHEMA,
        )
