"""How good tags are that were decided by incomplete labels alone, on any folder of data sets.

Takes a folder of ``.npz`` files, or one of them, as :mod:`lost_labels` reads them, and loses labels
in every way that is known there. Heads of cross-entropy learn from the labels that are left;
thresholds are chosen from out-of-fold scores and those labels, and judged by complete labels of
test rows. Nothing is chosen by these.

Run it with: python reproduction/decisions.py FOLDER --cells CELLS --out OUT.csv [--first 12000]
What CELLS and OUT.csv hold already is not made again; ``--cells CELLS --out OUT.csv`` alone
measures what was trained, and prints the tables.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lost_labels import Array, Cell

from hilltop.metrics import classification_report, fit_thresholds
from hilltop.missing import Calibrator
from hilltop.training.heads import cross_validate, fit_head
from hilltop.training.learner import head_loss

BINS = 15
COLUMNS = (
    "set", "way", "seed", "kept", "rule", "OF1", "CF1", "ECE", "held", "kind", "covered",
    "covered_by_class", "width",
)  # fmt: skip
OURS = "expected balanced_f1"


def main() -> None:
    """Measure every cell and write a row for each rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, nargs="*", help="folders or files with X and Y")
    parser.add_argument("--ways", nargs="*", help="some of the ways; all without it")
    parser.add_argument("--first", type=int, help="train on so many of the first rows")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--cells", type=Path, required=True, help="where scores are kept")
    parser.add_argument("--out", type=Path, default=Path("decisions.csv"))
    options = parser.parse_args()
    options.cells.mkdir(parents=True, exist_ok=True)
    if options.sets:
        compute_cells(options)
    rows = read_rows(options.out)
    held = {(row["set"], row["way"], row["seed"]) for row in rows}
    paths = [(split_name(path.stem), path) for path in options.cells.glob("*.npz")]
    for cell, path in sorted(paths, key=lambda one: (one[0][2], one[0])):
        if cell[2] in options.seeds and cell not in held:
            found = measure(path)
            append_rows(options.out, found)
            rows += found
            print(*cell, flush=True)
    print("\n".join(summary([row for row in rows if row["seed"] in options.seeds])))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """What was measured already."""
    if not path.is_file():
        return []
    kinds = dict.fromkeys(("kept", "OF1", "CF1", "ECE"), float) | {"seed": int}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: kinds.get(name, str)(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


def append_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add the rows of one cell."""
    new = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def compute_cells(options: argparse.Namespace) -> None:
    """Train the heads of every set, way and seed that is not there yet."""
    files = [file for path in options.sets for file in (sorted(path.glob("*.npz")) or [path])]
    files = [file for file in files if {"X", "X_train"} & set(np.load(file).files)]
    for seed in options.seeds:
        for file in files:
            cell = Cell.read(file, seed, first=options.first)
            targets = {
                way: options.cells / f"{file.stem}.{way}.{seed}.npz"
                for way in options.ways or cell.ways()
            }
            missing = {way: target for way, target in targets.items() if not target.exists()}
            complete = test_logits(cell, cell.labels, seed) if missing else None
            for way, target in missing.items():
                compute_cell(cell, way, seed, complete, target)


def compute_cell(cell: Cell, way: str, seed: int, complete: Any, target: Path) -> None:
    """Out-of-fold scores of training rows, and scores of test rows, of cross-entropy."""
    left = cell.lose(way, seed)
    labels = {"Z": left, "Y": cell.labels, "Yt": cell.test_labels}
    unseen, others = unseen_logits(cell, left, seed), test_logits(cell, left, seed)
    begun = target.with_suffix(".begun")
    with begun.open("wb") as file:
        np.savez(file, s=unseen, st=others, complete=complete, **labels)
    os.replace(begun, target)


def unseen_logits(cell: Cell, labels: Array, seed: int) -> Array:
    """Logits of training rows by heads of cross-entropy that did not learn from them."""
    targets, features = torch.from_numpy(labels).float(), torch.from_numpy(cell.features)
    loss = head_loss("bce", reduction="sum")
    return cross_validate(features, targets, loss, seed=seed).logits.numpy()


def test_logits(cell: Cell, labels: Array, seed: int) -> Array:
    """Logits of test rows by a head of cross-entropy."""
    targets, features = torch.from_numpy(labels).float(), torch.from_numpy(cell.features)
    head = fit_head(
        features,
        lambda rows: (targets[rows], None),
        head_loss("bce", reduction="sum"),
        classes=targets.shape[1],
        seed=seed,
    ).head
    with torch.no_grad():
        return head(torch.from_numpy(cell.test_features)).numpy()


def measure(path: Path) -> list[dict[str, Any]]:
    """A row for each rule of one cell."""
    name, way, seed = split_name(path.stem)
    cell = np.load(path)
    s, kept, true, st, truth = (cell[key].astype(np.float32) for key in ("s", "Z", "Y", "st", "Yt"))
    calibrator = Calibrator().fit(s, kept)
    plain, probs = 1 / (1 + np.exp(-st)), calibrator.transform(st)
    one, complete = (fit_one(s, labels) for labels in (kept, true))
    rules: dict[str, tuple[Any, Any]] = {
        "0.5": (plain, 0.5),
        "fitted to what is left, by class": (st, fit_thresholds(s, kept)),
        "fitted to what is left, one": (st, one),
        "expected f1": (probs, calibrator.model_.thresholds("f1").thresholds),
        "expected class_f1": (probs, calibrator.model_.thresholds("class_f1").thresholds),
        OURS: (probs, calibrator.decision_.thresholds),
        "fitted to complete, by class": (st, fit_thresholds(s, true)),
        "fitted to complete, one": (st, complete),
    }
    if "complete" in cell.files:
        rules["complete labels, 0.5"] = (1 / (1 + np.exp(-cell["complete"])), 0.5)
    same = {"set": name, "way": way, "seed": seed, "kept": round(kept.sum() / true.sum(), 3)}
    rows = []
    for rule, (values, threshold) in rules.items():
        report = classification_report(values, truth, threshold)
        made = values if rule.endswith(", 0.5") else plain
        made = probs if rule.startswith("expected") else made
        numbers = {"OF1": 100 * report.OF1, "CF1": 100 * report.CF1, "ECE": 100 * ece(made, truth)}
        rounded = {key: round(value, 2) for key, value in numbers.items()}
        row = {**same, "rule": rule, **rounded}
        if rule == OURS:
            row |= {"held": intervals_held(calibrator, report), **missing_covered(calibrator, cell)}
        rows.append({name: row.get(name, "") for name in COLUMNS})
    return rows


def missing_covered(calibrator: Calibrator, cell: Any) -> dict[str, Any]:
    """Whether the intervals of the number of missing labels hold, and their width in labels."""
    model = calibrator.model_
    truth = ((cell["Y"] == 1) & (cell["Z"] == 0)).sum(axis=0)
    total, (_, low, high) = model.missing.total, model.missing.by_class
    return {
        "kind": model.kind,
        "covered": int(total.low <= truth.sum() <= total.high),
        "covered_by_class": round(float(((low <= truth) & (truth <= high)).mean()), 4),
        "width": round((total.high - total.low) / float(cell["Z"].sum()), 4),
    }


def intervals_held(calibrator: Calibrator, report: Any) -> str:
    """Which of precision, recall and F1 lie in their expected intervals, such as "PRF" or "P-F"."""
    expected = calibrator.decision_.expected
    pairs = zip(
        "PRF",
        (expected.precision, expected.recall, expected.f1),
        (report.OP, report.OR, report.OF1),
        strict=True,
    )
    return "".join(name if one.low <= value <= one.high else "-" for name, one, value in pairs)


def fit_one(scores: Any, labels: Any) -> float:
    """The threshold for all classes that is best on these labels."""
    return float(fit_thresholds(scores.reshape(-1, 1), labels.reshape(-1, 1))[0])


def split_name(stem: str) -> tuple[str, str, int]:
    """Set, way (which may hold a dot) and seed.

    Example:
        >>> split_name("yeast.r0.8.1")
        ('yeast', 'r0.8', 1)
    """
    name, _, rest = stem.partition(".")
    way, _, seed = rest.rpartition(".")
    return name, way, int(seed)


def ece(probs: Any, truth: Any) -> float:
    """Expected calibration error over all pairs, in bins of one width."""
    at = np.minimum((probs * BINS).astype(int), BINS - 1).ravel()
    sums = [np.bincount(at, values.ravel(), BINS) for values in (probs, truth)]
    return float(np.abs(sums[0] - sums[1]).sum() / probs.size)


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of tables: means by rule, over all cells, by way and by set; then what goals say."""
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    for key in ("way", "set"):
        names = ["all", *dict.fromkeys(row[key] for row in rows)]
        yield f"| {key}, OF1 / CF1 / ECE | " + " | ".join(rules) + " |"
        yield "|---" * (len(rules) + 1) + "|"
        for name in names:
            mine = [row for row in rows if name in ("all", row[key])]
            cells = [_means([row for row in mine if row["rule"] == rule]) for rule in rules]
            yield f"| {name} | " + " | ".join(cells) + " |"
    held = [row["held"] for row in rows if row["rule"] == OURS]
    for name, letter in (("precision", "P"), ("recall", "R"), ("F1", "F")):
        share = np.mean([letter in one for one in held])
        yield f"the 90% interval of the expected {name} held in {share:.0%} of {len(held)} cells"
    ours = [row for row in rows if row["rule"] == OURS]
    total, by_class, width = (
        np.array([float(row[key]) for row in ours])
        for key in ("covered", "covered_by_class", "width")
    )
    yield (
        f"90% intervals of the number of missing labels: {total.mean():.0%} hold in total,"
        f" {by_class.mean():.0%} by class, median width {np.median(width):.2f} times the labels"
    )
    yield from below_half(rows)


def _means(rows: list[dict[str, Any]]) -> str:
    return " / ".join(f"{np.mean([row[key] for row in rows]):.1f}" for key in ("OF1", "CF1", "ECE"))


def below_half(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines that name the sets and ways at which a rule is below one half, in the mean of seeds."""
    cells: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["set"], row["way"], row["rule"]), []).append(row)
    means = {
        cell: {key: np.mean([row[key] for row in found]) for key in ("OF1", "CF1")}
        for cell, found in cells.items()
    }
    places = list(dict.fromkeys((name, way) for name, way, _ in means))
    for rule in ("expected f1", "expected class_f1", OURS):
        for key in ("OF1", "CF1"):
            gains = {at: means[*at, rule][key] - means[*at, "0.5"][key] for at in places}
            below = ", ".join(f"{a} {b} {g:.2f}" for (a, b), g in gains.items() if g < 0)
            yield f"{key} of {rule} below that at 0.5: {below or 'nowhere'} ({len(places)} places)"


if __name__ == "__main__":
    main()
