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
from torch import Tensor

from hilltop.audit.find.score_blocks import label_block
from hilltop.data import LabelTable, State, Step, drop_positives, keep_each
from hilltop.missing.model import MissingLabelModel
from hilltop.training.heads import cross_validate
from hilltop.training.learner import head_loss


@dataclass(frozen=True)
class Simulation:
    """How labels of some images were lost.

    Attributes:
        table: The labels that are there.
        model: How they were lost.
        present: Probability that each pair is really present ``(images, classes)``.
    """

    table: LabelTable
    model: MissingLabelModel
    present: npt.NDArray[np.float32]

    @property
    def share(self) -> float:
        """Share of the true labels that is there."""
        return self.table.count(State.PRESENT) / float(self.present.sum())

    @property
    def lost_as_in(self) -> str:
        """The observation model by name."""
        if self.model.kind not in ("scar", "count"):
            return "nothing is missing"
        if self.model.ratio is not None:
            return f"count_likelihood(r={self.model.ratio})"
        return f"scar_likelihood(label_frequency={self.model.missing.frequency.value:.2g})"

    def __str__(self) -> str:
        """Return a sentence."""
        return self.model.describe()

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
            step=Step("draw_complete", by=self.lost_as_in, seed=seed),
            unlisted=State.UNKNOWN,
        )

    def lose(self, complete: LabelTable, seed: int) -> LabelTable:
        """Return the labels with some lost, in the same way."""
        if self.model.kind not in ("scar", "count"):
            return complete
        if self.model.ratio is not None:
            return drop_positives(complete, self.model.ratio, seed=seed).table
        return keep_each(complete, self.model.missing.frequency.value, seed=seed).table


def simulation_of(table: LabelTable, features: Tensor, *, seed: int) -> Simulation:
    """Find out how labels were lost, with heads that never saw the labels they are asked about.

    Args:
        table: The labels.
        features: One row for each image of the table.
        seed: The same seed gives the same simulation.
    """
    targets, observed, _ = label_block(table, slice(None))
    heads = head_loss("bce", reduction="sum")
    logits = cross_validate(features, targets, heads, observed=observed, seed=seed).logits
    model = MissingLabelModel.fit(logits, targets, verified=observed)
    present = model.prob_present(logits, targets, verified=observed).astype(np.float32)
    unlikely = ~table.looked_for() if model.kind in ("scar", "count") else targets.numpy() != 1
    present[unlikely] = 0.0
    return Simulation(table, model, present)
