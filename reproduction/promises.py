"""How often promises are broken, and how many tags they cost: ``promises.csv``.

    python reproduction/promises.py DATA OUT.csv [MINUTES]

DATA is a folder with ``coco16k_lite0.npz``, ``voc2012_lite0.npz``, ``sets/`` and ``losing.py``. A
linear head learns from at most 1,500 rows with lost labels; promises are made for at most 1,000
others, whose labels are lost in the same way, 100 times with another random order of questions.
Baselines, 20 times each: the same answers without a model (every open pair equally probable), and
conformal risk control with as many answers spent on completely labelled images.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from incomplete_heads import trained

from hilltop.missing import PromiseTest, present_probs

TIMES, LESS = 100, 20
NUMBERS = (200, 500, 1000)
FIRST_WAYS = ("r0.8", "salient", "two")
WANTED = (("recall", 0.9), ("precision", 0.7))


def sets(data):
    """Name, features, complete labels and, for VOC, areas of every data set."""
    voc, areas = np.load(data / "voc2012_lite0.npz"), np.load(data / "sets/voc_areas.npz")["A"]
    yield "voc", voc["X_train"].astype(np.float32), (voc["Y_train"] == 1).astype(np.uint8), areas
    coco = np.load(data / "coco16k_lite0.npz")
    yield "coco", coco["X"][12000:].astype(np.float32), coco["Y_full"][12000:], None
    for path in sorted((data / "sets").glob("*.npz")):
        if "X" in (content := np.load(path)):
            labels = (content["Y"] == 1).astype(np.uint8)
            yield path.stem, content["X"].astype(np.float32), labels, None


def conformal(scores, true, images, wanted, rng):
    """Tags of conformal risk control (1 - recall of an image) after so many complete images."""
    if images < 1:
        return scores.size
    rows = rng.permutation(len(scores))[:images]
    grid = np.concatenate([[-1.0], np.quantile(scores[true], np.linspace(0, 1, 400))])
    found = grid[0]
    for t in grid:
        hit = (true[rows] & (scores[rows] > t)).sum(1)
        risk = 1 - hit / np.maximum(true[rows].sum(1), 1)
        risk[true[rows].sum(1) == 0] = 0
        if (risk.sum() + 1) / (images + 1) > 1 - wanted:
            break
        found = t
    return int((scores > found).sum())


def best(metric, wanted, scores, true):
    """Tags of the best threshold, where the truth is known."""
    order = np.argsort(-scores, axis=None)
    hits = np.cumsum(true.ravel()[order])
    if metric == "recall":
        return int(np.searchsorted(hits, np.ceil(wanted * hits[-1])) + 1)
    kept = np.flatnonzero(hits / np.arange(1, len(hits) + 1) >= wanted)
    return int(kept[-1]) + 1 if len(kept) else 0


def cell(name, way, x, y, area, lose):
    """Rows of one data set whose labels were lost in one way."""
    rng = np.random.default_rng(7)
    rows = rng.permutation(len(x))
    half = min(1500, int(0.6 * len(x)))
    first, second = rows[:half], rows[half : half + 1000]
    lost = lose(way, y, seed=1, X=x, area=area)
    keep = (lost[first].sum(0) >= 3) & (lost[second].sum(0) >= 1)
    scores = trained(x[first], lost[first][:, keep], "bce", SimpleNamespace(features=x[second]))
    true, labels = y[second][:, keep] == 1, lost[second][:, keep].astype(float)
    beliefs = {"model": present_probs(scores, labels), "flat": np.full(labels.shape, labels.mean())}
    found = {}
    for seed in range(TIMES):
        for belief in ("model", "flat")[: 2 if seed < LESS else 1]:
            test = PromiseTest(scores, labels, probs=beliefs[belief], seed=seed)
            for number in NUMBERS:
                ask = test.plan(number)
                answers = ask.answered(true[ask.rows, ask.columns])
                for metric, wanted in WANTED:
                    one = test.promise(metric, wanted, answers, over="these")
                    found.setdefault((belief, number, metric), []).append(one)
    for number in NUMBERS:
        for metric, wanted in WANTED:
            mine = found["model", number, metric]
            kept = [one for one in mine if one.threshold is not None]
            reached = [achieved(metric, scores > one.threshold, true) for one in kept]
            crc = [
                conformal(scores, true, number // labels.shape[1], wanted, np.random.default_rng(k))
                for k in range(LESS if metric == "recall" else 0)
            ]
            yield {
                "set": name, "way": way, "pairs": labels.size, "labels": int(true.sum()),
                "answers": number, "metric": metric, "wanted": wanted, "times": TIMES,
                "broken": sum(value < wanted for value, _ in reached),
                "none": len(mine) - len(kept),
                "tags": float(np.median([one.tags for one in mine])),
                "other": round(float(np.median([rest for _, rest in reached])), 4) if kept else "",
                "best_tags": best(metric, wanted, scores, true),
                "tags_without_model": float(
                    np.median([one.tags for one in found["flat", number, metric]])
                ),
                "tags_conformal": float(np.median(crc)) if crc else "",
            }  # fmt: skip


def achieved(metric, tag, true):
    """The metric that was promised, and the other of recall and precision."""
    hits = (tag & true).sum()
    recall, precision = hits / max(true.sum(), 1), hits / max(tag.sum(), 1)
    return (recall, precision) if metric == "recall" else (precision, recall)


def main():
    """Go on with the study until the time is over; VOC and COCO come first."""
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    until = time.monotonic() + 60 * float(sys.argv[3] if len(sys.argv) > 3 else 1e9)
    sys.path.insert(0, str(data))
    from losing import WAYS, lose

    done = set()
    if out.is_file():
        with out.open() as file:
            done = {(row["set"], row["way"]) for row in csv.DictReader(file)}
    content = list(sets(data))
    ways = [*FIRST_WAYS, *(way for way in WAYS if way not in FIRST_WAYS)]
    cells = [
        (place * (1 if one[0] in ("voc", "coco") else 3), way, one)
        for place, way in enumerate(ways)
        for one in content
        if (one[0], way) not in done and (one[3] is not None or way not in ("largest", "area"))
    ]
    for _, way, one in sorted(cells, key=lambda cell: cell[0]):
        if time.monotonic() > until:
            return
        rows = list(cell(one[0], way, *one[1:], lose))
        with out.open("a") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            if not file.tell():
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
