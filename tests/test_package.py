"""The package as a whole: names, versions, and that the README tells the truth."""

from __future__ import annotations

import itertools
import re
import shutil
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import hilltop
from hilltop.data import FORMATS
from hilltop.losses import LOSSES
from hilltop.losses.engine import kernel

ROOT = Path(__file__).parents[1]


def test_submodules_load_when_asked_for() -> None:
    assert hilltop.losses.hill is not None
    assert hilltop.metrics.average_precision is not None
    with pytest.raises(AttributeError, match="no attribute 'loses'"):
        _ = hilltop.loses


def test_installed_version_is_that_of_the_source() -> None:
    assert version("hilltop") == hilltop.__version__


def test_where_there_is_a_c_compiler_the_kernel_was_compiled() -> None:
    assert shutil.which("cc") is None or kernel.library() is not None


def test_every_loss_has_a_summary() -> None:
    for name in LOSSES:
        assert LOSSES.summary(name).endswith("."), name


def test_make_targets_named_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for text in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"make ([a-z-]+) ", (ROOT / text).read_text()):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_pinned_package_is_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[\w.+]+", pin) for pin in pins), pins
    names = {re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    for requirement in itertools.chain(project["dependencies"], *extras):
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert name is not None
        assert name[0] == "hilltop" or name[0].lower() in names, requirement


def test_the_page_on_formats_names_every_format_and_no_other() -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    tables = page.split("## What 1, 0")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", tables, re.MULTILINE)
    rows = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(rows) == sorted(FORMATS)
