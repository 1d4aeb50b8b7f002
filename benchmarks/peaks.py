"""Peak memory of every command, as a user starts it: the process and all that it starts.

Samples the resident memory of the process tree five times a second. With --beside, busy loops take
the cores meanwhile: what runs ahead of its consumer grows on a slow machine.
Run it with: python benchmarks/peaks.py [--beside 2] [--only demo] [--curve curve.csv]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import write_problem

ROWS = 4000
STEP_S = 0.2
COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "labels.parquet"),
    "convert": ("convert", "labels.parquet", "labels.csv", "--to", "long", "--lossy"),
    "simulate": ("simulate", "labels.parquet", "--r", "0.5", "--out", "left.parquet"),
    "advise": ("advise", "left.parquet"),
    "train": ("train", "--labels", "left.parquet", "--features", "features.npz", "--out", "run"),
    "predict": ("predict", "run", "--features", "features.npz", "--out", "scores.npy"),
    "evaluate": ("evaluate", "scores.npy", "labels.parquet"),
    "audit": ("audit", "--labels", "left.parquet", "--features", "features.npz", "--out", "audit"),
    "queue": ("queue", "audit", "--out", "queue.csv"),
    "export": ("export", "run", "--out", "model.onnx"),
    "demo": ("demo", "--out", "demo"),
}
"""What is run, in this order: later ones need what earlier ones leave."""


def tree_mib(pid: int) -> float:
    """Resident memory of a process and its descendants, pages they share counted once each."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has just ended
            parents.setdefault(parent, []).append(int(entry.name))
    total, wanted = 0, [pid]
    while wanted:
        one = wanted.pop()
        wanted += parents.get(one, [])
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(words: tuple[str, ...], folder: Path) -> list[tuple[float, float]]:
    """Run a command; return seconds and MiB, sample by sample."""
    began, found = time.perf_counter(), []
    process = subprocess.Popen(
        [sys.executable, "-m", "hilltop", *words], cwd=folder, stdout=subprocess.DEVNULL
    )
    while process.poll() is None:
        found.append((time.perf_counter() - began, tree_mib(process.pid)))
        time.sleep(STEP_S)
    if process.returncode:
        sys.exit(f"{words[0]} failed with code {process.returncode}")
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=int, default=0, help="busy loops on the same cores")
    parser.add_argument("--only", default="", help="one command")
    parser.add_argument("--curve", type=Path, help="CSV file for all samples")
    given = parser.parse_args()
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.beside)
    ]
    lines = ["command,seconds,mib"]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            write_problem(Path(scratch), ROWS)
            print("| command | peak MiB | seconds |\n|---|---|---|")
            for name, words in COMMANDS.items():
                if given.only in ("", name):
                    samples = measure(words, Path(scratch))
                    peak = max(mib for _, mib in samples)
                    print(f"| {name} | {peak:,.0f} | {samples[-1][0]:.0f} |", flush=True)
                    lines += [f"{name},{seconds:.1f},{mib:.0f}" for seconds, mib in samples]
    finally:
        for loop in loops:
            loop.kill()
    if given.curve is not None:
        given.curve.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
