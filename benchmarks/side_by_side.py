"""How much longer one run on features takes beside others on the same cores.

Trains on made-up features alone, then several times at once, each in a process of its own as a
user starts it, and prints wall and processor time. Two at once on two cores should take at most
1.3 times as long as one alone.
Run it with: python benchmarks/side_by_side.py [--rows 4000] [--runs 2]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hilltop.data import State, assemble, write_labels

FEATURES, CLASSES = 1280, 80


def write_problem(folder: Path, rows: int) -> None:
    """Write features and labels that follow from them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    truth = values @ rng.normal(size=(FEATURES, CLASSES)) > 60
    ids = [f"{row}.jpg" for row in range(rows)]
    np.savez(folder / "features.npz", ids=np.array(ids), X=values)
    at, columns = np.nonzero(truth)
    names = [f"class {number}" for number in range(CLASSES)]
    table = assemble(ids, names, at, columns, State.PRESENT, unlisted=State.UNKNOWN)
    write_labels(table, folder / "labels.parquet")


def measure(folder: Path, runs: int) -> tuple[float, float]:
    """Wall and processor seconds of some runs at once."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    started = [
        subprocess.Popen(
            [
                sys.executable, "-m", "hilltop", "train", "--labels", folder / "labels.parquet",
                "--features", folder / "features.npz", "--no-report", "--loss", "bce",
                "--out", folder / f"run-{runs}-{number}",
            ],
            stdout=subprocess.DEVNULL,
        )
        for number in range(runs)
    ]  # fmt: skip
    codes = [process.wait() for process in started]
    if any(codes):
        sys.exit(f"a run failed with code {max(codes)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=2, help="how many at once")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        write_problem(Path(scratch), given.rows)
        alone, alone_cpu = measure(Path(scratch), 1)
        print(f"alone: {alone:.1f} s, {alone_cpu:.1f} s of processor time", flush=True)
        together, cpu = measure(Path(scratch), given.runs)
        print(
            f"{given.runs} at once: {together:.1f} s ({together / alone:.2f} times),"
            f" {cpu / given.runs:.1f} s of processor time each"
        )
