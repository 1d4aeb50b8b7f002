"""Does the default do harm on anybody's data, however labels were lost?

Takes a folder of ``.npz`` files with features ``X`` and complete 0/1 labels ``Y`` (``Y_full``, or
``X_train``, ``Y_train``, ``X_val``, ``Y_val`` with labels that are 1 where present, do as well).
60% of the rows train, 40% test, by a permutation from the seed; classes with fewer than 10 labels
are left out. Labels are lost in every way that :mod:`hilltop.data` knows, and for each:

- mAP on complete test labels of heads with BCE, with ``auto``, and with BCE on complete labels;
  with nothing lost, of scikit-learn's logistic regression, its penalty chosen by cross-validation;
- the audit: average precision of the ranking against out-of-fold BCE (the order that cleanlab's
  self-confidence gives, too), precision in the first 1%, whether the 90% intervals of the number
  of missing labels cover it (all classes together, and by class), and their width in labels.

Run it with: python reproduction/anybody.py FOLDER --out anybody.csv [--seeds 0,1,2] [--sets a,b]
Rows that the file holds already are not made again; ``--table`` prints what it holds.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hilltop.audit import find_missing_labels
from hilltop.data import (
    LabelTable,
    State,
    assemble,
    drop_positives,
    keep_each,
    lose_by_annotator,
    lose_by_batch,
    lose_by_clarity,
    lose_by_class,
)
from hilltop.data.missing import Thinned
from hilltop.losses import LabelStats
from hilltop.metrics import average_precision
from hilltop.training import fit_head
from hilltop.training.folds import out_of_fold_logits
from hilltop.training.learner import head_loss

Array = npt.NDArray[Any]
LEAST_LABELS, TRAIN_SHARE = 10, 0.6
COLUMNS = (
    "set", "way", "seed", "rows", "classes", "kept", "bce", "auto", "complete", "logistic",
    "found", "estimated_kept", "oof_ap", "audit_ap", "oof_first", "audit_first", "covered",
    "covered_by_class", "width",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One set at one seed: features and complete labels, to train and to test on."""

    features: Array
    labels: Array
    test_features: Array
    test_labels: Array

    @classmethod
    def read(cls, path: Path, seed: int) -> Cell:
        """Read and split a file."""
        content = np.load(path)
        if "X_train" in content:
            both = (content[name] for name in ("X_train", "Y_train", "X_val", "Y_val"))
            features, labels, test_features, test_labels = both
        else:
            features, labels = content["X"], content["Y" if "Y" in content else "Y_full"]
            order = np.random.default_rng(seed).permutation(len(features))
            train, test = np.split(order, [int(TRAIN_SHARE * len(order))])
            test_features, test_labels = features[test], labels[test]
            features, labels = features[train], labels[train]
        wide = (labels == 1).sum(axis=0) >= LEAST_LABELS
        numbers = (np.asarray(one, dtype=np.float32) for one in (features, test_features))
        return cls(next(numbers), labels[:, wide] == 1, next(numbers), test_labels[:, wide] == 1)

    def table(self) -> LabelTable:
        """The complete labels to train with, as a table."""
        images = [str(row) for row in range(len(self.labels))]
        names = [str(column) for column in range(self.labels.shape[1])]
        places = self.labels.nonzero()
        return assemble(images, names, *places, State.PRESENT, unlisted=State.ABSENT)


def by_clarity(cell: Cell, seed: int) -> Thinned:
    """Clear cases first, as heads see them that learned from complete labels of other rows."""
    targets = torch.from_numpy(cell.labels).float()
    loss = head_loss("bce", reduction="sum")
    scores = out_of_fold_logits(torch.from_numpy(cell.features), targets, loss, seed=seed)
    return lose_by_clarity(cell.table(), scores.numpy(), seed=seed)


WAYS: dict[str, Callable[[Cell, int], Thinned]] = {
    "none": lambda cell, seed: keep_each(cell.table(), 1.0, seed=seed),
    "r0.5": lambda cell, seed: drop_positives(cell.table(), "0.5", seed=seed),
    "r0.8": lambda cell, seed: drop_positives(cell.table(), "0.8", seed=seed),
    "r1": lambda cell, seed: drop_positives(cell.table(), 1, seed=seed),
    "u0.3": lambda cell, seed: keep_each(cell.table(), 0.3, seed=seed),
    "u0.5": lambda cell, seed: keep_each(cell.table(), 0.5, seed=seed),
    "u0.8": lambda cell, seed: keep_each(cell.table(), 0.8, seed=seed),
    "class": lambda cell, seed: lose_by_class(cell.table(), seed=seed),
    "clarity": by_clarity,
    "batch": lambda cell, seed: lose_by_batch(cell.table(), seed=seed),
    "annotator": lambda cell, seed: lose_by_annotator(cell.table(), seed=seed),
}


def main() -> None:
    """Fill the file, and print what it says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("anybody.csv"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not given.table:
        for seed in map(int, given.seeds.split(",")):
            for path in sorted(given.folder.glob("*.npz")):
                if given.sets is None or path.stem in given.sets.split(","):
                    fill(path, given.ways.split(","), seed, given.out)
    print_table(read_rows(given.out))


def fill(path: Path, ways: list[str], seed: int, out: Path) -> None:
    """Measure what the file does not hold yet."""
    if not {"X", "X_train"} & set(np.load(path)):
        return
    held = {(row["set"], row["way"], row["seed"]) for row in read_rows(out)}
    complete: float | None = None
    for way in ways:
        if (path.stem, way, str(seed)) in held:
            continue
        cell = Cell.read(path, seed)
        if complete is None:
            complete = trained_map(cell, cell.labels, "bce", seed)
        row = measure(cell, way, seed, complete)
        row |= {"set": path.stem, "way": way, "seed": seed}
        new = not out.is_file()
        with out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow({name: _short(row[name]) for name in COLUMNS})
        print(path.stem, way, seed, f"bce {row['bce']:.2f} auto {row['auto']:.2f}", flush=True)


def measure(cell: Cell, way: str, seed: int, complete: float) -> dict[str, Any]:
    """Everything about one way of losing labels."""
    left = WAYS[way](cell, seed).table.dense() == State.PRESENT
    return {
        "rows": len(left),
        "classes": left.shape[1],
        "kept": left.sum() / cell.labels.sum(),
        "complete": complete,
        "bce": complete if way == "none" else trained_map(cell, left, "bce", seed),
        "auto": trained_map(cell, left, "auto", seed),
        "logistic": logistic_map(cell, seed) if way == "none" else "",
        **audited(cell, left, seed),
    }


def trained_map(cell: Cell, left: Array, name: str, seed: int) -> float:
    """Per cent of mAP on complete test labels."""
    targets, features = torch.from_numpy(left).float(), torch.from_numpy(cell.features)
    unknown = torch.zeros(targets.shape, dtype=torch.bool)
    fitted = fit_head(
        features,
        lambda rows: (targets[rows], unknown[rows]),
        head_loss(name, reduction="sum"),
        classes=targets.shape[1],
        stats=LabelStats.of(targets),
        seed=seed,
    )
    with torch.no_grad():
        scores = fitted.head(torch.from_numpy(cell.test_features)).numpy()
    return mean_ap(scores, cell.test_labels)


def logistic_map(cell: Cell, seed: int) -> float:
    """The same of one-vs-rest logistic regression, as a user of scikit-learn would do it."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    warnings.simplefilter("ignore", FutureWarning)  # about names of attributes
    sparse = (cell.features == 0).mean() > 0.5
    columns = []
    for column in range(cell.labels.shape[1]):
        model = LogisticRegressionCV(
            Cs=[0.001, 0.01, 0.1, 1.0, 10.0], cv=3, scoring="average_precision", max_iter=300
        )
        pipeline = make_pipeline(MaxAbsScaler() if sparse else StandardScaler(), model)
        pipeline.fit(cell.features, cell.labels[:, column])
        columns.append(pipeline.decision_function(cell.test_features))
    return mean_ap(np.stack(columns, axis=1), cell.test_labels)


def mean_ap(scores: Array, labels: Array) -> float:
    """Per cent of mAP over the classes that have a label."""
    return 100 * float(np.nanmean(average_precision(scores, labels)))


def audited(cell: Cell, left: Array, seed: int) -> dict[str, Any]:
    """What the audit is worth."""
    found = find_missing_labels(left, features=cell.features, seed=seed)
    missing, open_pairs = cell.labels & ~left, ~left
    targets = torch.from_numpy(left).float()
    loss = head_loss("bce", reduction="sum")
    plain = out_of_fold_logits(
        torch.from_numpy(cell.features), targets, loss, repeats=2, seed=seed
    ).numpy()
    ours = np.zeros(left.shape)
    places = found.candidates.rows(), found.candidates.columns()
    ours[places] = -np.arange(len(found.candidates))
    truth = missing[open_pairs]
    first = max(1, len(truth) // 100)

    def precision(scores: Array) -> float:
        return float(truth[np.argsort(-scores[open_pairs], kind="stable")[:first]].mean())

    def ranked(scores: Array) -> float:
        return float(average_precision(scores[open_pairs][:, None], truth[:, None])[0])

    some = bool(truth.any())
    by_class = missing.sum(axis=0)
    covered = [e.low <= n <= e.high for e, n in zip(found.estimates, by_class, strict=True)]
    return {
        "found": found.belief.kind,
        "estimated_kept": found.keep.keep,
        "oof_ap": ranked(plain) if some else "",
        "audit_ap": ranked(ours) if some else "",
        "oof_first": precision(plain),
        "audit_first": precision(ours),
        "covered": int(found.total.low <= truth.sum() <= found.total.high),
        "covered_by_class": float(np.mean(covered)),
        "width": (found.total.high - found.total.low) / max(1, left.sum()),
    }


def read_rows(path: Path) -> list[dict[str, str]]:
    """What was measured already."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def print_table(rows: list[dict[str, str]]) -> None:
    """Means over seeds by set and by way, and the goals over all cells."""
    for key in ("set", "way"):
        print(
            f"{key:10} cells  auto-BCE  worst  share of gap  audit-OOF AP  covered  by class  width"
        )
        for name in dict.fromkeys(row[key] for row in rows):
            print(_line(name, [row for row in rows if row[key] == name]))
    print(_line("all", rows))
    for row in (row for row in rows if row["logistic"]):
        gap = float(row["bce"]) - float(row["logistic"])
        print(f"{row['set']:10} seed {row['seed']}: BCE {gap:+.2f} against logistic regression")


def _line(name: str, rows: list[dict[str, str]]) -> str:
    def column(key: str, rows: list[dict[str, str]]) -> Array:
        return np.array([float(row[key]) for row in rows])

    gain, gap = (column(key, rows) - column("bce", rows) for key in ("auto", "complete"))
    cells: dict[tuple[str, str], list[float]] = {}
    for row, one in zip(rows, gain.tolist(), strict=True):
        cells.setdefault((row["set"], row["way"]), []).append(one)
    worst = min(float(np.mean(seeds)) for seeds in cells.values())
    share = 100 * gain.sum() / gap.sum() if gap.sum() > 1 else float("nan")
    ranked = [row for row in rows if row["audit_ap"]]
    better = column("audit_ap", ranked) - column("oof_ap", ranked) if ranked else np.zeros(1)
    covered, by_class = (100 * column(k, rows).mean() for k in ("covered", "covered_by_class"))
    width = float(np.median(column("width", rows)))
    return (
        f"{name:10} {len(cells):5d} {gain.mean():+9.2f} {worst:+6.2f} {share:12.0f}%"
        f" {better.mean():+13.3f} {covered:7.0f}% {by_class:8.0f}% {width:6.2f}"
    )


def _short(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float | np.floating) else value


if __name__ == "__main__":
    main()
