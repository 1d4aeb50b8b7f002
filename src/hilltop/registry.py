"""Names for builders: one list of losses, terms, corrections or figures, with "did you mean"."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, Generic, ParamSpec, TypeVar

from hilltop.checks import did_you_mean
from hilltop.errors import ArgumentError, ArgumentTypeError

T = TypeVar("T")
P = ParamSpec("P")


class Registry(Generic[T]):
    """Maps names to builders of one kind of thing.

    Example:
        >>> colours: Registry[str] = Registry("colour")
        >>> @colours.register("grey")
        ... def grey(*, level: int = 50) -> str:
        ...     '''An even grey.'''
        ...     return f"grey {level}%"
        >>> colours.build("grey", level=20), colours.summary("grey")
        ('grey 20%', 'An even grey.')
    """

    def __init__(self, kind: str) -> None:
        """Name the kind of thing, as it appears in messages: ``"loss"``."""
        self.kind = kind
        self._builders: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Return a decorator that files a builder under ``name``."""

        def add(builder: Callable[P, T]) -> Callable[P, T]:
            if name in self._builders:
                raise ArgumentError(f"The {self.kind} {name!r} is registered already.")
            self._builders[name] = builder
            return builder

        return add

    def build(self, name: str, **options: Any) -> T:
        """Call the builder of ``name`` with ``options``, which it must know."""
        builder = self._find(name)
        known = self.options(name)
        for option in options:
            if option not in known:
                hint = did_you_mean(option, known)
                names = ", ".join(known) or "none"
                raise ArgumentTypeError(
                    f"The {self.kind} {name!r} has no option {option!r}.{hint}"
                    f" Known options: {names}."
                )
        return builder(**options)

    def builder(self, name: str) -> Callable[..., T]:
        """Return the builder of ``name``, whose docstring and signature describe it."""
        return self._find(name)

    def options(self, name: str) -> tuple[str, ...]:
        """Names of the options that the builder of ``name`` takes."""
        builder = self._find(name)
        names: list[str] = []
        for parameter in inspect.signature(builder).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                names += _unpacked_names(builder, parameter.name)
            else:
                names.append(parameter.name)
        return tuple(names)

    def summary(self, name: str) -> str:
        """First line of the builder's docstring."""
        return (inspect.getdoc(self._find(name)) or "").partition("\n")[0]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in alphabetical order."""
        return iter(sorted(self._builders))

    def _find(self, name: str) -> Callable[..., T]:
        if name not in self._builders:
            plural = self.kind + ("es" if self.kind.endswith("s") else "s")
            raise ArgumentError(
                f"Unknown {self.kind} {name!r}.{did_you_mean(name, self)}"
                f" Known {plural}: {', '.join(self)}."
            )
        return self._builders[name]


def _unpacked_names(builder: Callable[..., Any], parameter: str) -> list[str]:
    """Option names behind ``**common: Unpack[SomeTypedDict]``."""
    hint = typing.get_type_hints(builder).get(parameter)
    return [name for unpacked in typing.get_args(hint) for name in typing.get_type_hints(unpacked)]
