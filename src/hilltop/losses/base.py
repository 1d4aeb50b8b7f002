"""What every loss is: called like ``BCEWithLogitsLoss``, told of epochs and of the labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hilltop.checks import check_choice, check_whole
from hilltop.losses.reduction import REDUCTIONS, Reduction
from hilltop.losses.watch import CollapseWatch


@dataclass(frozen=True)
class LabelStats:
    """What a loss may know of a run before it starts.

    Attributes:
        images: Number of training images; ``index`` counts from 0 to one less.
        positives: For each class, the number of images labelled with it.
        labels_per_image: Entry s is the number of images with s labels.
        epochs: How often training goes through the images.
        before_review: As ``labels_per_image``, before a review put labels back; None without one.
    """

    images: int
    positives: Tensor
    labels_per_image: Tensor
    epochs: int
    before_review: Tensor | None = None

    @classmethod
    def of(cls, targets: Tensor, epochs: int = 1) -> LabelStats:
        """Count in the training targets ``(N, C)``: 1 for labelled, anything else for not.

        Example:
            >>> LabelStats.of(torch.tensor([[1, 0], [1, 1]])).labels_per_image
            tensor([0, 1, 1])
        """
        labelled = targets == 1
        return cls(
            images=len(labelled),
            positives=labelled.sum(dim=0),
            labels_per_image=torch.bincount(labelled.sum(dim=1)),
            epochs=epochs,
        )


class Loss(nn.Module):
    """A loss for multi-label learning, called as ``loss(logits, targets)``.

    Subclasses write :meth:`forward`; the other methods are there for those that change over time,
    learn from the labels as a whole, or turn labels over.
    """

    epoch: Tensor

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        """Check and keep the reduction; the epoch starts at 0."""
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        self.reduction: Reduction = reduction
        self.watch: CollapseWatch | None = None
        self.register_buffer("epoch", torch.zeros((), dtype=torch.long))
        self.register_load_state_dict_pre_hook(_keep_own_epoch)  # type: ignore[no-untyped-call]

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            logits: Raw model output.
            targets: 1 for labelled, 0 for not labelled, NaN for "leave out"; soft values too.
            observed: True where a person confirmed the target; such entries are not corrected.
            index: Row numbers of the batch in the data set, for losses that remember.
        """
        raise NotImplementedError

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins, counting from 0. Some corrections wait for it."""
        self.epoch.fill_(check_whole("epoch", epoch, low=0))

    @property
    def self_labelling(self) -> bool:
        """Whether targets are guessed from the model's output from the first step on.

        The constant that minimises such a loss says nothing: it agrees with its own guesses.
        """
        return False

    def init_loss(self) -> Loss:
        """Return the loss whose best constant a head should start at: this one, if that helps."""
        return self

    def prepare(self, facts: LabelStats) -> None:
        """Tell the loss what it will be trained on; the trainer does, before the first step."""

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return what this loss learns itself, each with a factor on the learning rate."""
        learned = list(self.parameters())
        return [(learned, 1.0)] if learned else []

    def note(self) -> str | None:
        """Return a sentence for whoever trains, or None: what was chosen, what memory it takes.

        It is known after :meth:`prepare`; the trainer prints it before the run.
        """
        return None

    def decision_threshold(self, scores: Tensor) -> float:
        """Return the probability above which a pair counts as present, for scores of a model.

        It is one half, except where a loss is known to push all scores up.
        """
        return 0.5

    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that this loss takes for labels at present."""
        return torch.zeros_like(targets, dtype=torch.bool)


def _keep_own_epoch(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Let a model that holds this loss load a state saved when it held another one."""
    state.setdefault(f"{prefix}epoch", module.get_buffer("epoch"))
