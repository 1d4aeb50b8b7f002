"""The part of the demo's report about the audit: what it found among the unlabelled pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.report.page import Html, key_numbers, paragraph, percent, section, table

_FIRST = (100, 300, 1000, 3000)


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


def audit_section(audit: DemoAudit) -> Html:
    """The audit in numbers, and how to go on from it."""
    numbers = [
        ("labels to audit", f"{audit.labels:,}"),
        ("missing, estimated", f"{audit.missing:,.0f}"),
        ("90% interval", f"{audit.low:,.0f}–{audit.high:,.0f}"),  # noqa: RUF001 (a range)
        ("missing in truth", f"{audit.truly_missing:,}"),
    ]
    lines: list[list[str | Html]] = [
        [f"{number:,}", percent(right), percent(share), percent(at_random)]
        for number, right, share, at_random in audit.rows()
    ]
    text = (
        "The audit saw the labels that are left and nothing else: linear classifiers on a fixed"
        " description of the pictures, each scoring only pictures that it was not trained on. It"
        " ranks every pair without a label by the probability that the label was forgotten."
    )
    after = (
        f"To go through its candidates: hilltop review {audit.folder}. Without Python, open"
        f" {audit.folder / 'review.html'}."
    )
    head = ["candidates looked at", "right", "of all removed labels", "right, in any order"]
    return section(
        "The audit", paragraph(text), key_numbers(numbers), table(head, lines), paragraph(after)
    )
