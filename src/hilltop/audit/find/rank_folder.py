"""A ranking that several processes share, and that outlives a kill: its shards in a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.audit.find.ranking import RankedShard, Ranking, merge_shards, rank_shard
from hilltop.audit.find.score_blocks import Scored
from hilltop.audit.find.top_k import block_rows
from hilltop.data import LabelTable
from hilltop.inputs.ranks import Ranks

_SHARD_PAIRS = 1 << 28


def _silent(_: str) -> None:
    return None


@dataclass(frozen=True)
class RankFolder:
    """Where shards are kept, and who works on them.

    Attributes:
        parts: A folder that all machines see; without one, shards are merged as they come.
        ranks: The processes.
        size: Images in a shard; by default as many as have 270 million pairs.
        say: Takes a sentence for the user.
    """

    parts: Path | None = None
    ranks: Ranks = field(default_factory=Ranks)
    size: int | None = None
    say: Callable[[str], None] = _silent

    def starts(self, images: int, classes: int) -> range:
        """Return where the shards of so many images begin.

        Example:
            >>> list(RankFolder(size=4).starts(10, 3))
            [0, 4, 8]
        """
        step = block_rows(classes)  # whole blocks
        size = self.size or max(1, _SHARD_PAIRS // (step * max(1, classes))) * step
        return range(0, images, size)


def shared_ranking(
    table: LabelTable,
    scored: Scored,
    by: Ranking,
    folder: RankFolder,
    *,
    before: LabelTable | None = None,
) -> RankedShard:
    """Rank what is missing of the shards, in all processes, and return the whole in each."""
    images, classes = len(scored.rows), len(table.classes)
    starts = folder.starts(images, classes)

    def ranked(first: int) -> RankedShard:
        last = min(first + starts.step, images)
        options = {"first": first, "last": last}
        return rank_shard(table, scored.logits, scored.rows, by, before=before, **options)

    parts, ranks, say = folder.parts, folder.ranks, folder.say
    if parts is None or (ranks.world == 1 and len(starts) == 1):
        return merge_shards(map(ranked, starts), by, classes)
    files = {first: parts / f"rank-{by.digest}-{first:012}-{starts.step}.npz" for first in starts}
    parts.mkdir(parents=True, exist_ok=True)
    missing = [first for first in starts if not files[first].is_file()]
    if len(missing) < len(starts):
        say(f"ranking: {len(starts) - len(missing)} of {len(starts)} shards are there already")
    ranks.wait()  # before the first shard appears, or processes would see different ones missing
    saved = ranks.each(missing, lambda first: ranked(first).save(files[first]))
    for at, _ in enumerate(saved, start=1):
        say(f"ranking: {at} of {len(ranks.share(missing))} shards of this process")
    whole = merge_shards(map(RankedShard.load, files.values()), by, classes)
    ranks.wait()  # or one process would remove what another still reads
    return whole
