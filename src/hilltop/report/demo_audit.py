"""The part of the demo's report about the audit: what it found among the unlabelled pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.report.page import Html, key_numbers, paragraph, percent, section, table

ANSWERS_AN_HOUR = 1200
"""At three seconds an answer."""
_FIRST = (100, 300, ANSWERS_AN_HOUR, 3000)


@dataclass(frozen=True)
class DemoAudit:
    """What the audit of the demo's labels found.

    Attributes:
        right: Of the candidates, the most probable first, which are removed labels.
        labels: Labels that the audit was shown.
        missing: How many labels are missing by its estimate.
        low: Lower end of the estimate's 90% interval.
        high: Upper end of it.
        folder: The audit's folder.
    """

    right: npt.NDArray[np.bool_]
    labels: int
    missing: float
    low: float
    high: float
    folder: Path

    @property
    def truly_missing(self) -> int:
        """How many labels were removed."""
        return int(self.right.sum())

    @property
    def estimate(self) -> str:
        """The estimate in words."""
        return f"{self.missing:,.0f} ({self.low:,.0f} to {self.high:,.0f})"

    def rows(self) -> list[tuple[int, float, float, float]]:
        """Numbers of candidates looked at, and what they give.

        A row has the number, the share that is right, the share of all removed labels that this
        is, and the share that is right where pairs are looked at in any order.
        """
        looked = [*(n for n in _FIRST if n < self.truly_missing), self.truly_missing]
        at_random = float(self.right.mean())
        found = np.cumsum(self.right)
        rows: list[tuple[int, float, float, float]] = []
        for number in looked:
            hits: Any = found[number - 1]
            rows.append((number, hits / number, hits / self.truly_missing, at_random))
        return rows


def missing_section(audit: DemoAudit) -> Html:
    """How many labels are missing: what the audit says, and the truth beside it."""
    numbers = [
        ("labels to audit", f"{audit.labels:,}"),
        ("missing, estimated", f"{audit.missing:,.0f}"),
        ("90% interval", f"{audit.low:,.0f}–{audit.high:,.0f}"),  # noqa: RUF001 (a range)
        ("missing in truth", f"{audit.truly_missing:,}"),
    ]
    text = (
        "The audit saw the labels that are left and nothing else: linear classifiers on a fixed"
        " description of the pictures, each scoring only pictures that it was not trained on. From"
        " these scores it estimates how many labels were forgotten."
    )
    return section("How many were forgotten", key_numbers(numbers), paragraph(text))


def review_section(audit: DemoAudit) -> Html:
    """What going through the first candidates adds, and how to do it."""
    total = audit.labels + audit.truly_missing
    lines: list[list[str | Html]] = [
        [
            f"{number:,}",
            percent(right),
            f"{round(right * number):,}",
            percent((audit.labels + right * number) / total),
            percent(at_random),
        ]
        for number, right, _, at_random in audit.rows()
    ]
    text = (
        "The audit ranks every pair without a label by the probability that the label was"
        " forgotten. A person who goes through the list adds so many labels; at three seconds an"
        f" answer an hour is {ANSWERS_AN_HOUR:,} answers."
    )
    after = (
        f"To go through the candidates: hilltop review {audit.folder}. Without Python, open"
        f" {audit.folder / 'review.html'}."
    )
    head = ["answers", "right", "labels added", "labels recorded then", "right, in any order"]
    return section(
        "What an hour of review adds", paragraph(text), table(head, lines), paragraph(after)
    )
