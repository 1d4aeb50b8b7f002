"""What an audit found, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hilltop.audit.find.estimate import Estimate
from hilltop.audit.find.sampled import Sampled
from hilltop.checks import pluralize
from hilltop.report.tables import Sheet

_MOST_CLASSES = 15


def print_summary(estimates: Sequence[Estimate], sampled: Sampled | None, total: str) -> None:
    """Print the classes with most missing labels, and the total.

    Args:
        estimates: What the model says of each class.
        sampled: What reviewed random samples say; where there is one, it is shown instead.
        total: How many labels are missing in all, as a sentence.
    """
    by_sample = {one.class_name: one for one in sampled.estimates} if sampled else {}
    shown = [by_sample.get(one.class_name, one) for one in estimates]
    shown.sort(key=lambda one: (-one.missing.value, -one.missing.high))
    any_missing = any(one.missing.value for one in shown)
    title = "Classes with most missing labels" if any_missing else "Where most could be missing"
    rows = [
        (
            one.class_name,
            f"{one.labelled:,}",
            f"{one.missing.value:,.0f}",
            f"{one.missing.low:,.0f} to {one.missing.high:,.0f}",
            one.source,
        )
        for one in shown[:_MOST_CLASSES]
    ]
    Sheet(title, ("class", "labelled", "missing", "90% interval", "from"), tuple(rows)).print()
    rest = shown[_MOST_CLASSES:]
    if rest:
        missing = sum(one.missing.value for one in rest)
        classes = pluralize(len(rest), "more class", "more classes")
        print(f"and {missing:,.0f} in {classes} (estimates.csv)")
    print(total)
    beyond = sum(one.beyond for one in estimates)
    if beyond:
        print(f"and about {beyond:,.0f} labels where nobody looked for them")
    if sampled is not None:
        print(sampled.sentence)
