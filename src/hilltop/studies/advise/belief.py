"""How labels were lost, as far as labels and features tell, and complete labels drawn from that.

Judged by labels that are incomplete themselves, a loss is rewarded for predicting which labels
were written down, not which are true. So the trial needs a truth: complete labels as probable
as the real ones, given the labels that are there. From them labels are lost in the same way again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.audit.find.score_blocks import label_block
from hilltop.calibration.observation import describe_model, select_model
from hilltop.calibration.posterior import present_probability
from hilltop.data import LabelTable, State, Step, drop_positives, keep_each
from hilltop.losses import KeptByCount
from hilltop.losses.likelihood.choose import Likelihood, choose_observation
from hilltop.training.folds import out_of_fold_logits


@dataclass(frozen=True)
class Belief:
    """How labels of some images were lost.

    Attributes:
        table: The labels that are there.
        loss: The observation model under which they are most probable.
        present: Probability that each pair is really present ``(images, classes)``.
    """

    table: LabelTable
    loss: Likelihood
    present: npt.NDArray[np.float32]

    @property
    def share(self) -> float:
        """Share of the true labels that is there."""
        return self.table.count(State.PRESENT) / float(self.present.sum())

    def __str__(self) -> str:
        """Return a sentence."""
        return (
            f"labels were probably lost as in {describe_model(self.loss)}: about {self.share:.0%}"
            " of the true ones are there"
        )

    def draw(self, seed: Sequence[int]) -> LabelTable:
        """Return complete labels: those that are there, and others as they are probable."""
        drawn = np.random.default_rng(seed).random(self.present.shape) < self.present
        states = self.table.dense()
        states[drawn] = State.PRESENT
        rows, columns = np.nonzero(states != State.UNKNOWN)
        return self.table.with_states(
            rows,
            columns,
            states[rows, columns],
            step=Step("draw_complete", by=describe_model(self.loss), seed=seed),
            unlisted=State.UNKNOWN,
        )

    def lose(self, complete: LabelTable, seed: int) -> LabelTable:
        """Return the labels with some lost, in the same way."""
        if isinstance(self.loss, KeptByCount):
            return drop_positives(complete, 1 - self.loss.rule.keep, seed=seed).table
        return keep_each(complete, float(self.loss.rate().mean()), seed=seed).table


def believe(table: LabelTable, features: Tensor, *, seed: int) -> Belief:
    """Find out how labels were lost, with heads that never saw the labels they are asked about.

    Args:
        table: The labels.
        features: One row for each image of the table.
        seed: The same seed gives the same belief.
    """
    targets, observed, _ = label_block(table, slice(None))
    loss = choose_observation(torch.bincount(targets.nansum(dim=1).long())).loss
    logits = out_of_fold_logits(features, targets, loss, observed=observed, seed=seed)
    best = select_model(logits, targets, observed=observed).best
    present = present_probability(
        best.loss, best.calibration(logits), targets, observed=observed
    ).numpy()
    present[~table.looked_for()] = 0.0
    return Belief(table, best.loss, present)
