"""What is trained: a head on features, or any timm backbone on images.

timm is imported only when a backbone is built; heads need torch alone.
"""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
