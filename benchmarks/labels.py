"""How long do simulating, writing and reading labels take at the size of Open Images?

1,742,125 images, 567 classes, 4.4 million generated labels. Simulating is compared with a loop
over images with a dense row each. Run it with: python benchmarks/labels.py [--save]
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from hilltop.data import (
    LabelTable,
    ReadOptions,
    State,
    assemble,
    drop_positives,
    read_labels,
    write_labels,
)
from timing import Row, extra_mib, finish, show

IMAGES, CLASSES, LABELS = 1_742_125, 567, 4_422_289


def generate() -> LabelTable:
    """Labels as many and as unevenly spread as those of Open Images."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(IMAGES), rng.integers(0, IMAGES, LABELS - IMAGES)])
    weights = 1 / np.arange(1, CLASSES + 1) ** 0.8
    columns = rng.choice(CLASSES, LABELS, p=weights / weights.sum())
    images = pa.array([f"{i * 2654435761 % 2**64:016x}" for i in range(IMAGES)])
    names = [f"class {c}" for c in range(CLASSES)]
    return assemble(images, names, rows, columns, State.PRESENT, unlisted=State.ABSENT)


def dense_loop(table: LabelTable, images: int) -> None:
    """Drop labels image by image, with a dense row each, for some of the images."""
    kept = np.zeros((images, CLASSES), dtype=np.uint8)
    for row in range(images):
        dense = np.zeros(CLASSES, dtype=np.uint8)
        dense[table.columns[table.indptr[row] : table.indptr[row + 1]]] = 1
        present = list(np.flatnonzero(dense))
        stay = min(len(present), int(len(present) * 0.2 + 1e-9) + 1)
        kept[row, random.sample(present, stay)] = 1


def timed(question: str, work: Callable[[], object], baseline: float | None = None) -> Row:
    """Measure the memory of a first run and the median time of three more."""
    extra = extra_mib(work)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    ratio = seconds / baseline if baseline else 1.0
    return Row(
        question=question,
        size=f"{IMAGES}x{CLASSES}",
        contender="hilltop",
        baseline="dense loop" if baseline else "itself",
        contender_ms=round(1e3 * seconds, 1),
        baseline_ms=round(1e3 * (baseline or seconds), 1),
        ratio=round(ratio, 4),
        ratio_low=round(ratio, 4),
        ratio_high=round(ratio, 4),
        note=f"{extra:.0f} MiB above the table",
    )


def main() -> None:
    """Measure every step once, on the same table."""
    table = generate()
    print(table)
    part = IMAGES // 20  # the loop is slow and even: a part of it is enough
    start = time.perf_counter()
    dense_loop(table, part)
    loop_seconds = (time.perf_counter() - start) * IMAGES / part
    print(f"dense loop over all images: {loop_seconds:.1f} s (measured on {part} images)")
    rows = [timed("simulate", lambda: drop_positives(table, "0.8", seed=0), loop_seconds)]
    with tempfile.TemporaryDirectory() as folder:
        parquet, csv = Path(folder, "t.parquet"), Path(folder, "t.csv")
        rows.append(timed("write Parquet", lambda: write_labels(table, parquet)))
        rows.append(timed("read Parquet", lambda: read_labels(parquet)))
        write_labels(table, csv, format="long", lossy=True)
        options = ReadOptions(unlisted="absent")
        rows.append(timed("read long CSV", lambda: read_labels(csv, options=options)))
    show(rows)
    finish(rows, {"numpy": np.__version__, "pyarrow": pa.__version__})


if __name__ == "__main__":
    main()
