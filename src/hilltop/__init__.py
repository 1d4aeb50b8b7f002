"""Hilltop: multi-label learning when annotators left labels out.

Packages and headline functions load when first used, so that ``hilltop.losses`` needs torch alone.
"""

from hilltop.lazy_imports import lazy_imports

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
