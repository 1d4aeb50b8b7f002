"""Targets as a loss gets them: their dtype, their valid range, and which entries are unknown."""

from __future__ import annotations

import torch
from torch import Tensor

from hilltop.checks import check_same_shape, invalid_targets_message
from hilltop.errors import ArgumentError, ArgumentTypeError


def check_inputs(logits: Tensor, targets: Tensor, observed: Tensor | None) -> None:
    """Raise unless logits, targets and observed fit together in type, shape and device."""
    if not isinstance(logits, Tensor) or not logits.dtype.is_floating_point:
        raise ArgumentTypeError(f"logits must be a floating-point tensor, but got {_kind(logits)}.")
    if not isinstance(targets, Tensor) or targets.dtype.is_complex:
        raise ArgumentTypeError(f"targets must be a real tensor, but got {_kind(targets)}.")
    if targets.shape != logits.shape:
        check_same_shape("targets", targets.shape, "logits", logits.shape)
    check_device("targets", targets, logits)
    if observed is None:
        return
    if not isinstance(observed, Tensor) or observed.dtype != torch.bool:
        raise ArgumentTypeError(f"observed must be a tensor of bool, but got {_kind(observed)}.")
    check_same_shape("observed", observed.shape, "logits", logits.shape)
    check_device("observed", observed, logits)


def check_device(name: str, tensor: Tensor, logits: Tensor) -> None:
    """Raise unless ``tensor`` is on the device of the logits."""
    if tensor.device != logits.device:
        raise ArgumentError(
            f"{name} must be on the device of logits, {logits.device}, but is on {tensor.device}."
        )


def check_values(targets: Tensor) -> None:
    """Raise unless every target lies in [0, 1] or is NaN."""
    if targets.dtype == torch.bool or targets.numel() == 0 or targets.is_meta:
        return
    if torch.compiler.is_compiling():
        # A compiled graph cannot branch on values; this assertion is checked when it runs.
        valid = ((targets >= 0) & (targets <= 1)) | (targets != targets)
        torch._assert_async(valid.all(), "targets must lie between 0 and 1, or be NaN for unknown.")
        return
    values = unwrapped(targets)
    if not values.dtype.is_floating_point:
        values = values.long()  # torch cannot compare some unsigned types
    invalid = (values < 0) | (values > 1)
    if bool(invalid.any()):
        raise ArgumentError(invalid_targets_message(float(values[invalid][0].item())))


def check_hard(targets: Tensor) -> None:
    """Raise unless every target is 0, 1 or NaN."""
    check_values(targets)
    if not targets.dtype.is_floating_point or targets.numel() == 0 or targets.is_meta:
        return
    values = targets if torch.compiler.is_compiling() else unwrapped(targets)
    soft = (values > 0) & (values < 1)
    if torch.compiler.is_compiling():
        torch._assert_async(~soft.any(), "targets of a loss that counts labels must be 0 or 1.")
    elif bool(soft.any()):
        raise ArgumentError(soft_targets_message(values[soft][0].item()))


def soft_targets_message(example: float) -> str:
    """Say why a loss that counts labels cannot take a soft target."""
    return (
        "targets must be 0, 1 or NaN for a loss that counts the labels of an image, but got"
        f" {example!r}. Use another loss, such as kept_independently, for soft targets."
    )


def compute_dtype(logits: Tensor) -> torch.dtype:
    """Losses are computed in float64 for float64 logits and in float32 for all others."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor behind the wrappers of ``torch.func``, whose values may be looked at."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _kind(value: object) -> str:
    return f"one of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
