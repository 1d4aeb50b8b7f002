"""The losses by name, and the options they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypedDict

from hilltop.deprecation import warn_renamed
from hilltop.errors import ArgumentTypeError
from hilltop.losses.base import Loss, Reduction
from hilltop.losses.compose import ClassWeight, MultiLabelLoss
from hilltop.losses.corrections import Correction
from hilltop.registry import Registry

P = ParamSpec("P")


class LossRegistry(Registry[Loss]):
    """The losses by name; registering one enrols it in checks, tables, pages and commands."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__("loss")
        self.references: dict[str, Callable[[float, float], float]] = {}

    def register(
        self, name: str, *, reference: Callable[[float, float], float] | None = None
    ) -> Callable[[Callable[P, Loss]], Callable[P, Loss]]:
        """Return a decorator that files a builder under ``name``.

        Args:
            name: What commands, tables and pages call the loss.
            reference: The loss of one entry as a function of logit and target, with default
                options: plain Python floats, written from the publication, for the shared tests.
                None if the tests have their own.
        """
        if reference is not None:
            self.references[name] = reference
        return super().register(name)

    def build(self, name: str, **options: Any) -> Loss:
        """Build the loss registered under ``name``; names of the release before still work."""
        for old in RENAMED_OPTIONS.keys() & options.keys():
            if RENAMED_OPTIONS[old] in self.options(name):
                warn_renamed(old, RENAMED_OPTIONS[old])
                options[RENAMED_OPTIONS[old]] = options.pop(old)
        return super().build(name, **options)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a loss, under its name or its old one."""
        return name in RENAMED_LOSSES or name in list(self)

    def _find(self, name: str) -> Callable[..., Loss]:
        if name in RENAMED_LOSSES:
            warn_renamed(name, RENAMED_LOSSES[name], stacklevel=4)
            name = RENAMED_LOSSES[name]
        return super()._find(name)


RENAMED_LOSSES = {"kept_independently": "scar_likelihood", "kept_by_count": "count_likelihood"}
RENAMED_OPTIONS = {"keep": "label_frequency"}
LOSSES = LossRegistry()


class CommonWithoutSmoothing(TypedDict, total=False):
    """Options that every preset passes on to :class:`MultiLabelLoss`, but for smoothing."""

    reduction: Reduction
    class_weight: ClassWeight | None
    pos_weight: ClassWeight | None
    watch: bool
    check: bool
    safe_start: bool


class Common(CommonWithoutSmoothing, total=False):
    """Options that every preset passes on to :class:`MultiLabelLoss`."""

    label_smoothing: float


def build(name: str, **options: Any) -> Loss:
    """Return the loss registered under ``name``.

    Raises:
        ArgumentError: The name is not known.
        ArgumentTypeError: An option is not known.

    Example:
        >>> build("hill", margin=0.5).positive
        FocalPositive(gamma=2, margin=0.5, detach_weight=False, alpha=1)
    """
    return LOSSES.build(name, **options)


def correct_base(
    name: str, base: MultiLabelLoss | str, correction: Correction, common: Common
) -> MultiLabelLoss:
    """Put a correction over a loss, given as it is or by name.

    Args:
        name: Name of the preset that asks, for messages.
        base: A loss made of terms, or its name.
        correction: Which unlabelled entries to take for missing labels.
        common: Options of :class:`MultiLabelLoss`, where ``base`` is a name.
    """
    if isinstance(base, MultiLabelLoss) and common:
        raise ArgumentTypeError(
            f"{name}(base) takes {', '.join(common)} from the given base;"
            " set it there, or give the base by name."
        )
    inner: object = build(base, **common) if isinstance(base, str) else base
    if not isinstance(inner, MultiLabelLoss):
        kind = type(inner).__name__
        raise ArgumentTypeError(
            f"base must be a hilltop loss made of terms, or its name, but got {kind}."
        )
    return inner.with_correction(correction)
