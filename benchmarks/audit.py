"""How fast is the ranking of likely missing labels, beside cleanlab's?

Generated scores of 80 classes for up to 100,000 images, with 40% of the labels left. Both get the
same scores. The audit also calibrates them, chooses how labels were lost and estimates, with
intervals, how many of each class are missing; the ranking alone is what comes after that.
cleanlab's filter also decides which to list. See audit_quality.py for how good the
rankings are on real features. Run it with: python benchmarks/audit.py [--quick] [--save]
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.audit.find.candidates import Candidates
from hilltop.audit.find.ranking import fit_ranking, rank_shard
from hilltop.audit.find.score_blocks import Scored, score_blocks
from hilltop.audit.run import Audited, audit
from hilltop.data import LabelTable, State
from hilltop.data.scores import ScoreTable
from memory import traced_mib
from results import finish, installed, parser
from timing import Row, Work, compare

CLASSES, KEPT = 80, 0.4
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


def generate(images: int) -> tuple[Floats, Flags, Flags]:
    """Probabilities, the labels that are left and those that are missing."""
    rng = np.random.default_rng(0)
    centres = np.linspace(-4.0, -7.0, CLASSES)
    logits = centres + 2.5 * rng.standard_normal((images, CLASSES))
    probs = (1 / (1 + np.exp(-logits))).astype(np.float32)
    true = rng.random((images, CLASSES)) < probs
    left = true & (rng.random((images, CLASSES)) < KEPT)
    return probs, left, true & ~left


def table_of(left: Flags) -> LabelTable:
    """The labels that are left, as a table."""
    rows, columns = np.nonzero(left)
    ids = pa.array([f"{number:06}" for number in range(len(left))])
    names = [f"c{column:02}" for column in range(CLASSES)]
    return LabelTable.from_coo(ids, names, rows, columns, State.PRESENT, unlisted=State.UNKNOWN)


def by_hilltop(labels: LabelTable, probs: Floats) -> Audited:
    """The whole audit of given scores."""
    scores = ScoreTable(labels.images, labels.classes, probs)
    scored = Scored(score_blocks(scores, labels), np.arange(len(labels)))
    return audit(labels, scored)


def in_place(found: Candidates, shape: tuple[int, ...]) -> Floats:
    """Probability of every pair that its label is missing, in the order of the scores."""
    ranked = np.zeros(shape, dtype=np.float32)
    ranked[found.rows(), found.columns()] = found.probabilities()
    return ranked


def precision(scores: Floats, left: Flags, missing: Flags) -> float:
    """Average precision of the missing labels among all unlabelled pairs."""
    truth = missing[~left][np.argsort(-scores[~left], kind="stable")]
    ranks = np.flatnonzero(truth) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean())


def measure(images: int, seconds: float) -> list[Row]:
    """Compare at one number of images."""
    probs, left, missing = generate(images)
    labels = table_of(left)
    blocks = score_blocks(ScoreTable(labels.images, labels.classes, probs), labels)
    audited = by_hilltop(labels, probs)
    rows = np.arange(images)
    by = fit_ranking(labels, Scored(blocks, rows))
    works: dict[str, Work] = {
        "hilltop audit": lambda: by_hilltop(labels, probs),
        "hilltop ranking": lambda: rank_shard(labels, blocks, rows, by),
    }
    found = in_place(audited.candidates, probs.shape)
    ranked = {"hilltop audit": found, "hilltop ranking": found}
    if installed("cleanlab"):
        from cleanlab.multilabel_classification import filter as issues
        from cleanlab.multilabel_classification import rank

        warnings.filterwarnings("ignore", module="cleanlab")
        given = [np.flatnonzero(row).tolist() for row in left]
        works["cleanlab scores"] = lambda: rank.get_label_quality_scores_per_class(
            given, probs, method="self_confidence", adjust_pred_probs=False
        )
        works["cleanlab filter"] = lambda: issues.find_multilabel_issues_per_class(
            given, probs, return_indices_ranked_by="self_confidence", n_jobs=1
        )
        ranked["cleanlab scores"] = -np.asarray(works["cleanlab scores"]())
    rows = compare("audit", str(images), works, "hilltop audit", rounds=11, seconds=seconds)
    measured = []
    for row in rows:
        scores = ranked.get(row.contender)
        note = "" if scores is None else f"AP {100 * precision(scores, left, missing):.1f}"
        peak = round(traced_mib(works[row.contender]), 1)
        measured.append(replace(row, note=note, peak_mib=peak))
    return measured


def main() -> None:
    """Measure over three decades of images."""
    options = parser(__doc__).parse_args()
    sizes = [200, 2_000] if options.quick else [100, 1_000, 10_000, 100_000]
    rows = []
    for images in sizes:
        rows += measure(images, seconds=1.0 if options.quick else 10.0)
    finish(rows, options, ["numpy", "cleanlab"])


if __name__ == "__main__":
    main()
