"""How do time and memory of an audit from features grow with images and classes?

Images have about four classes each, drawn with probabilities that fall with the rank of the class;
features are sums of random prototypes of the classes and noise; 60% of the labels are kept. Each
size runs in a process of its own, whose largest resident memory is given, data included.
Run it with: python benchmarks/audit_growth.py [--sizes 10000x100 ...] [--features F] [--dense]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import torch

from hilltop.audit import Scored, audit
from hilltop.audit import run as audit_run
from hilltop.data import LabelTable, State

SIZES = ("10000x100", "10000x1000", "100000x100", "100000x1000", "1000000x100")
LABELS, KEPT, NOISE = 4, 0.6, 0.15


def problem(images: int, classes: int, width: int) -> tuple[torch.Tensor, LabelTable, np.ndarray]:
    """Features, the labels that were kept, and the places of those that were not."""
    rng = np.random.default_rng(0)
    share = 1 / (10 + np.arange(classes))
    drawn = rng.choice(classes, (images, LABELS), p=share / share.sum())
    prototypes = rng.standard_normal((classes, width), dtype=np.float32) / np.sqrt(width)
    features = NOISE * rng.standard_normal((images, width), dtype=np.float32)
    for column in drawn.T:
        features += prototypes[column]
    places = np.unique(np.arange(images)[:, None] * classes + drawn)
    kept = rng.random(len(places)) < KEPT
    rows, columns = np.divmod(places[kept], classes)
    ids = pa.array(map("{:08}".format, range(images)), pa.string())
    names = [f"c{column:05}" for column in range(classes)]
    table = LabelTable.from_coo(ids, names, rows, columns, State.PRESENT, unlisted=State.UNKNOWN)
    return torch.from_numpy(features), table, places[~kept]


def measure(images: int, classes: int, width: int, dense: bool) -> dict[str, float]:
    """Audit one size; return seconds, GiB, counts, and how many of the lost labels come first."""
    features, table, lost = problem(images, classes, width)
    audit_run.DENSE_PAIRS = 1 << 40 if dense else 0
    rows, began = np.arange(images), time.perf_counter()
    logits = audit_run.fold_logits(table, features, rows, folds=4, seed=0, say=lambda _: None)
    trained = time.perf_counter()
    found = audit(table, Scored(logits, rows))
    ended = time.perf_counter()
    candidates = found.candidates
    places = candidates.rows() * classes + candidates.columns()
    hits = np.isin(places[: len(lost)], lost)
    every = np.isin(places, lost)
    ranks = np.flatnonzero(every) + 1
    return {
        "heads_s": round(trained - began, 1),
        "rank_s": round(ended - trained, 1),
        "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "lost": len(lost),
        "estimate": round(found.missing.value),
        "low": round(found.missing.low),
        "high": round(found.missing.high),
        "recall": round(float(hits.mean()), 4),
        "ap": round(float((np.arange(1, len(ranks) + 1) / ranks).sum() / len(lost)), 4),
    }


def main() -> None:
    """Measure the sizes one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="images x classes")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--dense", action="store_true", help="matrices instead of blocks")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for size in options.sizes:
        if options.one:
            images, classes = map(int, size.split("x"))
            found = measure(images, classes, options.features, options.dense)
            print(size, "dense" if options.dense else "blocks", json.dumps(found), flush=True)
            continue
        words = ["--sizes", size, "--features", str(options.features), "--one"]
        words += ["--dense"] if options.dense else []
        subprocess.run([sys.executable, __file__, *words], check=False)


if __name__ == "__main__":
    main()
