"""The methods beside the paper's own, as scalar loops in plain Python floats.

Written from their publications, without torch and without looking at the package. A batch is a list
of rows; methods that remember are classes.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tests.reference import (
    focal_margin_positive,
    focal_negative,
    focal_positive,
    log_negative,
    log_positive,
    sigmoid,
)

Rows = list[list[float]]
Pair = tuple[int, int]
METHODS = {"em_apl", "gr", "ll_cp", "ll_ct", "ll_r", "role", "splc_adaptive", "splc_bounded"}


def largest(
    logits: Rows, targets: Rows, share: Fraction, taken: set[Pair] = frozenset()
) -> set[Pair]:
    """The ceil(share * all pairs) unlabelled pairs with the largest negative loss."""
    count = math.ceil(share * sum(len(row) for row in logits))
    ranked = sorted(
        (
            (log_negative(x), (row, column))
            for row, (xs, ys) in enumerate(zip(logits, targets, strict=True))
            for column, (x, y) in enumerate(zip(xs, ys, strict=True))
            if y == 0 and (row, column) not in (taken or ())
        ),
        reverse=True,
    )
    return {pair for _, pair in ranked[:count]}


def large_loss(
    logits: Rows, targets: Rows, epoch: int, *, reject: bool, rate: str = "0.002"
) -> Rows:
    chosen = largest(logits, targets, Fraction(rate) * epoch)
    return with_pseudo_labels(logits, targets, chosen, reject=reject)


def with_pseudo_labels(
    logits: Rows, targets: Rows, chosen: set[Pair], *, reject: bool = False
) -> Rows:
    """Cross-entropy in which the chosen pairs are labels, or do not count."""
    losses: Rows = []
    for row, (xs, ys) in enumerate(zip(logits, targets, strict=True)):
        losses.append([])
        for column, (x, y) in enumerate(zip(xs, ys, strict=True)):
            loss = log_positive(x) if y == 1 else log_negative(x)
            if (row, column) in chosen:
                loss = 0.0 if reject else log_positive(x)
            losses[-1].append(loss)
    return losses


def bounded_self_paced(logits: Rows, targets: Rows, tau: float = 0.6) -> Rows:
    """Self-paced correction that takes the highest scores, no more than there are labels."""
    labels = sum(y == 1 for row in targets for y in row)
    unlabelled = [
        x
        for xs, ys in zip(logits, targets, strict=True)
        for x, y in zip(xs, ys, strict=True)
        if y == 0
    ]
    sure = sorted((x for x in unlabelled if sigmoid(x) > tau), reverse=True)[:labels]
    return [
        [
            focal_margin_positive(x)
            if y == 1
            else focal_positive(x)
            if x in sure
            else focal_negative(x)
            for x, y in zip(xs, ys, strict=True)
        ]
        for xs, ys in zip(logits, targets, strict=True)
    ]


class Permanent:
    """Large-loss correction for good; one data set that is one batch."""

    def __init__(self, rate: str) -> None:
        self.rate, self.pseudo = Fraction(rate), set[Pair]()

    def step(self, logits: Rows, targets: Rows, epoch: int) -> Rows:
        if epoch >= 1:
            self.pseudo |= largest(logits, targets, self.rate, self.pseudo)
        return with_pseudo_labels(logits, targets, self.pseudo)


def gr(x: float, y: float, epoch: int, epochs: int) -> float:
    """GR loss of an entry at the released constants."""
    p, t = sigmoid(x), epoch / epochs
    w, b = 0 + (2 - 0) * t, -2
    mu, sigma = 0.5 + (0.8 - 0.5) * t, 2 + (0.5 - 2) * t
    k = 1 / (1 + math.exp(-(w * p + b)))
    v = math.exp(-0.5 * ((p - mu) / sigma) ** 2)
    present = (1 - math.exp(-0.01 * log_positive(x))) / 0.01  # (1 - p^q) / q
    absent = p  # (1 - (1 - p)^1) / 1
    return y * log_positive(x) + (1 - y) * v * (k * present + (1 - k) * absent)


def entropy_maximisation(x: float, y: float, alpha: float = 0.1) -> float:
    """EM loss of an entry, lifted by alpha log 2 so that it is not negative."""
    p = sigmoid(x)
    entropy = p * log_positive(x) + (1 - p) * log_negative(x)
    return y * log_positive(x) + (1 - y) * alpha * (math.log(2) - entropy)


class SoftNegatives:
    """EM + APL on one data set that is one batch."""

    def __init__(self, epochs: int, warmup: int, theta: float = 0.9, beta: float = 0.9) -> None:
        self.epochs, self.warmup, self.theta, self.beta = epochs, warmup, theta, beta
        self.scores: dict[Pair, float] = {}
        self.soft: dict[Pair, float] = {}

    def begin(self, epoch: int, classes: int) -> None:
        """After warm-up, the lowest scores of every class that are not held yet are held."""
        if epoch < self.warmup:
            return
        for column in range(classes):
            pairs = [pair for pair in self.scores if pair[1] == column]
            count = int(self.theta * len(pairs) / (self.epochs - self.warmup))
            free = sorted((pair for pair in pairs if pair not in self.soft), key=self.scores.get)
            self.soft |= {pair: self.scores[pair] for pair in free[:count]}

    def step(self, logits: Rows, targets: Rows) -> Rows:
        losses: Rows = []
        for row, (xs, ys) in enumerate(zip(logits, targets, strict=True)):
            losses.append([])
            for column, (x, y) in enumerate(zip(xs, ys, strict=True)):
                loss = entropy_maximisation(x, y)
                if (row, column) in self.soft:
                    label = self.soft[row, column]
                    loss = self.beta * (label * log_positive(x) + (1 - label) * log_negative(x))
                losses[-1].append(loss)
                if y == 0:
                    self.scores[row, column] = sigmoid(x)
        return losses


def role(logits: Rows, guesses: Rows, targets: Rows, labels_per_image: float) -> Rows:
    """ROLE: every entry with its part of the regulariser."""
    rows, classes = len(logits), len(logits[0])
    penalty = 0.0
    for model in (logits, guesses):
        per_image = sum(sigmoid(x) for row in model for x in row) / rows
        penalty += (per_image - labels_per_image) ** 2 / classes**2
    losses: Rows = []
    for xs, gs, ys in zip(logits, guesses, targets, strict=True):
        losses.append([])
        for x, g, y in zip(xs, gs, ys, strict=True):
            sure = y * (log_positive(x) + log_positive(g))
            model = sigmoid(g) * log_positive(x) + (1 - sigmoid(g)) * log_negative(x)
            table = sigmoid(x) * log_positive(g) + (1 - sigmoid(x)) * log_negative(g)
            losses[-1].append(0.5 * (sure + model + table + penalty))
    return losses


class Adaptive:
    """Thresholds of adaptive SPLC: what was seen, each with a weight that fades."""

    def __init__(self, share: float = 0.2, start: int = 3, window: float = 0.25) -> None:
        self.share, self.start, self.window = share, start, window
        self.seen: list[list[tuple[int, float, float]]] = []  # by class: bin, label, weight
        self.images, self.missing = 0, math.inf

    def step(self, logits: Rows, targets: Rows, epoch: int) -> Rows:
        classes = len(logits[0])
        self.seen = self.seen or [[] for _ in range(classes)]
        labels = sum(y * weight for column in self.seen for _, y, weight in column)
        if epoch >= self.start and labels:
            self.missing = min(self.missing, self.estimate())
        cuts = [self.cut(column) if epoch >= self.start else math.inf for column in self.seen]
        pseudo = {
            (row, column)
            for row, xs in enumerate(logits)
            for column, x in enumerate(xs)
            if targets[row][column] == 0 and x >= cuts[column]
        }
        self.images += len(logits) if epoch == 0 else 0
        fade = math.exp(-len(logits) / (self.window * max(self.images, len(logits))))
        for column in range(classes):
            old = [(place, y, weight * fade) for place, y, weight in self.seen[column]]
            new = [
                (min(max(math.floor((xs[column] + 10) * 6.4), 0), 127), ys[column], 1.0)
                for xs, ys in zip(logits, targets, strict=True)
            ]
            self.seen[column] = old + new
        return with_pseudo_labels(logits, targets, pseudo)

    def estimate(self) -> float:
        """Labelled share among the best-scored pairs, a tenth of the labels of each class."""
        found = wanted = 0.0
        for column in self.seen:
            room = 0.1 * sum(y * weight for _, y, weight in column)
            wanted += room
            for place in range(127, -1, -1):
                inside = [(y, weight) for spot, y, weight in column if spot == place]
                total = sum(weight for _, weight in inside)
                part = min(1.0, room / total) if total else 0.0
                found += part * sum(y * weight for y, weight in inside)
                room -= part * total
        return min(3.0, (1 - found / wanted) / max(found / wanted, 1e-6))

    def cut(self, column: list[tuple[int, float, float]]) -> float:
        """The lowest edge above which unlabelled pairs fit into the budget."""
        labels = sum(y * weight for _, y, weight in column)
        if not labels or self.missing in (0, math.inf):
            return math.inf
        budget, above, best = self.share * self.missing * labels, 0.0, math.inf
        for place in range(127, -1, -1):
            above += sum((1 - y) * weight for spot, y, weight in column if spot == place)
            if above > budget:
                break
            best = place / 6.4 - 10
        return best
