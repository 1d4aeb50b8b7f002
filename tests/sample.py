"""Which losses take part in tests of whole runs by default; all of them do with ``-m slow``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hilltop.losses import LOSSES

SAMPLE = ("auto", "hill", "role")  # asks for evidence, plain, and one that learns and remembers


def of_losses(sample: Sequence[str] = SAMPLE) -> list[Any]:
    """Names of all losses as parameters; those outside the sample are slow."""
    return [pytest.param(name, marks=() if name in sample else pytest.mark.slow) for name in LOSSES]
