"""Does the default do harm on anybody's data, however labels were lost?

Takes a folder of ``.npz`` files, or one of them, as :mod:`lost_labels` reads them: 60% of the rows
train, 40% test, by a permutation from the seed (``--first N``: the first N rows train); classes
with fewer than 10 labels are left out. Labels are lost in every way that is known there, and for
each:

- mAP on complete test labels of heads with BCE, with ``auto``, and with BCE on complete labels;
  with nothing lost, of scikit-learn's logistic regression, its penalty chosen by cross-validation;
- the audit: average precision of the ranking against out-of-fold BCE (the order that cleanlab's
  self-confidence gives, too), precision in the first 1%, whether the 90% intervals of the number
  of missing labels cover it (all classes together, and by class), and their width in labels.

Run it with: python reproduction/anybody.py FOLDER --out anybody.csv [--seeds 0,1,2] [--sets a,b]
What the file holds already is not made again, so that ``--only heads``, ``--only logistic`` and
``--only audit`` can fill it one after the other; ``--minutes N`` starts nothing after that time;
``--table`` prints what the file holds.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lost_labels import WAYS, Array, Cell

from hilltop.audit.find.score_blocks import Scored
from hilltop.audit.run import audit, fold_logits
from hilltop.data import LabelTable, State
from hilltop.losses import LabelStats
from hilltop.metrics import average_precision
from hilltop.models import FeatureHead
from hilltop.training import fit_head
from hilltop.training.learner import head_loss
from hilltop.training.recipe import HEADS, Recipe

__all__ = ["WAYS", "Array", "Cell"]
COLUMNS = (
    "set", "way", "seed", "rows", "classes", "kept", "bce", "auto", "complete", "logistic",
    "found", "estimated_kept", "oof_ap", "audit_ap", "oof_first", "audit_first", "covered",
    "covered_by_class", "width",
)  # fmt: skip

PARTS = {"heads": "auto", "logistic": "logistic", "audit": "covered"}
"""What is measured, and a column that tells that it was."""


def main() -> None:
    """Fill the file, and print what it says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("anybody.csv"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--ways", default=None)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--only", choices=list(PARTS), default=None)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not given.table:
        given.until = time.monotonic() + 60 * given.minutes
        files = [given.folder] if given.folder.is_file() else sorted(given.folder.glob("*.npz"))
        for seed in map(int, given.seeds.split(",")):
            for path in files:
                if given.sets is None or path.stem in given.sets.split(","):
                    fill(path, seed, given)
    print_table(read_rows(given.out))


def fill(path: Path, seed: int, given: argparse.Namespace) -> None:
    """Measure what the file does not hold yet."""
    if not {"X", "X_train"} & set(np.load(path)):
        return
    held = {(row["set"], row["way"], row["seed"]): row for row in read_rows(given.out)}
    cell = Cell.read(path, seed, first=given.first)
    complete: float | None = None
    for way in given.ways.split(",") if given.ways else cell.ways():
        known = held.get((path.stem, way, str(seed)), {})
        parts = [
            part for part in PARTS if given.only in (None, part) and not known.get(PARTS[part])
        ]
        parts = [part for part in parts if part != "logistic" or way == "none"]
        if not parts or way not in cell.ways() or time.monotonic() > given.until:
            continue
        if complete is None and "heads" in parts:
            complete = trained_map(cell, cell.labels, "bce", seed)
        row = measure(cell, way, seed, complete, parts)
        append(given.out, row | {"set": path.stem, "way": way, "seed": seed})


def append(out: Path, row: dict[str, Any]) -> None:
    """Write a row."""
    new = not out.is_file()
    with out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({name: _short(row.get(name, "")) for name in COLUMNS})
    print({name: value for name, value in row.items() if name in COLUMNS}, flush=True)


def measure(
    cell: Cell, way: str, seed: int, complete: float | None, parts: list[str]
) -> dict[str, Any]:
    """What is asked for about one way of losing labels."""
    left = cell.lose(way, seed)
    row: dict[str, Any] = {"rows": len(left), "classes": left.shape[1]}
    row["kept"] = left.sum() / cell.labels.sum()
    if "heads" in parts:
        recipe = recipe_of(cell, left, seed)
        row["complete"] = row["bce"] = complete
        if way != "none":
            row["bce"] = trained_map(cell, left, "bce", seed, recipe)
        row["auto"] = trained_map(cell, left, "auto", seed, recipe)
    if "logistic" in parts:
        row["logistic"] = logistic_map(cell)
    return row | (audited(cell, left, seed) if "audit" in parts else {})


def recipe_of(cell: Cell, left: Array, seed: int) -> Recipe:
    """The recipe with the penalty that heads on these labels choose, found once for all of them."""
    features, targets = torch.from_numpy(cell.features), torch.from_numpy(left).float()
    head = FeatureHead(features.shape[1], 1, hidden=None)
    head.fit_scale(features)
    return HEADS.for_head(head, features, lambda rows: (targets[rows], None), seed=seed)


def trained_map(cell: Cell, left: Array, name: str, seed: int, recipe: Recipe = HEADS) -> float:
    """Per cent of mAP on complete test labels."""
    targets, features = torch.from_numpy(left).float(), torch.from_numpy(cell.features)
    fitted = fit_head(
        features,
        lambda rows: (targets[rows], None),
        head_loss(name, reduction="sum"),
        classes=targets.shape[1],
        stats=LabelStats.of(targets),
        seed=seed,
        recipe=recipe,
    )
    with torch.no_grad():
        scores = fitted.head(torch.from_numpy(cell.test_features)).numpy()
    return mean_ap(scores, cell.test_labels)


def logistic_map(cell: Cell) -> float:
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
    rows, features = np.arange(len(left)), torch.from_numpy(cell.features)
    table = table_of(left)
    logits = fold_logits(table, features, rows, folds=4, seed=seed, say=lambda _: None)
    plain, found = logits(0, len(rows)), audit(table, Scored(logits, rows))
    missing, open_pairs = cell.labels & ~left, ~left
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
    intervals = [estimate.missing for estimate in found.estimates]
    covered = [one.low <= n <= one.high for one, n in zip(intervals, by_class, strict=True)]
    return {
        "found": found.model.kind,
        "estimated_kept": found.frequency.value,
        "oof_ap": ranked(plain.numpy()) if some else "",
        "audit_ap": ranked(ours) if some else "",
        "oof_first": precision(plain.numpy()),
        "audit_first": precision(ours),
        "covered": int(found.missing.low <= truth.sum() <= found.missing.high),
        "covered_by_class": float(np.mean(covered)),
        "width": (found.missing.high - found.missing.low) / max(1, left.sum()),
    }


def table_of(left: Array) -> LabelTable:
    """Labels as a table in which all others are unknown."""
    images, names = ([str(number) for number in range(size)] for size in left.shape)
    return LabelTable.from_coo(
        images, names, *left.nonzero(), State.PRESENT, unlisted=State.UNKNOWN
    )


def read_rows(path: Path) -> list[dict[str, str]]:
    """What was measured already: one row for each set, way and seed."""
    if not path.is_file():
        return []
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            known = rows.setdefault((row["set"], row["way"], row["seed"]), row)
            known.update({name: value for name, value in row.items() if value})
    return list(rows.values())


def print_table(rows: list[dict[str, str]]) -> None:
    """Means over seeds by set and by way, and the goals over all cells."""
    for key in ("set", "way"):
        print(
            f"{key:10} cells  auto-BCE  worst  share of gap  audit-OOF AP  covered  by class  width"
        )
        for name in dict.fromkeys(row[key] for row in rows):
            print(_line(name, [row for row in rows if row[key] == name]))
    print(_line("all", rows))
    for row in (row for row in rows if row["logistic"] and row["bce"]):
        gap = float(row["bce"]) - float(row["logistic"])
        print(f"{row['set']:10} seed {row['seed']}: BCE {gap:+.2f} against logistic regression")


def _line(name: str, rows: list[dict[str, str]]) -> str:
    def column(key: str, needed: str) -> Array:
        return np.array([float(row[key]) for row in rows if row[needed]])

    gain, gap = (column(key, "auto") - column("bce", "auto") for key in ("auto", "complete"))
    cells: dict[tuple[str, str], list[float]] = {}
    for row, one in zip([row for row in rows if row["auto"]], gain.tolist(), strict=True):
        cells.setdefault((row["set"], row["way"]), []).append(one)
    worst = min((float(np.mean(seeds)) for seeds in cells.values()), default=float("nan"))
    share = 100 * gain.sum() / gap.sum() if gap.sum() > 1 else float("nan")
    better = column("audit_ap", "audit_ap") - column("oof_ap", "audit_ap")
    covered, by_class = (100 * _mean(column(k, "covered")) for k in ("covered", "covered_by_class"))
    widths = column("width", "covered")
    width = float(np.median(widths)) if len(widths) else float("nan")
    return (
        f"{name:10} {len(cells):5d} {_mean(gain):+9.2f} {worst:+6.2f} {share:12.0f}%"
        f" {_mean(better):+13.3f} {covered:7.0f}% {by_class:8.0f}% {width:6.2f}"
    )


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _short(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float | np.floating) else value


if __name__ == "__main__":
    main()
