"""Draw how scores show that labels are missing: docs/images/missing.png.

Synthetic data: 3,000 images with 20 features and 8 classes. Every true label is recorded with
probability 0.4 (SCAR), and heads are cross-validated on the recorded labels, as ``hilltop audit``
does. The left panel shows the share of entries with a label against the calibrated score, the right
one the profile log-likelihood of the label frequency.

Run it with: python reproduction/missing_figure.py [--out docs/images/missing.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.special import expit

from hilltop.missing import MissingLabelModel
from hilltop.missing.frequency import LOG_FREQUENCIES, coarsening
from hilltop.missing.model import Calibration
from hilltop.missing.priors import MIN_LOGLIK_GAIN
from hilltop.training.heads import cross_validate
from hilltop.training.learner import head_loss

IMAGES, FEATURES, CLASSES, FREQUENCY = 3000, 20, 8, 0.4
BINS = 24


def generate(seed: int) -> tuple[Any, Any, Any]:
    """Features, true labels and the recorded ones."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((IMAGES, FEATURES))
    weights = rng.standard_normal((FEATURES, CLASSES))
    log_odds = -4 + 5 * features @ weights / np.sqrt((weights**2).sum(axis=0))
    true = rng.random(log_odds.shape) < expit(log_odds)
    return features, true, true & (rng.random(true.shape) < FREQUENCY)


def draw(out: Path, seed: int) -> None:
    """Cross-validate heads, fit the model, and draw both panels."""
    features, true, recorded = generate(seed)
    scores = cross_validate(
        torch.from_numpy(features).float(),
        torch.from_numpy(recorded).float(),
        head_loss("bce", reduction="sum"),
        seed=seed,
    ).logits.numpy()
    model = MissingLabelModel.fit(scores, recorded)
    print(model.describe())
    print(f"{(true & ~recorded).sum():,} are missing in truth.")
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_shares(left, model, scores, true, recorded)
    draw_profile(right, model)
    figure.savefig(out, dpi=100)


def draw_shares(axes: Any, model: MissingLabelModel, scores: Any, true: Any, recorded: Any) -> None:
    """Share of entries with a label by the calibrated score, which saturates at c."""
    assert model.profile is not None
    assert model.score_scale is not None
    frequency = model.missing.frequency.value
    slope, shift = model.score_scale
    at = np.full(CLASSES, np.log(frequency))
    truth = Calibration.about(model.profile.levels, model.profile.at(at)).after(slope, shift)
    odds = truth(scores).ravel()
    order = np.argsort(odds)
    grid = np.linspace(-6, 6, 101)
    groups = np.array_split(order[odds[order] > grid[0]], BINS)
    groups = [group for group in groups if odds[group].mean() < grid[-1]]
    middle = [odds[group].mean() for group in groups]
    shares = np.array([recorded.ravel()[group].mean() for group in groups])
    error = [1.64 * np.sqrt(s * (1 - s) / len(g)) for s, g in zip(shares, groups, strict=True)]
    hidden = [true.ravel()[group].mean() for group in groups]
    axes.plot(middle, hidden, "o", mfc="none", color="tab:gray", label="true labels (not seen)")
    axes.errorbar(middle, shares, error, fmt="o", color="tab:blue", label="recorded labels")
    axes.plot(grid, frequency * expit(grid), color="tab:blue", label=r"fitted $c\,\sigma(\eta)$")
    axes.plot(grid, expit(grid), "--", color="tab:gray", label=r"$\sigma(\eta)$, no label missing")
    axes.axhline(FREQUENCY, ls=":", color="tab:red", label=f"true label frequency {FREQUENCY}")
    axes.set(
        xlabel=r"calibrated out-of-fold score $\eta$ (log odds of the truth)",
        ylabel="share of the entries",
        title="Recorded labels saturate at the label frequency",
        ylim=(-0.02, 1.02),
    )
    axes.legend(loc="upper left", fontsize="small")


def draw_profile(axes: Any, model: MissingLabelModel) -> None:
    """Profile log-likelihood of a common label frequency, coarsened as the posterior uses it."""
    assert model.profile is not None
    power = coarsening(float(model.missing.labelled.sum()))
    gain = -power * (model.profile.pooled - model.profile.pooled[0])
    frequency = model.missing.frequency
    axes.axvspan(frequency.low, frequency.high, alpha=0.15, label="90% interval of c")
    axes.plot(np.exp(LOG_FREQUENCIES), gain, "o-", ms=4, label="profile log-likelihood")
    axes.axhline(MIN_LOGLIK_GAIN, ls="--", color="tab:gray", label="gain that counts as evidence")
    axes.axvline(FREQUENCY, ls=":", color="tab:red", label=f"true label frequency {FREQUENCY}")
    axes.set(
        xlabel="label frequency c",
        ylabel="coarsened log-likelihood gain over c = 1",
        title="Which label frequency explains the labels best?",
        ylim=(min(-5.0, 1.2 * float(gain.min(initial=0, where=gain > -20))), 1.3 * gain.max()),
    )
    axes.legend(loc="lower right", fontsize="small")


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/missing.png"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw(given.out, given.seed)


if __name__ == "__main__":
    main()
