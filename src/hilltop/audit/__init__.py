"""The audit: likely missing labels are ranked, reviewed in a browser and written back.

What is exported loads when first used: serving the review page needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hilltop.deprecation import renamed_attributes
from hilltop.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from hilltop.audit.api import find_missing_labels
    from hilltop.audit.decisions.apply import apply_decisions
    from hilltop.audit.decisions.gold import add_gold_questions
    from hilltop.audit.decisions.store import DecisionStore
    from hilltop.audit.find.candidate_index import CandidateIndex
    from hilltop.audit.find.candidates import Candidates
    from hilltop.audit.find.estimate import Estimate
    from hilltop.audit.find.rank_folder import RankFolder, shared_ranking
    from hilltop.audit.find.ranking import (
        RankedShard,
        Ranking,
        fit_ranking,
        merge_shards,
        rank_shard,
    )
    from hilltop.audit.find.score_blocks import Scored, score_blocks
    from hilltop.audit.folder import AuditFolder
    from hilltop.audit.review.queue_table import write_queue
    from hilltop.audit.review.queues import build_queue
    from hilltop.audit.run import Audited, audit, score_by_folds, write_audit

__all__ = [
    "AuditFolder",
    "Audited",
    "CandidateIndex",
    "Candidates",
    "DecisionStore",
    "Estimate",
    "RankFolder",
    "RankedShard",
    "Ranking",
    "Scored",
    "add_gold_questions",
    "apply_decisions",
    "audit",
    "build_queue",
    "find_missing_labels",
    "fit_ranking",
    "merge_shards",
    "rank_shard",
    "score_blocks",
    "score_by_folds",
    "shared_ranking",
    "write_audit",
    "write_queue",
]

_MODULES = {
    "AuditFolder": "folder",
    "Audited": "run",
    "CandidateIndex": "find.candidate_index",
    "Candidates": "find.candidates",
    "DecisionStore": "decisions.store",
    "Estimate": "find.estimate",
    "RankFolder": "find.rank_folder",
    "RankedShard": "find.ranking",
    "Ranking": "find.ranking",
    "Scored": "find.score_blocks",
    "add_gold_questions": "decisions.gold",
    "apply_decisions": "decisions.apply",
    "audit": "run",
    "build_queue": "review.queues",
    "find_missing_labels": "api",
    "fit_ranking": "find.ranking",
    "merge_shards": "find.ranking",
    "rank_shard": "find.ranking",
    "score_blocks": "find.score_blocks",
    "score_by_folds": "run",
    "shared_ranking": "find.rank_folder",
    "write_audit": "run",
    "write_queue": "review.queue_table",
}
_get, __dir__ = lazy_imports(__name__, _MODULES)
_renamed = renamed_attributes(__name__, {"plant_pairs": "add_gold_questions"})


def __getattr__(name: str) -> Any:
    return _get(name) if name in _MODULES else _renamed(name)
