"""Interleaved timing: every contender runs in turn, many times, and is compared as a ratio.

The machine may be shared and noisy, so seconds mean little; the ratio of two things measured in the
same seconds means more. The median of the ratios and their quartiles are reported.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]

LEAST_ROUNDS = 2  # fewer say nothing about the spread
_LONG = 1.0  # seconds


@dataclass(frozen=True)
class Row:
    """One contender against one baseline; times are medians of one call."""

    question: str
    size: str
    contender: str
    baseline: str
    contender_ms: float
    baseline_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float
    passes: float | None = None
    saved_mib: float | None = None
    peak_mib: float | None = None
    note: str = ""


def compare(
    question: str,
    size: str,
    contenders: dict[str, Work],
    baseline: str,
    *,
    rounds: int = 21,
    seconds: float = 20.0,
    notes: dict[str, str] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Row]:
    """Time all contenders in turn; return one row for each, as ratios to ``baseline``.

    Args:
        question: What is measured.
        size: At which size.
        contenders: What to call, by name.
        baseline: Name of the one that the others are compared with.
        rounds: How often each has its turn.
        seconds: After this time no new round begins, if there were two.
        notes: What else is to be said, by name.
        clock: What tells the time; ``time.process_time`` leaves out what others do on the machine.
    """
    start = time.perf_counter()
    first = {name: _seconds(work, 1) for name, work in contenders.items()}
    # Where all take long, there is nothing to warm up, and the first round counts.
    count_first = min(first.values()) > _LONG
    times = {name: [seconds] if count_first else [] for name, seconds in first.items()}
    repeats = {name: _repeats(work, first[name]) for name, work in contenders.items()}
    for done in range(count_first, max(LEAST_ROUNDS, rounds)):
        if done >= LEAST_ROUNDS and time.perf_counter() - start > seconds:
            break
        for name, work in contenders.items():
            times[name].append(_seconds(work, repeats[name], clock))
    rows = []
    for name in contenders:
        ratios = [a / b for a, b in zip(times[name], times[baseline], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(
            Row(
                question=question,
                size=size,
                contender=name,
                baseline=baseline,
                contender_ms=round(1e3 * statistics.median(times[name]), 4),
                baseline_ms=round(1e3 * statistics.median(times[baseline]), 4),
                ratio=round(middle, 4),
                ratio_low=round(low, 4),
                ratio_high=round(high, 4),
                note=(notes or {}).get(name, ""),
            )
        )
    return rows


def show(rows: list[Row]) -> None:
    """Print rows as a table."""
    for row in rows:
        memory = "" if row.peak_mib is None else f"peak {row.peak_mib:.1f} MiB"
        passes = "" if row.passes is None else f"{row.passes:.1f} passes"
        also = ", ".join(part for part in (passes, memory, row.note) if part)
        print(
            f"{row.question:24} {row.size:>14}  {row.contender:30} {row.contender_ms:11.3f} ms"
            f"  {row.ratio:7.3f} ({row.ratio_low:.3f} to {row.ratio_high:.3f})"
            f" of {row.baseline}  {also}",
            flush=True,
        )


def _seconds(work: Work, repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    for _ in range(repeats):
        work()
    return (clock() - start) / repeats


def _repeats(work: Work, first: float) -> int:
    """Warm up, and return how often to call ``work`` so that one measurement takes 20 ms."""
    if first > _LONG:
        return 1
    _seconds(work, 3)
    return max(1, round(0.02 / _seconds(work, 1)))
