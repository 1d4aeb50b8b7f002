"""A loss made of terms, summed over some of its classes at a time."""

from __future__ import annotations

import copy
import itertools

import torch
from torch import Tensor
from torch.func import functional_call

from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.engine.one_pass import Summed, needs_graph


class PartialLoss:
    """The sum of a loss over some classes, with their own weights and rates.

    It shares everything with the loss that it is made from, and lives for one batch.
    """

    def __init__(self, loss: MultiLabelLoss, classes: int) -> None:
        """Take the loss of so many classes."""
        self.watch = loss.watch
        self.loss = copy.copy(loss)
        self.loss.reduction, self.loss.watch = "sum", None
        self.loss._modules = dict(loss._modules)  # or the next line would change the given loss
        self.loss.negative = loss.negative.for_classes(classes)
        tensors = itertools.chain(loss.named_parameters(), loss.named_buffers())
        self.by_class = {name: tensor for name, tensor in tensors if tensor.shape == (classes,)}

    def value_and_grad(
        self, here: slice, logits: Tensor, targets: Tensor, observed: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """Return the sum and its gradient by the logits from a kernel, or None without one."""
        if self.by_class or next(self.loss.parameters(), None) is not None:
            return None
        batch = self.loss.batch(logits, targets, observed)
        sum_up = None if needs_graph(logits, targets) else self.loss.kernel(batch)
        if sum_up is None:
            return None
        self._look(here, logits, targets)
        found = sum_up(True)
        self.loss.checks.after(logits)
        total = found.total if isinstance(found, Summed) else found.loss
        assert found.grad is not None
        return torch.as_tensor(total, dtype=logits.dtype, device=logits.device), found.grad

    def __call__(
        self, here: slice, logits: Tensor, targets: Tensor, observed: Tensor | None
    ) -> Tensor:
        """Return the sum over the classes ``here``, which are those of the tensors."""
        self._look(here, logits, targets)
        if not self.by_class:
            return self.loss(logits, targets, observed=observed)  # type: ignore[no-any-return]
        own = {name: tensor[here] for name, tensor in self.by_class.items()}
        # Weights are not tied: a part used twice would be left with the tensors of the last call.
        inputs, options = (logits, targets), {"observed": observed}
        return functional_call(self.loss, own, inputs, options, tie_weights=False)  # type: ignore[no-any-return]

    def _look(self, here: slice, logits: Tensor, targets: Tensor) -> None:
        """Watch out for a collapse, once a batch: it counts steps."""
        if self.watch is not None and here.start == 0:
            self.watch.step(logits, targets)
