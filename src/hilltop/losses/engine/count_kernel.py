"""Calls the compiled kernel (count_kernel.c) for the likelihood that counts labels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import addressof
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from hilltop.losses.base import PairBatch
from hilltop.losses.engine import kernel
from hilltop.losses.engine.kernel import Total, address, in_threads
from hilltop.losses.likelihood.count_rule import CountRule

_ALL, _SPAN, _LANES = 4096, 32, 8  # as in count_kernel.c


class CountResult(NamedTuple):
    """What one call found.

    ``total`` is the sum over all rows but the ``hard`` ones, whose likelihood is too small for the
    kernel and whose ``grad`` is not set; None if there are none.
    """

    total: float
    known: int
    invalid: int
    grad: Tensor | None
    hard: Tensor | None


class _Rule(ctypes.Structure):
    _fields_ = (
        ("keep_over", ctypes.c_int64),
        ("keep_under", ctypes.c_int64),
        ("share", ctypes.c_double),
        ("room", ctypes.c_int64),
        ("restore_prob", ctypes.c_double),
    )


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., None]:
    loaded = kernel.library()
    assert loaded is not None
    call = loaded.hilltop_count_loss
    pointer = ctypes.c_void_p
    call.restype, call.argtypes = None, [pointer, ctypes.c_int64, ctypes.c_int64, *[pointer] * 7]
    return call


def count_loss_and_grad(
    counted: CountRule,
    share: float,
    batch: PairBatch,
    *,
    needs_grad: bool,
) -> CountResult:
    """Run the kernel over a batch on the CPU as :meth:`PairBatch.rows` gives it.

    Args:
        counted: Which labels stay.
        share: How much of the loss is the likelihood; the rest is cross-entropy.
        batch: Pairs with targets 1, 0 or NaN.
        needs_grad: Whether the gradient is needed.
    """
    logits, targets, observed, _, _ = batch
    rows, classes = logits.shape
    grad = torch.empty_like(logits) if needs_grad else None
    hard = torch.empty(rows, dtype=torch.bool)
    room = max(_ALL, (_SPAN + 1 + -(-classes // _SPAN)) * (classes + 1))
    keep = counted.keep
    call = _compiled()
    rule = _Rule(keep.numerator, keep.denominator, share, room, counted.restore_prob)

    def work(start: int, length: int, total: Total) -> None:
        vectors = _LANES * (room + 4 * classes + 16)
        scratch = torch.empty(vectors + 2 * (length // classes) + classes + 2, dtype=torch.float64)
        per_entry = (address(part, start) for part in (logits, targets, observed, grad))
        shape = length // classes, classes
        first = address(hard, start // classes)
        call(addressof(rule), *shape, *per_entry, first, address(scratch), addressof(total))

    total = in_threads(work, logits.numel(), classes)
    return CountResult(total.sum, total.known, total.invalid, grad, hard if total.hard else None)
