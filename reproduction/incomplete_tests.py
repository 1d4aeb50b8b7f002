"""Are scores from incomplete test labels right, and their intervals?

Takes a folder of ``.npz`` files as ``anybody.py`` does. Heads learn from incomplete training
labels; those of the test rows are lost in the same way, and metrics are estimated from the rest:

- with 0, 200 and 1,000 answers about pairs that ``plan`` chose, and as many chosen evenly: whether
  the 90% intervals cover the true value, and how wide they are;
- for pairs of models with 500 answers: whether the order is right, against labels as they are.

Rows of the file are pooled over repetitions (two splits of each set, labels lost three times on
each), with the true value, estimate and interval of the first.

Run it with: python reproduction/incomplete_tests.py FOLDER [FILE.npz ...]
Sets and ways that the file holds already are not measured again; without a folder it prints what
the file holds, and ``--figure`` draws it.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from anybody import WAYS, Array, Cell
from incomplete_summary import draw_figure, print_table, read_rows

from hilltop.data import State, lose_by_clarity
from hilltop.losses import LabelStats
from hilltop.metrics import average_precision, classification_report
from hilltop.metrics.incomplete import IncompleteTest, MetricEstimate, SampledAnswers
from hilltop.metrics.incomplete.judged_model import TOP_KS, top_pairs
from hilltop.training import fit_head
from hilltop.training.folds import out_of_fold_logits
from hilltop.training.learner import head_loss

COLUMNS = (
    "set", "way", "model", "metric", "sample", "answers", "tests", "covered", "width", "off",
    "bias", "naive_off", "true", "naive", "estimate", "low", "high",
)  # fmt: skip
THRESHOLD = 0.25
MOST_TRAIN, MOST_TEST = 4000, 1000
LEAST_LABELS = 3
MODELS = {
    "bce": ("bce", 1, False),
    "hill": ("hill", 1, False),
    "bce third": ("bce", 3, False),
    "bce complete": ("bce", 1, True),
}
"""Loss of each model, of how many training rows it saw one, and whether with complete labels."""
SAMPLES = (
    ("none", 0), ("planned", 200), ("planned", 1000), ("even", 200), ("even", 1000)
)  # fmt: skip
METRICS = ("mAP", "CF1", "OF1", "P@1", "P@3", "P@5", "AP of a class")


@dataclass(frozen=True)
class Split:
    """One set at one seed: rows to train with, and to test on, and how clear each label is."""

    cell: Cell
    seed: int
    clarity: tuple[Array, Array] | None

    @classmethod
    def read(cls, path: Path, seed: int, *, clarity: bool) -> Split:
        """Read and split a file."""
        whole = Cell.read(path, seed)
        cell = Cell(
            whole.features[:MOST_TRAIN],
            whole.labels[:MOST_TRAIN],
            whole.test_features[:MOST_TEST],
            whole.test_labels[:MOST_TEST],
        )
        if not clarity:
            return cls(cell, seed, None)
        parts = (cell.features, cell.labels), (cell.test_features, cell.test_labels)
        clear = tuple(_clear(*part, seed) for part in parts)
        return cls(cell, seed, (clear[0], clear[1]))

    def kept(self, way: str, seed: int, *, test: bool) -> Array:
        """Labels that are left of the rows to train with, or to test on."""
        cell = self.cell
        part = (cell.test_features, cell.test_labels) if test else (cell.features, cell.labels)
        rows = Cell(*part, *part)
        if way == "clarity":
            assert self.clarity is not None
            thinned = lose_by_clarity(rows.table(), self.clarity[test], seed=seed)
        else:
            thinned = WAYS[way](rows, seed)
        return thinned.table.dense() == State.PRESENT

    def models(self, way: str, names: Iterable[str]) -> dict[str, Array]:
        """Probabilities of the test rows by models that learned from incomplete labels."""
        left, cell = self.kept(way, self.seed, test=False), self.cell
        found = {}
        for name in names:
            loss, every, complete = MODELS[name]
            labels = cell.labels if complete else left
            rows = slice(None, None, every)
            found[name] = trained(
                cell.features[rows], labels[rows], loss, self.seed, cell.test_features
            )
        return found


def _clear(features: Array, labels: Array, seed: int) -> Array:
    """How clear each label is, to heads that learned from complete labels of other rows."""
    loss = head_loss("bce", reduction="sum")
    targets = torch.from_numpy(labels).float()
    return out_of_fold_logits(torch.from_numpy(features), targets, loss, seed=seed).numpy()


@dataclass(frozen=True)
class Tested:
    """Models and the test set they are judged by."""

    probs: dict[str, Array]
    labels: Array
    true: Array

    @classmethod
    def of(cls, probs: dict[str, Array], labels: Array, true: Array) -> Tested:
        """Leave out classes of which hardly a label is left."""
        there = labels.sum(axis=0) >= LEAST_LABELS
        return cls(
            {name: one[:, there] for name, one in probs.items()}, labels[:, there], true[:, there]
        )


def trained(features: Array, left: Array, name: str, seed: int, test: Array) -> Array:
    """Probabilities on test rows, by a head that learned from incomplete labels."""
    targets = torch.from_numpy(left).float()
    unknown = torch.zeros(targets.shape, dtype=torch.bool)
    fitted = fit_head(
        torch.from_numpy(np.ascontiguousarray(features)),
        lambda rows: (targets[rows], unknown[rows]),
        head_loss(name, reduction="sum"),
        classes=targets.shape[1],
        stats=LabelStats.of(targets),
        seed=seed,
    )
    with torch.no_grad():
        return torch.sigmoid(fitted.head(torch.from_numpy(test))).double().numpy()


def measured(probs: Array, labels: Array) -> dict[str, float]:
    """All metrics, by labels that are taken to be complete."""
    found = classification_report(probs, labels, THRESHOLD).as_dict()
    tops = top_pairs(probs, np.ones(labels.shape, dtype=bool), TOP_KS)
    for k, top in zip(TOP_KS, tops, strict=True):
        found[f"P@{k}"] = float(labels[top].mean())
    return found


def one_model(tested: Tested, draw: int) -> Iterator[dict[str, Any]]:
    """Intervals of one model's metrics."""
    ((name, probs),) = tested.probs.items()
    true, naive = measured(probs, tested.true), measured(probs, tested.labels)
    by_class = average_precision(probs, tested.true)
    test = IncompleteTest([probs], tested.labels, threshold=THRESHOLD)
    for sample, number in SAMPLES:
        answers = answered(test, tested, sample, number, draw)
        report = test.with_answers(answers).report()
        keys = {"model": name, "sample": sample, "answers": number}
        for metric, found in report.metrics.items():
            if metric in METRICS:
                yield {**keys, "metric": metric, **row(found, true[metric], naive[metric])}
        pairs = zip(report.average_precision, by_class, strict=True)
        rows = [row(found, value, np.nan) for found, value in pairs if value == value]
        means = {key: np.mean([one[key] for one in rows]) for key in rows[0]}
        yield {**keys, "metric": "AP of a class", **means}


def two_models(tested: Tested) -> Iterator[dict[str, Any]]:
    """The difference of two models, without answers and with 500."""
    both = list(tested.probs.values())
    true, naive = (
        float(np.subtract(*(measured(probs, labels)["mAP"] for probs in both)))
        for labels in (tested.true, tested.labels)
    )
    test = IncompleteTest(both, tested.labels, threshold=THRESHOLD)
    for number in (0, 500):
        answers = answered(test, tested, "planned", number, 0)
        found = test.with_answers(answers).compare().differences["mAP"]
        keys = {"model": " - ".join(tested.probs), "metric": "mAP", "sample": "planned"}
        yield {**keys, "answers": number, **row(found, true, naive)}


def answered(
    test: IncompleteTest, tested: Tested, sample: str, number: int, draw: int
) -> SampledAnswers:
    """Answers of somebody who knows the truth."""
    if not number:
        return SampledAnswers.none()
    if sample == "planned":
        plan = test.plan(number, seed=draw)
        rows, columns, sampled_with = plan.rows, plan.columns, plan.sampled_with
    else:
        rows, columns = np.nonzero(~tested.labels)
        number = min(number, len(rows))
        drawn = np.random.default_rng(draw).choice(len(rows), number, replace=False)
        sampled_with = np.full(number, number / len(rows))
        rows, columns = rows[drawn], columns[drawn]
    present = tested.true[rows, columns]
    return SampledAnswers(rows, columns, present, sampled_with, np.zeros(len(rows), dtype=np.int64))


def row(found: MetricEstimate, true: float, naive: float) -> dict[str, Any]:
    """Numbers of one estimate."""
    return {"true": true, "naive": naive, **found.as_dict()}


def pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What repetitions say together, and the numbers of the first."""

    def column(name: str) -> Array:
        return np.array([one[name] for one in rows], dtype=np.float64)

    true, low, high = column("true"), column("low"), column("high")
    error, naive = column("estimate") - true, column("naive") - true
    return {
        **rows[0],
        "tests": len(rows),
        "covered": float(((low <= true) & (true <= high)).mean()),
        "width": float((high - low).mean()),
        "off": float(np.sqrt((error**2).mean())),
        "bias": float(error.mean()),
        "naive_off": float(np.sqrt((naive**2).mean())),
    }


def judged(path: Path, way: str, seeds: range, losses: int) -> Iterator[dict[str, Any]]:
    """Rows about one model, and about pairs of models of the first seed."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for seed in seeds:
        split = Split.read(path, seed, clarity=way == "clarity")
        names = MODELS if seed == seeds[0] else ("bce",)
        probs, true = split.models(way, names), split.cell.test_labels
        for loss in range(losses):
            number = 100 + losses * seed + loss
            labels = split.kept(way, number, test=True)
            tested = Tested.of({"bce": probs["bce"]}, labels, true)
            for one in one_model(tested, number):
                key = tuple(one[name] for name in ("metric", "sample", "answers"))
                found.setdefault(key, []).append(one)
            if loss == 0 and seed == seeds[0]:
                for first, second in combinations(probs, 2):
                    both = {name: probs[name] for name in (first, second)}
                    for one in two_models(Tested.of(both, labels, true)):
                        yield pooled([one])
    yield from map(pooled, found.values())


def main() -> None:
    """Fill the file, and print what it says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="*", help="folders or files of data")
    parser.add_argument("--out", type=Path, default=Path("reproduction/incomplete_tests.csv"))
    parser.add_argument("--seeds", type=int, default=2, help="splits of each set")
    parser.add_argument("--losses", type=int, default=3, help="times labels are lost, a split")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--ways", default="r0.8,r1,class,clarity")
    parser.add_argument("--figure", type=Path, help="draw what the file holds, and do no more")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.figure is not None:
        draw_figure(read_rows(given.out), given.figure)
        return
    for path in files(given.folder):
        if given.sets is None or name_of(path) in given.sets.split(","):
            for way in given.ways.split(","):
                fill(path, way, given.out, range(given.seeds), given.losses)
    print_table(read_rows(given.out))


def files(folders: list[Path]) -> Iterator[Path]:
    """Files that hold features and labels."""
    for folder in folders:
        for path in sorted(folder.glob("*.npz")) if folder.is_dir() else [folder]:
            if {"X", "X_train"} & set(np.load(path)):
                yield path


def name_of(path: Path) -> str:
    """What a set is called."""
    return path.stem.partition("_")[0]


def fill(path: Path, way: str, out: Path, seeds: range, losses: int) -> None:
    """Measure what the file does not hold yet."""
    keys = {"set": name_of(path), "way": way}
    if any(keys.items() <= one.items() for one in read_rows(out)):
        return
    rows = [{**keys, **one} for one in judged(path, way, seeds, losses)]
    new = not out.is_file()
    with out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        for one in rows:
            short = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in one.items()}
            writer.writerow(short)
    print(*keys.values(), flush=True)


if __name__ == "__main__":
    main()
