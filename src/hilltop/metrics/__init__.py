"""Exact metrics for multi-label classifiers, unknown entries left out. Needs numpy."""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
