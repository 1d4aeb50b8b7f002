"""Every script in examples/ runs as a program of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hilltop.data import State, read_labels
from tests.forked import run_forked

EXAMPLES = sorted(Path(__file__).parents[1].joinpath("examples").glob("*.py"))
DATA = "draw_photographs"
SERVING = "serve_onnx"  # tests/integrations/test_serving.py starts it
LEARNING = [path for path in EXAMPLES if path.stem not in (DATA, SERVING)]


def test_there_are_examples() -> None:
    assert LEARNING


@pytest.mark.parametrize("path", LEARNING, ids=lambda path: path.stem)
def test_example_runs_and_learns_something(path: Path) -> None:
    values = [float(value) for value in re.findall(r"mAP ([\d.]+)", run_forked(path))]
    assert values
    assert min(values) > 30, "every loss must learn; a collapsed head ends near 5 to 25"


def test_drawn_photographs_have_as_many_tags_as_the_pages_say(tmp_path: Path) -> None:
    (script,) = (path for path in EXAMPLES if path.stem == DATA)
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True)
    assert len(list((tmp_path / "photos").iterdir())) == 500
    given = read_labels(tmp_path / "tags.xlsx", unlisted="unknown")
    complete = read_labels(tmp_path / "complete.csv", unlisted="absent")
    counts = given.count(State.PRESENT), complete.count(State.PRESENT)
    assert counts == (553, 1539)
    page = (EXAMPLES[0].parents[1] / "docs" / "photographs.md").read_text(encoding="utf-8")
    assert f"{counts[0]} labels of 42 classes" in page
    assert f"{counts[1] - counts[0]} tags are missing" in page
