"""What is missing, what is true, what to predict, and how good is it, from incomplete labels.

:class:`MissingLabelModel` is fitted once for a data set, from out-of-fold scores and labels.
Training, audit, prediction, evaluation, report and review page read it.
"""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
