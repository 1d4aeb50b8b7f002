"""A loss that stands for another one: the whole protocol is passed on, in one place."""

from __future__ import annotations

from torch import Tensor

from hilltop.losses.base import LabelStats, Loss, PairBatch, ParameterGroups, SumUp
from hilltop.losses.reduction import Reduction


class LossWrapper(Loss):
    """Passes everything on to the loss within, and declares what that declares.

    Subclasses change what they are there for, usually :meth:`forward`. A wrapper has no watch of
    its own: the loss within is called as any other, and looks out for itself.

    Args:
        inner: The loss within; None if it is not known yet, see :meth:`wrap`.
        reduction: What the wrapper returns.
    """

    inner: Loss | None

    def __init__(self, inner: Loss | None, *, reduction: Reduction) -> None:
        """Take the loss, if there is one."""
        super().__init__(reduction=reduction, watch=False)
        self.register_module("inner", None)
        if inner is not None:
            self.wrap(inner)

    def wrap(self, inner: Loss) -> None:
        """Stand for this loss from now on."""
        self.inner = inner
        self.take_over([inner])

    def ready(self) -> Loss:
        """Return the loss within."""
        assert self.inner is not None
        return self.inner

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, see :meth:`Loss.forward`."""
        loss: Tensor = self.ready()(logits, targets, observed=observed, index=index)
        return loss

    def set_epoch(self, epoch: int) -> None:
        """Tell both losses which epoch begins."""
        super().set_epoch(epoch)
        if self.inner is not None:
            self.inner.set_epoch(epoch)

    def prepare(self, stats: LabelStats) -> None:
        """Pass the statistics on."""
        self.ready().prepare(stats)

    def init_loss(self) -> Loss:
        """Return what the loss within starts as."""
        return self.ready().init_loss()

    def parameter_groups(self) -> ParameterGroups:
        """Return what the loss within learns."""
        return [] if self.inner is None else self.inner.parameter_groups()

    def describe(self) -> str | None:
        """Return what the loss within has to say."""
        return None if self.inner is None else self.inner.describe()

    def decision_threshold(self, scores: Tensor) -> float:
        """Return the threshold of the loss within."""
        return self.ready().decision_threshold(scores)

    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that the loss within takes for labels."""
        return self.ready().pseudo_labels(logits, targets, observed=observed, index=index)

    def batch(
        self,
        logits: Tensor,
        targets: Tensor,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> PairBatch:
        """Return the pairs as the loss within sees them."""
        return self.ready().batch(logits, targets, observed, index)

    def evaluate(self, batch: PairBatch) -> Tensor:
        """Return the reduced loss of the loss within."""
        return self.ready().evaluate(batch)

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the entries of the loss within."""
        return self.ready().entries(batch)

    def check_targets(self, targets: Tensor) -> None:
        """Raise unless the loss within can take these targets."""
        self.ready().check_targets(targets)

    def raise_deferred_errors(self) -> None:
        """Raise what the loss within has to."""
        if self.inner is not None:
            self.inner.raise_deferred_errors()

    def factors(self) -> tuple[Tensor | None, ...]:
        """Return the factors of the loss within."""
        return self.ready().factors()

    def kernel(self, batch: PairBatch) -> SumUp | None:
        """Return the kernel of the loss within."""
        return self.ready().kernel(batch)

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return what the loss within finds."""
        return self.ready().find_pseudo_labels(batch)
