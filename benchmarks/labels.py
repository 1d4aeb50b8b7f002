"""How long do simulating, writing and reading labels take, up to the size of Open Images?

At most 1,742,125 images, 567 classes and 4.4 million generated labels. Simulating is compared with
a loop over images with a dense row each; reading and writing with pandas, which only moves columns
and checks nothing, and with making a sparse matrix of what it read.
Run it with: python benchmarks/labels.py [--quick] [--save]
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array

from hilltop.data import (
    LabelTable,
    ReadOptions,
    State,
    drop_positives,
    read_labels,
    write_labels,
)
from memory import extra_mib
from results import finish, parser
from timing import Row, Work, compare

IMAGES, CLASSES, LABELS_PER_IMAGE = 1_742_125, 567, 2.5385
LOOPED = 20_000  # images that the loop is timed on; it is slow and even


def generate(images: int) -> LabelTable:
    """Labels as many and as unevenly spread as those of Open Images."""
    rng = np.random.default_rng(0)
    labels = round(images * LABELS_PER_IMAGE)
    rows = np.concatenate([np.arange(images), rng.integers(0, images, labels - images)])
    weights = 1 / np.arange(1, CLASSES + 1) ** 0.8
    columns = rng.choice(CLASSES, labels, p=weights / weights.sum())
    ids = pa.array([f"{i * 2654435761 % 2**64:016x}" for i in range(images)])
    names = [f"class {c}" for c in range(CLASSES)]
    return LabelTable.from_coo(ids, names, rows, columns, State.PRESENT, unlisted=State.ABSENT)


def dense_loop(table: LabelTable, images: int) -> None:
    """Drop labels image by image, with a dense row each, for some of the images."""
    kept = np.zeros((images, CLASSES), dtype=np.uint8)
    for row in range(images):
        dense = np.zeros(CLASSES, dtype=np.uint8)
        dense[table.columns[table.indptr[row] : table.indptr[row + 1]]] = 1
        present = list(np.flatnonzero(dense))
        stay = min(len(present), int(len(present) * 0.2 + 1e-9) + 1)
        kept[row, random.sample(present, stay)] = 1


def simulating(table: LabelTable, seconds: float) -> list[Row]:
    """Drop labels as in "40% left", by the loop and by us."""
    part = min(len(table), LOOPED)
    works: dict[str, Work] = {
        "dense loop": lambda: dense_loop(table, part),
        "hilltop": lambda: drop_positives(table, "0.8", seed=0),
    }
    loop, ours = compare("simulate labels", str(len(table)), works, "dense loop", seconds=seconds)
    factor = len(table) / part
    note = f"timed on {part} images" if factor > 1 else ""
    slow = round(loop.contender_ms * factor, 4)
    less = {name: round(getattr(ours, name) / factor, 4) for name in RATIOS}
    return [
        replace(loop, contender_ms=slow, baseline_ms=slow, note=note),
        replace(ours, baseline_ms=slow, note=_extra(works["hilltop"]), **less),
    ]


RATIOS = ("ratio", "ratio_low", "ratio_high")


def matrix(frame: pd.DataFrame) -> csr_array:
    """The rows of a file as a matrix of images and classes, which is what training needs."""
    rows, images = pd.factorize(frame["image"])
    columns, classes = pd.factorize(frame["class"], sort=True)
    shape = len(images), len(classes)
    return csr_array((np.ones(len(rows), dtype=np.uint8), (rows, columns)), shape=shape)


def moving(table: LabelTable, folder: Path, seconds: float) -> list[Row]:
    """Write and read the native format, and read a long CSV."""
    parquet, csv, theirs = folder / "t.parquet", folder / "t.csv", folder / "pandas.parquet"
    write_labels(table, csv, format="long", lossy=True)
    frame = pd.read_csv(csv)
    options = ReadOptions(unlisted="absent")
    questions: dict[str, dict[str, Work]] = {
        "write Parquet": {
            "pandas": lambda: frame.to_parquet(theirs),
            "hilltop": lambda: write_labels(table, parquet),
        },
        "read Parquet": {
            "pandas": lambda: pd.read_parquet(theirs),
            "pandas, to a matrix": lambda: matrix(pd.read_parquet(theirs)),
            "hilltop": lambda: read_labels(parquet),
        },
        "read long CSV": {
            "pandas": lambda: pd.read_csv(csv),
            "pandas, to a matrix": lambda: matrix(pd.read_csv(csv)),
            "hilltop": lambda: read_labels(csv, options=options),
        },
    }
    rows = []
    for question, works in questions.items():
        found = compare(question, str(len(table)), works, "pandas", seconds=seconds)
        rows += [*found[:-1], replace(found[-1], note=_extra(works["hilltop"]))]
    return rows


def _extra(work: Work) -> str:
    return f"{extra_mib(work):.0f} MiB beyond the table"


def main() -> None:
    """Measure over three decades of images."""
    options = parser(__doc__).parse_args()
    decades = (3, 2) if options.quick else (3, 2, 1, 0)
    rows = []
    for decade in decades:
        table = generate(IMAGES // 10**decade)
        seconds = 0.5 if options.quick else 6.0
        rows += simulating(table, seconds)
        with tempfile.TemporaryDirectory() as folder:
            rows += moving(table, Path(folder), seconds)
    finish(rows, options, ["numpy", "pyarrow", "pandas"])


if __name__ == "__main__":
    main()
