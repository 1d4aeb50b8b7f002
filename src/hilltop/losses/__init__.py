"""Losses for multi-label learning with missing labels. Needs torch alone.

``hill()`` and the other presets return a module that is called like ``BCEWithLogitsLoss``;
:class:`MultiLabelLoss` combines terms and corrections freely.
"""

import importlib
import pkgutil
from typing import Any

from hilltop.lazy_imports import lazy_imports
from hilltop.losses import likelihood, methods
from hilltop.losses.catalogue import LOSSES

# A loss whose file lies in one of these packages is registered by being there.
for _package in (likelihood, methods):
    for _file in pkgutil.iter_modules(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_file.name)

_RENAMED = {
    "JudgedCorrection": "EmaTeacher",
    "KeepRate": "LabelFrequency",
    "KeptByCount": "CountLikelihood",
    "KeptIndependently": "ScarLikelihood",
    "KeptNegative": "ScarNegative",
    "KeptPositive": "ScarPositive",
    "kept_by_count": "count_likelihood",
    "kept_independently": "scar_likelihood",
}
_get, __dir__, __all__ = lazy_imports(__name__, __file__, renamed=_RENAMED)


def __getattr__(name: str) -> Any:
    """Return a listed name, a registered loss that is not listed, or a renamed one."""
    unlisted = name not in __all__ and name in list(LOSSES)
    return LOSSES.builder(name) if unlisted else _get(name)
