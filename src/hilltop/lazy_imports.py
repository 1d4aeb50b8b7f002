"""Lazy imports: public names of a package that load when they are first used.

A package lists its names once, in ``__init__.pyi``, which type checkers and editors read as well:
``from hilltop.audit.api import find_missing_labels as find_missing_labels``. So importing a package
needs none of the dependencies of what is in it.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hilltop.deprecation import renamed_attributes
from hilltop.errors import MissingExtra

_EXTRAS = {
    "hilltop.integrations.estimator": "sklearn",
    "hilltop.integrations.hf": "hf",
    "hilltop.missing": "data",
    "hilltop.data": "data",
    "hilltop.metrics": "metrics",
}
"""The extra that a module or package needs beside torch; the others need that of training."""


def lazy_imports(
    package: str, file: str, *, renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Args:
        package: The package, its ``__name__``.
        file: Its ``__file__``, beside which ``__init__.pyi`` lists the names.
        renamed: Old name to new name, see :func:`hilltop.deprecation.renamed_attributes`.

    Example:
        >>> import hilltop
        >>> get, names, public = lazy_imports("hilltop", hilltop.__file__)
        >>> get("errors").__name__, "errors" in names()
        ('hilltop.errors', True)
    """
    modules = _listed(Path(file).with_suffix(".pyi"))
    old_name = renamed_attributes(package, renamed or {})

    def get(name: str) -> Any:
        if name not in modules:
            return old_name(name)
        home = modules[name]
        submodule = f"{package}.{name}"
        try:
            if home == package:
                return importlib.import_module(submodule)
            value = getattr(importlib.import_module(home), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "hilltop":
                raise
            needed = submodule if home == package else home
            extra = next((extra for at, extra in _EXTRAS.items() if needed.startswith(at)), "train")
            raise MissingExtra(submodule, error.name, extra) from None
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(modules), list(modules)


def _listed(stub: Path) -> dict[str, str]:
    """The module of every name that a stub imports."""
    return {
        alias.name: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__"
        for alias in node.names
    }
