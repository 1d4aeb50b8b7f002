"""Finished runs as tables: mean and spread over seeds, and the share of the gap closed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hilltop.report.page import percent
from hilltop.report.tables import Sheet, write_rows, write_sheets
from hilltop.studies.compare.estimated_table import estimated_sheet
from hilltop.studies.compare.level import COMPLETE, GIVEN, Level
from hilltop.studies.compare.method import Method
from hilltop.studies.compare.runs import Result
from hilltop.studies.compare.study import BASELINE
from hilltop.training.calibration import ESTIMATED

METRICS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1")
ESTIMATES = tuple(f"{name}_{end}" for name in ESTIMATED for end in ("estimate", "low", "high"))
Rule = Literal["last", "best"]
RULES: tuple[Rule, ...] = ("last", "best")
NOTE = (
    "mAP, CF1 and OF1 in %, mean ± standard deviation over seeds. Last: of the last epoch. Best: of"
    " the epoch with the highest mAP on the same labels that judge it, so it is a little too good;"
    " this is the paper's rule. Gap closed: by mAP of the last epoch, from BCE on the reduced"
    " labels (0%) to BCE on the complete ones (100%)."
)


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of some numbers, in their own unit.

    Example:
        >>> str(Spread.of([0.501, 0.503])), str(Spread.of([0.501])), str(Spread.of([]))
        ('50.20 ± 0.14', '50.10', '')
    """

    count: int
    mean: float = math.nan
    deviation: float = math.nan

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Measure; the deviation needs at least two numbers."""
        if not values:
            return cls(0)
        deviation = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(len(values), statistics.fmean(values), deviation)

    def __str__(self) -> str:
        """Return percentages, or nothing if there are no numbers."""
        return self.text(2)

    @property
    def alone(self) -> Spread:
        """The mean without its deviation."""
        return Spread(self.count, self.mean)

    def text(self, digits: int) -> str:
        """Return percentages with some digits behind the point."""
        if not self.count:
            return ""
        spread = "" if math.isnan(self.deviation) else f" ± {100 * self.deviation:.{digits}f}"
        return f"{100 * self.mean:.{digits}f}{spread}"


class Results:
    """Finished runs, by level and method."""

    def __init__(self, results: Sequence[Result]) -> None:
        """Sort the finished ones; failed ones are left out."""
        self.all = tuple(results)
        self._by: dict[tuple[str, Method], list[Result]] = {}
        for result in results:
            if result.finished:
                key = (result.cell.level.name, result.cell.method)
                self._by.setdefault(key, []).append(result)

    def runs(self, level: str, method: Method) -> list[Result]:
        """Finished runs of a method, one a seed."""
        return self._by.get((level, method), [])

    def spread(self, level: str, method: Method, metric: str, rule: Rule) -> Spread:
        """Mean and deviation of a metric over seeds."""
        runs = self.runs(level, method)
        return Spread.of([getattr(run, rule).get(metric, math.nan) for run in runs])

    def gap_closed(self, level: str, method: Method) -> float | None:
        """Share of the mAP between BCE on reduced and on complete labels that a method wins."""
        bottom = self.spread(level, BASELINE, "mAP", "last")
        top = self.spread(COMPLETE.name, BASELINE, "mAP", "last")
        reached = self.spread(level, method, "mAP", "last")
        if not (bottom.count and top.count and reached.count) or top.mean <= bottom.mean:
            return None
        return (reached.mean - bottom.mean) / (top.mean - bottom.mean)

    @property
    def complete(self) -> bool:
        """Whether complete labels judge."""
        return all(result.cell.level != GIVEN for result in self.all)

    @property
    def levels(self) -> list[Level]:
        """Levels in their order, without the complete labels."""
        found = dict.fromkeys(result.cell.level for result in self.all)
        return [level for level in found if level != COMPLETE]

    @property
    def estimated(self) -> tuple[str, ...]:
        """Columns of estimates and their intervals, where every run has them."""
        runs = [result for result in self.all if result.finished]
        return ESTIMATES if runs and all(set(ESTIMATES) <= set(run.last) for run in runs) else ()

    def methods(self, level: str) -> list[Method]:
        """Methods of a level in their order, failed ones too."""
        chosen = [result.cell for result in self.all if result.cell.level.name == level]
        return list(dict.fromkeys(cell.method for cell in chosen))


def level_sheet(results: Results, level: Level) -> Sheet:
    """The table of one level; the highest mAP among its methods stands out."""
    name = level.name
    if not results.complete:
        return estimated_sheet(
            level, [(str(method), results.runs(name, method)) for method in results.methods(name)]
        )
    lines: list[tuple[Level, Method]] = [(level, method) for method in results.methods(name)]
    rows = [_row(results, level, method, str(method)) for _, method in lines]
    means = [results.spread(name, method, "mAP", "last").mean for _, method in lines]
    finite = [mean for mean in means if not math.isnan(mean)]
    strong = {(at, 2) for at, mean in enumerate(means) if finite and mean == max(finite)}
    rows.append(_row(results, COMPLETE, BASELINE, f"{BASELINE}, complete labels", "100%"))
    head = ("method", "seeds", "mAP, last", "gap closed", "mAP, best", "CF1, last", "OF1, last")
    return Sheet(level.title, head, tuple(rows), (NOTE,), strong)


def _row(
    results: Results, level: Level, method: Method, name: str, closed: str | None = None
) -> tuple[str, ...]:
    last, best = (results.spread(level.name, method, "mAP", rule) for rule in RULES)
    if closed is None:
        share = results.gap_closed(level.name, method)
        closed = "" if share is None else percent(share)
    others = [str(results.spread(level.name, method, metric, "last")) for metric in ("CF1", "OF1")]
    return (name, str(last.count), str(last), closed if last.count else "", str(best), *others)


def result_rows(results: Results) -> list[dict[str, Any]]:
    """Every run in two rows, for the last and the best epoch, with every digit."""
    rows: list[dict[str, Any]] = []
    for result in results.all:
        cell = result.cell
        for rule in RULES:
            values: Mapping[str, float] = getattr(result, rule)
            rows.append(
                {
                    "level": cell.level.name,
                    "method": str(cell.method),
                    "seed": cell.seed,
                    "epoch_rule": rule,
                    "epoch": values.get("epoch"),
                    **{metric: values.get(metric) for metric in (*METRICS, *results.estimated)},
                    "seconds": result.seconds,
                    "error": result.error,
                }
            )
    return rows


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """Mean and deviation of every metric for each level, method and epoch rule."""
    rows: list[dict[str, Any]] = []
    for level in (COMPLETE, *results.levels):
        for method in results.methods(level.name):
            for rule in RULES:
                names = (*METRICS, *results.estimated)
                found = {name: results.spread(level.name, method, name, rule) for name in names}
                row: dict[str, Any] = {"level": level.name, "method": str(method)}
                row |= {"epoch_rule": rule, "seeds": found["mAP"].count}
                share = results.gap_closed(level.name, method) if level != COMPLETE else 1.0
                row["gap_closed"] = None if rule == "best" else _rounded(share)
                for name, spread in found.items():
                    row[name] = _rounded(spread.mean)
                    row[f"{name}_std"] = _rounded(spread.deviation)
                rows.append(row)
    return rows


TABLES = ("table.md", "table.tex", "summary.csv", "results.csv")
"""What :func:`write_tables` writes."""


def write_tables(results: Results, folder: Path) -> list[Sheet]:
    """Write :data:`TABLES` and return the tables."""
    sheets = [level_sheet(results, level) for level in results.levels]
    write_sheets(sheets, folder / "table")
    write_rows(folder / "summary.csv", summary_rows(results))
    write_rows(folder / "results.csv", result_rows(results))
    return sheets


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 6)
