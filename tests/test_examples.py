"""Every script in examples/ runs, from the outside, as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted(Path(__file__).parents[1].joinpath("examples").glob("*.py"))


def run(path: Path) -> str:
    finished = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_learns_something(path: Path) -> None:
    values = [float(value) for value in re.findall(r"mAP ([\d.]+)", run(path))]
    assert values
    assert min(values) > 30, "every loss must learn; a collapsed head ends near 5 to 25"
