"""Labels in, labels out: one sparse table, every format, exact simulation of missing labels."""

from hilltop.data.annotators import (
    lose_by_annotator,
    lose_by_batch,
    lose_by_clarity,
    lose_by_class,
    lose_by_size,
)
from hilltop.data.assemble import Collector, assemble
from hilltop.data.format import Format
from hilltop.data.formats import FORMATS, detect, patch, read, read_labels, write_labels
from hilltop.data.history import Step
from hilltop.data.join import LabelSet, join_tables
from hilltop.data.label_table import LabelTable
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.missing import Thinned, drop_positives, keep_each, single_positive
from hilltop.data.review_record import ReviewRecord, before_review, read_provenance
from hilltop.data.scopes import Scopes
from hilltop.data.scores import ScoreTable
from hilltop.data.state import State
from hilltop.data.summary import Summary, summarise

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
    "assemble",
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
