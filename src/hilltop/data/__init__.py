"""Labels in, labels out: one sparse table, every format, exact simulation of missing labels."""

from hilltop.data.assemble import Collector, assemble
from hilltop.data.formats import FORMATS, read_labels, write_labels
from hilltop.data.formats.base import ReadOptions
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.missing import Thinned, drop_positives, keep_each, single_positive

__all__ = [
    "FORMATS",
    "Collector",
    "LabelTable",
    "ReadOptions",
    "State",
    "Step",
    "Thinned",
    "assemble",
    "drop_positives",
    "keep_each",
    "read_labels",
    "single_positive",
    "write_labels",
]
