"""Are heads as good as logistic regression on features as people have them?

Draws tables of numbers of many kinds (of any size, with heavy tails, counts, choices, constant and
repeated columns, a wild row, wide, narrow) and labels that a linear model can tell, adds three sets
that come with scikit-learn, and prints mAP on the 40% of the rows that are not trained on: of
``HilltopClassifier(loss="bce")``, and of one-vs-rest logistic regression, its penalty chosen by
cross-validation, on standardised columns and on columns divided by their largest value.

Run it with: python reproduction/odd_features.py [--seeds 0,1] [--only lognormal,rare]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from hilltop.integrations import HilltopClassifier
from hilltop.metrics import average_precision

Array = npt.NDArray[Any]
Problem = tuple[str, Array, Array]
ROWS, LEAST_LABELS, TRAIN_SHARE = 1500, 6, 0.6


def main() -> None:
    """Print a line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--only", default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of scikit-learn, about names and convergence
    print(f"{'features':14} seed  ours  standardised  by largest  ours above the better")
    for seed in map(int, given.seeds.split(",")):
        for name, features, labels in problems(seed):
            if given.only is None or name in given.only.split(","):
                ours, *others = compare(features, labels)
                found = "  ".join(f"{100 * one:6.2f}" for one in (ours, *others))
                print(f"{name:14} {seed:4}  {found}  {100 * (ours - max(others)):+.2f}", flush=True)


def compare(features: Array, labels: Array) -> list[float]:
    """The mAP of ours, and of logistic regression on features scaled in two ways."""
    order = np.random.default_rng(5).permutation(len(features))
    train, test = np.split(order, [int(TRAIN_SHARE * len(order))])
    labels = labels[:, labels[train].sum(axis=0) >= LEAST_LABELS]
    model = HilltopClassifier(loss="bce", random_state=0).fit(features[train], labels[train])
    scores = [model.decision_function(features[test])]
    for scaler in (StandardScaler(), MaxAbsScaler()):
        columns = []
        for column in labels.T:
            penalised = LogisticRegressionCV(
                Cs=[0.001, 0.01, 0.1, 1.0, 10.0], cv=3, scoring="average_precision", max_iter=300
            )
            fitted = make_pipeline(scaler, penalised).fit(features[train], column[train])
            columns.append(fitted.decision_function(features[test]))
        scores.append(np.stack(columns, axis=1))
    return [float(np.nanmean(average_precision(one, labels[test]))) for one in scores]


def problems(seed: int) -> Iterator[Problem]:
    """All of them, in one order, since they are drawn from one generator."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((ROWS, 30))
    yield "gauss30", base, linear_labels(base, rng)
    sized = base * 10.0 ** rng.uniform(-4, 6, 30) + 10.0 ** rng.uniform(-2, 6, 30)
    yield "scales", sized, linear_labels(base, rng)
    yield "lognormal", np.exp(2 * base), linear_labels(base, rng)
    often = np.exp(rng.normal(-2.5, 1.5, 400))
    counts = rng.poisson(often[None] * np.ones((ROWS, 1))).astype(float)
    yield "counts400", counts, linear_labels(np.log1p(counts), rng)
    choices = np.eye(12)[rng.integers(0, 12, ROWS)]
    years = rng.random((ROWS, 3)), rng.integers(1900, 2020, (ROWS, 1))
    mixed = np.c_[choices, 1000 * years[0], years[1]]
    yield "mixed", mixed, linear_labels(mixed, rng)
    few = rng.standard_normal((4000, 5))
    yield "five", few, linear_labels(few, rng, classes=5, share=0.3)
    wide = rng.standard_normal((300, 3000))
    yield "wide", wide, linear_labels(wide, rng, classes=5, noise=0.3)
    rare_words = (rng.random((ROWS, 200)) < 0.03).astype(float)
    yield "binary_sparse", rare_words, linear_labels(rare_words, rng)
    yield from real_problems()
    constant = np.c_[base, np.ones((ROWS, 5)), np.zeros((ROWS, 5))]
    yield "constants", constant, linear_labels(base, rng)
    yield "duplicates", np.c_[base, base, base + 1e-6], linear_labels(base, rng)
    unit = rng.standard_normal((ROWS, 384))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    yield "unit384", unit, linear_labels(unit, rng, classes=12, share=0.05)
    relu = np.maximum(rng.standard_normal((ROWS, 512)) @ rng.standard_normal((512, 512)) / 22, 0)
    yield "relu512", relu, linear_labels(relu, rng, classes=12, share=0.08)
    rare = rng.standard_normal((3000, 64))
    yield "rare", rare, linear_labels(rare, rng, classes=20, share=0.008, noise=0.3)
    wild = base.copy()
    wild[0] *= 1e5
    yield "outlier_row", wild, linear_labels(base, rng)
    topics = rng.dirichlet(np.ones(50) * 0.1, ROWS)
    yield "topics", topics, linear_labels(topics, rng)


def linear_labels(
    features: Array,
    rng: np.random.Generator,
    *,
    classes: int = 8,
    share: float = 0.15,
    noise: float = 1.0,
) -> Array:
    """Labels of the rows with the highest noisy sums of some of the standardised features."""
    sized = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
    shape = (sized.shape[1], classes)
    weights = rng.standard_normal(shape) * (rng.random(shape) < 0.3)
    sums = sized @ weights
    sums = sums / sums.std(axis=0) * 3 + noise * rng.logistic(size=sums.shape)
    return (sums > np.quantile(sums, 1 - share, axis=0)).astype(int)


def real_problems() -> Iterator[Problem]:
    """Three sets of scikit-learn, with labels made of what they are about."""
    digits = load_digits()
    digit = digits.target
    groups = [digit % 2 == 0, digit > 5, np.isin(digit, [0, 6, 8, 9]), np.isin(digit, [2, 3, 5, 7])]
    columns = [*groups, *(digit == one for one in range(10))]
    yield "digits", digits.data, np.stack(columns, axis=1).astype(int)
    wine = load_wine()
    yield "wine", wine.data, np.eye(3, dtype=int)[wine.target]
    cells = load_breast_cancer()
    large = cells.data[:, 0] + cells.data[:, 1] > 36, cells.data[:, 20] > 20
    yield "cancer", cells.data[:, 2:20], np.stack([cells.target, *large], axis=1).astype(int)


if __name__ == "__main__":
    main()
