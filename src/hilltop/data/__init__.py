"""Labels in, labels out: one sparse table, every format, exact simulation of missing labels."""

from hilltop.data.format import Format
from hilltop.data.formats import FORMATS, detect, patch, read, read_labels, write_labels
from hilltop.data.join import LabelSet, join_tables
from hilltop.data.label_table import Collector, LabelTable, Scopes, State, Step
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.review_record import ReviewRecord, before_review, read_provenance
from hilltop.data.scores import ScoreTable
from hilltop.data.simulation import (
    Thinned,
    drop_positives,
    keep_each,
    lose_by_annotator,
    lose_by_batch,
    lose_by_clarity,
    lose_by_class,
    lose_by_size,
    single_positive,
)
from hilltop.data.summary import Summary, summarise
from hilltop.deprecation import warn_renamed

__all__ = [
    "FORMATS",
    "Ambiguous",
    "Collector",
    "Format",
    "LabelSet",
    "LabelTable",
    "Layout",
    "ReadOptions",
    "ReviewRecord",
    "Scopes",
    "ScoreTable",
    "State",
    "Step",
    "Summary",
    "Thinned",
    "before_review",
    "detect",
    "drop_positives",
    "join_tables",
    "keep_each",
    "lose_by_annotator",
    "lose_by_batch",
    "lose_by_clarity",
    "lose_by_class",
    "lose_by_size",
    "patch",
    "read",
    "read_labels",
    "read_provenance",
    "single_positive",
    "summarise",
    "write_labels",
]


def __getattr__(name: str) -> object:
    """Answer to names that changed, with a warning."""
    if name == "assemble":
        warn_renamed(name, "LabelTable.from_coo")
        return LabelTable.from_coo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
