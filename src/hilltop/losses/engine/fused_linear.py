"""FusedLinearLoss: a classification head and its loss for very many classes, without logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hilltop.checks import check_same_shape, check_whole
from hilltop.errors import ArgumentTypeError
from hilltop.losses.catalogue import build
from hilltop.losses.compose import MultiLabelLoss, check_separable
from hilltop.losses.engine.columns import Targets, columns_of
from hilltop.losses.engine.fused_step import FusedSgd
from hilltop.losses.engine.linear_parts import FeatureBatch, evaluate
from hilltop.losses.engine.one_pass import scaled
from hilltop.losses.init import HasLabelShares, init_head

Labels = Tensor | list[Tensor] | list[list[int]] | HasLabelShares


class FusedLinearLoss(nn.Module):
    r"""A linear head and its loss in one, for so many classes that their logits do not fit.

    .. math:: L(W x + b,\; y)

    ``nn.Linear`` and a loss keep logits, gradients and what lies between for every pair of image
    and class: 486 MiB for 64 images and 500,000 classes, beside the weights. Here the classes are
    gone through in parts. Each part's logits become loss and gradients at once and are forgotten,
    so that beside parameters and their gradients a few parts are all there is.

    Args:
        in_features: Length of a feature vector.
        classes: Number of classes.
        loss: A loss made of terms, or its name. Every pair must stand for itself: a correction
            that compares pairs, or a loss that counts labels, cannot be computed in parts.
        labels: The training labels, as a tensor or list like ``targets`` or a ``LabelTable``: the
            bias then starts at the best constant, see :func:`init_head`.
        step: How the head learns by itself, in every forward pass of training: then its gradient
            takes no memory, and an optimiser gets the parameters of the other layers alone.

    Shape:
        features ``(N, in_features)`` and targets ``(N, classes)`` to a number. Targets are a dense
        tensor, a sparse one (COO or CSR), a tuple of two index tensors (the row and the class of
        every label) or a list with the classes of every row.

    Raises:
        ArgumentError: The loss cannot be computed in parts, or something does not fit.

    Example:
        >>> from hilltop.losses import hill
        >>> head = FusedLinearLoss(8, 1000, loss=hill(reduction="sum"), labels=[[3, 7], [512]])
        >>> features = torch.zeros(2, 8)
        >>> head(features, [[3, 7], [512]])
        tensor(1.4965, grad_fn=<_InPartsBackward>)
        >>> head.logits(features, start=0, stop=4).shape
        torch.Size([2, 4])

    Note:
        The gradient of the weights is written in the forward pass, once. Where gradients are
        accumulated over several calls, both the old and the new one are there for a moment.
        ``linear`` is an ordinary ``nn.Linear``, to be taken out after training. Under
        ``torch.func`` the logits are there as a whole; ``torch.compile`` compiles what comes
        before the head and leaves the head as it is.
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        loss: MultiLabelLoss | str,
        *,
        labels: Labels | None = None,
        step: FusedSgd | None = None,
    ) -> None:
        """Make the head, and start its bias where the labels put it."""
        super().__init__()
        check_whole("in_features", in_features, low=1)
        check_whole("classes", classes, low=1)
        self.loss = check_separable(build(loss) if isinstance(loss, str) else loss)
        self.linear = nn.Linear(in_features, classes)
        if labels is not None:
            init_head(self.linear, self.loss, _by_class(labels, classes))
        self.step = step
        self.linear.requires_grad_(step is None)

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # torch gives it no type
    def forward(
        self, features: Tensor, targets: Targets, *, observed: Targets | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            features: What the head sees, ``(N, in_features)``.
            targets: 1 for labelled, 0 for not labelled, NaN for "leave out"; soft values too.
            observed: Pairs that a person confirmed, in any form that ``targets`` has.
        """
        self._check(features)
        shape = (len(features), self.linear.out_features)
        given = columns_of("targets", targets, shape, device=features.device)
        seen = None
        if observed is not None:
            seen = columns_of("observed", observed, shape, device=features.device, flags=True)
        batch = FeatureBatch(self.loss, features, given, seen)
        if torch._C._are_functorch_transforms_active():
            known, confirmed = batch.part(slice(0, shape[1]))
            whole: Tensor = self.loss(self.linear(features), known, observed=confirmed)
            return whole
        learned = [number for number in self.loss.parameters() if number.requires_grad]
        inputs = (features, self.linear.weight, self.linear.bias, *learned)
        if not torch.is_grad_enabled():
            return evaluate(batch, self.linear, wanted=[False] * len(inputs))[0]
        step = self.step if self.training else None
        if step is not None:
            step.check_alone()
        total: Tensor = _InParts.apply((batch, self.linear, step), *inputs)
        return total

    def logits(self, features: Tensor, *, start: int = 0, stop: int | None = None) -> Tensor:
        """Return the logits of the classes from ``start`` to ``stop``, all if None."""
        part = slice(start, stop)
        return nn.functional.linear(features, self.linear.weight[part], self.linear.bias[part])

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins, counting from 0."""
        self.loss.set_epoch(epoch)

    def _check(self, features: Tensor) -> None:
        """Raise unless the features fit the head."""
        wanted = (len(features), self.linear.in_features)
        check_same_shape("features", features.shape, "the head's input", wanted)
        kinds = features.dtype, self.linear.weight.dtype
        if kinds[0] != kinds[1] and not torch.is_autocast_enabled(features.device.type):
            raise ArgumentTypeError(
                f"features must have the dtype of the head, {kinds[1]}, but got {kinds[0]}."
            )


class _InParts(torch.autograd.Function):
    """A loss whose gradients were found in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any, work: tuple[FeatureBatch, nn.Linear, FusedSgd | None], *inputs: Tensor
    ) -> Tensor:
        """Evaluate, keep the gradients and return the loss."""
        batch, head, step = work
        loss, gradients = evaluate(batch, head, wanted=ctx.needs_input_grad[1:], step=step)
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients."""
        gradients = (None if one is None else scaled(one, grad_loss) for one in ctx.saved_tensors)
        return None, *gradients


def _by_class(labels: Labels, classes: int) -> Tensor:
    """Targets with the best constant of these labels."""
    if isinstance(labels, HasLabelShares):
        shares = torch.as_tensor(labels.label_shares()).unsqueeze(0)
        check_same_shape("labels", shares.shape, "one image and all classes", (1, classes))
        return shares
    if not isinstance(labels, Tensor | list):
        raise ArgumentTypeError(
            f"labels must be a tensor, a list with the classes of every image or a LabelTable,"
            f" but got {type(labels).__name__}."
        )
    return columns_of("labels", labels, (len(labels), classes)).by_class()
