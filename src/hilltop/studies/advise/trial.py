"""A trial of losses on the user's own features, with labels that were lost on purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.checks import check_whole, pluralize
from hilltop.data import LabelTable
from hilltop.errors import DataError
from hilltop.metrics import classification_report
from hilltop.studies.advise.simulation import Simulation, simulation_of
from hilltop.training.heads import fit_head
from hilltop.training.learner import head_loss
from hilltop.training.recipe import HEADS
from hilltop.training.task import label_stats, training_batch

METHODS = ("bce", "hill", "splc_bounded", "scar_likelihood", "count_likelihood", "auto")
MOST_IMAGES = 4000
LEAST_IMAGES = 40
HELD_OUT = 0.25

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tried:
    """What one loss reached on held-out images, one number a draw, as fractions.

    Attributes:
        simulated: mAP on complete labels, which were drawn, after learning from reduced ones.
        found: OF1 of the same: how good predictions above one half are.
        own: mAP on the user's own labels, which are incomplete, after learning from them.
    """

    simulated: tuple[float, ...]
    found: tuple[float, ...]
    own: tuple[float, ...]


@dataclass(frozen=True)
class Trial:
    """What all losses reached.

    Attributes:
        results: By name of the loss.
        simulation: How labels were probably lost.
        learned: Images that each head learned from.
        judged: Images that it was judged by.
    """

    results: dict[str, Tried]
    simulation: Simulation
    learned: int
    judged: int


def run_trial(
    table: LabelTable,
    features: Tensor,
    *,
    methods: Sequence[str] = METHODS,
    draws: int,
    seed: int,
    say: Callable[[str], None],
) -> Trial:
    """Train quick heads with every loss, on labels that were lost as the given ones were.

    Args:
        table: The labels.
        features: One row for each image of the table.
        methods: Names of losses.
        draws: How often labels are drawn and lost, and images held out, anew.
        seed: The same seed gives the same trial.
        say: Takes a sentence for the user.

    Raises:
        DataError: There are too few images or labels to learn and judge by.
    """
    check_whole("draws", draws, low=1)
    some = _some(table, seed)
    table, features = table.select(some), features[torch.from_numpy(some)]
    simulation = simulation_of(table, features, seed=seed)
    say(str(simulation))
    numbers: dict[str, list[tuple[float, float, float]]] = {method: [] for method in methods}
    for draw in range(draws):
        say(f"draw {draw + 1} of {draws}: training {len(methods)} losses, twice each")
        learn, judge = _split_rows(len(table), [seed, draw])
        complete = simulation.draw([seed, draw])
        reduced = simulation.lose(complete, seed + draw)
        answers, _ = complete.batch(judge)
        own = table.select(judge).eval_targets()
        if not (own == 1).any():
            raise DataError(f"None of {len(judge)} held-out images has a label; too few to judge.")
        parts = features[torch.from_numpy(learn)], features[torch.from_numpy(judge)]
        for method in methods:
            again = _scores(method, reduced.select(learn), *parts, seed=seed + draw)
            plain = _scores(method, table.select(learn), *parts, seed=seed + draw)
            simulated = classification_report(again, answers)
            on_own = classification_report(plain, own).mAP
            numbers[method].append((simulated.mAP, simulated.OF1, on_own))
    results = {method: Tried(*zip(*found, strict=True)) for method, found in numbers.items()}
    return Trial(results, simulation, len(learn), len(judge))


def _some(table: LabelTable, seed: int) -> Rows:
    """Images of the trial: not more than is quick."""
    if len(table) < LEAST_IMAGES:
        are = pluralize(len(table), "image is", "images are")
        raise DataError(f"{are} too few for a trial; it needs {LEAST_IMAGES}.")
    order = np.random.default_rng(seed).permutation(len(table))
    return np.sort(order[:MOST_IMAGES])


def _split_rows(images: int, seed: Sequence[int]) -> tuple[Rows, Rows]:
    """Images to learn from, and images to judge by."""
    order = np.random.default_rng(seed).permutation(images)
    aside = round(HELD_OUT * images)
    return np.sort(order[aside:]), np.sort(order[:aside])


def _scores(method: str, labels: LabelTable, learned: Tensor, held: Tensor, *, seed: int) -> Tensor:
    """Train a head and return what it says of held-out images."""
    loss = head_loss(method, reduction="sum")
    fitted = fit_head(
        learned,
        lambda rows: training_batch(labels, rows.numpy()),
        loss,
        classes=len(labels.classes),
        stats=label_stats(labels, HEADS.epochs),
        seed=seed,
    )
    with torch.no_grad():
        return torch.sigmoid(fitted.head(held.float()))
