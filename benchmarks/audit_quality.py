"""How good is the ranking of likely missing labels on real features, beside cleanlab's?

COCO slice of the development data (12,000 training images, 40% of the labels left), 4 folds. Both
rank the same out-of-fold scores. Run it with: python benchmarks/audit_quality.py
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from hilltop.audit.find.score_blocks import Scored, score_blocks
from hilltop.audit.run import audit, fold_logits
from hilltop.data import LabelTable, State
from hilltop.data.scores import ScoreTable

DATA = Path(__file__).parents[2] / "shared" / "data" / "coco16k_lite0.npz"
TRAINING_ROWS = 12_000
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
T = TypeVar("T")


def main() -> None:
    """Rank with each set of scores, and print."""
    if not DATA.is_file():
        sys.exit(f"{DATA}: the development data is not there; nothing to measure.")
    content = np.load(DATA)
    left = content["Y_04left"][:TRAINING_ROWS] == 1
    missing = (content["Y_full"][:TRAINING_ROWS] == 1) & ~left
    features = torch.from_numpy(content["X"][:TRAINING_ROWS].astype(np.float32))
    labels = table_of(content["ids"][:TRAINING_ROWS], left)
    rows = np.arange(len(labels))
    print(f"{missing.sum():,} missing labels among {(~left).sum():,} unlabelled pairs")
    logits = timed(
        "heads, trained",
        lambda: fold_logits(labels, features, rows, folds=4, seed=0, say=lambda _: None),
    )(0, len(rows))
    probs = torch.sigmoid(logits).numpy()
    show("the scores themselves", probs, left, missing)
    by_hilltop(labels, probs, left, missing)
    by_cleanlab(probs, left, missing)


def table_of(ids: npt.NDArray[np.str_], left: Flags) -> LabelTable:
    """The labels that are left, as a table."""
    rows, columns = np.nonzero(left)
    classes = [f"c{column:02}" for column in range(left.shape[1])]
    return LabelTable.from_coo(
        pa.array(ids.astype(str)), classes, rows, columns, State.PRESENT, unlisted=State.UNKNOWN
    )


def by_hilltop(labels: LabelTable, probs: Floats, left: Flags, missing: Flags) -> None:
    """Calibrate, rank and estimate, given scores."""
    scores = ScoreTable(labels.images, labels.classes, probs)
    rows = np.arange(len(labels))
    found = timed(
        "hilltop audit, given scores",
        lambda: audit(labels, Scored(score_blocks(scores, labels), rows)),
    )
    print(f"  {found.describe()}")
    ranked = np.zeros(left.shape, dtype=np.float32)
    ranked[found.candidates.rows(), found.candidates.columns()] = found.candidates.probabilities()
    show("hilltop audit", ranked, left, missing)
    intervals, truth = [one.missing for one in found.estimates], missing.sum(axis=0)
    inside = [one.low <= t <= one.high for one, t in zip(intervals, truth, strict=True)]
    held = f"{sum(inside)} of {len(inside)} classes"
    print(f"  estimate {found.missing.count()}; 90% intervals that hold: {held}")


def by_cleanlab(probs: Floats, left: Flags, missing: Flags) -> None:
    """Rank by the label quality of each class, and list the issues that the filter finds."""
    try:
        import cleanlab
        from cleanlab.multilabel_classification import filter as issues
        from cleanlab.multilabel_classification import rank
    except ImportError:
        print("  cleanlab is not installed")
        return
    given = [np.flatnonzero(row).tolist() for row in left]
    for method, adjust in (
        ("self_confidence", False),
        ("self_confidence", True),
        ("normalized_margin", False),
    ):
        name = f"cleanlab {cleanlab.__version__} {method}{', adjusted' if adjust else ''}"

        def score(method: str = method, adjust: bool = adjust) -> Floats:
            return rank.get_label_quality_scores_per_class(
                given, probs, method=method, adjust_pred_probs=adjust
            )

        show(name, -timed(name, score), left, missing)
    name = "cleanlab filter"
    flagged, _, _ = timed(
        name,
        lambda: issues.find_multilabel_issues_per_class(
            given, probs, return_indices_ranked_by="self_confidence", n_jobs=1
        ),
    )
    found = np.zeros(left.shape, dtype=bool)
    for column, images in enumerate(flagged):
        found[images, column] = True
    found &= ~left
    right = (found & missing).sum()
    print(f"  {name:<44} {found.sum():,} pairs, {right / max(1, found.sum()):.3f} of them missing")


def show(name: str, scores: Floats, left: Flags, missing: Flags) -> None:
    """Print average precision and precision of the first 1,000 among the unlabelled pairs."""
    order = np.argsort(-scores[~left], kind="stable")
    truth = missing[~left][order]
    ranks = np.flatnonzero(truth) + 1
    precision = float((np.arange(1, len(ranks) + 1) / ranks).mean())
    print(f"  {name:<44} AP {100 * precision:5.2f}   first 1,000: {truth[:1000].mean():.3f}")


def timed(name: str, work: Callable[[], T]) -> T:
    """Run once for time, and once more for what Python allocates if it was quick."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = ""
    if cpu < 10:
        tracemalloc.start()
        work()
        memory = f", arrays {tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB"
        tracemalloc.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {name:<44} {wall:.1f} s, {cpu:.1f} s of CPU{memory}; process so far {peak:.0f} MB")
    return result


if __name__ == "__main__":
    main()
