"""Finding the largest values of a batch without sorting it."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor

from hilltop.losses.engine.one_pass import traced


def highest(scores: Tensor, selected: Tensor, many: Tensor) -> Tensor:
    """Return those selected, or where they are more than ``many`` the highest-scored of them.

    Of equal scores at the limit none is returned, so that there are never more.
    """
    if not selected.numel():
        return selected
    few = selected.sum() <= many
    if scores.is_cpu and not traced() and few:
        return selected
    ranks = torch.where(selected, scores, -torch.inf).flatten()
    first_out = value_at_place(ranks, many.clamp(max=ranks.numel() - 1))
    return selected & (few | (scores > first_out))


def value_at_place(values: Tensor, place: Tensor) -> Tensor:
    """Return the value at a place of the values from the largest down, counting from 0."""
    if traced() or not values.is_cpu:
        # Sorting takes far longer, but the place may then change from epoch to epoch, and nobody
        # has to wait for a device to know it.
        return values.sort(descending=True).values.gather(0, place.reshape(1))
    from_below = values.numel() - 1 - int(place)
    with contextlib.suppress(ImportError):  # losses need torch alone
        import numpy as np

        # A tenth of the time that torch takes.
        return values.new_tensor(np.partition(values.numpy(), from_below)[from_below])
    return values.kthvalue(from_below + 1).values
