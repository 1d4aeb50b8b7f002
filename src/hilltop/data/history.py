"""What was done to make a table: one step after another, kept with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One thing that was done to make a table.

    Attributes:
        name: What was done.
        details: With what.
        by: Who or what decided it: reviewers, or a model; empty for the user of the function.
        seed: What it was drawn from, if it was drawn.

    Example:
        >>> print(Step("review", {"changes": 3}, by="Ann, Ben"))
        review: changes=3, by=Ann, Ben
    """

    name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    seed: int | Sequence[int] | None = None

    def __str__(self) -> str:
        """Return one line."""
        said = dict(self.details)
        if self.by:
            said["by"] = self.by
        if self.seed is not None:
            said["seed"] = self.seed
        return f"{self.name}: " + ", ".join(f"{key}={value}" for key, value in said.items())
