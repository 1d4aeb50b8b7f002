"""Where a classification head should start: at the constant that suits the loss best."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hilltop.losses.base import Loss
from hilltop.losses.prior import init_head_prior, last_bias

_MOST_ENTRIES = 2_000_000


@torch.no_grad()
def best_constant(loss: Loss, targets: Tensor, *, observed: Tensor | None = None) -> float:
    r"""Return the logit that, given to every pair, makes the loss on these labels least.

    .. math:: b = \arg\min_x \sum_{i,c} L(x, y_{ic})

    For cross-entropy it is the log odds of a label. Losses that believe in missing labels put it
    higher: at the share of labels they expect to be true. See :meth:`Loss.starts_as` for the one
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
    loss = loss.starts_as()
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
    if loss.guesses_labels:
        return init_head_prior(model, targets)
    with torch.no_grad():
        last_bias(model).fill_(best_constant(loss, targets, observed=observed))
    return model
