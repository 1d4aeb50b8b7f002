"""Where a classification head starts: at the label prior, or at the loss's own best constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from hilltop.errors import ArgumentError
from hilltop.losses.base import Loss

_MOST_ENTRIES = 2_000_000


@torch.no_grad()
def best_constant(loss: Loss, targets: Tensor, *, observed: Tensor | None = None) -> float:
    r"""Return the logit that, given to every pair, makes the loss on these labels least.

    .. math:: b = \arg\min_x \sum_{i,c} L(x, y_{ic})

    For cross-entropy it is the log odds of a label. Losses that believe in missing labels put it
    higher: at the share of labels they expect to be true. See :meth:`Loss.init_loss` for the one
    that would put it too high.

    Args:
        loss: Any loss of this library.
        targets: The training targets ``(N, C)``, or as many of their rows as are convenient.
        observed: True where a person confirmed the target.

    Example:
        >>> from hilltop.losses import bce, hill
        >>> targets = torch.eye(20)
        >>> round(best_constant(bce(), targets), 2), round(best_constant(hill(), targets), 2)
        (-2.94, -1.6)
    """
    loss = loss.init_loss()
    rows = max(1, _MOST_ENTRIES // max(1, targets.shape[-1]))
    step = -(-len(targets) // rows)  # evenly over the data set, which may be sorted
    targets = targets[::step]
    observed = None if observed is None else observed[::step]
    index = torch.arange(len(targets), device=targets.device) * step

    def value(logit: float) -> float:
        logits = torch.full(targets.shape, logit, device=targets.device)
        return float(loss(logits, targets, observed=observed, index=index).sum())

    coarse = min((0.25 * number for number in range(-40, 17)), key=value)
    return min((coarse + 0.02 * number for number in range(-12, 13)), key=value)


def init_head(
    model: nn.Module, loss: Loss, targets: Tensor, *, observed: Tensor | None = None
) -> nn.Module:
    """Set the bias of the last layer to the best constant of the loss, and return the model.

    A loss that guesses labels from the model's own output (ROLE, GR) starts at the log odds of a
    label of each class instead: its best constant would only agree with its own guesses.

    From bias 0 every class starts at one half, and losses that forgive confident negatives (Hill,
    SPLC) can leave most of them there. From here they start where their gradients balance.

    Args:
        model: Any module whose last linear or convolution layer with a bias gives the logits.
        loss: The loss it will be trained with.
        targets: The training targets ``(N, C)``.
        observed: True where a person confirmed the target.

    Raises:
        ArgumentError: There is no such layer.

    Example:
        >>> from hilltop.losses import bce
        >>> head = init_head(torch.nn.Linear(4, 2), bce(), torch.tensor([[1, 0], [0, 0]]))
        >>> head.bias
        Parameter containing:
        tensor([-1.1000, -1.1000], requires_grad=True)
    """
    if loss.self_labelling:
        return init_head_prior(model, targets)
    with torch.no_grad():
        last_bias(model).fill_(best_constant(loss, targets, observed=observed))
    return model


@runtime_checkable
class HasLabelShares(Protocol):
    """Anything that knows how often each class is labelled, such as a ``LabelTable``."""

    def label_shares(self) -> Any:
        """Return the share of images labelled with each class, as an array."""
        ...


Labels = float | Sequence[float] | Tensor | HasLabelShares


def init_head_prior(
    model: nn.Module, labels: Labels, *, keep: float | Sequence[float] | Tensor = 1.0
) -> nn.Module:
    r"""Set the bias of the last layer to the log odds of the label prior, and return the model.

    .. math:: b_c = \log \frac{\pi_c}{1 - \pi_c}

    From bias 0 every class starts at one half, and losses that forgive confident negatives (Hill,
    SPLC) can leave most of them there. From the prior they start where they belong.

    Args:
        model: Any module whose last linear or convolution layer with a bias gives the logits.
        labels: The training targets ``(N, C)``, 1 for labelled, NaN for unknown; a ``LabelTable``;
            or the share of images labelled with a class, one number or one for each class.
        keep: The share of true labels that were written down, where that is known, as for
            :func:`kept_independently`: :math:`\pi` is then the share divided by ``keep``, but at
            most one half unless the labels themselves say more.

    Raises:
        ArgumentError: There is no such layer, or the labels do not fit it.

    Example:
        >>> head = init_head_prior(torch.nn.Linear(4, 2), [0.5, 0.01])
        >>> head.bias
        Parameter containing:
        tensor([ 0.0000, -4.5951], requires_grad=True)
        >>> targets = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
        >>> init_head_prior(torch.nn.Linear(4, 2), targets).bias.detach().sigmoid()
        tensor([0.7500, 0.2500])
    """
    bias = last_bias(model)
    shares = _shares(labels)
    if shares.ndim and shares.shape != bias.shape:
        raise ArgumentError(
            f"labels must have one class for each of {bias.numel()} outputs of the last layer,"
            f" but got {shares.numel()}."
        )
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise ArgumentError("The share of labelled images must lie between 0 and 1.")
    kept = torch.as_tensor(keep, dtype=torch.float64).cpu()
    if not bool(((kept > 0) & (kept <= 1)).all()):
        raise ArgumentError(f"keep must be greater than 0 and at most 1, but got {keep!r}.")
    if kept.ndim and kept.shape != bias.shape:
        raise ArgumentError(
            f"keep must be one number or one for each of {bias.numel()} classes,"
            f" but got {kept.numel()}."
        )
    true_shares = torch.minimum(shares / kept, shares.clamp(min=0.5))
    # A class that was never (or always) labelled still gets a finite start, about 1 in 22,000.
    odds = torch.logit(true_shares, eps=1 / (1 + math.exp(10.0)))
    with torch.no_grad():
        bias.copy_(odds.to(bias).expand_as(bias))
    return model


def last_bias(model: nn.Module) -> Tensor:
    """Return the bias of the last linear or convolution layer that has one."""
    layers = [
        layer
        for layer in model.modules()
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d) and layer.bias is not None
    ]
    if not layers:
        raise ArgumentError("The model has no linear or convolution layer with a bias.")
    bias = layers[-1].bias
    assert bias is not None
    return bias


def _shares(labels: Labels) -> Tensor:
    """The share of images labelled with each class, or with any."""
    numbers = labels.label_shares() if isinstance(labels, HasLabelShares) else labels
    shares = torch.as_tensor(numbers, dtype=torch.float64).detach().cpu()
    if shares.ndim < 2:
        return shares
    if shares.ndim > 2 or not len(shares):
        raise ArgumentError(
            f"labels must have the shape (images, classes), but got {tuple(shares.shape)}."
        )
    known = ~shares.isnan()
    if bool(((shares < 0) | (shares > 1)).any()):
        raise ArgumentError("labels must lie between 0 and 1, or be NaN for unknown.")
    labelled = shares.nansum(dim=0)
    overall = labelled.sum() / known.sum().clamp(min=1)  # for a class of which nothing is known
    return torch.where(known.any(dim=0), labelled / known.sum(dim=0).clamp(min=1), overall)
