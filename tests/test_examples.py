"""Every script in examples/ runs as a program of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.forked import run_forked

EXAMPLES = sorted(Path(__file__).parents[1].joinpath("examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_learns_something(path: Path) -> None:
    values = [float(value) for value in re.findall(r"mAP ([\d.]+)", run_forked(path))]
    assert values
    assert min(values) > 30, "every loss must learn; a collapsed head ends near 5 to 25"
