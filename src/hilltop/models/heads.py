"""A classifier on features: what a network has made of each image, in rows of numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hilltop.checks import check_number
from hilltop.errors import ArgumentError


class FeatureHead(nn.Module):
    r"""Linear or one-hidden-layer classifier on standardised features.

    .. math:: \text{logits} = W \frac{x - \mu}{s} + b

    Mean and deviation of the training features are kept with the weights, so that the head takes
    features as they are. Where there are many features, as from a network, each image's are then
    scaled to the same length, so that a few large ones do not decide alone, and standardised again:
    off centre, every weight would drift together when a loss lifts all logits. A linear head starts
    at weights 0: a random start would be noise that a short training never quite unlearns.

    Args:
        features: Number of features.
        classes: Number of classes.
        hidden: Width of a hidden layer with GELU; None for a linear head.
        same_length: Scale the standardised features of each image to the same length; None does
            so for 64 features or more.

    Shape:
        ``(N, features)`` to logits ``(N, classes)``.

    Example:
        >>> head = FeatureHead(2, 3, hidden=None)
        >>> head.fit_scale(torch.tensor([[1.0, 10.0], [3.0, 10.0]]))
        >>> head.mean, head.std
        (tensor([ 2., 10.]), tensor([1., 1.]))
    """

    mean: Tensor
    std: Tensor
    mean_again: Tensor
    std_again: Tensor

    def __init__(
        self, features: int, classes: int, *, hidden: int | None, same_length: bool | None = None
    ) -> None:
        """Build the layers; the scale is 0 and 1 until it is fitted."""
        super().__init__()
        check_number("features", features, low=1)
        check_number("classes", classes, low=1)
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.register_buffer("mean_again", torch.zeros(features))
        self.register_buffer("std_again", torch.ones(features))
        layers: list[nn.Module] = []
        if hidden is not None:
            check_number("hidden", hidden, low=1)
            layers = [nn.Linear(features, hidden), nn.GELU()]
        self.same_length = features >= 64 if same_length is None else same_length
        last = nn.Linear(hidden or features, classes)
        if hidden is None:
            nn.init.zeros_(last.weight)
        self.layers = nn.Sequential(*layers, last)

    @torch.no_grad()
    def fit_scale(
        self,
        X: Tensor,  # noqa: N803 (the name of features in files)
        *,
        weight: Tensor | None = None,
    ) -> None:
        """Take mean and deviation of each feature from the training features.

        Args:
            X: The features ``(N, features)``.
            weight: How much each row counts ``(N,)``; all count alike without it.
        """
        if X.ndim != 2 or X.shape[1] != len(self.mean) or not len(X):
            raise ArgumentError(
                f"X must have shape (images, {len(self.mean)}), but got {tuple(X.shape)}."
            )
        _fit(X, self.mean, self.std, weight)
        if self.same_length:
            _fit(self._of_same_length(X), self.mean_again, self.std_again, weight)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 (the name of features in files)
        """Return the logits."""
        logits: Tensor = self.layers(self.scaled(X))
        return logits

    def scaled(self, X: Tensor) -> Tensor:  # noqa: N803 (the name of features in files)
        """Return the features as the layers see them."""
        if self.same_length:
            return (self._of_same_length(X) - self.mean_again) / self.std_again
        return (X - self.mean) / self.std

    def _of_same_length(self, X: Tensor) -> Tensor:  # noqa: N803 (the name of features in files)
        standardised = (X - self.mean) / self.std
        length = standardised.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        scaled: Tensor = standardised * (len(self.mean) ** 0.5 / length)
        return scaled


def _fit(values: Tensor, mean: Tensor, std: Tensor, weight: Tensor | None) -> None:
    """Take mean and deviation of each column."""
    values = values.to(torch.float64)
    if weight is None:
        deviation, centre = torch.std_mean(values, dim=0, correction=0)
    else:
        shares = weight.to(torch.float64) / weight.sum()
        centre = shares @ values
        deviation = (shares @ (values - centre).square()).sqrt()
    # A constant feature carries nothing; dividing by its rounding error would blow it up.
    constant = deviation <= 1e-6 * centre.abs()
    mean.copy_(centre)
    std.copy_(deviation.masked_fill(constant, 1.0))
