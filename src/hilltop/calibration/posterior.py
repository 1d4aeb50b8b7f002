"""How probable it is that a pair is present though nobody wrote it down, for many pairs at once."""

from __future__ import annotations

import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses.likelihood import Likelihood


def present_probability(
    loss: Likelihood, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
) -> Tensor:
    r"""Return the probability that each pair is really present, given all labels of its image.

    .. math:: P(y_{ic} = 1 \mid \text{labels}) = p_{ic} - \frac{\partial L}{\partial x_{ic}}

    This identity (Fisher's) holds for every likelihood L of the labels, p = sigmoid(x). The
    compiled gradient is far faster than :meth:`CountLikelihood.posterior`, and needs no more memory
    than the logits.

    Args:
        loss: The observation model, with the reduction "sum".
        logits: Of calibrated probabilities ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled.
        observed: True where a person confirmed the target.

    Example:
        >>> from hilltop.losses import count_likelihood
        >>> model = count_likelihood(r=1, reduction="sum")  # of two labels, one stays
        >>> present_probability(model, torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
        tensor([[1.0000, 0.3333]])
    """
    if loss.reduction != "sum":
        raise ArgumentError(f"loss must have the reduction 'sum', but got {loss.reduction!r}.")
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        (grad,) = torch.autograd.grad(loss.evaluate(loss.batch(leaf, targets, observed)), leaf)
    # Rounding may put the difference of two near numbers outside by 1e-7.
    return torch.sigmoid(leaf.detach()).sub_(grad).clamp_(0.0, 1.0)
