"""A model cut below one of its blocks: outputs of what lies below go in, and logits come out.

The model's own code runs on both sides of the cut, whatever its architecture: up to the block to
compute what it is given, and from the block on with everything below it left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from hilltop.checks import did_you_mean
from hilltop.errors import ArgumentError
from hilltop.models.images import backbone_of

_PROBES = 2  # images that a cut is tried with


@dataclass(eq=False)
class _Call:
    """A module that ran, inside which other, and what it returned."""

    module: nn.Module
    parent: _Call | None
    output: Any = None

    def above(self) -> Iterator[nn.Module]:
        """Modules inside which it ran."""
        if self.parent is not None:
            yield self.parent.module
            yield from self.parent.above()


class _ReachedError(Exception):
    """Ends a forward pass at the block."""

    def __init__(self, given: Any, below: list[_Call]) -> None:
        super().__init__()
        self.given, self.below = given, below


class _Cut:
    """Carries the outputs from the call of a model to its block, past what lies below."""

    def __init__(self, image_shape: tuple[int, ...]) -> None:
        self.image_shape = image_shape
        self.outputs: Tensor | None = None

    def enter(self, _: nn.Module, args: tuple[Any, ...]) -> tuple[Tensor]:
        """Take the outputs from the call, and let it go on with nothing."""
        self.outputs = args[0]
        return (self.nothing(self.image_shape),)

    def hand_over(self, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Give the outputs to the block."""
        outputs, self.outputs = self.outputs, None
        return (outputs, *args[1:])

    def nothing(self, shape: tuple[int, ...]) -> Tensor:
        """NaN in a shape: if it mattered, the logits would say so."""
        assert self.outputs is not None
        return self.outputs.new_full((), math.nan).expand(len(self.outputs), *shape)


def block_names(model: nn.Module, size: int) -> list[str]:
    """Names of the blocks at which a model on images of some size may be cut, in their order."""
    backbone, calls = backbone_of(model), list[_Call]()
    with _watched(backbone, calls), torch.no_grad(), _evaluating(model):
        model(_probe(size))
    outer = {
        id(call.module)
        for call in calls
        if call.parent is not None and all(_only_holds(above, backbone) for above in call.above())
    }
    return [name for name, module in backbone.named_modules() if id(module) in outer]


def outputs_below(model: nn.Module, block: str, pixels: Tensor) -> Tensor:
    """Return what a block is given for some images.

    Raises:
        ArgumentError: There is no such block, or it is given something else than a tensor.
    """
    given = _run_below(model, block, pixels).given
    if not isinstance(given, Tensor) or len(given) != len(pixels):
        raise _not_there(block, "is not given one tensor with a row for each image")
    return given


def cut_below(model: nn.Module, block: str, size: int) -> None:
    """Let a model take what :func:`outputs_below` gives instead of images, for good.

    What lies below the block keeps its weights and is never run again; it no longer learns.

    Args:
        model: An image model; its state keeps the names it has.
        block: Name of a block of its backbone.
        size: Side of the images.

    Raises:
        ArgumentError: There is no such block, or what lies above needs more than its input.
    """
    pixels = _probe(size).to(next(model.parameters()).device)
    with torch.no_grad(), _evaluating(model):
        expected = model(pixels)
        given, below = outputs_below(model, block, pixels), _run_below(model, block, pixels).below
    cut = _Cut(tuple(pixels.shape[1:]))
    for call in below:
        if not isinstance(call.output, Tensor) or len(call.output) != len(pixels):
            raise _not_there(block, "has blocks below it that return more than a tensor")
        _leave_out(call.module, cut, tuple(call.output.shape[1:]))
    model.register_forward_pre_hook(cut.enter)
    backbone_of(model).get_submodule(block).register_forward_pre_hook(cut.hand_over)
    with _evaluating(model):
        logits = model(given)
        if not torch.allclose(logits, expected, rtol=1e-3, atol=1e-4):
            raise _not_there(block, "is not all that the blocks above it need")
        logits.sum().backward()
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.grad is not None)
        parameter.grad = None


def _only_holds(module: nn.Module, backbone: nn.Module) -> bool:
    """Whether a module runs others one after another: a cut inside a branch cannot be clean."""
    return module is backbone or isinstance(module, nn.Sequential)


def _run_below(model: nn.Module, block: str, pixels: Tensor) -> _ReachedError:
    """Run a model until it reaches a block."""
    backbone = backbone_of(model)
    if not block or block not in dict(backbone.named_modules()):
        names = block_names(model, pixels.shape[-1])
        raise ArgumentError(
            f"There is no block {block!r} in this model.{did_you_mean(block, names)}"
            f" Its blocks: {', '.join(names)}."
        )
    try:
        with _watched(backbone, [], backbone.get_submodule(block)), torch.no_grad():
            model(pixels)
    except _ReachedError as reached:
        return reached
    raise _not_there(block, "is never run as a whole")


@contextmanager
def _watched(
    backbone: nn.Module, calls: list[_Call], block: nn.Module | None = None
) -> Iterator[None]:
    """Note every call of a module, and end the pass at the block."""
    stack: list[_Call] = []

    def before(module: nn.Module, args: tuple[Any, ...]) -> None:
        if module is block:
            below = [call for call in calls if any(call.parent is above for above in stack)]
            raise _ReachedError(args[0] if args else None, below)
        stack.append(_Call(module, stack[-1] if stack else None))

    def after(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        call = stack.pop()
        call.output = output
        calls.append(call)

    modules = list(backbone.modules())
    handles = [module.register_forward_pre_hook(before) for module in modules]
    handles += [module.register_forward_hook(after) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _leave_out(module: nn.Module, cut: _Cut, shape: tuple[int, ...]) -> None:
    """Let a module return nothing, in the shape of its output, until the block is reached."""
    # Attributes and a bound method: a copy of the model, such as its average, gets copies of both.
    module.cut, module.cut_shape = cut, shape  # type: ignore[assignment]
    module.forward = MethodType(_forward_above, module)


def _forward_above(module: Any, *args: Any, **options: Any) -> Any:
    """What a module does that lies below the cut, and may lie above it as well."""
    if module.cut.outputs is not None:
        return module.cut.nothing(module.cut_shape)
    return type(module).forward(module, *args, **options)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in training.items():
            module.training = mode


def _probe(size: int) -> Tensor:
    """A few images of noise."""
    return torch.rand(_PROBES, 3, size, size, generator=torch.Generator().manual_seed(0))


def _not_there(block: str, reason: str) -> ArgumentError:
    return ArgumentError(
        f"This model cannot be trained from {block!r}, which {reason}. Name a block around it."
    )
