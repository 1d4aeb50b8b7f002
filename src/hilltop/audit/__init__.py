"""The audit: likely missing labels are ranked, reviewed in a browser and written back.

What is exported loads when first used: serving the review page needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilltop.audit.in_memory import find_missing_labels

__all__ = ["find_missing_labels"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from hilltop.audit import in_memory

        return getattr(in_memory, name)
    raise AttributeError(f"module 'hilltop.audit' has no attribute {name!r}")
