"""What earlier calls made in the same folder, so that one page shows everything."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hilltop.data.files import atomic_write
from hilltop.data.small_files import read_json
from hilltop.report.tables import Sheet
from hilltop.studies.reproduce.recipe import Recipe
from hilltop.studies.reproduce.run import Made

_DAMAGED = "Delete it: the page then shows what is made from now on."


@dataclasses.dataclass(frozen=True)
class Shown:
    """Everything that a page shows.

    Attributes:
        items: Tables and figures in the order of the paper.
        sources: What they were made from: sentences by the name of a data set.
    """

    items: tuple[Made, ...]
    sources: Mapping[str, str]


def join_previous(
    file: Path, items: Sequence[Made], sources: Mapping[str, str], recipes: Mapping[str, Recipe]
) -> Shown:
    """Join what was made now with what earlier calls made, and keep both for the next.

    Args:
        file: Where it is kept, in the folder of the reproduction.
        items: What was made now; it takes the place of what has the same name.
        sources: What it was made from.
        recipes: All that there are; what has none any more is left out.
    """
    kept = read_json(file, _DAMAGED) if file.is_file() else {"items": {}, "sources": {}}
    known = {
        name: _item(recipes[name], values, file.parent)
        for name, values in kept["items"].items()
        if name in recipes
    }
    joined = known | {item.recipe.name: item for item in items}
    ordered = tuple(sorted(joined.values(), key=lambda item: item.recipe.place))
    every = {**kept["sources"], **sources}
    values = {"items": {item.recipe.name: _values(item) for item in ordered}, "sources": every}
    atomic_write(file, json.dumps(values, indent=1) + "\n")
    return Shown(ordered, every)


def _values(item: Made) -> dict[str, object]:
    sheets = [{**vars(sheet), "strong": sorted(sheet.strong)} for sheet in item.sheets]
    return {"sheets": sheets, "missing": item.missing}


def _item(recipe: Recipe, values: Mapping[str, object], out: Path) -> Made:
    """A table or figure as it was made; pictures are read from their own files."""
    png = out / "figures" / f"{recipe.name}.png"
    drawn = png.read_bytes() if recipe.kind == "figure" and png.is_file() else b""
    sheets = values["sheets"]
    assert isinstance(sheets, list)
    return Made(recipe, tuple(map(_sheet, sheets)), drawn, str(values["missing"]))


def _sheet(values: Mapping[str, object]) -> Sheet:
    made = Sheet(**values)  # type: ignore[arg-type]  # checked below, as far as a page needs it
    return dataclasses.replace(
        made,
        head=tuple(made.head),
        rows=tuple(tuple(row) for row in made.rows),
        notes=tuple(made.notes),
        strong=frozenset((row, column) for row, column in made.strong),
    )
