"""Reading and writing labels in every format in the wild; ``base.py`` says what a format is."""

from hilltop.data.formats.base import Format, Handoff, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched
from hilltop.data.formats.registry import (
    FORMATS,
    named_format,
    read_labels,
    recognise,
    write_labels,
)
from hilltop.data.formats.source import LabelSource

__all__ = [
    "FORMATS",
    "Change",
    "Format",
    "Handoff",
    "LabelSource",
    "Original",
    "Patched",
    "Priority",
    "ReadOptions",
    "named_format",
    "read_labels",
    "recognise",
    "write_labels",
]
