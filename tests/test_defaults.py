"""Every default that decides results, in one table: ``tests/defaults.txt``.

To change a default is a decision. Whoever makes it runs ``python -m tests.test_defaults``, which
writes the table anew, and commits the line that changed.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

import hilltop
from hilltop.audit import find_missing_labels
from hilltop.cli.audit import Audit
from hilltop.integrations import HilltopClassifier
from hilltop.training import ModelConfig, Recipe, TrainConfig

TABLE = Path(__file__).with_name("defaults.txt")
PACKAGE = Path(hilltop.__file__).parent
DECIDING = ("audit", "metrics", "missing", "studies/advise", "training")
RUNS = {
    "images": TrainConfig(images=Path("photos")),
    "images with weights": TrainConfig(images=Path("photos"), model=ModelConfig(weights="timm")),
    "features": TrainConfig(features=Path("features.npz")),
}


def constants() -> Iterator[tuple[str, str]]:
    """Public numbers, and tuples of them, that stand in capitals in a module that decides."""
    for room in DECIDING:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            module = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    name, value = node.targets[0].id, ast.unparse(node.value)
                    if name.isupper() and name[0] != "_" and any(map(str.isdigit, value)):
                        yield f"{module}.{name}", value


def arguments(function: object) -> dict[str, object]:
    """Arguments that need not be given."""
    assert callable(function)
    found = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in found if one.default is not inspect.Parameter.empty}


def flat(title: str, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat(f"{title}.{name}", value)
        else:
            yield f"{title}.{name}", str(value) if isinstance(value, Path) else repr(value)


def table() -> list[str]:
    """Lines of the table, as the code has them now."""
    lines = []
    for title, config in RUNS.items():
        lines += flat(f"train on {title}", config.resolved().as_dict())
    lines += flat("Recipe", dataclasses.asdict(Recipe()))
    lines += flat("HilltopClassifier", HilltopClassifier().get_params())
    lines += flat("find_missing_labels", arguments(find_missing_labels))
    lines += flat("hilltop audit", arguments(Audit))
    lines += constants()
    return [f"{name} = {value}" for name, value in lines]


def test_every_default_is_the_one_that_was_decided_on() -> None:
    decided, actual = TABLE.read_text(encoding="utf-8").splitlines(), table()
    before, now = (
        [line for line in one if line not in other]
        for one, other in ((decided, actual), (actual, decided))
    )
    assert (before, now) == ([], []), f"if this is meant, run: python -m {__name__}"


if __name__ == "__main__":
    TABLE.write_text("\n".join(table()) + "\n", encoding="utf-8")
