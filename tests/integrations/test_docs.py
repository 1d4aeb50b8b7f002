"""The page on integrations shows only lines that a test runs, and extras that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text()
EXAMPLES = {path.name: path.read_text() for path in (ROOT / "examples").glob("*.py")}
CODE = [line for line in PAGE.splitlines() if line.startswith("    ")]


@pytest.mark.parametrize("line", [line for line in CODE if "hilltop advise" not in line])
def test_a_line_of_code_stands_in_an_example(line: str) -> None:
    shown = {stated.strip() for text in EXAMPLES.values() for stated in text.splitlines()}
    assert line.strip() in shown


def test_every_example_is_on_the_page_and_every_script_on_the_page_is_there() -> None:
    assert set(re.findall(r"examples/(\w+\.py)", PAGE)) == set(EXAMPLES)


def test_every_extra_on_the_page_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", PAGE))
    assert named == {"sklearn", "hf", "lightning", "skorch", "train"}
    assert named <= set(extras["optional-dependencies"])
