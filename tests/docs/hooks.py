"""The hooks of the site as modules; they live beside the pages, outside the package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.docs.pages import ROOT


def load_hook(name: str) -> ModuleType:
    """Import a hook by its file."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
