"""Draw what answers can promise, and how often it holds: docs/images/promises.png.

Run it with: python reproduction/promises_figure.py [--out docs/images/promises.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binomtest

from hilltop.missing import PromiseTest, conclude, present_probs

WANTED, TIMES, ANSWERS = 0.9, 300, 500


def generate() -> tuple[Any, Any, Any]:
    """Scores, truth and recorded labels of 2,000 images and 4 classes."""
    rng = np.random.default_rng(0)
    scores = 1 / (1 + np.exp(-rng.normal(-2, 3, (2000, 4))))
    true = rng.random(scores.shape) < scores
    return scores, true, true & (rng.random(true.shape) < 0.4)


def draw(out: Path) -> None:
    """Draw both panels."""
    scores, true, labels = generate()
    probs = present_probs(scores, labels)
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    test = PromiseTest(scores, labels, probs=probs, over="these")
    for number in (200, 500, 1000):
        ask = test.plan(number)
        answers = ask.answered(true[ask.rows, ask.columns])
        found = test.promise("recall", WANTED, answers, curve=True)
        _, tags, bound = np.asarray(found.curve).T
        left.plot(bound, tags / len(scores), ".-", label=f"{number:,} answers")
    order = np.argsort(-scores, axis=None)
    reached = np.cumsum(true.ravel()[order]) / true.sum()
    per_image = np.arange(1, len(order) + 1) / len(scores)
    left.plot(reached, per_image, "k--", label="truth known")
    left.axvline(WANTED, ls=":", color="tab:gray")
    left.set(
        xlabel="recall that holds with 90% confidence",
        ylabel="tags per image",
        title="What a promise costs",
        xlim=(0.5, 1),
    )
    left.legend()
    cases = []
    for seed in range(TIMES):
        test = PromiseTest(scores, labels, probs=probs, over="these", seed=seed)
        ask = test.plan(ANSWERS)
        answers = ask.answered(true[ask.rows, ask.columns])
        cases.append(test.case("recall", WANTED, answers))
    achieved = [(true & (scores > found.threshold)).sum() / true.sum() for found in conclude(cases)]
    broken = int((np.array(achieved) < WANTED).sum())
    low, high = binomtest(broken, TIMES).proportion_ci()
    print(f"{broken} of {TIMES} below {WANTED} ({low:.1%} to {high:.1%})")
    right.hist(achieved, bins=30)
    right.axvline(WANTED, ls=":", color="tab:red")
    right.set(
        xlabel="recall reached",
        ylabel="repetitions",
        title=f"{broken} of {TIMES} promises are broken; 10% are allowed",
    )
    figure.savefig(out, dpi=100)


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/promises.png"))
    draw(parser.parse_args().out)


if __name__ == "__main__":
    main()
