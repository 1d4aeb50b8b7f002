"""A classifier on features: what a network has made of each image, in rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hilltop.checks import check_number
from hilltop.errors import ArgumentError
from hilltop.models.feature_rows import Features

SAME_LENGTH_FROM = 64
"""Number of features from which the rows are brought to one length."""
_BLOCK_ENTRIES = 1 << 22


class Scaling(NamedTuple):
    """How features are scaled.

    Attributes:
        same_length: Whether rows are brought to one length.
        keep_zeros: Whether columns that are mostly zero keep their zeros.
    """

    same_length: bool
    keep_zeros: bool = True


class FeatureHead(nn.Module):
    r"""Linear or one-hidden-layer classifier on scaled features.

    .. math:: \text{logits} = W \frac{\ell\left((x - \mu) / s\right) - m}{u} + b

    The scale of the training features is kept with the weights, so that the head takes features as
    they are, whatever their size. A column is standardised; one that is mostly zero (a word, a
    choice out of many) usually keeps its zeros, and its other values get a mean square of 1. Where
    there are many features each row is usually scaled to the same length, so that a few large ones
    do not decide alone. Last, columns are centred, or every weight would drift together when a loss
    lifts all logits, and divided by one number, so that columns that hardly occur stay small. A
    linear head starts at weights 0: a random start would be noise that a short training never quite
    unlearns.

    Args:
        features: Number of features.
        classes: Number of classes.
        hidden: Width of a hidden layer with GELU; None for a linear head.
        same_length: Whether to scale rows to the same length; None does so for 64 features or more.

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
    centre: Tensor
    unit: Tensor
    length_power: Tensor

    def __init__(
        self, features: int, classes: int, *, hidden: int | None, same_length: bool | None = None
    ) -> None:
        """Build the layers; features stay as they are until the scale is fitted."""
        super().__init__()
        check_number("features", features, low=1)
        check_number("classes", classes, low=1)
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("unit", torch.ones(()))
        many = features >= SAME_LENGTH_FROM if same_length is None else same_length
        self.register_buffer("length_power", torch.tensor(float(many)))
        self.register_load_state_dict_pre_hook(_with_usual_length)  # type: ignore[no-untyped-call]
        layers: list[nn.Module] = []
        if hidden is not None:
            check_number("hidden", hidden, low=1)
            layers = [nn.Linear(features, hidden), nn.GELU()]
        last = nn.Linear(hidden or features, classes)
        if hidden is None:
            nn.init.zeros_(last.weight)
        self.layers = nn.Sequential(*layers, last)

    @property
    def same_length(self) -> bool:
        """Whether rows are scaled to the same length."""
        return bool(self.length_power)

    @property
    def last(self) -> nn.Linear:
        """The layer that gives the logits."""
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        return last

    @torch.no_grad()
    def fit_scale(
        self,
        X: Features,  # noqa: N803 (the name of features in files)
        *,
        weight: Tensor | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        """Take the scale of each feature from the training features.

        Args:
            X: The features ``(N, features)``.
            weight: How much each row counts ``(N,)``; all count alike without it.
            scaling: How they are scaled; in the usual way without it.
        """
        scaling = scaling or Scaling(self.same_length)
        self.length_power.fill_(float(scaling.same_length))
        if X.ndim != 2 or X.shape[1] != len(self.mean) or not len(X):
            raise ArgumentError(
                f"X must have shape (images, {len(self.mean)}), but got {tuple(X.shape)}."
            )
        average = _averages(X, weight)
        filled = average(lambda block: (block != 0).double())
        if not scaling.keep_zeros:
            filled = torch.ones_like(filled)
        middle = average(lambda block: block)
        mean = torch.where(filled >= 0.5, middle, 0.0)
        std = (average(lambda block: (block - mean).square()) / filled.clamp(min=1e-12)).sqrt()
        # A constant feature carries nothing; dividing by its rounding error would blow it up.
        rounding = 1e-12 if X.dtype == torch.float64 else 1e-6
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std <= rounding * middle.abs(), 1.0, std))
        centre = average(lambda block: self._of_one_length(block).double())
        spread = average(lambda block: (self._of_one_length(block).double() - centre).square())
        unit = spread.mean().sqrt()
        self.centre.copy_(centre)
        self.unit.copy_(torch.where(unit > 0, unit, 1.0))

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 (the name of features in files)
        """Return the logits."""
        logits: Tensor = self.layers(self.scaled(X))
        return logits

    def scaled(self, X: Tensor) -> Tensor:  # noqa: N803 (the name of features in files)
        """Return the features as the layers see them: scaled as precisely as they are given."""
        return ((self._of_one_length(X) - self.centre) / self.unit).to(self.centre.dtype)

    def _of_one_length(self, X: Tensor) -> Tensor:  # noqa: N803 (the name of features in files)
        standardised = (X - self.mean) / self.std
        length = standardised.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        # A power of 0 or 1 instead of a branch: exported graphs hold both.
        scaled: Tensor = standardised * (len(self.mean) ** 0.5 / length) ** self.length_power
        return scaled


def _with_usual_length(module: FeatureHead, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Heads that were saved without it have the power that goes with their number of features."""
    if f"{prefix}mean" in state:
        state.setdefault(f"{prefix}length_power", module.length_power.clone())


def has_zeros(features: Tensor) -> bool:
    """Whether some features are mostly zero, but not always."""
    filled = (features != 0).double().mean(dim=0)
    return bool(((filled > 0) & (filled < 0.5)).any())


def _averages(
    values: Features, weight: Tensor | None
) -> Callable[[Callable[[Tensor], Tensor]], Tensor]:
    """Return what takes the mean over rows of a function of them, some rows at a time."""
    rows = max(1, _BLOCK_ENTRIES // values.shape[1])
    total = float(len(values) if weight is None else weight.sum())

    def blocks() -> Iterator[tuple[Tensor, Tensor | None]]:
        for first in range(0, len(values), rows):
            here = slice(first, first + rows)
            yield values[here].double(), None if weight is None else weight[here].double()

    def average(of: Callable[[Tensor], Tensor]) -> Tensor:
        sums = [
            of(block).sum(dim=0) if mine is None else mine @ of(block) for block, mine in blocks()
        ]
        return torch.stack(sums).sum(dim=0) / total

    return average
