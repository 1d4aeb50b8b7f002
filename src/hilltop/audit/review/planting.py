"""Where planted pairs stand on the page: between candidates, and like them."""

from __future__ import annotations

import zlib
from dataclasses import asdict
from typing import Any

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.planted import Planted, agreements

EVERY_PAIRS = 16
"""One planted pair at most for so many candidates."""


class Planting:
    """Deals planted pairs out over the pages of their class."""

    def __init__(self, planted: Planted) -> None:
        """Group the pairs by class."""
        self.pairs = planted
        self._of: dict[str, list[str]] = {}
        for name, image in planted:
            self._of.setdefault(name, []).append(image)

    def images(self, class_name: str, start: int, count: int) -> list[str]:
        """The images that are planted among the candidates from ``start`` on."""
        mine = self._of.get(class_name, [])
        return mine[start // EVERY_PAIRS : -(-(start + count) // EVERY_PAIRS)]

    def agreement(self, answers: Answers, reviewer: str) -> dict[str, Any] | None:
        """How often a reviewer agrees with what is known; None before the first answer."""
        found = agreements(answers, self.pairs)
        return next((asdict(one) for one in found if one.reviewer == reviewer), None)

    def mix(self, name: str, pairs: list[dict[str, Any]], planted: list[dict[str, Any]]) -> None:
        """Put planted pairs of a class between others; that they are labels is not to be seen."""
        for pair in planted:
            place = 1 + zlib.crc32(pair["image"].encode()) % max(1, len(pairs) - 1)
            beside = pairs[min(place, len(pairs)) - 1]["probability"] if pairs else None
            labels = [label for label in pair["labels"] if label != name]
            like = {"labels": labels, "probability": beside, "alike": None}
            pairs.insert(place, {**pair, **like})
