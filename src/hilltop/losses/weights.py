"""Class weights: checked when given, and brought into the form that a batch needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses.targets import check_device

ClassWeight = Tensor | Sequence[float] | float


def weight_buffer(name: str, weight: ClassWeight | None) -> Tensor | None:
    """Return the weight as a tensor, if it is one number or one row of them, not negative."""
    if weight is None:
        return None
    tensor = torch.as_tensor(weight, dtype=torch.float32).detach().clone()
    if tensor.ndim > 1:
        raise ArgumentError(
            f"{name} must be one number or one row of numbers, one for each class,"
            f" but got the shape {tuple(tensor.shape)}."
        )
    if not bool((tensor >= 0).all() and tensor.isfinite().all()):
        raise ArgumentError(f"{name} must be finite and not negative, but got {tensor.tolist()}.")
    return tensor


def weights_by_class(
    stored: Mapping[str, Tensor | None], logits: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Class and positive weights, checked, in float32 and with one entry for each class."""
    if stored["class_weight"] is None and stored["pos_weight"] is None:
        return None, None
    classes = logits.shape[-1] if logits.ndim else 1
    weights = []
    for name in ("class_weight", "pos_weight"):
        weight = stored[name]
        if weight is not None:
            check_one_for_each_class(name, weight, classes)
            check_device(name, weight, logits)
            weight = weight.float().expand(classes).contiguous()
        weights.append(weight)
    return weights[0], weights[1]


def check_one_for_each_class(name: str, numbers: Tensor, classes: int) -> None:
    """Raise unless there is one number, or one for each class."""
    if numbers.shape not in ((), (1,), (classes,)):
        raise ArgumentError(
            f"{name} must be one number or one for each of the {classes} classes in"
            f" the last dimension of logits, but has the shape {tuple(numbers.shape)}."
        )
