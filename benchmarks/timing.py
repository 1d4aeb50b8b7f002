"""Interleaved timing: every contender runs in turn, many times, and is compared as a ratio.

The machine may be shared and noisy, so seconds mean little; the ratio of two things measured in the
same seconds means more. The median of the ratios and their quartiles are reported.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

Work = Callable[[], object]


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
    note: str = ""


def compare(
    question: str,
    size: str,
    contenders: dict[str, Work],
    baseline: str,
    *,
    rounds: int,
    notes: dict[str, str] | None = None,
) -> list[Row]:
    """Time all contenders in turn; return one row for each, as ratios to ``baseline``."""
    repeats = {name: _repeats(work) for name, work in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            times[name].append(_seconds(work, repeats[name]))
    rows = []
    for name in contenders:
        ratios = [a / b for a, b in zip(times[name], times[baseline], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
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
        print(
            f"{row.question:22} {row.size:>10}  {row.contender:26} {row.contender_ms:10.3f} ms"
            f"  {row.ratio:6.3f} ({row.ratio_low:.3f} to {row.ratio_high:.3f})"
            f" of {row.baseline}  {row.note}"
        )


def finish(rows: list[Row], versions: dict[str, str]) -> None:
    """Append the rows to results.csv if ``--save`` was given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true", help="append to benchmarks/results.csv")
    if not parser.parse_args().save:
        return
    commit = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    context = {
        "hardware": f"{_cpu()}, {os.cpu_count()} cores",
        "versions": " ".join(f"{name} {version}" for name, version in versions.items()),
        "commit": subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    path = Path(__file__).with_name("results.csv")
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [*(field.name for field in fields(Row)), *context])
        if new:
            writer.writeheader()
        writer.writerows({**asdict(row), **context} for row in rows)


def extra_mib(work: Work) -> float:
    """Peak resident memory of this process during ``work`` beyond what it had before, in MiB."""
    done = threading.Event()
    before = peak = _resident_mib()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, _resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return peak - before


def traced_mib(work: Work) -> float:
    """Peak of what Python and numpy allocate during ``work``, in MiB; memory reused counts too."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _seconds(work: Work, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def _repeats(work: Work) -> int:
    """Warm up, and return how often to call ``work`` so that one measurement takes 20 ms."""
    _seconds(work, 3)
    return max(1, round(0.02 / _seconds(work, 1)))


def _cpu() -> str:
    names = [line for line in _cpuinfo() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor()


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20
