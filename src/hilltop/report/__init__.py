"""Reports that a person reads: one HTML page that needs nothing but itself, and figures."""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
