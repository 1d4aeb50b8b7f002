"""What corrections share: memory of single pairs, and the largest of many values."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses.base import PairBatch
from hilltop.losses.tracing import distributed, traced


def batch_rows(name: str, batch: PairBatch, pairs: tuple[int, int] | None) -> Tensor:
    """Return the row numbers of a batch as one column, checked.

    Args:
        name: Name of the loss, for messages.
        batch: The pairs, with row numbers as the loss got them.
        pairs: Images and classes that the loss was prepared for, None if it was not.
    """
    logits, index = batch.logits, batch.index
    if pairs is None:
        raise ArgumentError(
            f"{name} remembers every image: call prepare(LabelStats.of(targets, epochs)) before"
            " training."
        )
    if index is None:
        raise ArgumentError(
            f"{name} remembers every image: pass index=, the row numbers of the batch in the"
            " data set."
        )
    if index.dtype.is_floating_point or index.dtype == torch.bool:
        raise ArgumentTypeError(f"index must hold whole numbers, but got {index.dtype}.")
    if index.shape != logits.shape[:-1]:
        raise ArgumentError(
            f"index must have one number for each image of logits, {tuple(logits.shape[:-1])},"
            f" but got the shape {tuple(index.shape)}."
        )
    if logits.shape[-1] != pairs[1]:
        raise ArgumentError(
            f"{name} was prepared for {pairs[1]} classes, but logits has {logits.shape[-1]}."
        )
    rows = index.reshape(-1).long()
    if rows.is_cpu and rows.numel() and not torch.compiler.is_compiling():
        _check_range(name, rows, pairs[0])
    return rows


def _check_range(name: str, rows: Tensor, images: int) -> None:
    if torch._C._are_functorch_transforms_active():
        return
    low, high = int(rows.min()), int(rows.max())
    if low < 0 or high >= images:
        wrong = low if low < 0 else high
        raise ArgumentError(
            f"index must lie between 0 and {images - 1}, because {name} was prepared for {images}"
            f" images, but got {wrong}."
        )


def pack_bits(bits: Tensor) -> Tensor:
    """Return ``(N, K)`` of bool as ``(N, ceil(K / 8))`` bytes.

    Example:
        >>> pack_bits(torch.tensor([[True, False, True]]))
        tensor([[5]], dtype=torch.uint8)
    """
    width = -(-bits.shape[1] // 8)
    eights = F.pad(bits, (0, 8 * width - bits.shape[1])).view(len(bits), width, 8)
    powers = 2 ** torch.arange(8, device=bits.device, dtype=torch.uint8)
    return (eights * powers).sum(dim=-1, dtype=torch.uint8)


def unpack_bits(packed: Tensor, classes: int) -> Tensor:
    """Return what :func:`pack_bits` was given."""
    places = torch.arange(8, device=packed.device, dtype=torch.uint8)
    bits = (packed.unsqueeze(-1) >> places) & 1
    return bits.flatten(1)[:, :classes].bool()


def all_reduce_rows(table: Tensor, written: Tensor) -> None:
    """Give every process the rows that the others wrote since the last time.

    Args:
        table: Rows by image; changed in place.
        written: True for the rows that this process wrote. No two processes wrote the same row
            differently: an epoch goes through every image once.
    """
    if not distributed():
        return
    # As bytes, and the largest instead of the sum: after a resume all processes hold the same row.
    content = table.view(torch.uint8)
    rows = written.unsqueeze(1).to(torch.uint8)
    theirs = content * rows
    dist.all_reduce(theirs, op=dist.ReduceOp.MAX)
    dist.all_reduce(rows, op=dist.ReduceOp.MAX)
    content.copy_(torch.where(rows.bool(), theirs, content))


def describe_bytes(size: int) -> str:
    """Return a number of bytes as people say it.

    Example:
        >>> describe_bytes(640), describe_bytes(26_214_400)
        ('640 bytes', '26.2 MB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


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
