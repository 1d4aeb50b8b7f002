"""How much memory and time does an audit of very many images take?

Writes probabilities of 1,000 classes in float16, memory-mapped, and labels of which 40% are left;
then runs ``hilltop audit`` on them in one process or several, and says what was found, how long it
took and the most memory that a process had of its own, beside pages of the mapped file. The files
take 20 GB at 10,000,000 images.
Run it with: python benchmarks/scale.py [--images N] [--processes N] [--folder F]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from hilltop.data import LabelTable, State, write_labels
from hilltop.data.scores import ScoreTable

CLASSES, KEPT, BLOCK = 1000, 0.4, 10_000


def write_problem(folder: Path, images: int) -> int:
    """Write ``scores.npy`` and ``labels.parquet``; return how many labels were left out."""
    ids = pa.array(map("{:08}".format, range(images)), pa.string())
    names = [f"c{column:03}" for column in range(CLASSES)]
    centres = np.linspace(-7.0, -11.0, CLASSES, dtype=np.float32)
    rng = np.random.default_rng(0)
    # Rows are taken from a pool and come again, since drawing would take longer than the audit;
    # which of their labels are true and which are left is drawn anew.
    pool = 2.5 * rng.standard_normal((3 * BLOCK, CLASSES), dtype=np.float32) + centres
    pool = 1 / (1 + np.exp(-pool))
    rounded = pool.astype(np.float16)
    scores = ScoreTable.create(folder / "scores.npy", ids, names, dtype=np.float16)
    places, missing = [], 0
    for first in range(0, images, BLOCK):
        count, start = min(BLOCK, images - first), int(rng.integers(2 * BLOCK))
        scores.values[first : first + count] = rounded[start : start + count]
        drawn = rng.random((count, CLASSES), dtype=np.float32)
        true = np.flatnonzero(drawn < pool[start : start + count])
        left = true[rng.random(len(true)) < KEPT]
        missing += len(true) - len(left)
        places.append(left + first * CLASSES)
    every = np.concatenate(places)
    rows, columns = every // CLASSES, every % CLASSES
    labels = LabelTable.from_coo(ids, names, rows, columns, State.PRESENT, unlisted=State.UNKNOWN)
    write_labels(labels, folder / "labels.parquet", format="hilltop")
    return missing


def run_audit(folder: Path, processes: int) -> tuple[float, float]:
    """Audit by the command; return seconds and the most memory of its own of a process in GiB."""
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--nproc-per-node", str(processes), "-m"]
    words = ["--labels", folder / "labels.parquet", "--scores", folder / "scores.npy"]
    out = folder / f"audit-{processes}"
    began, most = time.perf_counter(), 0.0
    audit = subprocess.Popen([*start, "hilltop", "audit", *words, "--out", out])
    while audit.poll() is None:
        most = max(most, *map(own_gib, [audit.pid, *children(audit.pid)]))
        time.sleep(0.2)
    if audit.returncode:
        raise SystemExit(audit.returncode)
    return time.perf_counter() - began, most


def own_gib(process: int) -> float:
    """Memory that a process has for itself: pages of a mapped file are given back when needed."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0  # it has ended
    kib = [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")]
    return sum(kib) / 2**20


def children(process: int) -> list[int]:
    """Processes that a process started."""
    try:
        told = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return [int(number) for number in told.split()]


def main() -> None:
    """Write the problem, unless it is there, and audit it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=10_000_000)
    parser.add_argument("--processes", type=int, nargs="*", default=[1])
    parser.add_argument("--folder", type=Path, help="kept afterwards; a temporary one without it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "labels.parquet").is_file():
            began = time.perf_counter()
            missing = write_problem(folder, options.images)
            print(f"written in {time.perf_counter() - began:.0f} s; {missing:,} labels left out")
        for processes in options.processes:
            seconds, gib = run_audit(folder, processes)
            print(
                f"{processes} processes: {seconds:.0f} s, {gib:.2f} GiB of its own in the largest"
            )


if __name__ == "__main__":
    main()
