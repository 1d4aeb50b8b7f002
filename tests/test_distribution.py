"""Wheel and source distribution: built, installed elsewhere, and used as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (
    "src", "recipes", "reproduction/paper_values.csv", "pyproject.toml", "hatch_build.py",
    "README.md", "LICENSE",
)  # fmt: skip

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")


def build(source: Path, out: Path) -> tuple[Path, Path]:
    """Build both distributions of a source tree; return wheel and sdist."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and sdist of a copy of this tree, so that nothing in it changes."""
    root = tmp_path_factory.mktemp("tree")
    for name in SOURCES:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__", "_kernel.so")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target)
    return build(root, tmp_path_factory.mktemp("dist"))


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("RECORD")}


def test_the_wheel_holds_every_file_of_the_package(built: tuple[Path, Path]) -> None:
    package = ROOT / "src" / "hilltop"
    expected = {
        f"hilltop/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    expected |= {
        f"hilltop/studies/reproduce/recipes/{path.relative_to(ROOT / 'recipes')}"
        for path in (ROOT / "recipes").rglob("*.yaml")
    }
    assert expected <= members(built[0])


def test_a_wheel_with_a_kernel_is_of_this_platform_and_one_without_of_any(
    built: tuple[Path, Path],
) -> None:
    wheel, _ = built
    has_kernel = any(name.endswith("_kernel.so") for name in members(wheel))
    assert has_kernel == (shutil.which("cc") is not None)
    assert wheel.name.endswith("-py3-none-any.whl") == (not has_kernel)


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again, _ = build(source, tmp_path / "dist")
    assert members(again) == members(wheel)


def test_the_installed_wheel_runs_from_anywhere(built: tuple[Path, Path], tmp_path: Path) -> None:
    """In a folder of its own and with a home that cannot be written to."""
    target, home = tmp_path / "site", tmp_path / "home"
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(target)  # what an installer does with a wheel
    home.mkdir(mode=0o555)
    labels = tmp_path / "labels.csv"
    labels.write_text("image,class\na.jpg,cat\nb.jpg,dog\n")
    environment = {**os.environ, "PYTHONPATH": str(target), "HOME": str(home)}
    recipes = "from hilltop.studies.reproduce.recipe import read_recipes; print(*read_recipes())"
    for words in (["-m", "hilltop", "inspect", str(labels), "--unlisted=unknown"], ["-c", recipes]):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout
    where = subprocess.run(
        [sys.executable, "-c", "import hilltop; print(hilltop.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(target) in where.stdout


@pytest.mark.slow
def test_the_repaired_wheel_fits_every_linux_of_its_tag_and_installs(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """As `make dist` does: the tag says which libc is needed, and pip takes wheel and sdist."""
    tool = shutil.which("auditwheel")
    if tool is None or "none-any" in built[0].name:
        pytest.skip("auditwheel is not installed, or there is no kernel to look at")
    command = [tool, "repair", "-w", str(tmp_path / "dist"), str(built[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert "manylinux_" in wheel.name
    for source in (wheel, built[1]):
        target = tmp_path / source.suffix
        pip = ["-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target", str(target)]
        done = subprocess.run(
            [sys.executable, *pip, str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (target / "hilltop" / "losses" / "engine" / "_kernel.so").is_file()
