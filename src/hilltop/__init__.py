"""Hilltop: multi-label learning when annotators left labels out.

Rooms and the headline functions load when first used, so that ``hilltop.losses`` needs torch alone.
"""

from __future__ import annotations

from hilltop.doors import open_doors

__version__ = "0.1.0"

_ROOMS = (
    "audit",
    "missing",
    "data",
    "errors",
    "inputs",
    "integrations",
    "losses",
    "metrics",
    "models",
    "report",
    "studies",
    "training",
)
_HEADLINE = {
    "HilltopClassifier": "integrations",
    "LabelTable": "data",
    "classification_report": "metrics",
    "find_missing_labels": "audit",
    "read_labels": "data",
    "train": "training",
    "write_labels": "data",
}
__getattr__, __dir__ = open_doors(__name__, {**{room: room for room in _ROOMS}, **_HEADLINE})
__all__ = [*_HEADLINE, *_ROOMS]
