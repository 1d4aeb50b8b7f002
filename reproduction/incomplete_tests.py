"""Are scores from incomplete test labels right, and their intervals?

Takes a folder of ``.npz`` files as ``anybody.py`` does. Linear heads learn from incomplete training
labels; those of the test rows are lost in the same way, and metrics are estimated from the rest:

- with 0, 200 and 1,000 answers about pairs that ``plan`` chose, and as many chosen evenly: whether
  the 90% intervals cover the true value, and how wide they are;
- for pairs of models with 500 answers: whether the order is right, against labels as they are.

Run it with: python reproduction/incomplete_tests.py FOLDER --out reproduction/incomplete_tests.csv
Scores of trained heads are kept under ``--cells``, one file for each set, way and seed. Rows that
the table holds already are not made again; after ``--minutes`` it stops between two test sets, and
the same command goes on. ``--table`` prints what it holds, ``--figure`` draws it, ``--page`` writes
tables by set and by way.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from incomplete_heads import Place, Tested, cells
from incomplete_summary import draw_figure, print_table, read_rows, write_page
from lost_labels import Array

from hilltop.metrics import average_precision, classification_report
from hilltop.missing import Evaluation, Interval, SampledAnswers
from hilltop.missing.evaluation import TOP_KS
from hilltop.missing.ranked import top_entries

COLUMNS = (
    "set", "way", "seed", "model", "metric", "sample", "answers", "draw", "true", "naive",
    "estimate", "low", "high", "covered", "width",
)  # fmt: skip
THRESHOLD = 0.25
STOPPED = 3
"""Exit code where time was up."""
SAMPLES = (("none", 0), *((sample, n) for sample in ("planned", "even") for n in (200, 1000)))
"""How pairs are chosen to ask about, and how many."""


def measured(probs: Array, labels: Array) -> dict[str, float]:
    """All metrics, by labels that are taken to be complete."""
    found = classification_report(probs, labels, THRESHOLD).as_dict()
    tops = top_entries(probs, np.ones(labels.shape, dtype=bool), TOP_KS)
    for k, top in zip(TOP_KS, tops, strict=True):
        found[f"P@{k}"] = float(labels[top].mean())
    return found


def judged(tested: Tested) -> Iterator[dict[str, Any]]:
    """Rows about one model each time that labels were lost, and about pairs of models once."""
    for turn in range(len(tested.labels)):
        yield from one_model(tested, "bce", turn)
    for first, second in combinations(tested.probs, 2):
        yield from two_models(tested, first, second)


def one_model(tested: Tested, name: str, turn: int) -> Iterator[dict[str, Any]]:
    """Intervals of one model's metrics."""
    probs, labels = tested.probs[name], tested.labels[turn]
    true, naive = measured(probs, tested.true), measured(probs, labels)
    by_class = average_precision(probs, tested.true)
    test = Evaluation([probs], labels, threshold=THRESHOLD)
    for sample, number in SAMPLES:
        answers = answered(test, tested, sample, number, turn)
        report = test.with_answers(answers).report()
        keys = {"model": name, "sample": sample, "answers": number, "draw": turn}
        for metric, found in report.metrics.items():
            yield {**keys, "metric": metric, **row(found, true[metric], naive[metric])}
        pairs = zip(report.average_precision, by_class, strict=True)
        rows = [row(found, value, np.nan) for found, value in pairs if value == value]
        means = {key: np.mean([one[key] for one in rows]) for key in rows[0]}
        yield {**keys, "metric": "AP of a class", **means}


def two_models(tested: Tested, first: str, second: str) -> Iterator[dict[str, Any]]:
    """The difference of two models, without answers and with 500."""
    both = [tested.probs[name] for name in (first, second)]
    true, naive = (
        float(np.subtract(*(measured(probs, labels)["mAP"] for probs in both)))
        for labels in (tested.true, tested.labels[0])
    )
    test = Evaluation(both, tested.labels[0], threshold=THRESHOLD)
    for number in (0, 500):
        answers = answered(test, tested, "planned", number, 0)
        found = test.with_answers(answers).compare().differences["mAP"]
        keys = {"model": f"{first} - {second}", "metric": "mAP", "sample": "planned"}
        yield {**keys, "answers": number, "draw": 0, **row(found, true, naive)}


def answered(
    test: Evaluation, tested: Tested, sample: str, number: int, turn: int
) -> SampledAnswers:
    """Answers of somebody who knows the truth."""
    if not number:
        return SampledAnswers.none()
    if sample == "planned":
        plan = test.plan(number, seed=turn)
        rows, columns, sampled_with = plan.rows, plan.columns, plan.sampled_with
    else:
        rows, columns = np.nonzero(~tested.labels[turn])
        number = min(number, len(rows))
        drawn = np.random.default_rng(turn).choice(len(rows), number, replace=False)
        sampled_with = np.full(number, number / len(rows))
        rows, columns = rows[drawn], columns[drawn]
    present = tested.true[rows, columns]
    return SampledAnswers(rows, columns, present, sampled_with, np.zeros(len(rows), dtype=np.int64))


def row(found: Interval, true: float, naive: float) -> dict[str, float]:
    """Numbers of one estimate."""
    return {
        "true": true,
        "naive": naive,
        "estimate": found.value,
        "low": found.low,
        "high": found.high,
        "covered": float(found.low <= true <= found.high),
        "width": found.high - found.low,
    }


def main() -> None:
    """Fill the file, and print what it says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("reproduction/incomplete_tests.csv"))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--ways", default="r0.8,r1,class,salient")
    parser.add_argument("--cells", type=Path, default=Path("incomplete_cells"))
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--train-only", action="store_true", help="fill --cells, and do no more")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--figure", type=Path, help="draw what the file holds, and do no more")
    parser.add_argument("--page", type=Path, help="write tables as Markdown, and do no more")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.figure is not None:
        draw_figure(read_rows(given.out), given.figure)
        return
    if given.page is not None:
        write_page(read_rows(given.out), given.page)
        return
    if not given.table:
        measure(given)
    print_table(read_rows(given.out))


def measure(given: argparse.Namespace) -> None:
    """Go through what a folder offers, as long as there is time."""
    wanted = None if given.sets is None else given.sets.split(",")
    began = time.monotonic()
    for cell in cells(given.folder, given.ways.split(","), given.seeds.split(",")):
        if wanted is not None and cell.name not in wanted:
            continue
        if time.monotonic() - began > 60 * given.minutes:
            raise SystemExit(STOPPED)
        if given.train_only:
            cell.tested(given.cells)
        else:
            fill(cell, given.out, given.cells)


def fill(cell: Place, out: Path, kept: Path) -> None:
    """Measure what the table does not hold yet."""
    keys = {"set": cell.name, "way": cell.way, "seed": cell.seed}
    if any(keys.items() <= one.items() for one in read_rows(out)):
        return
    rows = [{**keys, **one} for one in judged(cell.tested(kept))]
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
