"""Importing Fabric leaves other packages as they are."""

from __future__ import annotations

from pathlib import Path

from tests.forked import run_forked

CODE = """
import sys
from hilltop.training.distributed import Fabric
assert "torchmetrics" not in sys.modules, "nothing but its version was looked at"
import lightning_fabric.utilities.imports as flags
assert flags._TORCHMETRICS_GREATER_EQUAL_1_0_0, "what Lightning believes is true"
import torchmetrics
assert torchmetrics.MeanMetric, "the real package, when somebody wants it"
"""


def test_torchmetrics_is_neither_imported_nor_hidden(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CODE)
    run_forked(script)
