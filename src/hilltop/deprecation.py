"""Names that changed: the old ones work for one release and warn with the new one."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Emit the one `DeprecationWarning` that every renamed thing gives."""
    message = f"{old!r} is deprecated and will be removed in the next release. Use {new!r} instead."
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)


def renamed_attributes(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that still answers to old names.

    Args:
        module: The module's own ``__name__``.
        names: Old name to new name: an attribute of that module, or a full dotted name.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        warn_renamed(f"{module}.{name}" if "." in new else name, new)
        home, _, attribute = new.rpartition(".")
        return getattr(importlib.import_module(home or module), attribute)

    return find


def renamed_arguments(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for functions whose keyword arguments changed their names.

    Args:
        **names: Old argument name to new argument name.

    Example:
        >>> @renamed_arguments(colour="color")
        ... def paint(*, color: str) -> str:
        ...     return color
        >>> paint(color="grey")
        'grey'
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> T:
            for old, new in names.items():
                if old in options:
                    warn_renamed(old, new)
                    options[new] = options.pop(old)
            return function(*args, **options)

        return call

    return decorate
