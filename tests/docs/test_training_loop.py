"""The page on training loops shows only lines of other libraries that a test runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "training-loop.md").read_text()
EXAMPLES = {path.name: path.read_text() for path in (ROOT / "examples").glob("*.py")}
ELSEWHERE = {"draw_photographs.py", "serve_onnx.py"}  # which other pages show
_LIBRARIES = PAGE.partition("## Other libraries")[2].partition("## Measure")[0]
CODE = [line for line in _LIBRARIES.splitlines() if line.startswith("    ")]


@pytest.mark.parametrize("line", CODE)
def test_a_line_of_code_stands_in_an_example(line: str) -> None:
    shown = {stated.strip() for text in EXAMPLES.values() for stated in text.splitlines()}
    assert line.strip() in shown


def test_every_example_is_on_the_page_and_every_script_on_the_page_is_there() -> None:
    assert set(re.findall(r"examples/(\w+\.py)", PAGE)) == set(EXAMPLES) - ELSEWHERE


def test_every_extra_on_the_page_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", PAGE))
    assert named == {"sklearn", "hf", "lightning", "skorch", "train"}
    assert named <= set(extras["optional-dependencies"])
