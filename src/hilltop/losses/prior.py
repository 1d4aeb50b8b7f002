"""Starts a classification head at the label prior, from where no loss runs flat."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from hilltop.errors import ArgumentError


def init_head_prior(model: nn.Module, prior: float | Tensor) -> nn.Module:
    r"""Set the bias of the last layer to the log odds of the label prior, and return the model.

    .. math:: b_c = \log \frac{\pi_c}{1 - \pi_c}

    From bias 0 every class starts at one half, and losses that forgive confident negatives (Hill,
    SPLC) can leave most of them there. From the prior they start where they belong.

    Args:
        model: Any module whose last linear or convolution layer with a bias gives the logits.
        prior: Share of images labelled with a class: one number, or one for each class.

    Raises:
        ArgumentError: There is no such layer, or the prior does not fit it.

    Example:
        >>> head = init_head_prior(torch.nn.Linear(4, 2), torch.tensor([0.5, 0.01]))
        >>> head.bias
        Parameter containing:
        tensor([ 0.0000, -4.5951], requires_grad=True)
    """
    layers = [
        layer
        for layer in model.modules()
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d) and layer.bias is not None
    ]
    if not layers:
        raise ArgumentError("The model has no linear or convolution layer with a bias.")
    bias = layers[-1].bias
    assert bias is not None
    shares = torch.as_tensor(prior, dtype=torch.float64)
    if shares.ndim and shares.shape != bias.shape:
        raise ArgumentError(
            f"prior must have one entry for each of {bias.numel()} outputs of the last layer,"
            f" but got {shares.numel()}."
        )
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise ArgumentError("prior must lie between 0 and 1.")
    # A class that was never (or always) labelled still gets a finite start, about 1 in 22,000.
    odds = torch.logit(shares, eps=1 / (1 + math.exp(10.0)))
    with torch.no_grad():
        bias.copy_(odds.to(bias).expand_as(bias))
    return model
