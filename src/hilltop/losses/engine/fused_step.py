"""An optimiser step within the loop over classes: the gradient of the weights is never there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from hilltop.checks import check_number
from hilltop.errors import ArgumentError


@dataclass
class FusedSgd:
    r"""Stochastic gradient descent for the head of a :class:`FusedLinearLoss`, part by part.

    .. math:: w \leftarrow (1 - \eta\,\lambda)\,w - \eta\,\partial L / \partial w

    With three million classes the gradient of the weights is as large as they are, and so is each
    state of an optimiser. Here every part of the classes learns as soon as its gradient is known.
    bfloat16 weights are rounded up or down at random, each with the probability that makes the
    mean right: rounded to the nearest, small steps would all be lost.

    Args:
        learning_rate: The eta of the equation; change it between steps as a schedule wants.
        weight_decay: The lambda of the equation; biases are left out of it.
        seed: Of the rounding.

    Example:
        >>> step = FusedSgd(learning_rate=1e-3)
        >>> weight = torch.ones(1000, dtype=torch.bfloat16)
        >>> step.update(weight, torch.ones(1000))  # bfloat16 has 1 and 0.996, but not 0.999
        >>> bool(weight.float().mean() < 1)
        True
    """

    learning_rate: float
    weight_decay: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_number("learning_rate", self.learning_rate, low=0)
        check_number("weight_decay", self.weight_decay, low=0)
        self._generators: dict[torch.device, torch.Generator] = {}

    def check_alone(self) -> None:
        """Raise if there are other processes, whose gradients would not be heard."""
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ArgumentError(
                "FusedSgd learns before gradients of other processes arrive, so that the processes"
                " would drift apart. Use an optimiser of torch where there are several."
            )

    @torch.no_grad()
    def update(self, weight: Tensor, grad: Tensor) -> None:
        """Let some weights learn, in place, from their gradient in full precision."""
        decay = self.learning_rate * self.weight_decay if weight.ndim > 1 else 0.0
        learned = weight.to(grad.dtype).mul(1 - decay).sub_(grad, alpha=self.learning_rate)
        if weight.dtype == torch.bfloat16:
            learned = round_at_random(learned, self._generator(weight.device))
        weight.copy_(learned)

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self.seed)
        return self._generators[device]


def round_at_random(values: Tensor, generator: torch.Generator) -> Tensor:
    """Return float32 values in bfloat16, rounded so that each is right in the mean.

    The lower half of a float32 is what bfloat16 has no room for: a random number of that size is
    added, and what it carries into the upper half is the rounding.
    """
    bits = values.float().contiguous().view(torch.int32)
    noise = torch.randint(
        1 << 16, bits.shape, generator=generator, dtype=bits.dtype, device=bits.device
    )
    rounded = ((bits + noise) >> 16 << 16).view(torch.float32)
    return torch.where(values.isfinite(), rounded, values.float()).bfloat16()
