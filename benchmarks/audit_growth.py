"""How do time and memory of an audit from features grow with images and classes?

Images have about four classes each, drawn with probabilities that fall with the rank of the class;
features are sums of random prototypes of the classes and noise, in a file that is mapped; 60% of
the labels are kept. Each size runs in a process of its own on one core. Seconds are those of the
processor, so that other work on the machine changes them little; memory is the largest that was
resident, features and labels included. Sizes that the file of results has already are passed over.
One that was stopped, by SIGTERM for example, goes on, and the time until then counts, too.

With --part K, every K-th class is audited as if all were there: heads learn from as many images and
the model from as many counts as they would, and what is found of their lost labels is measured.
Heads and ranking of all classes take K times as long, beside what one of them takes alone.

With --by dense all images take part in all heads, and logits are a matrix, whatever the size; with
--by blocks heads learn from a sample of the background, and logits are never held, however few
pairs there are; with --by cleanlab the scores of dense are ranked by cleanlab.

Run it with: python benchmarks/audit_growth.py [--sizes 10000x100 ...] [--features F]
[--part K] [--by dense] [--out results.jsonl]; draw what was measured with --figure FILE.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from hilltop.audit import Scored, audit
from hilltop.audit import run as audit_run
from hilltop.audit.find import ranking
from hilltop.audit.run import Audited
from hilltop.data import LabelTable, State
from hilltop.inputs import Parts
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.training import class_blocks

SIZES = tuple(f"{n}x{c}" for n in (10_000, 100_000, 1_000_000) for c in (100, 1000, 20_000))
LABELS, KEPT, NOISE = 4, 0.6, 0.15
WHOLE = {"dense": 1 << 40, "blocks": 0}
"""Pairs up to which an audit is done in matrices, where that is not left to it."""


def problem(images: int, classes: int, width: int, file: Path) -> tuple[LabelTable, np.ndarray]:
    """The labels that were kept, and the places of those that were not; features go to a file."""
    rng = np.random.default_rng(0)
    share = 1 / (10 + np.arange(classes))
    drawn = rng.choice(classes, (images, LABELS), p=share / share.sum())
    prototypes = rng.standard_normal((classes, width), dtype=np.float32) / np.sqrt(width)
    ids = pa.array(map("{:08}".format, range(images)), pa.string())
    if not file.is_file():
        shape = (images, width)
        features = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
        for first in range(0, images, 1 << 14):
            rows = slice(first, first + (1 << 14))
            noise = rng.standard_normal(features[rows].shape, dtype=np.float32)
            features[rows] = NOISE * noise + prototypes[drawn[rows]].sum(axis=1)
        features.flush()
        np.save(file.with_suffix(".ids.npy"), np.array(ids.to_pylist()))
    places = np.unique(np.arange(images)[:, None] * classes + drawn)
    kept = np.random.default_rng(1).random(len(places)) < KEPT
    rows, columns = np.divmod(places[kept], classes)
    names = [f"c{column:05}" for column in range(classes)]
    table = LabelTable.from_coo(ids, names, rows, columns, State.PRESENT, unlisted=State.UNKNOWN)
    return table, places[~kept]


class Spent:
    """Seconds of the processor and memory by stage, kept in a file when a process is stopped."""

    def __init__(self, file: Path) -> None:
        """Go on with what the file has."""
        self._file = file
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; run it again to go on"))

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens within as a stage."""
        began = time.process_time()
        try:
            yield
        finally:
            gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            with self._file.open("a") as file:
                print(json.dumps([name, time.process_time() - began, gib]), file=file)

    def numbers(self) -> dict[str, float]:
        """Seconds of each stage, over all processes, and the most memory of any."""
        lines = [json.loads(line) for line in self._file.read_text().splitlines()]
        stages = dict.fromkeys(name for name, _, _ in lines)
        seconds = {
            f"{one}_s": round(sum(spent for name, spent, _ in lines if name == one), 1)
            for one in stages
        }
        return {**seconds, "gib": round(max(gib for _, _, gib in lines), 2)}


def every(part: int, table: LabelTable, lost: np.ndarray) -> tuple[LabelTable, np.ndarray]:
    """Every so manieth class, and the bounds that go by pairs as they are with all classes."""
    images, classes = len(table), len(table.classes)
    kept = np.arange(0, classes, part)
    share = len(kept) / classes
    whole = images * classes <= class_blocks.WHOLE_PAIRS
    audit_run.WHOLE_PAIRS = class_blocks.WHOLE_PAIRS = images * classes if whole else 0
    if images * classes > audit_run.REPEATED_PAIRS:
        audit_run.REPEATED_PAIRS = 0
    class_blocks.CORRECTED_PAIRS = int(class_blocks.CORRECTED_PAIRS * share)
    ranking.COUNTED_PAIRS = int(ranking.COUNTED_PAIRS * share)
    rows, columns = np.divmod(lost, classes)
    mine = columns % part == 0
    listed = table.columns % part == 0
    some = LabelTable.from_coo(
        table.images,
        [table.classes[column] for column in kept],
        table.rows[listed],
        table.columns[listed] // part,
        State.PRESENT,
        unlisted=State.UNKNOWN,
    )
    return some, rows[mine] * len(kept) + columns[mine] // part


def measure(
    images: int, classes: int, width: int, by: str, part: int, parts: Path
) -> dict[str, float]:
    """Audit one size; return seconds, GiB, counts, and how many of the lost labels come first."""
    parts.mkdir(parents=True, exist_ok=True)
    file = parts / "features.npy"
    table, lost = problem(images, classes, width, file)
    if part > 1:
        table, lost = every(part, table, lost)
    if by in WHOLE:
        audit_run.WHOLE_PAIRS = class_blocks.WHOLE_PAIRS = WHOLE[by]
    rows, spent = np.arange(images), Spent(parts / "spent.jsonl")
    with spent.stage("heads"):
        features = FeatureInputs(read_features(file), table.images).values
        options = {"folds": 4, "seed": 0, "say": print, "parts": Parts(parts / "parts")}
        logits = audit_run.fold_logits(table, features, rows, **options)
    with spent.stage("rank"):
        found = audit(table, Scored(logits, rows), parts=Parts(parts / "parts"))
    return {**spent.numbers(), **quality(found, lost, len(table.classes))}


def quality(found: Audited, lost: np.ndarray, classes: int) -> dict[str, float]:
    """What was estimated, and how many of the lost labels come first."""
    candidates = found.candidates
    hits = np.isin(candidates.rows() * classes + candidates.columns(), lost)
    return {
        "lost": len(lost),
        "estimate": round(found.missing.value),
        "low": round(found.missing.low),
        "high": round(found.missing.high),
        "first_10000": round(float(hits[:10_000].mean()), 4),
        "recall": round(float(hits[: len(lost)].sum() / len(lost)), 4),
        "ap": average_precision(hits, len(lost)),
    }


def average_precision(hits: np.ndarray, lost: int) -> float:
    """Average precision of a list that ends early: what it leaves out counts as not found."""
    ranks = np.flatnonzero(hits) + 1
    return round(float((np.arange(1, len(ranks) + 1) / ranks).sum() / lost), 4)


def measure_cleanlab(images: int, classes: int, width: int, parts: Path) -> dict[str, float]:
    """Rank by cleanlab, with the same out-of-fold scores."""
    from cleanlab.internal.multilabel_scorer import ClassLabelScorer, MultilabelScorer

    parts.mkdir(parents=True, exist_ok=True)
    table, lost = problem(images, classes, width, parts / "features.npy")
    audit_run.WHOLE_PAIRS = class_blocks.WHOLE_PAIRS = WHOLE["dense"]
    features = FeatureInputs(read_features(parts / "features.npy"), table.images).values
    rows = np.arange(images)
    logits = audit_run.fold_logits(table, features, rows, folds=4, seed=0, say=print)
    probs, began = logits(0, images).double().sigmoid().numpy(), time.process_time()
    labels = table.dense() == State.PRESENT
    scorer = MultilabelScorer(base_scorer=ClassLabelScorer.SELF_CONFIDENCE)
    quality = scorer.get_class_label_quality_scores(labels.astype(int), probs)
    order = np.argsort(quality[~labels], kind="stable")
    ended = time.process_time()
    hits = np.isin(np.flatnonzero(~labels.ravel())[order], lost)
    return {
        "rank_s": round(ended - began, 1),
        "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "lost": len(lost),
        "first_10000": round(float(hits[:10_000].mean()), 4),
        "recall": round(float(hits[: len(lost)].mean()), 4),
        "ap": average_precision(hits, len(lost)),
    }


def draw(results: list[dict[str, float | str]], path: Path) -> None:
    """Draw time and memory by images, a line for each number of classes, with its slope.

    Of several parts of one size the smallest counts, as often as it takes; such points are hollow.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for number, classes in enumerate((100, 1000, 20_000)):
        mine = {int(one["size"].partition("x")[0]): one
                for one in sorted(results, key=lambda one: -one["part"])
                if one["by"] == "hilltop" and one["size"].endswith(f"x{classes}")}  # fmt: skip
        if not mine:
            continue
        images = np.array(sorted(mine))
        part = np.array([mine[one]["part"] for one in images])
        seconds = part * [mine[one]["heads_s"] + mine[one]["rank_s"] for one in images]
        memory = np.array([mine[one]["gib"] for one in images])
        for axis, values in zip(axes, (seconds, memory), strict=True):
            label = f"{classes:,} classes"
            if len(images) > 1:
                label += f", slope {np.polyfit(np.log(images), np.log(values), 1)[0]:.2f}"
            axis.loglog(images, values, "-", color=f"C{number}", label=label)
            for chosen, face in ((part == 1, f"C{number}"), (part > 1, "white")):
                style = {"color": f"C{number}", "markerfacecolor": face}
                axis.plot(images[chosen], values[chosen], "o", **style)
    for axis, name in zip(axes, ("seconds of one core", "peak memory, GiB"), strict=True):
        axis.set(xlabel="images", ylabel=name)
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3, which="both")
    axes[1].set(yscale="linear", ylim=(0, None))
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure the sizes one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="images x classes")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--part", type=int, default=1, help="every so manieth class")
    parser.add_argument("--by", choices=("hilltop", *WHOLE, "cleanlab"), default="hilltop")
    parser.add_argument("--out", type=Path, default=Path("audit_growth.jsonl"))
    parser.add_argument("--parts", type=Path, default=Path(tempfile.gettempdir(), "audit_growth"))
    parser.add_argument("--figure", type=Path, help="draw the results instead")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.is_file() else []
    results = [json.loads(line) for line in lines]
    if options.figure:
        return draw(results, options.figure)
    by = options.by
    for size in options.sizes:
        about = {"size": size, "features": options.features, "by": by, "part": options.part}
        if any(about.items() <= one.items() for one in results):
            continue
        if not options.one:
            words = [word for word in sys.argv[1:] if word != size]
            words = [word for word in words if word not in options.sizes and word != "--sizes"]
            alone = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            command = [sys.executable, __file__, *words, "--sizes", size, "--one"]
            subprocess.run(command, check=False, env=alone)
            continue
        torch.set_num_threads(1)
        given = (*map(int, size.split("x")), options.features)
        parts = options.parts / f"{size}x{options.features}-{by}-{options.part}"
        found = (
            measure_cleanlab(*given, parts)
            if by == "cleanlab"
            else measure(*given, by, options.part, parts)
        )
        with options.out.open("a") as file:
            print(json.dumps({**about, **found}), file=file)
    return None


if __name__ == "__main__":
    main()
