"""Calls the compiled kernel (kernel.c) that computes a loss and its slope in one pass.

Installing the package compiles it where there is a C compiler. Without it everything works and
gives the same numbers; the plain torch path of one_pass.py is only slower.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from hilltop.losses.half import FusedHalf

_ABI = 1
_KINDS = {"focal": 0, "cubic": 1}
_ENTRIES_PER_THREAD = 1 << 18  # below this, starting a thread costs more than it saves


class FusedLoss(NamedTuple):
    """A whole loss in the form that the kernel knows: see ``loss_t`` in kernel.c."""

    positive: FusedHalf
    negative: FusedHalf
    recovered: FusedHalf
    flip_above: float
    smoothing: float


class KernelResult(NamedTuple):
    """What one call found; ``entries`` and ``slope`` are None unless they were asked for."""

    total: float
    known: int
    invalid: int
    entries: Tensor | None
    slope: Tensor | None


class _Half(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("gamma", ctypes.c_int32),
        ("detach_weight", ctypes.c_int32),
        ("sign", ctypes.c_float),
        ("offset", ctypes.c_float),
        ("shift", ctypes.c_float),
        ("quadratic", ctypes.c_float),
        ("cubic", ctypes.c_float),
        ("scale", ctypes.c_float),
    )


class _Loss(ctypes.Structure):
    _fields_ = (
        ("positive", _Half),
        ("negative", _Half),
        ("recovered", _Half),
        ("flip_above", ctypes.c_float),
        ("smoothing", ctypes.c_float),
    )


class _Total(ctypes.Structure):
    _fields_ = (
        ("sum", ctypes.c_double),
        ("known", ctypes.c_int64),
        ("invalid", ctypes.c_int64),
    )


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, or None where it was not built."""
    path = Path(__file__).with_name("_kernel.so")
    if not path.exists():
        return None
    loaded = ctypes.CDLL(str(path))
    if loaded.hilltop_kernel_abi() != _ABI:
        return None  # built from another version of kernel.c
    pointer = ctypes.c_void_p
    loaded.hilltop_loss_and_slope.restype = None
    loaded.hilltop_loss_and_slope.argtypes = [
        pointer, ctypes.c_int64, ctypes.c_int64, *[pointer] * 8,
    ]  # fmt: skip
    return loaded


def loss_and_slope(
    loss: FusedLoss,
    logits: Tensor,
    targets: Tensor,
    observed: Tensor | None,
    class_weight: Tensor | None,
    pos_weight: Tensor | None,
    *,
    want_entries: bool,
    want_slope: bool,
) -> KernelResult:
    """Run the kernel over contiguous CPU tensors, float32 (``observed``: bool), of one shape.

    Weights have one entry for each class.
    """
    entries = torch.empty_like(logits) if want_entries else None
    slope = torch.empty_like(logits) if want_slope else None
    # Without weights the kernel need not know where a row ends: one long row is fastest.
    weighted = class_weight is not None or pos_weight is not None
    classes = logits.shape[-1] if weighted and logits.ndim else 1
    pieces = _pieces(logits.numel(), classes)
    totals = [_Total() for _ in pieces]

    def work(number: int) -> None:
        start, length = pieces[number]
        shape = (length // classes, classes) if weighted else (1, length)
        compiled.hilltop_loss_and_slope(
            parameters,
            *shape,
            _address(logits, start),
            _address(targets, start),
            _address(observed, start),
            _address(class_weight),
            _address(pos_weight),
            _address(entries, start),
            _address(slope, start),
            ctypes.addressof(totals[number]),
        )

    compiled, parameters = library(), ctypes.addressof(_parameters(loss))
    assert compiled is not None
    _in_threads(work, len(pieces))
    total = totals[0]
    for other in totals[1:]:
        total.sum += other.sum
        total.known += other.known
        total.invalid += other.invalid
    return KernelResult(total.sum, total.known, total.invalid, entries, slope)


def _pieces(entries: int, classes: int) -> list[tuple[int, int]]:
    """Split the entries at row ends into one piece a thread: where each starts, how long it is."""
    if entries >= 2 * _ENTRIES_PER_THREAD:
        rows = entries // classes
        threads = min(torch.get_num_threads(), entries // _ENTRIES_PER_THREAD, rows)
        edges = [rows * number // threads * classes for number in range(threads + 1)]
        return [(start, stop - start) for start, stop in itertools.pairwise(edges)]
    return [(0, entries)]


def _in_threads(work: Callable[[int], None], pieces: int) -> None:
    others = [threading.Thread(target=work, args=(number,)) for number in range(1, pieces)]
    for thread in others:
        thread.start()
    work(0)
    for thread in others:
        thread.join()


def _address(tensor: Tensor | None, offset: int = 0) -> int | None:
    return None if tensor is None else tensor.data_ptr() + offset * tensor.element_size()


@lru_cache(maxsize=64)
def _parameters(loss: FusedLoss) -> _Loss:
    return _Loss(
        _half(loss.positive),
        _half(loss.negative),
        _half(loss.recovered),
        loss.flip_above,
        loss.smoothing,
    )


def _half(half: FusedHalf) -> _Half:
    return _Half(**{**half._asdict(), "kind": _KINDS[half.kind]})
