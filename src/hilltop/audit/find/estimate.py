"""How many labels of each class are missing: the rows of ``estimates.csv``.

They come from the missing-label model, or from a reviewed random sample, whose share has an exact
interval and needs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hilltop.audit.decisions.answers import Sample
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.small_files import format_rows, read_rows
from hilltop.missing.interval import Interval, proportion_interval, weighted_count_interval

Source = Literal["model", "sample"]
COLUMNS = ("class", "labelled", "missing", "low", "high", "source")
BEYOND = "not_looked_for"
"""A further column, of joined tables."""
WRONG = "wrong"
"""A further column, where labels are probably wrong."""


@dataclass(frozen=True)
class Estimate:
    """How many labels of one class are missing.

    Attributes:
        class_name: The class.
        labelled: Labels that are there.
        missing: Labels that are not, with the 90% interval.
        source: Where the numbers come from.
        beyond: Further labels, in images of a joined table in which nobody looked for the class.
        wrong: Labels among those that are there that are probably wrong.
    """

    class_name: str
    labelled: int
    missing: Interval
    source: Source
    beyond: float = 0.0
    wrong: float = 0.0

    def as_dict(self) -> dict[str, float | str]:
        """Return the columns of the table, as ``--json`` prints them."""
        ends = {"missing": self.missing.value, "low": self.missing.low, "high": self.missing.high}
        further = {"source": self.source, "beyond": self.beyond, "wrong": self.wrong}
        return {"class": self.class_name, "labelled": self.labelled, **ends, **further}


def sample_estimate(class_name: str, labelled: int, pairs: int, sample: Sample) -> Estimate | None:
    """Return what a reviewed random sample says of a class; None if it is empty.

    Pairs that nobody could tell widen the interval: its lower end takes them for absent, its upper
    end for present.

    Args:
        class_name: The class.
        labelled: Labels that are there.
        pairs: Unlabelled pairs that the sample was drawn from.
        sample: Its answers.

    Example:
        >>> found = sample_estimate("cat", 100, 1000, Sample(present=3, absent=47, open=0))
        >>> print(found.missing.count())
        60 (17 to 148)
    """
    told = sample.present + sample.absent
    total = told + sample.open
    if not told:
        return None
    low, _ = proportion_interval(sample.present, total)
    _, high = proportion_interval(sample.present + sample.open, total)
    # What was seen is certain: so many at least, and so many at most.
    least, most = max(sample.present, low * pairs), min(pairs - sample.absent, high * pairs)
    missing = Interval(pairs * sample.present / told, least, most)
    return Estimate(class_name, labelled, missing, "sample")


def total_of_samples(pairs: Sequence[int], samples: Sequence[Sample]) -> Interval:
    """Add up the missing labels that samples of several classes show.

    Args:
        pairs: Unlabelled pairs that each sample was drawn from.
        samples: The answers; classes without any belong in another call.
    """
    told = [sample.present + sample.absent for sample in samples]
    weights = [size / count for size, count in zip(pairs, told, strict=True)]
    found = [sample.present for sample in samples]
    missing = sum(weight * count for weight, count in zip(weights, found, strict=True))
    low, high = weighted_count_interval(found, weights)
    if len(samples) == 1:
        share = proportion_interval(found[0], told[0])
        low, high = share[0] * pairs[0], share[1] * pairs[0]
    return Interval(missing, max(low, float(sum(found))), min(high, float(sum(pairs))))


def write_estimates(estimates: Sequence[Estimate], path: Path) -> None:
    """Write ``estimates.csv``, completely or not at all."""
    further = {name: values for name, values in _further(estimates).items() if any(values)}
    rows = []
    for at, one in enumerate(estimates):
        ends = (one.missing.value, one.missing.low, one.missing.high)
        numbers = (f"{number:.1f}" for number in ends)
        more = [f"{values[at]:.1f}" for values in further.values()]
        rows.append([one.class_name, one.labelled, *numbers, one.source, *more])
    atomic_write(path, format_rows([*COLUMNS, *further], rows))


def _further(estimates: Sequence[Estimate]) -> dict[str, list[float]]:
    """Columns that stand in the file only where they say something."""
    return {BEYOND: [one.beyond for one in estimates], WRONG: [one.wrong for one in estimates]}


def read_estimates(path: Path) -> list[Estimate]:
    """Read ``estimates.csv``.

    Raises:
        DataError: The file is missing or damaged.
    """
    if not path.is_file():
        raise data_error(path, "there is no such file. Run `hilltop audit` again.")
    try:
        return [_parse(row) for _, row in read_rows(path, COLUMNS)]
    except ValueError:
        raise data_error(path, "this file is damaged. Run `hilltop audit` again.") from None


def _parse(row: dict[str, str]) -> Estimate:
    if row["source"] not in ("model", "sample"):
        raise ValueError
    source: Source = "sample" if row["source"] == "sample" else "model"
    missing, low, high = (float(row[name]) for name in ("missing", "low", "high"))
    beyond, wrong = (float(row.get(name, 0.0)) for name in (BEYOND, WRONG))
    interval = Interval(missing, low, high)
    return Estimate(row["class"], int(row["labelled"]), interval, source, beyond, wrong)
