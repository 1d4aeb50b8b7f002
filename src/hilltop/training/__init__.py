"""From images or features to scores: training that a person can trust.

Names load when first used, so that the parts that need torch alone can be had with torch alone.
"""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
