"""Doors of rooms: names that load when they are first used, so that each part needs only its own.

A room lists where its public names live; nothing behind them is imported before somebody asks.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from hilltop.errors import MissingExtra

_EXTRAS = {"missing": "data"}
"""What a room needs beside torch; the others need what training needs."""


def open_doors(
    room: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Args:
        room: The package, its ``__name__``.
        homes: Public name to the submodule that has it; a name that is its own home is a submodule.

    Example:
        >>> get, names = open_doors("hilltop", {"errors": "errors"})
        >>> get("errors").__name__, names()
        ('hilltop.errors', ['errors'])
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{room}.{homes[name]}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "hilltop":
                raise
            extra = _EXTRAS.get(room.split(".")[1] if "." in room else "", "train")
            raise MissingExtra(f"{room}.{name}", error.name, extra) from None
        value = module if homes[name] == name else getattr(module, name)
        setattr(sys.modules[room], name, value)
        return value

    return get, lambda: sorted(homes)
