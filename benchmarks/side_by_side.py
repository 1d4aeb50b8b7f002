"""How much longer runs on features take beside others on the same cores.

Each is a command in a process of its own, as a user starts it, from the start of Python to its
end. Two at once on two cores should take at most 1.3 times as long as one alone.
Run it with: python benchmarks/side_by_side.py [--quick] [--save]
"""

from __future__ import annotations

import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from hilltop.data import LabelTable, State, write_labels
from results import finish, parser
from timing import Row, Work, compare

FEATURES, CLASSES, VAL_ROWS = 1280, 80, 1000
ROUNDS = 3
_number = itertools.count()


def write_problem(folder: Path, rows: int) -> None:
    """Write features, labels that follow from them, and complete ones to train and judge by."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows + VAL_ROWS, FEATURES)).astype(np.float32)
    truth = values @ rng.normal(size=(FEATURES, CLASSES)) > 60
    ids = [f"{row}.jpg" for row in range(len(values))]
    np.savez(folder / "features.npz", ids=np.array(ids), X=values)
    names = [f"class {number}" for number in range(CLASSES)]
    first, last = slice(rows), slice(rows, None)
    for name, part, unlisted in (
        ("labels", first, State.UNKNOWN),
        ("complete", first, State.ABSENT),
        ("val", last, State.ABSENT),
    ):
        present = np.nonzero(truth[part])
        table = LabelTable.from_coo(ids[part], names, *present, State.PRESENT, unlisted=unlisted)
        write_labels(table, folder / f"{name}.parquet")


def train(folder: Path, runs: int) -> None:
    """Train several times at once."""
    words = ("train", "--labels", "labels.parquet", "--loss", "bce", "--no-report")
    wait_for([start(folder, *words) for _ in range(runs)])


def compare_methods(folder: Path, runs: int) -> None:
    """Make so many runs with one command, all at once."""
    words = ("compare", "--labels", "complete.parquet", "--val-labels", "val.parquet")
    words += ("--methods", "bce", "--keep", "0.4", "--jobs", str(runs))
    wait_for([start(folder, *words, "--seeds", ",".join(str(seed) for seed in range(runs)))])


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command on the features of a folder; its results go to a new folder in it."""
    command = [sys.executable, "-m", "hilltop", *words, "--features", "features.npz"]
    command += ["--out", f"out-{next(_number)}"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def wait_for(started: list[subprocess.Popen[bytes]]) -> None:
    """Wait for the end of all; none may have failed."""
    codes = [process.wait() for process in started]
    if any(codes):
        sys.exit(f"a run failed with code {max(codes)}")


def measure(folder: Path, rows: int, rounds: int) -> list[Row]:
    """One command alone and two at once; one run of a comparison and two.

    The note has the processor time of a run: threads that wait for each other while they keep the
    cores busy show in it on any machine, however busy that is with other work.
    """
    found = []
    for name, work in {"hilltop train": train, "hilltop compare --jobs": compare_methods}.items():
        used: dict[str, list[float]] = {f"{name}, one run": [], f"{name}, two at once": []}
        alone, both = used
        works: dict[str, Work] = {
            alone: lambda work=work, to=used[alone]: noting(work, folder, 1, to),  # type: ignore[misc]
            both: lambda work=work, to=used[both]: noting(work, folder, 2, to),  # type: ignore[misc]
        }
        size = f"{rows}x{FEATURES}x{CLASSES}"
        rows_of_it = compare("runs at once", size, works, alone, rounds=rounds, seconds=300.0)
        for row in rows_of_it:
            seconds = statistics.median(used[row.contender])
            found.append(replace(row, note=f"{seconds:.1f} s of processor time a run"))
    return found


def noting(work: Callable[[Path, int], None], folder: Path, runs: int, to: list[float]) -> None:
    """Do it, and note the processor time of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work(folder, runs)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    to.append(spent / runs)


if __name__ == "__main__":
    options = parser(__doc__).parse_args()
    rows, rounds = (400, 1) if options.quick else (4000, ROUNDS)
    with tempfile.TemporaryDirectory() as scratch:
        write_problem(Path(scratch), rows)
        measured = measure(Path(scratch), rows, rounds)
    finish(measured, options, ["torch"])
