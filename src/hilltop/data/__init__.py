"""Labels in, labels out: one sparse table, every format, exact simulation of missing labels."""

from hilltop.deprecation import warn_renamed
from hilltop.lazy_imports import lazy_imports

_get, __dir__, __all__ = lazy_imports(__name__, __file__)


def __getattr__(name: str) -> object:
    """Answer to names that changed, with a warning."""
    if name == "assemble":
        from hilltop.data.label_table import LabelTable

        warn_renamed(name, "LabelTable.from_coo")
        return LabelTable.from_coo
    return _get(name)
