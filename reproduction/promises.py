"""How often promises are broken, and how many tags they cost: ``promises.csv``, ``promises.md``.

    python reproduction/promises.py DATA OUT.csv [MINUTES [K/N]]
    python reproduction/promises.py --summary OUT.csv OUT.md

DATA is a folder with ``coco16k_lite0.npz``, ``voc2012_lite0.npz``, ``sets/`` and ``losing.py``. A
linear head learns from at most 1,500 rows with lost labels. Labels of the other rows, the pool, are
lost in the same way. A promise is made 100 times: at most 300 images are drawn from the pool with
replacement, questions about them are drawn and answered, and the threshold is judged by the
complete labels of the pool, which is the distribution that the images come from (``new``), or of
the images themselves (``these``). Baselines: the same answers without a model (all open pairs are
equally probable; 20 times, in one way of losing labels), conformal risk control and RCPS
(Waudby-Smith and Ramdas) of the mean recall of an image, with as many answers spent on completely
labelled images, and the threshold of who knows the truth. It goes on where it was stopped; K/N
makes each Nth cell from the Kth on.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from incomplete_heads import trained

from hilltop.missing import PromiseTest, present_probs
from hilltop.missing.promise import conclude

TIMES, LESS = 100, 20
NUMBERS = (200, 500, 1000)
FIRST_WAYS = ("r0.8", "salient", "two")
KINDS = (("recall", 0.9, "new"), ("recall", 0.9, "these"), ("precision", 0.7, "new"))
TRAIN, POOL, IMAGES = 1500, 2500, 300


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


def image_losses(scores, true):
    """Thresholds from low to high, and 1 - recall of each image at them ``(images, thresholds)``.

    Images without labels lose nothing.
    """
    grid = np.concatenate([[-1.0], np.quantile(scores[true], np.linspace(0, 1, 400))])
    hits = np.stack([(true & (scores > t)).sum(axis=1) for t in grid], axis=1)
    whole = true.sum(axis=1, keepdims=True)
    return grid, np.where(whole > 0, 1 - hits / np.maximum(whole, 1), 0.0)


def conformal(grid, losses, alpha):
    """Threshold of conformal risk control: the mean loss is at most alpha in expectation."""
    count = len(losses)
    risk = (losses.sum(axis=0) + 1) / (count + 1)
    kept = int(np.cumprod(risk <= alpha).sum())
    return grid[max(kept - 1, 0)]


def rcps(grid, losses, alpha, delta=0.1):
    """Threshold whose mean loss is at most alpha with probability 1 - delta (betting bound)."""
    count = len(losses)
    if not count:
        return grid[0]
    steps = np.arange(1, count + 1)[:, None]
    mean = (0.5 + np.cumsum(losses, axis=0)) / (1 + steps)
    variance = (0.25 + np.cumsum((losses - mean) ** 2, axis=0)) / (1 + steps)
    before = np.concatenate([np.full((1, losses.shape[1]), 0.25), variance[:-1]])
    bet = np.minimum(np.sqrt(2 * np.log(1 / delta) / (count * before)), 1.0)
    with np.errstate(divide="ignore"):
        wealth = np.cumsum(np.log(np.maximum(1 - bet * (losses - alpha), 0)), axis=0).max(axis=0)
    kept = int(np.cumprod(wealth >= np.log(1 / delta)).sum())
    return grid[max(kept - 1, 0)]


def best(metric, wanted, scores, true):
    """The best threshold where the truth is known."""
    order = np.argsort(-scores, axis=None)
    hits, ranked = np.cumsum(true.ravel()[order]), scores.ravel()[order]
    if metric == "recall":
        last = int(np.searchsorted(hits, np.ceil(wanted * hits[-1])))
    else:
        kept = np.flatnonzero(hits / np.arange(1, len(hits) + 1) >= wanted)
        if not len(kept):
            return np.inf
        last = int(kept[-1])
    return np.nextafter(ranked[last], -np.inf)


def achieved(metric, tag, true):
    """The metric that was promised, and the other of recall and precision."""
    hits = (tag & true).sum()
    recall, precision = hits / max(true.sum(), 1), hits / max(tag.sum(), 1)
    return (recall, precision) if metric == "recall" else (precision, recall)


class Cell:
    """Rows of one data set whose labels were lost in one way."""

    def __init__(self, x, y, area, way, lose, seed=7):
        """Train a head, and say what is probably true in the pool."""
        rows = np.random.default_rng(seed).permutation(len(x))
        half = min(TRAIN, int(0.6 * len(x)))
        first, second = rows[:half], rows[half : half + POOL]
        lost = lose(way, y, seed=seed, X=x, area=area)
        keep = (lost[first].sum(0) >= 3) & (lost[second].sum(0) >= 1)
        judged = SimpleNamespace(features=x[second])
        self.scores = trained(x[first], lost[first][:, keep], "bce", judged)
        self.true = y[second][:, keep] == 1
        self.labels = lost[second][:, keep].astype(float)
        self.probs = {
            "model": present_probs(self.scores, self.labels),
            "flat": np.full(self.labels.shape, self.labels.mean()),
        }

    def cases(self, kinds, belief, times):
        """What is promised in each repetition: case by kind and number, and the images drawn."""
        found, drawn = defaultdict(list), []
        for seed in range(times):
            rng = np.random.default_rng([1, seed])
            rows = rng.integers(len(self.true), size=min(IMAGES, len(self.true)))
            drawn.append(rows)
            for metric, wanted, over in kinds:
                test = PromiseTest(
                    self.scores[rows], self.labels[rows], probs=self.probs[belief][rows],
                    plan_for=(metric, wanted), over=over, seed=seed,
                )  # fmt: skip
                for number in NUMBERS:
                    ask = test.plan(number)
                    answers = ask.answered(self.true[rows][ask.rows, ask.columns])
                    case = test.case(metric, wanted, answers)
                    found[number, metric, wanted, over].append(case)
        return found, drawn

    def rows(self, kinds=KINDS):
        """Lines of the table; without a model where all kinds are asked for."""
        found, drawn = self.cases(kinds, "model", TIMES)
        flat = self.cases(KINDS[:1], "flat", LESS)[0] if kinds == KINDS else None
        grid, losses = image_losses(self.scores, self.true)
        for (number, metric, wanted, over), cases in found.items():
            made = [one.threshold for one in conclude(cases)]
            kept = [(t, rows) for t, rows in zip(made, drawn, strict=True) if t is not None]
            reached = [
                achieved(
                    metric,
                    self.scores[rows] > t if over == "these" else self.scores > t,
                    self.true[rows] if over == "these" else self.true,
                )
                for t, rows in kept
            ]
            top = best(metric, wanted, self.scores, self.true)
            row = {
                "pool": len(self.true), "pairs": self.true.size, "labels": int(self.true.sum()),
                "over": over, "metric": metric, "wanted": wanted, "answers": number,
                "times": TIMES, "broken": sum(value < wanted for value, _ in reached),
                "none": TIMES - len(kept), "tags": self.tags(made),
                "reached": rounded([value for value, _ in reached]),
                "other": rounded([rest for _, rest in reached]),
                "best_tags": self.tags([top]),
                "best_other": rounded([achieved(metric, self.scores > top, self.true)[1]]),
            }  # fmt: skip
            for name in ("flat", "crc", "rcps"):
                row |= {f"{name}_tags": "", f"{name}_other": "", f"{name}_broken": ""}
            if (metric, wanted, over) == KINDS[0]:
                pairs = self.true.shape[1]
                whole = [np.random.default_rng(k).permutation(len(losses)) for k in range(TIMES)]
                whole = [losses[rows[: number // pairs]] for rows in whole]
                others = {
                    "crc": [conformal(grid, one, 1 - wanted) for one in whole],
                    "rcps": [rcps(grid, one, 1 - wanted) for one in whole],
                }
                if flat is not None:
                    made = conclude(flat[number, metric, wanted, over])
                    others["flat"] = [one.threshold for one in made]
                for name, thresholds in others.items():
                    reached = [achieved(metric, self.scores > t, self.true) for t in thresholds]
                    row[f"{name}_tags"] = self.tags(thresholds)
                    row[f"{name}_other"] = rounded([rest for _, rest in reached])
                    row[f"{name}_broken"] = sum(value < wanted for value, _ in reached)
            yield row

    def tags(self, thresholds):
        """Median number of tags of the pool."""
        return float(np.median([0 if t is None else (self.scores > t).sum() for t in thresholds]))


def rounded(values):
    """Median with four digits."""
    return round(float(np.median(values)), 4) if len(values) else ""


def study(data, out, minutes, part="0/1"):
    """Go on with the study until the time is over; VOC and COCO come first."""
    until = time.monotonic() + 60 * minutes
    sys.path.insert(0, str(data))
    from losing import WAYS, lose

    done = set()
    if out.is_file():
        with out.open() as file:
            done = {(row["set"], row["way"]) for row in csv.DictReader(file)}
    content = list(sets(data))
    ways = [*FIRST_WAYS, *(way for way in WAYS if way not in FIRST_WAYS)]
    cells = [
        (way, *one)
        for way in ways
        for one in content
        if one[3] is not None or way not in ("largest", "area")
    ]
    first, every = (int(number) for number in part.split("/"))
    for way, name, x, y, area in cells[first::every]:
        if (name, way) in done:
            continue
        if time.monotonic() > until:
            return
        kinds = KINDS if way == FIRST_WAYS[0] else KINDS[::2]
        found = Cell(x, y, area, way, lose).rows(kinds)
        rows = [{"set": name, "way": way, **row} for row in found]
        with out.open("a") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            if not file.tell():
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    if sys.argv[1] == "--summary":
        from promises_summary import summarise

        Path(sys.argv[3]).write_text(summarise(Path(sys.argv[2])))
    else:
        minutes = float(sys.argv[3]) if len(sys.argv) > 3 else np.inf
        study(Path(sys.argv[1]), Path(sys.argv[2]), minutes, *sys.argv[4:])
