"""The architecture: packages import one way, public names load lazily, files stay short."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import hilltop
from tests.mutants import MUTANTS
from tests.processes import run

PACKAGE = Path(hilltop.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
BASE = ("data", "losses", "metrics", "missing")
ABOVE = {"audit", "cli", "report", "studies", "training"}
MOST_LINES = 1000
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
WITHOUT_EXPORTS = {"cli"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported(path: Path) -> set[str]:
    """Modules and names of hilltop that a file imports, at its top or within a function."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("hilltop.")}


def package_of(name: str) -> str:
    """The package of a module or name; what lies at the top has none."""
    package = name.split(".")[1]
    return package if package in PACKAGES else ""


def imports_of(package: str) -> dict[str, set[str]]:
    """What the files of a package import, by file."""
    return {module_name(file): imported(file) for file in (PACKAGE / package).rglob("*.py")}


@pytest.mark.parametrize("package", BASE)
def test_base_packages_import_none_above_them(package: str) -> None:
    wrong = [
        f"{file} imports {name}"
        for file, names in imports_of(package).items()
        for name in sorted(names)
        if package_of(name) in ABOVE
    ]
    assert wrong == []


def test_packages_import_each_other_in_one_direction() -> None:
    graph = {
        package: {package_of(name) for names in imports_of(package).values() for name in names}
        - {"", package}
        for package in PACKAGES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these packages import each other in a circle: {' <- '.join(error.args[1])}")


def test_what_lies_at_the_top_imports_no_package() -> None:
    for path in PACKAGE.glob("*.py"):
        if path.name != "__main__.py":
            packages = {package_of(name) for name in imported(path)} - {""}
            assert not packages, f"{path.name} imports {packages}"


def test_the_engine_is_imported_by_losses_alone() -> None:
    wrong = [
        f"{module_name(file)} imports {name}"
        for file in FILES
        for name in sorted(imported(file))
        if name.startswith("hilltop.losses.engine") and PACKAGE / "losses" not in file.parents
    ]
    assert wrong == []


@pytest.mark.parametrize("package", sorted(set(PACKAGES) - WITHOUT_EXPORTS))
def test_every_name_that_a_package_exports_can_be_imported(package: str) -> None:
    module = importlib.import_module(f"hilltop.{package}")
    names = getattr(module, "__all__", None) or dir(module)
    assert names
    assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("stub", STUBS, ids=module_name)
def test_a_package_exports_what_type_checkers_are_told(stub: Path) -> None:
    package = importlib.import_module(module_name(stub))
    names = {
        alias.asname: node.module
        for node in tree(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(package.__all__) == sorted(dir(package)) == sorted(names)
    for name, home in names.items():
        assert getattr(package, name) is getattr(importlib.import_module(home), name)


def test_every_package_lists_its_names_once() -> None:
    packages = {module_name(stub) for stub in STUBS}
    assert packages == {"hilltop", *(f"hilltop.{name}" for name in set(PACKAGES) - WITHOUT_EXPORTS)}
    for stub in STUBS:
        assert "__all__ = lazy_imports(" in stub.with_suffix(".py").read_text()


def test_after_importing_hilltop_every_package_can_be_reached() -> None:
    packages = sorted(set(PACKAGES) - WITHOUT_EXPORTS)
    code = f"import hilltop\nfor package in {packages}: print(getattr(hilltop, package).__name__)"
    printed = run("-W", "ignore", "-c", code)
    assert printed.split() == [f"hilltop.{package}" for package in packages]


def test_no_file_is_longer_than_the_guide_allows() -> None:
    lengths = {module_name(file): len(file.read_text().splitlines()) for file in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_fault_put_in_on_purpose_has_its_place_and_its_tests() -> None:
    root = Path(__file__).parents[1]
    lost = [one for one in MUTANTS if one.old not in (PACKAGE / one.file).read_text()]
    assert lost == []
    assert [
        one for one in MUTANTS for name in one.tests.split() if not (root / name).exists()
    ] == []
