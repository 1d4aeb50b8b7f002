"""How long does mean average precision take, and how much memory beyond the scores?

Compared with scikit-learn. Run it with: python benchmarks/metrics.py [--save]
"""

from __future__ import annotations

import numpy as np
import sklearn
from sklearn.metrics import average_precision_score

from hilltop.metrics import average_precision
from timing import Row, compare, finish, show, traced_mib


def measure(images: int, classes: int, rounds: int) -> list[Row]:
    """Compare at one size, on distinct scores and on scores with many ties."""
    rng = np.random.default_rng(0)
    targets = (rng.random((images, classes)) < 2.9 / 80).astype(np.uint8)
    distinct = (rng.random((images, classes)) ** (2 - targets)).astype(np.float32)
    rows = []
    for kind, scores in {"distinct": distinct, "ties": np.round(distinct, 2)}.items():
        work = {
            "scikit-learn": lambda s=scores: average_precision_score(targets, s, average=None),
            "hilltop": lambda s=scores: average_precision(s, targets),
        }
        share = traced_mib(work["hilltop"]) / (scores.nbytes / 2**20)
        np.testing.assert_allclose(work["hilltop"](), work["scikit-learn"](), atol=1e-9)
        notes = {"hilltop": f"extra memory {share:.2f} x scores"}
        question = f"average precision, {kind}"
        size = f"{images}x{classes}"
        rows += compare(question, size, work, "scikit-learn", rounds=rounds, notes=notes)
    return rows


def main() -> None:
    """Measure at the size of the COCO and Open Images test sets."""
    rows = measure(40137, 80, rounds=7) + measure(37306, 567, rounds=3)
    show(rows)
    finish(rows, {"numpy": np.__version__, "scikit-learn": sklearn.__version__})


if __name__ == "__main__":
    main()
