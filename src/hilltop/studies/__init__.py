"""Studies made of many runs: advice, comparison, the tables of the paper, and the demo."""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
