"""Which epoch of a run is best, and its metrics in words.

Where validation labels are not known to be complete, the rows of the last and the best epoch have
estimates of the true values, with intervals, beside the mAP by the labels as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Row = Mapping[str, float]


def is_estimated(row: Row, metric: str = "mAP") -> bool:
    """Whether the true value of a metric was estimated."""
    return not math.isnan(row.get(f"{metric}_estimate", math.nan))


def judged_value(row: Row, metric: str = "mAP") -> float:
    """The estimate of the true value if there is one, or else the number by labels as they are.

    Example:
        >>> judged_value({"mAP": 0.35, "mAP_estimate": 0.58}), judged_value({"mAP": 0.35})
        (0.58, 0.35)
    """
    return float(row[f"{metric}_estimate" if is_estimated(row, metric) else metric])


def best_epoch(rows: Sequence[Row]) -> Row:
    """The row with the highest mAP, the first of equals; where it is estimated, the run says.

    Example:
        >>> rows = [{"epoch": 1, "mAP": 0.4}, {"epoch": 2, "mAP": 0.3}]
        >>> best_epoch(rows)["epoch"], best_epoch([*rows, {**rows[1], "best_epoch": 2}])["epoch"]
        (1, 2)
    """
    chosen = rows[-1].get("best_epoch", math.nan)
    found = [row for row in rows if row["epoch"] == chosen]
    return found[0] if found else max(rows, key=judged_value)


def in_per_cent(row: Row, metric: str = "mAP") -> str:
    """A metric, with its interval where it is an estimate.

    Example:
        >>> in_per_cent({"mAP": 0.3, "mAP_estimate": 0.58, "mAP_low": 0.5, "mAP_high": 0.64})
        '58.0 (50.0 to 64.0)'
        >>> in_per_cent({"mAP": 0.3})
        '30.00'
    """
    if not is_estimated(row, metric):
        return f"{100 * row[metric]:.2f}"
    middle, low, high = (
        100 * row.get(f"{metric}_{end}", math.nan) for end in ("estimate", "low", "high")
    )
    return f"{middle:.1f}" if math.isnan(low) else f"{middle:.1f} ({low:.1f} to {high:.1f})"
