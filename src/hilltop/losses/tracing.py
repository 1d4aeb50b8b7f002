"""What a loss may do with a tensor now: read its values, remember it, add it up over processes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def traced() -> bool:
    """Return whether torch.compile or torch.func is at work, so that no value can be read."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def has_values(tensor: Tensor) -> bool:
    """Return whether values can be read: not on the meta device, nor while CUDA captures."""
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return not (tensor.is_meta or isinstance(tensor, torch._subclasses.FakeTensor))


def learns_from(logits: Tensor) -> bool:
    """Return whether this is a step of training, from which a loss may remember something.

    A look at the loss alone (no gradient asked for) and a function transform leave no trace.
    """
    if torch._C._are_functorch_transforms_active():
        return False
    return torch.is_grad_enabled() and logits.requires_grad


def distributed() -> bool:
    """Return whether several processes train together."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def summed(counts: Tensor) -> Tensor:
    """Add up counts over all processes, in place, and return them."""
    if distributed():
        dist.all_reduce(counts)
    return counts
