"""What every loss is: called like ``BCEWithLogitsLoss``, told of epochs and of the labels.

:class:`Loss` owns the protocol and its evaluation, :class:`PairBatch` is what flows inside; for
losses that stand for another one see wrapper.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from hilltop.checks import check_choice, check_whole
from hilltop.losses.capabilities import Capabilities
from hilltop.losses.deferred import TargetChecks
from hilltop.losses.engine.one_pass import Evaluated, OnePass, Summed, grad_by_autograd, needs_graph
from hilltop.losses.reduction import REDUCTIONS, Reduction, reduce
from hilltop.losses.targets import check_inputs, compute_dtype
from hilltop.losses.watch import CollapseWatch

ParameterGroups = list[tuple[list[nn.Parameter], float]]
SumUp = Callable[[bool], Summed | Evaluated]
"""Sums a loss over a batch, and may reduce it; the argument says whether its gradient is needed."""


@dataclass(frozen=True)
class Evidence:
    """What scores that never saw the labels say about missing ones.

    Attributes:
        weight: How much each unlabelled pair counts ``(N, C)``, 0 for one that is probably a
            missing label, 1 for all others; None if nothing seems to be missing.
        sentence: What was found, in words.
    """

    weight: Tensor | None
    sentence: str


@dataclass(frozen=True)
class LabelStats:
    """What a loss may know of a run before it starts.

    Attributes:
        images: Number of training images; ``index`` counts from 0 to one less.
        positives: For each class, the number of images labelled with it.
        labels_per_image: Entry s is the number of images with s labels.
        epochs: How often training goes through the images.
        before_review: As ``labels_per_image``, before a review put labels back; None without one.
        evidence: Of missing labels, for losses that want it; None if none was gathered.
    """

    images: int
    positives: Tensor
    labels_per_image: Tensor
    epochs: int
    before_review: Tensor | None = None
    evidence: Evidence | None = None

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


class PairBatch(NamedTuple):
    """A batch of pairs of image and class, the one value that flows through a loss.

    Attributes:
        logits: Raw model output.
        targets: 1 for labelled, 0 for not labelled, NaN for "leave out"; soft values too.
        observed: True where a person confirmed the target; None where nobody did.
        index: Row numbers of the images in the data set, if they were given.
        epoch: The epoch, counting from 0; a tensor, so that it can change in compiled code.
    """

    logits: Tensor
    targets: Tensor
    observed: Tensor | None = None
    index: Tensor | None = None  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    epoch: Tensor = torch.tensor(0)

    def with_logits(self, logits: Tensor) -> PairBatch:
        """Return the same pairs with other logits."""
        return self.with_values(logits, self.targets)

    def with_values(self, logits: Tensor, targets: Tensor) -> PairBatch:
        """Return the same pairs with other logits and targets.

        Not by ``_replace``, which older compilers of torch do not look into.
        """
        return PairBatch(logits, targets, self.observed, self.index, self.epoch)

    def candidates(self) -> Tensor:
        """Return True for pairs that may be missing labels: known, below 1, not confirmed."""
        below = self.targets < 1  # False for NaN
        return below if self.observed is None else below & ~self.observed

    def at(self, rows: Tensor) -> PairBatch:
        """Return the pairs of some images; the others are left out."""
        observed, index = (
            None if one is None else one[rows] for one in (self.observed, self.index)
        )
        return PairBatch(self.logits[rows], self.targets[rows], observed, index, self.epoch)

    def rows(self) -> PairBatch:
        """Return the pairs in single precision, contiguous and an image a row, for a kernel."""
        shape = (-1, self.logits.shape[-1] if self.logits.ndim else 1)
        parts = (part.detach().float() for part in (self.logits, self.targets))
        logits, targets = (part.reshape(shape).contiguous() for part in parts)
        observed = None if self.observed is None else self.observed.reshape(shape).contiguous()
        index = None if self.index is None else self.index.reshape(-1)
        return PairBatch(logits, targets, observed, index, self.epoch)


class Loss(Capabilities, nn.Module):
    """A loss for multi-label learning, called as ``loss(logits, targets)``.

    Subclasses write :meth:`entries`; checks, the watch, evaluation and reduction are here. The
    other methods are there for losses that change over time, learn from the labels as a whole, or
    take unlabelled pairs for labels. What a loss can do and needs, its class declares, see
    :class:`Capabilities`.
    """

    epoch: Tensor

    def __init__(
        self, *, reduction: Reduction = "mean", watch: bool = True, check: bool = False
    ) -> None:
        """Check and keep the options; the epoch starts at 0."""
        super().__init__()
        self.checks = TargetChecks(check)
        check_choice("reduction", reduction, REDUCTIONS)
        self.reduction: Reduction = reduction
        self.watched = watch
        self.start_watch()
        self.register_buffer("epoch", torch.zeros((), dtype=torch.long))
        self.register_load_state_dict_pre_hook(_keep_own_epoch)  # type: ignore[no-untyped-call]

    def start_watch(self) -> None:
        """Look out for a collapse from now on, if that is wanted and this loss can go flat."""
        self.watch = CollapseWatch() if self.watched and self.can_go_flat else None

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
        batch = self.batch(logits, targets, observed, index)
        if self.watch is not None:
            self.watch.step(logits, targets)
        loss = self.evaluate(batch)
        self.checks.after(logits)
        return loss

    def batch(
        self,
        logits: Tensor,
        targets: Tensor,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> PairBatch:
        """Return the pairs as one value, if their types, shapes and devices go together."""
        check_inputs(logits, targets, observed)
        epoch = self._buffers["epoch"]  # read straight: for a small batch, look-ups count
        assert epoch is not None
        return PairBatch(logits, targets, observed, index, epoch)

    def evaluate(self, batch: PairBatch) -> Tensor:
        """Return the reduced loss: by a kernel, in one pass of autograd, or left to its graph."""
        opaque = not needs_graph(batch.logits, batch.targets, *self.factors())
        sum_up = self.kernel(batch) if opaque else None
        if sum_up is None:
            # Entries that learn, or mix, have gradients that one tensor cannot tell.
            if not opaque or self.reduction == "none" or self._learns():
                self.check_targets(batch.targets)
                loss = reduce(self.entries(batch), batch.targets, self.reduction)
                return loss.to(compute_dtype(batch.logits))
            sum_up = self.by_autograd(batch, self.entries)
        return self.one_pass(batch, sum_up)

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the loss of every pair, differentiable; 0 where the target is NaN.

        This is what a subclass writes.
        """
        raise NotImplementedError

    def check_targets(self, targets: Tensor) -> None:
        """Raise unless the loss can take these targets: between 0 and 1, or NaN.

        On a device, wrong ones are remembered, see :meth:`raise_deferred_errors`.
        """
        self.checks.check(targets, hard=self.counts_labels)

    def raise_deferred_errors(self) -> None:
        """Raise if targets that came on a device, since the last such look, cannot be.

        No step waits for a device to look at values. The first batch is looked at, ``set_epoch``
        looks, and so does this; with ``check=True`` every batch is looked at.
        """
        self.checks.raise_errors()

    def factors(self) -> tuple[Tensor | None, ...]:
        """Return tensors beside the batch that the loss depends on and that may want a gradient."""
        return ()

    def kernel(self, batch: PairBatch) -> SumUp | None:
        """Return what sums the loss up in compiled code, or None where autograd has to."""
        return None

    def by_autograd(self, batch: PairBatch, entries: Callable[[PairBatch], Tensor]) -> SumUp:
        """Return what sums entries up by torch, on any device."""

        def sum_up(needs_grad: bool) -> Summed:
            self.check_targets(batch.targets)
            logits = batch.logits.to(compute_dtype(batch.logits))
            values, grad = grad_by_autograd(
                lambda leaf: entries(batch.with_logits(leaf)), logits, needs_grad
            )
            return Summed(values.sum().to(logits.dtype), grad)

        return sum_up

    def one_pass(self, batch: PairBatch, sum_up: SumUp) -> Tensor:
        """Return the reduced loss; of the batch, backward keeps the gradient alone."""
        needs_grad = torch.is_grad_enabled() and batch.logits.requires_grad
        # As a tuple, so that autograd does not look for gradients of the rest.
        loss: Tensor = OnePass.apply(batch.logits, sum_up, needs_grad, (batch, self.reduction))
        return loss

    def _learns(self) -> bool:
        return any(parameter.requires_grad for parameter in self.parameters())

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins, counting from 0. Some corrections wait for it."""
        self.checks.raise_errors()
        self.epoch.fill_(check_whole("epoch", epoch, low=0))

    def init_loss(self) -> Loss:
        """Return the loss whose best constant a head should start at: this one, if that helps."""
        return self

    def prepare(self, stats: LabelStats) -> None:
        """Tell the loss what it will be trained on; the trainer does, before the first step."""

    def parameter_groups(self) -> ParameterGroups:
        """Return what this loss learns itself, each with a factor on the learning rate."""
        learned = list(self.parameters())
        return [(learned, 1.0)] if learned else []

    def describe(self) -> str | None:
        """Return a sentence for whoever trains, or None: what was chosen, what memory it takes.

        It is known after :meth:`prepare`; the trainer prints it before the run.
        """
        return None

    def decision_threshold(self, scores: Tensor) -> float:
        """Return the probability above which a pair counts as present, for scores of a model.

        It is one half, except where a loss is known to push all scores up.
        """
        return 0.5

    @torch.no_grad()
    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that this loss takes for labels at present."""
        return self.find_pseudo_labels(self.batch(logits, targets, observed, index))

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return what :meth:`pseudo_labels` does; losses that correct labels write it."""
        return torch.zeros_like(batch.targets, dtype=torch.bool)


def _keep_own_epoch(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Let a model that holds this loss load a state saved when it held another one."""
    state.setdefault(f"{prefix}epoch", module.get_buffer("epoch"))
