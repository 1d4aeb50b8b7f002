"""Hilltop inside other libraries. A library is imported only when a name that needs it is used.

What is not here needs no adapter: in Lightning, skorch, timm and a plain loop a loss of
:mod:`hilltop.losses` stands where ``BCEWithLogitsLoss`` stood; ``examples/`` shows each.
"""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
