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
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from hilltop.errors import HilltopError, HilltopWarning

_ABI = 5
_KINDS = {"focal": 0, "cubic": 1, "scar": 2}
_ENTRIES_PER_THREAD = 1 << 18  # below this, starting a thread costs more than it saves
_ALL, _SPAN, _LANES = 4096, 32, 8  # as in count_kernel.c
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_INT, _LONG, _FLOAT, _DOUBLE = ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_double
_POINTER = ctypes.c_void_p


class KernelTerm(ctypes.Structure):
    r"""A term in the form that the kernel knows: ``term_t`` in kernel.c.

    With :math:`z = \mathrm{sign}\,x + \mathrm{offset}` and :math:`s = \sigma(z)`, ``"focal"`` is
    scale :math:`q^\gamma \cdot -\log(1-q)` + constant, :math:`q = \max(s - \mathrm{shift}, 0)`,
    ``"cubic"`` is scale :math:`(\mathrm{quadratic}\,s^2 + \mathrm{cubic}\,s^3)` and ``"scar"`` is
    :math:`-\log(1 - \mathrm{keep}\,s)` with keep = 1 - lost, of the logit.

    The numbers are those of the equations. With ``by_class``, float32 numbers for each class take
    the place of the constant of a positive term, or of keep and lost of a negative one (two rows).
    """

    _fields_ = [(name, _INT) for name in ("kind", "gamma", "detach_weight", "has_numbers")]
    _fields_ += [(name, _FLOAT) for name in ("sign", "offset", "shift", "quadratic", "cubic")]
    _fields_ += [(name, _FLOAT) for name in ("scale", "keep", "lost", "constant")]

    def __init__(
        self,
        kind: Literal["focal", "cubic", "scar"],
        *,
        gamma: float = 0,
        detach_weight: bool = False,
        sign: float = 1.0,
        offset: float = 0.0,
        shift: float = 0.0,
        quadratic: float = 0.0,
        cubic: float = 0.0,
        scale: float = 1.0,
        keep: float = 1.0,
        lost: float = 0.0,
        constant: float = 0.0,
        by_class: Tensor | None = None,
    ) -> None:
        """Fill the structure, in its order: by name it takes four times as long."""
        self.by_class = by_class
        super().__init__(
            _KINDS[kind], int(gamma), detach_weight, by_class is not None,
            sign, offset, shift, quadratic, cubic, scale, keep, lost, constant,
        )  # fmt: skip


class LossForm(ctypes.Structure):
    """A whole loss in the form that the kernel knows: ``loss_t`` in kernel.c."""

    _fields_ = [(name, KernelTerm) for name in ("positive", "negative", "pseudo", "verified")]
    _fields_ += [(name, _POINTER) for name in ("constants", "keeps", "losts")]
    _fields_ += [("has_verified", _INT), ("pseudo_above", _FLOAT), ("smoothing", _FLOAT)]
    _fields_ += [("adds_pseudo_labels", _INT), ("grad_scale", _FLOAT)]


class Total(ctypes.Structure):
    """What a call of either kernel adds up: ``total_t`` in kernel_math.h."""

    _fields_ = (("sum", _DOUBLE), ("known", _LONG), ("invalid", _LONG), ("hard", _LONG))


class _Rule(ctypes.Structure):
    _fields_ = (
        ("keep_over", _LONG),
        ("keep_under", _LONG),
        ("share", _DOUBLE),
        ("room", _LONG),
        ("restore_prob", _DOUBLE),
    )


class LossWeights(NamedTuple):
    """Numbers for each class, in float32 and contiguous."""

    class_weight: Tensor | None = None
    pos_weight: Tensor | None = None
    positive: Tensor | None = None  # see KernelTerm.by_class
    negative: Tensor | None = None


_NO_WEIGHTS = LossWeights()


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
        return grad, None


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


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Return the compiled kernel, or None where it was not built."""
    path = Path(__file__).with_name("_kernel.so")
    if not path.exists():
        return None
    try:
        loaded = ctypes.CDLL(str(path))
        if loaded.hilltop_kernel_abi() == _ABI:
            for function, pointers in (
                (loaded.hilltop_loss_and_grad, 9),
                (loaded.hilltop_count_loss, 7),
            ):
                function.restype = None
                function.argtypes = [_POINTER, _LONG, _LONG, *[_POINTER] * pointers]
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
    """
    entries = torch.empty_like(logits) if want_entries else None
    grad = torch.empty_like(logits) if needs_grad else None
    loaded = library()
    assert loaded is not None
    # Without weights the kernel need not know where a row ends: one long row is fastest.
    weighted = weights != _NO_WEIGHTS
    classes = max(1, logits.shape[-1]) if weighted and logits.ndim else 1
    by_class: list[int | None] = [None, None]
    if weighted:
        *by_class, form.constants, form.keeps = _addresses(*weights)
        if weights.negative is not None:  # two rows
            (form.losts,) = _addresses(weights.negative, offset=classes)

    def work(start: int, length: int, total: Total) -> None:
        shape = (length // classes, classes) if weighted else (1, length)
        found = _addresses(logits, targets, verified, selected, entries, grad, offset=start)
        loaded.hilltop_loss_and_grad(
            addressof(form), *shape, *found[:4], *by_class, *found[4:], addressof(total)
        )

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
    loaded = library()
    assert loaded is not None
    rule = _Rule(left_ratio.numerator, left_ratio.denominator, share, room, restore_prob)

    def work(start: int, length: int, total: Total) -> None:
        vectors = _LANES * (room + 4 * classes + 16)
        scratch = torch.empty(vectors + 2 * (length // classes) + classes + 2, dtype=torch.float64)
        per_entry = _addresses(logits, targets, verified, grad, offset=start)
        rest = *_addresses(hard, offset=start // classes), *_addresses(scratch)
        loaded.hilltop_count_loss(
            addressof(rule), length // classes, classes, *per_entry, *rest, addressof(total)
        )

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
