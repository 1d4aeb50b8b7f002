"""How long does mean average precision take, and how much memory beyond the scores?

Compared with scikit-learn, torchmetrics and the numpy form released with the paper, which breaks
ties as they come. Run it with: python benchmarks/metrics.py [--quick] [--save]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import average_precision_score

from hilltop.metrics import average_precision
from memory import traced_mib
from results import finish, installed, parser
from timing import Row, Work, compare

LARGEST = 1_000_000
Scores = npt.NDArray[np.float32]
Targets = npt.NDArray[np.uint8]


def released_numpy(scores: Scores, targets: Targets) -> list[float]:
    """Sort each class by score; mean precision at its labels, whatever the order of ties."""
    found = []
    for column in range(scores.shape[1]):
        order = np.argsort(-scores[:, column])
        labels = targets[order, column] == 1
        ranks = np.arange(1, len(labels) + 1)
        precision = np.cumsum(labels) / ranks
        found.append(float(precision[labels].sum() / max(1, labels.sum())))
    return found


def contenders(scores: Scores, targets: Targets) -> dict[str, Work]:
    """Everything that gives the average precision of every class."""
    works: dict[str, Work] = {
        "scikit-learn": lambda: average_precision_score(targets, scores, average=None),
        "released numpy": lambda: released_numpy(scores, targets),
        "hilltop": lambda: average_precision(scores, targets),
    }
    if installed("torchmetrics"):
        from torchmetrics.functional.classification import multilabel_average_precision

        given, truth = torch.from_numpy(scores), torch.from_numpy(targets).long()
        classes = scores.shape[1]
        works["torchmetrics"] = lambda: multilabel_average_precision(
            given, truth, classes, average="none", validate_args=False
        )
    return works


def measure(images: int, classes: int, rounds: int, seconds: float) -> list[Row]:
    """Compare at one size, on distinct scores and on scores with many ties."""
    rng = np.random.default_rng(0)
    targets = (rng.random((images, classes), dtype=np.float32) < 2.9 / 80).astype(np.uint8)
    targets[0] = 1  # torchmetrics has no number for a class without labels
    distinct = rng.random((images, classes), dtype=np.float32) ** (2 - targets)
    rows = []
    kinds = {"distinct": distinct, "ties": np.round(distinct, 2)}
    if images == LARGEST:  # a minute a round
        del kinds["distinct"]
    for kind, scores in kinds.items():
        works = contenders(scores, targets)
        ours = works["hilltop"]()
        for name, work in works.items():
            if images <= 50_000 and not (kind == "ties" and name == "released numpy"):
                np.testing.assert_allclose(ours, np.asarray(work()), atol=1e-4, err_msg=name)
        share = traced_mib(works["hilltop"]) / (scores.nbytes / 2**20)
        notes = {"hilltop": f"extra memory {share:.2f} x scores"}
        if kind == "ties":
            notes["released numpy"] = "another result: ties as they come"
        question, size = f"average precision, {kind}", f"{images}x{classes}"
        rows += compare(
            question, size, works, "scikit-learn", rounds=rounds, seconds=seconds, notes=notes
        )
    return rows


def main() -> None:
    """Measure at the size of the COCO and Open Images test sets, and up to a million images."""
    options = parser(__doc__).parse_args()
    sizes = (
        [(1_000, 100), (2_000, 20)]
        if options.quick
        else [
            (40_137, 80),
            (37_306, 567),
            (1_000, 100),
            (10_000, 100),
            (100_000, 100),
            (LARGEST, 100),
        ]
    )
    rows = []
    for images, classes in sizes:
        rounds = 2 if images == LARGEST else 11
        rows += measure(images, classes, rounds, seconds=1.0 if options.quick else 12.0)
    finish(rows, options, ["numpy", "scikit-learn", "torchmetrics"])


if __name__ == "__main__":
    main()
