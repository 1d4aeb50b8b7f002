"""What a model sees: images, features, backbones that make features, and drawn pictures."""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
