"""Calls the compiled kernel (kernel.c) that computes a loss and its gradient in one pass.

Installing the package compiles it where there is a C compiler. Without it everything works and
gives the same numbers; the plain torch path of base.py is only slower.
"""

from __future__ import annotations

import ctypes
import itertools
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import addressof
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from hilltop.errors import HilltopWarning
from hilltop.losses.terms.base import FusedTerm

if TYPE_CHECKING:
    from hilltop.losses.base import PairBatch

_ABI = 5
_KINDS = {"focal": 0, "cubic": 1, "kept": 2}
_ENTRIES_PER_THREAD = 1 << 18  # below this, starting a thread costs more than it saves


class FusedLoss(NamedTuple):
    """A whole loss in the form that the kernels know: see ``loss_t`` in kernel.c."""

    positive: FusedTerm
    negative: FusedTerm
    pseudo: FusedTerm
    confirmed: FusedTerm | None
    pseudo_above: float
    smoothing: float
    adds_pseudo_labels: bool = False
    start_epoch: int = 0  # of pseudo_above; a device compares it, for the CPU it is done before


class KernelResult(NamedTuple):
    """What one call found; ``entries`` and ``grad`` are None unless they were asked for."""

    total: float
    known: int
    invalid: int
    entries: Tensor | None
    grad: Tensor | None


class _Term(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("gamma", ctypes.c_int32),
        ("detach_weight", ctypes.c_int32),
        ("by_class", ctypes.c_int32),
        ("sign", ctypes.c_float),
        ("offset", ctypes.c_float),
        ("shift", ctypes.c_float),
        ("quadratic", ctypes.c_float),
        ("cubic", ctypes.c_float),
        ("scale", ctypes.c_float),
        ("keep", ctypes.c_float),
        ("lost", ctypes.c_float),
        ("constant", ctypes.c_float),
    )


class _Loss(ctypes.Structure):
    _fields_ = (
        ("positive", _Term),
        ("negative", _Term),
        ("pseudo", _Term),
        ("confirmed", _Term),
        ("constants", ctypes.c_void_p),
        ("keeps", ctypes.c_void_p),
        ("losts", ctypes.c_void_p),
        ("has_confirmed", ctypes.c_int32),
        ("pseudo_above", ctypes.c_float),
        ("smoothing", ctypes.c_float),
        ("adds_pseudo_labels", ctypes.c_int32),
        ("grad_scale", ctypes.c_float),
    )


class Total(ctypes.Structure):
    """What a call of either kernel adds up: see ``total_t`` in kernel_math.h."""

    _fields_ = (
        ("sum", ctypes.c_double),
        ("known", ctypes.c_int64),
        ("invalid", ctypes.c_int64),
        ("hard", ctypes.c_int64),
    )


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, or None where it was not built."""
    path = Path(__file__).with_name("_kernel.so")
    if not path.exists():
        return None
    try:
        loaded = ctypes.CDLL(str(path))
        if loaded.hilltop_kernel_abi() == _ABI:
            return loaded
        reason = "it was built from another version"
    except (OSError, AttributeError) as error:
        reason = str(error)
    warnings.warn(
        f"{path} cannot be used: {reason}. Losses are computed by torch instead, more slowly."
        " Install hilltop again to compile it anew.",
        HilltopWarning,
        stacklevel=2,
    )
    return None


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., None]:
    loaded = library()
    assert loaded is not None
    call = loaded.hilltop_loss_and_grad
    pointer = ctypes.c_void_p
    call.restype, call.argtypes = None, [pointer, ctypes.c_int64, ctypes.c_int64, *[pointer] * 9]
    return call


def loss_and_grad(
    loss: FusedLoss,
    batch: PairBatch,
    selected: Tensor | None,
    class_weight: Tensor | None,
    pos_weight: Tensor | None,
    *,
    by_class: tuple[Tensor | None, Tensor | None] = (None, None),
    want_entries: bool,
    needs_grad: bool,
    grad_scale: float = 1.0,
) -> KernelResult:
    """Run the kernel over a batch of contiguous CPU tensors, float32 or bool.

    ``selected`` are pairs that count as labels or not at all, see ``adds_pseudo_labels``. Weights
    have one entry for each class; ``by_class`` is what :meth:`Term.by_class` gives for the
    positive and for the negative term. The gradient comes multiplied by ``grad_scale``, which costs
    nothing here and a pass over memory later.
    """
    logits, targets, observed = batch[:3]
    entries = torch.empty_like(logits) if want_entries else None
    grad = torch.empty_like(logits) if needs_grad else None
    weights = address(class_weight), address(pos_weight)
    # Without weights the kernel need not know where a row ends: one long row is fastest.
    weighted = weights != (None, None) or by_class != (None, None)
    classes = max(1, logits.shape[-1]) if weighted and logits.ndim else 1
    call, parameters = _compiled(), _parameters(loss, grad_scale)
    if by_class != (None, None):
        parameters = _with_arrays(parameters, *by_class)

    def work(start: int, length: int, total: Total) -> None:
        call(
            addressof(parameters),
            length // classes if weighted else 1,
            classes if weighted else length,
            address(logits, start),
            address(targets, start),
            address(observed, start),
            address(selected, start),
            *weights,
            address(entries, start),
            address(grad, start),
            addressof(total),
        )

    total = in_threads(work, logits.numel(), classes)
    return KernelResult(total.sum, total.known, total.invalid, entries, grad)


def in_threads(work: Callable[[int, int, Total], None], entries: int, row_length: int) -> Total:
    """Split the entries at row ends, one piece a thread, and add up what the pieces found."""
    total = Total()
    if entries < 2 * _ENTRIES_PER_THREAD:
        work(0, entries, total)
        return total
    rows = entries // row_length
    threads = min(torch.get_num_threads(), entries // _ENTRIES_PER_THREAD, rows)
    edges = [rows * number // threads * row_length for number in range(threads + 1)]
    pieces = [(start, stop - start, Total()) for start, stop in itertools.pairwise(edges)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda piece: work(*piece), pieces))  # raises what a piece raised
    for _, _, part in pieces:
        total.sum += part.sum
        total.known += part.known
        total.invalid += part.invalid
        total.hard += part.hard
    return total


def address(tensor: Tensor | None, offset: int = 0) -> int | None:
    """Where the entry number ``offset`` of a contiguous tensor lies, None for no tensor."""
    return None if tensor is None else tensor.data_ptr() + offset * tensor.element_size()


@lru_cache(maxsize=64)
def _parameters(loss: FusedLoss, grad_scale: float) -> _Loss:
    return _Loss(
        _term(loss.positive),
        _term(loss.negative),
        _term(loss.pseudo),
        _term(loss.confirmed or loss.negative),
        None,
        None,
        None,
        loss.confirmed is not None,
        loss.pseudo_above,
        loss.smoothing,
        loss.adds_pseudo_labels,
        grad_scale,
    )


def _with_arrays(shared: _Loss, positive: Tensor | None, negative: Tensor | None) -> _Loss:
    """Return a copy for one call; the tensors must outlive it."""
    own = _Loss.from_buffer_copy(shared)
    own.constants = address(positive)
    own.keeps, own.losts = address(negative), None
    if negative is not None:
        own.losts = address(negative, negative.shape[-1])
    return own


def _term(term: FusedTerm) -> _Term:
    return _Term(**{**term._asdict(), "kind": _KINDS[term.kind]})
