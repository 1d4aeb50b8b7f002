"""A loss to use, why, and the line to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from torch import Tensor

from hilltop.checks import pluralize
from hilltop.data import LabelTable
from hilltop.errors import DataError
from hilltop.losses.methods.auto import NO_EVIDENCE
from hilltop.report.tables import Sheet
from hilltop.studies.advise.facts import LabelFacts
from hilltop.studies.advise.trial import Trial, Tried, run_trial

BASELINE, AUTO = "bce", "auto"
_SAME = 0.0025  # a difference of mAP that nobody would notice


@dataclass(frozen=True)
class Advice:
    """What to use.

    Attributes:
        loss: Name of the loss.
        sentence: Why, in one sentence.
        facts: What the labels say.
        trial: What was tried on features, if there were any.
    """

    loss: str
    sentence: str
    facts: LabelFacts
    trial: Trial | None = None

    @property
    def lines(self) -> list[str]:
        """The line to change in one's own code; ``auto`` needs to see the labels too."""
        change = f"criterion = hilltop.losses.{self.loss}()  # was torch.nn.BCEWithLogitsLoss()"
        show = "criterion.prepare(hilltop.losses.LabelStats.of(targets))  # all of them"
        return [change, show] if self.loss == AUTO else [change]

    @property
    def option(self) -> str:
        """The same for ``hilltop train``."""
        return f"--loss {self.loss}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        content: dict[str, Any] = {
            "loss": self.loss,
            "lines": self.lines,
            "option": self.option,
            "sentence": self.sentence,
            "labels": self.facts.as_dict(),
        }
        if self.trial is not None:
            content["trial"] = {
                "learned_images": self.trial.learned,
                "judged_images": self.trial.judged,
                "lost_as_in": self.trial.simulation.lost_as_in,
                "share_of_labels_there": self.trial.simulation.share,
                "results": {name: asdict(tried) for name, tried in self.trial.results.items()},
            }
        return content

    def sheet(self) -> Sheet | None:
        """The evidence as a table, if there was a trial."""
        return None if self.trial is None else _sheet(self.trial, self.loss)


def advise(
    table: LabelTable,
    features: Tensor | None = None,
    *,
    draws: int = 3,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Recommend a loss for a set of labels.

    Without features the labels alone decide: how many of them images carry. With features, losses
    are tried on labels that are lost as the given ones probably were, see :func:`run_trial` and
    :func:`best_method`.

    Args:
        table: The labels.
        features: One row for each image of the table.
        draws: How often labels are drawn and lost, and images held out, anew.
        seed: The same seed gives the same advice.
        say: Takes a sentence for the user.

    Raises:
        DataError: There is no label, or with features too few images.
    """
    facts = LabelFacts.of(table)
    if not facts.labels:
        raise DataError("There is no label at all; nothing can be recommended for it.")
    if not facts.unknown:
        sentence = (
            f"Use {BASELINE}: every pair is known to be present or absent, so no label is missing;"
            " if unlisted pairs only mean that nobody said anything, pass --unlisted unknown."
        )
        return Advice(BASELINE, sentence, facts)
    if features is None:
        return Advice(AUTO, f"Use {AUTO}: {NO_EVIDENCE}; with --features it can tell more.", facts)
    trial = run_trial(table, features, draws=draws, seed=seed, say=say)
    name = best_method(trial.results)
    return Advice(name, _why(trial.results, name), facts, trial)


def best_method(results: dict[str, Tried]) -> str:
    """Return the loss with the best OF1 among those whose mAP is as good as the best.

    As good: behind by at most a quarter of a point, or one standard error of the difference over
    draws.
    """
    best = max(results, key=lambda name: np.mean(results[name].simulated))
    ahead = results[best].simulated
    level = [
        name
        for name, tried in results.items()
        if np.mean(ahead) - np.mean(tried.simulated) <= max(_SAME, _error(ahead, tried.simulated))
    ]
    return max(level, key=lambda name: np.mean(results[name].found))


def _error(one: Sequence[float], other: Sequence[float]) -> float:
    """Standard error of the mean difference; 0 for a single draw."""
    if len(one) < 2:
        return 0.0
    return float(np.std(np.subtract(one, other), ddof=1) / np.sqrt(len(one)))


def _why(results: dict[str, Tried], name: str) -> str:
    """The reason in one sentence."""
    tried, plain = results[name], results[BASELINE]
    ranked = f"{100 * np.mean(tried.simulated):.1f}% mAP"
    found = f"{100 * np.mean(tried.found):.1f}% OF1"
    if name == BASELINE:
        return f"Use {BASELINE}: no other loss was better beyond chance ({ranked}, {found})."
    gain = 100 * (np.mean(tried.simulated) - np.mean(plain.simulated))
    error = 100 * _error(tried.simulated, plain.simulated)
    spread = f" ± {error:.1f}" if error else ""
    return (
        f"Use {name}: where labels were lost as yours probably were, it reached {ranked} and"
        f" {found} on complete labels, which is {gain:+.1f}{spread} points of mAP and"
        f" {100 * (np.mean(tried.found) - np.mean(plain.found)):+.1f} of OF1 against {BASELINE}."
    )


def _sheet(trial: Trial, chosen: str) -> Sheet:
    rows = [
        [100 * float(np.mean(numbers)) for numbers in asdict(tried).values()]
        for tried in trial.results.values()
    ]
    strong = {(int(np.argmax(column)), at) for at, column in enumerate(zip(*rows, strict=True), 1)}
    draws = len(next(iter(trial.results.values())).own)
    note = (
        f"In %, on {trial.judged:,} held-out images, after learning from {trial.learned:,}; mean of"
        f" {pluralize(draws, 'draw', 'draws')}. Simulated: {trial.simulation}; complete labels were"
        " drawn accordingly, and lost again. Own labels are incomplete: they reward predicting what"
        " was written down."
    )
    return Sheet(
        "Losses on your features",
        ("loss", "mAP, simulated", "OF1, simulated", "mAP, own labels"),
        tuple(
            (f"{name} <" if name == chosen else name, *(f"{number:.2f}" for number in row))
            for name, row in zip(trial.results, rows, strict=True)
        ),
        (note,),
        strong,
    )
