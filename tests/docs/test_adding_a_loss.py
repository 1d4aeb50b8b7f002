"""The page on adding a loss is followed word by word, in a clean copy of the tree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, commands

PAGE = (ROOT / "docs" / "adding-a-loss.md").read_text(encoding="utf-8")
UNNEEDED = shutil.ignore_patterns(".*", "__pycache__", "build", "demo", "dist", "runs")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with the page's file in it, and with nothing else changed."""
    copy = tmp_path_factory.mktemp("clone") / "hilltop"
    shutil.copytree(ROOT, copy, ignore=UNNEEDED)
    (named,) = re.findall(r"This is the whole file,\n`(src/.+\.py)`:", PAGE)
    (copy / named).write_text(blocks(PAGE, "python")[0], encoding="utf-8")
    return copy


def run(copy: Path, *words: str) -> str:
    """Run something in the copy, with the packages of this environment."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run(
        words, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_shared_checks_take_the_loss_in_and_all_pass(copy: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not there")
    (line,) = [line for line in commands(PAGE) if "check-loss" in line]
    # This environment instead of a new one.
    here = ("-o", "setup", f"BIN={Path(sys.executable).parent}")
    said = run(copy, *shlex.split(line), *here)
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None
    assert int(passed[1]) > 50, said  # more with a kernel
    assert "failed" not in said


def test_the_loss_is_public_and_goes_by_its_name(copy: Path) -> None:
    use = blocks(PAGE, "python")[1]
    said = run(copy, sys.executable, "-c", f"from hilltop.losses import absolute\n{use}")
    assert "tensor(0.3959)" in said


def test_the_table_of_losses_gets_its_row(copy: Path) -> None:
    code = "import sys; sys.path.insert(0, 'docs/hooks'); import method_pages as made"
    said = run(copy, sys.executable, "-c", f"{code}; print(made.row('absolute'))")
    assert r"| [`absolute`](absolute.md) | forgiven when confident | $`\ell^+ = -\log p`$" in said


def test_style_and_types_have_nothing_to_say(copy: Path) -> None:
    path = re.findall(r"`(src/.+\.py)`:", PAGE)[0]
    bin_folder = Path(sys.executable).parent
    run(copy, str(bin_folder / "ruff"), "check", path)
    run(copy, str(bin_folder / "ruff"), "format", "--check", path)
