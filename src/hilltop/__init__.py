"""Hilltop: multi-label learning when annotators left labels out.

Packages and headline functions load when first used, so that ``hilltop.losses`` needs torch alone.
"""

from __future__ import annotations

from hilltop.lazy_imports import lazy_imports

__version__ = "0.1.0"

_PACKAGES = (
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
__getattr__, __dir__ = lazy_imports(
    __name__, {**{package: package for package in _PACKAGES}, **_HEADLINE}
)
__all__ = [*_HEADLINE, *_PACKAGES]
