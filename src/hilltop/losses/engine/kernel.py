"""Calls the compiled C kernels, which compute a loss and its gradient in one pass on the CPU.

Installing the package compiles them where there is a C compiler. Without them everything works and
gives the same numbers: the plain formula runs under autograd.
"""

from __future__ import annotations

import ctypes
import itertools
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import addressof
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hilltop.errors import HilltopError, HilltopWarning
from hilltop.losses.terms import KernelTerm

_ABI = 5
_KINDS = {"focal": 0, "cubic": 1, "kept": 2}
_ENTRIES_PER_THREAD = 1 << 18  # below this, starting a thread costs more than it saves
_ALL, _SPAN, _LANES = 4096, 32, 8  # as in count_kernel.c
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class LossForm(NamedTuple):
    """A whole loss in the form that the kernel knows: see ``loss_t`` in kernel.c."""

    positive: KernelTerm
    negative: KernelTerm
    pseudo: KernelTerm
    verified: KernelTerm | None
    pseudo_above: float
    smoothing: float
    adds_pseudo_labels: bool = False


class LossWeights(NamedTuple):
    """Numbers for each class, in float32: weights, and what terms with ``by_class`` need."""

    class_weight: Tensor | None = None
    pos_weight: Tensor | None = None
    positive_numbers: Tensor | None = None
    negative_numbers: Tensor | None = None


class KernelResult(NamedTuple):
    """What one call found; ``entries`` and ``grad`` are None unless they were asked for.

    ``total`` is the sum over all rows but the ``hard`` ones, whose counted likelihood is too small
    for the kernel and whose ``grad`` is not set; None if there are none.
    """

    total: float
    known: int
    invalid: int
    entries: Tensor | None
    grad: Tensor | None
    hard: Tensor | None = None


def runs_on(logits: Tensor, *others: Tensor | None) -> bool:
    """Return whether the kernels can take these tensors.

    Torch has to trace the formula itself under ``torch.compile`` (which fuses it), inside
    ``torch.func`` transforms, for tensor subclasses, and where something besides the logits wants a
    gradient.
    """
    if not logits.is_cpu or logits.dtype == torch.float64 or not logits.numel():
        return False
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    if type(logits) not in _PLAIN or logits.is_neg() or library() is None:
        return False
    learning = torch.is_grad_enabled()
    for other in others:  # a plain loop: for a small batch, a generator counts
        if other is None:
            continue
        if type(other) not in _PLAIN or other.is_neg() or (learning and other.requires_grad):
            return False
    return True


def with_gradient(logits: Tensor, value: Tensor, grad: Tensor | None) -> Tensor:
    """Return a value that autograd gives this gradient by the logits."""
    return value if grad is None else _WithGradient.apply(logits, (value, grad))


class _WithGradient(torch.autograd.Function):
    """A loss whose gradient was found with its value, so that backward needs one saved tensor."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, found: tuple[Tensor, Tensor]) -> Tensor:
        value, grad = found
        ctx.save_for_backward(grad)
        ctx.dtype = logits.dtype
        return value

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, None]:
        (grad,) = ctx.saved_tensors
        if torch._C._autograd._get_current_graph_task_keep_graph():
            grad = grad * grad_loss
            if torch.is_grad_enabled():
                grad = _Final.apply(grad.detach().requires_grad_())
        elif grad_loss.ndim or grad_loss.item() != 1:
            # In place: new memory of that size costs more time than the multiplication.
            grad = grad.mul_(grad_loss)
        return grad if grad.dtype == ctx.dtype else grad.to(ctx.dtype), None


class _Final(torch.autograd.Function):
    """Passes a gradient on and refuses to be differentiated, which would be silently wrong."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, grad_gradient: Tensor) -> Tensor:
        raise HilltopError(
            "The compiled kernel computes first derivatives only. For second derivatives compute"
            " the loss in float64, under torch.func (grad, hessian, ...) or under torch.compile."
        )


_INT, _FLOAT, _POINTER = ctypes.c_int32, ctypes.c_float, ctypes.c_void_p


class _Term(ctypes.Structure):
    _fields_ = [(name, _INT) for name in ("kind", "gamma", "detach_weight", "by_class")]
    _fields_ += [(name, _FLOAT) for name in ("sign", "offset", "shift", "quadratic", "cubic")]
    _fields_ += [(name, _FLOAT) for name in ("scale", "keep", "lost", "constant")]


class _Loss(ctypes.Structure):
    _fields_ = [(name, _Term) for name in ("positive", "negative", "pseudo", "confirmed")]
    _fields_ += [(name, _POINTER) for name in ("constants", "keeps", "losts")]
    _fields_ += [("has_confirmed", _INT), ("pseudo_above", _FLOAT), ("smoothing", _FLOAT)]
    _fields_ += [("adds_pseudo_labels", _INT), ("grad_scale", _FLOAT)]


class Total(ctypes.Structure):
    """What a call of either kernel adds up: see ``total_t`` in kernel_math.h."""

    _fields_ = (
        ("sum", ctypes.c_double),
        ("known", ctypes.c_int64),
        ("invalid", ctypes.c_int64),
        ("hard", ctypes.c_int64),
    )


class _Rule(ctypes.Structure):
    _fields_ = (
        ("keep_over", ctypes.c_int64),
        ("keep_under", ctypes.c_int64),
        ("share", ctypes.c_double),
        ("room", ctypes.c_int64),
        ("restore_prob", ctypes.c_double),
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
        f"{path} cannot be used: {reason}. The plain formulas run instead, more slowly."
        " Install hilltop again to compile it anew.",
        HilltopWarning,
        stacklevel=2,
    )
    return None


@lru_cache(maxsize=2)
def _compiled(name: str, pointers: int) -> Callable[..., None]:
    loaded = library()
    assert loaded is not None
    call: Callable[..., None] = getattr(loaded, name)
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    call.restype, call.argtypes = None, [pointer, size, size, *[pointer] * pointers]  # type: ignore[attr-defined]
    return call


def loss_and_grad(
    form: LossForm,
    logits: Tensor,
    targets: Tensor,
    weights: LossWeights,
    *,
    verified: Tensor | None = None,
    selected: Tensor | None = None,
    want_entries: bool,
    needs_grad: bool,
    grad_scale: float = 1.0,
) -> KernelResult:
    """Compute the sum of a loss made of terms, and its gradient multiplied by ``grad_scale``.

    Args:
        form: The loss.
        logits: Contiguous, in float32, as ``targets``.
        targets: Numbers in [0, 1] or NaN.
        weights: Numbers for each class.
        verified: Contiguous marks of verified entries.
        selected: Entries that count as labels or not at all, see ``adds_pseudo_labels``.
        want_entries: Whether the loss of every entry is wanted.
        needs_grad: Whether the gradient is.
        grad_scale: A factor on the gradient.
    """
    entries = torch.empty_like(logits) if want_entries else None
    grad = torch.empty_like(logits) if needs_grad else None
    # Without weights the kernel need not know where a row ends: one long row is fastest.
    weighted = weights != (None, None, None, None)
    classes = max(1, logits.shape[-1]) if weighted and logits.ndim else 1
    call, parameters = _compiled("hilltop_loss_and_grad", 9), _parameters(form, grad_scale)
    if weights[2] is not None or weights[3] is not None:
        parameters = _with_numbers(parameters, weights[2], weights[3])
    by_class = _addresses(weights[0], weights[1]) if weighted else (None, None)

    def work(start: int, length: int, total: Total) -> None:
        shape = (length // classes, classes) if weighted else (1, length)
        found = _addresses(logits, targets, verified, selected, entries, grad, offset=start)
        call(addressof(parameters), *shape, *found[:4], *by_class, *found[4:], addressof(total))

    total = _in_threads(work, logits.numel(), classes)
    return KernelResult(total.sum, total.known, total.invalid, entries, grad)


def count_loss_and_grad(
    left_ratio: Fraction,
    restore_prob: float,
    share: float,
    logits: Tensor,
    targets: Tensor,
    verified: Tensor | None,
    *,
    needs_grad: bool,
) -> KernelResult:
    """Compute the sum of the likelihood that counts labels, and its gradient.

    Args:
        left_ratio: The 1 - r of the rule.
        restore_prob: Probability that a lost label was put back.
        share: How much of the loss is the likelihood; the rest is cross-entropy.
        logits: Images, one a row, contiguous, in float32, as ``targets``.
        targets: 1, 0 or NaN.
        verified: Contiguous marks of verified entries.
        needs_grad: Whether the gradient is needed.
    """
    rows, classes = logits.shape
    grad = torch.empty_like(logits) if needs_grad else None
    hard = torch.empty(rows, dtype=torch.bool)
    room = max(_ALL, (_SPAN + 1 + -(-classes // _SPAN)) * (classes + 1))
    call = _compiled("hilltop_count_loss", 7)
    rule = _Rule(left_ratio.numerator, left_ratio.denominator, share, room, restore_prob)

    def work(start: int, length: int, total: Total) -> None:
        vectors = _LANES * (room + 4 * classes + 16)
        scratch = torch.empty(vectors + 2 * (length // classes) + classes + 2, dtype=torch.float64)
        per_entry = _addresses(logits, targets, verified, grad, offset=start)
        rest = *_addresses(hard, offset=start // classes), *_addresses(scratch)
        call(addressof(rule), length // classes, classes, *per_entry, *rest, addressof(total))

    total = _in_threads(work, logits.numel(), classes)
    found = hard if total.hard else None
    return KernelResult(total.sum, total.known, total.invalid, None, grad, found)


def _in_threads(work: Callable[[int, int, Total], None], entries: int, row_length: int) -> Total:
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


def _addresses(*tensors: Tensor | None, offset: int = 0) -> list[int | None]:
    """Where the entry number ``offset`` of contiguous tensors lies, None for no tensor."""
    found: list[int | None] = []
    for tensor in tensors:  # a plain loop: for a small batch, a generator counts
        place = None if tensor is None else tensor.data_ptr() + offset * tensor.element_size()
        found.append(place)
    return found


@lru_cache(maxsize=64)
def _parameters(loss: LossForm, grad_scale: float) -> _Loss:
    return _Loss(
        _term(loss.positive),
        _term(loss.negative),
        _term(loss.pseudo),
        _term(loss.verified or loss.negative),
        None,
        None,
        None,
        loss.verified is not None,
        loss.pseudo_above,
        loss.smoothing,
        loss.adds_pseudo_labels,
        grad_scale,
    )


def _with_numbers(shared: _Loss, positive: Tensor | None, negative: Tensor | None) -> _Loss:
    """Return a copy for one call; the tensors must outlive it."""
    own = _Loss.from_buffer_copy(shared)
    own.constants, own.keeps = _addresses(positive, negative)
    if negative is not None:
        (own.losts,) = _addresses(negative, offset=negative.shape[-1])
    return own


def _term(term: KernelTerm) -> _Term:
    return _Term(**{**term._asdict(), "kind": _KINDS[term.kind]})
