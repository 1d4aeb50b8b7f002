"""Ranking in shards: each gives its first pairs and sums over classes, and shards merge into one.

No shard depends on another, and a merged shard is a shard again, so that whatever spreads work over
machines can map :func:`rank_shard` and reduce by :func:`merge_shards`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.audit.find.score_blocks import LogitBlocks, Scored, label_block
from hilltop.audit.find.top_k import Keys, TopK, TopKSpec, block_rows, check_places, entry_keys
from hilltop.data import LabelTable, State
from hilltop.data.array_files import digest_of
from hilltop.data.scores import Places
from hilltop.errors import DataError
from hilltop.inputs.ranks import Arrays, Parts
from hilltop.missing.logistic import Counts, Floats, LabelBlock
from hilltop.missing.model import MissingLabelModel
from hilltop.missing.wrong import WrongLabelModel

_SAMPLE_ENTRIES = 2_000_000
COUNTED_PAIRS = 1 << 29
"""Pairs that are counted by score at the most."""
_COUNTED_RUN = 64
_CHUNK_PAIRS = 1 << 23
"""Pairs whose scores are held at a time."""
_SHARD_PAIRS = 1 << 28
_SAMPLE_RUN = 8  # rows in a run: a file of scores is read in pieces, not in single rows


@dataclass(frozen=True)
class Assumption:
    """How labels were lost, where that is known.

    Attributes:
        label_frequency: Share of the true labels that was recorded.
        missing_ratio: Missing ratio of the paper's count rule.
    """

    label_frequency: float | None = None
    missing_ratio: float | None = None

    def as_options(self) -> dict[str, Any]:
        """Return it as :meth:`MissingLabelModel.fit` takes it."""
        if self.missing_ratio is not None:
            return {"count_ratio": f"{self.missing_ratio:g}"}
        return {"label_frequency": self.label_frequency}


@dataclass(frozen=True)
class Ranking:
    """What pairs are ranked by: a few numbers for each class, the same for every shard.

    Attributes:
        model: How labels were lost.
        wrong_model: How labels became wrong; without it none is looked for.
        missing: How many candidates to keep.
        wrong: How many labels that may be wrong to keep.
        digest: A name for the labels and scores that this was fitted to.
    """

    model: MissingLabelModel
    wrong_model: WrongLabelModel | None
    missing: TopKSpec
    wrong: TopKSpec
    digest: str = ""


@dataclass(frozen=True)
class RankedShard:
    """What is left of a shard, or of several: bounded, however many images there are.

    Attributes:
        missing: Unlabelled pairs, the most probable missing label first.
        wrong: Labels, the most probable mistake first.
        beyond: Expected labels of each class among pairs of a joined table that nobody looked for,
            which say nothing of how labels were lost.
    """

    missing: Keys
    wrong: Keys
    beyond: Floats


def fit_ranking(
    table: LabelTable,
    scored: Scored,
    *,
    given: Assumption | None = None,
    top: int | None = None,
    before: LabelTable | None = None,
) -> Ranking:
    """Fit the missing-label model to labels by score, counted over up to 2^29 pairs.

    Args:
        table: The labels; pairs that are neither present nor confirmed absent are ranked.
        scored: Out-of-sample logits.
        given: How labels were lost, if that is known.
        top: How many candidates to keep; all without it, or of more than ten million the first
            million, and the first of every class.
        before: The labels as they were lost, if some were put back since.

    Raises:
        DataError: Every pair is known already, or there are too many.
    """
    lost = table if before is None else before
    width = len(table.classes)
    missing = TopKSpec.of(open_pairs(table), width, top)
    logits, rows = _sample(table, scored)
    targets, observed, _ = label_block(lost, rows)
    known = {} if given is None else given.as_options()
    answered, seen = targets, observed
    if before is not None:
        answered, seen, _ = label_block(table, rows)
        known["restored"] = ((answered == 1) & (targets != 1)).numpy()
    counts, mistakes, counted = None, None, len(rows)
    if len(rows) < len(scored.rows):
        counts, counted = _count_labels(table, before, scored)
        mistakes = _unverified(counts, reviewed=before is not None)
    model = MissingLabelModel.fit(
        logits, answered, verified=seen, counts=counts, images=counted, **known
    )
    if counted < len(scored.rows):
        model = _for_all_rows(model, table, lost, scored.rows)
    as_lost = model.as_lost
    frequency = as_lost.labelled / (as_lost.labelled + as_lost.by_class[0] + 1e-9)
    found = WrongLabelModel.fit(logits, targets, frequency, verified=observed, counts=mistakes)
    digest = _digest([table, lost], scored, logits, [model.describe(), missing])
    return Ranking(model, found, missing, TopKSpec.first_of_huge(width), digest)


def _count_labels(
    table: LabelTable, before: LabelTable | None, scored: Scored
) -> tuple[Counts, int]:
    """Labels by score, of all images or of runs of them evenly over the table, and how many."""
    images, width = len(scored.rows), len(table.classes)
    run = max(1, _CHUNK_PAIRS // width)
    starts = np.arange(0, images, run)
    if images * width > COUNTED_PAIRS:
        run = _COUNTED_RUN
        number = max(1, COUNTED_PAIRS // (width * run))
        starts = np.linspace(0, images - run, number).astype(np.int64)

    def blocks() -> Iterator[LabelBlock]:
        for first in starts.tolist():
            last = min(first + run, images)
            answered, seen, _ = label_block(table, scored.rows[first:last])
            restored = None
            if before is not None:
                lost, _, _ = label_block(before, scored.rows[first:last])
                restored = ((answered == 1) & (lost != 1)).numpy()
            verified = None if seen is None else seen.numpy()
            values = scored.logits(first, last).float().numpy()
            yield LabelBlock(values, answered.numpy(), verified, restored)

    return Counts.of_blocks(blocks, width), int(np.minimum(run, images - starts).sum())


def _unverified(counts: Counts, *, reviewed: bool) -> Counts:
    """The entries that say something of wrong labels, see :meth:`WrongLabelModel.fit`."""
    if reviewed or not counts.absent.any():
        return counts.as_recorded()
    none = np.zeros_like(counts.labelled)  # labels of a table with absent pairs are verified
    return Counts(counts.scores, none, counts.unlabelled, none, none)


def _for_all_rows(
    model: MissingLabelModel, table: LabelTable, lost: LabelTable, rows: Places
) -> MissingLabelModel:
    """Return the model of all rows, where it was fitted to some of them."""
    now, then = table.select(rows), lost.select(rows)
    there, recorded = (one.counts_by_class(State.PRESENT).astype(float) for one in (now, then))
    model = model.for_labels(recorded)
    if lost is table:
        return model
    pairs = now.counts_by_class(State.UNKNOWN).astype(float)
    return model.after_review(there - recorded, there, pairs)


def rank_shard(
    labels: LabelTable,
    logits: LogitBlocks,
    rows: Places,
    by: Ranking,
    *,
    first: int = 0,
    last: int | None = None,
    before: LabelTable | None = None,
) -> RankedShard:
    """Rank the pairs of some images, a block of them at a time.

    Memory grows with the number of pairs that are kept, not with that of images.

    Args:
        labels: The labels. No label was kept where nobody looked: such a pair is as probable as
            its scores say.
        logits: Out-of-sample logits of images in the order of ``rows``.
        rows: Image numbers that have logits, of all shards.
        by: What to rank by.
        first: Where the shard begins in ``rows``.
        last: Where it ends; with the last of them without it.
        before: The labels as they were lost, if some were put back since.
    """
    last, width = len(rows) if last is None else last, len(labels.classes)
    by_score = by.model.ranks_by_score and labels.scopes is None
    missing, wrong = (
        TopK(wanted, (last - first) * width, width) for wanted in (by.missing, by.wrong)
    )
    beyond, least = np.zeros(width), np.zeros(width)
    step = block_rows(width)
    chunk = max(1, _CHUNK_PAIRS // (step * width)) * step  # or heads would wait for their weights
    for start in range(first, last, chunk):
        logits_here = logits(start, min(start + chunk, last)).float().numpy()
        if by_score:
            least = by.model.least_scores(missing.least.astype(np.float64))
        for here in range(0, len(logits_here), step):
            values = logits_here[here : here + step]
            chosen = rows[start + here : start + here + len(values)]
            targets, observed, candidates = label_block(labels, chosen)
            beside = None if labels.scopes is None else torch.isnan(targets).numpy()
            if before is not None:
                targets, observed, _ = label_block(before, chosen)
            if by_score:  # pairs of low scores are passed over unseen
                candidates &= values >= least
                at, columns = np.nonzero(candidates)
                probs = by.model.prob_open(values[at, columns], columns)
            else:
                present = by.model.prob_present(values, targets, verified=observed)
                if beside is not None:
                    beyond += np.where(beside, present, 0.0).sum(axis=0)
                candidates &= present >= missing.least
                at, columns = np.nonzero(candidates)
                probs = present[at, columns]
            missing.add(entry_keys(probs.astype(np.float32), chosen[at] * width + columns))
            if by.wrong_model is not None:
                at, columns = np.nonzero((targets == 1).numpy())
                mistaken = by.wrong_model.of_columns(columns).prob_wrong(values[at, columns])
                wrong.add(entry_keys(mistaken.astype(np.float32), chosen[at] * width + columns))
    return RankedShard(missing.sorted(), wrong.sorted(), beyond)


def merge_shards(shards: Iterable[RankedShard], by: Ranking, classes: int) -> RankedShard:
    """Return what ranking all images of the shards at once would have left.

    Args:
        shards: Of images that are all different; one at a time is held in memory.
        by: What they were ranked by.
        classes: Number of classes.
    """
    missing, wrong = (
        TopK(wanted, 2 * wanted.most(classes), classes) for wanted in (by.missing, by.wrong)
    )
    beyond = np.zeros(classes)
    for shard in shards:
        missing.add(shard.missing)
        wrong.add(shard.wrong)
        beyond += shard.beyond
    return RankedShard(missing.sorted(), wrong.sorted(), beyond)


def rank_all(
    table: LabelTable,
    scored: Scored,
    by: Ranking,
    *,
    parts: Parts = Parts(),  # noqa: B008 (it cannot be changed)
    size: int | None = None,
    before: LabelTable | None = None,
) -> RankedShard:
    """Rank the pairs of all images in shards, in all processes, and return the whole in each.

    Args:
        table: The labels.
        scored: Out-of-sample logits.
        by: What to rank by.
        parts: Several processes that share the shards, and the folder where finished ones stay.
        size: Images in a shard; by default as many as have 270 million pairs.
        before: The labels as they were lost, if some were put back since.
    """
    images, classes = len(scored.rows), len(table.classes)
    block = block_rows(classes)
    starts = range(0, images, size or max(1, _SHARD_PAIRS // (block * max(1, classes))) * block)

    def rank(number: int) -> Arrays:
        first = starts[number]
        options = {"first": first, "last": min(first + starts.step, images)}
        shard = rank_shard(table, scored.logits, scored.rows, by, before=before, **options)
        return shard.missing, shard.wrong, shard.beyond

    names = [f"rank-{by.digest}-{first:012}-{starts.step}.npz" for first in starts]
    made = (RankedShard(*arrays) for arrays in parts.make(names, rank, "ranking"))
    return merge_shards(made, by, classes)


def open_pairs(labels: LabelTable) -> int:
    """Return the number of pairs that could be missing labels.

    Raises:
        DataError: There is none, or there are too many pairs.
    """
    unknown = labels.count(State.UNKNOWN) + int(labels.not_looked_for().sum())
    if not unknown:
        raise DataError(
            "No pair is unknown: each is a label or confirmed absent. If unlisted pairs mean that"
            " nobody looked, pass --unlisted unknown."
        )
    check_places(len(labels), len(labels.classes))
    return unknown


def _sample(table: LabelTable, scored: Scored) -> tuple[Tensor, Places]:
    """Logits of some rows, evenly over the table, and their image numbers."""
    images = len(scored.rows)
    most = max(1, _SAMPLE_ENTRIES // max(1, len(table.classes)))
    if images <= most:
        return scored.logits(0, images).float(), scored.rows
    runs = np.linspace(0, images - _SAMPLE_RUN, max(1, most // _SAMPLE_RUN), dtype=np.int64)
    parts = [scored.logits(first, first + _SAMPLE_RUN).float() for first in runs.tolist()]
    places = (runs[:, None] + np.arange(_SAMPLE_RUN)).ravel()
    return torch.cat(parts), scored.rows[places]


def _digest(
    tables: Iterable[LabelTable], scored: Scored, sample: Tensor, settings: Iterable[object]
) -> str:
    """A name for everything that a ranking depends on."""
    arrays: list[npt.NDArray[Any]] = [scored.rows, sample.numpy()]
    arrays += [] if scored.features is None else [scored.features.numpy()]
    for table in tables:
        arrays += [table.indptr, table.columns, table.states]
        scopes = table.scopes
        arrays += [] if scopes is None else [scopes.looked_for, scopes.of_image]
    return digest_of([*settings, scored.version], arrays)
