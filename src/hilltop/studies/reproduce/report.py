"""One page with all tables and figures, in the order of the paper."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from hilltop.checks import listed
from hilltop.data.files import atomic_write
from hilltop.data.small_files import read_json
from hilltop.report.page import write_page
from hilltop.report.tables import Sheet
from hilltop.studies.reproduce.recipe import Recipe, read_recipes
from hilltop.studies.reproduce.run import Made, Reproduction
from hilltop.studies.reproduce.source import Source
from hilltop.studies.reproduce.tables import COMMON_NOTES

_COLUMN, _DPI = 4.5, 300  # inches that a figure for one column may have, and their usual dots


@dataclass(frozen=True)
class Shown:
    """Everything that a page shows.

    Attributes:
        items: Tables and figures in the order of the paper.
        sources: What they were made from: sentences by the name of a data set.
    """

    items: tuple[Made, ...]
    sources: Mapping[str, str]


def write_reproduction_report(path: Path, made: Reproduction) -> Path:
    """Write the page, with what earlier calls made in its folder, and return its path."""
    sources = {source.name: _about(source) for source in made.sources.values()}
    shown = join_previous(path.with_suffix(".json"), made.items, sources, read_recipes())
    counts = {
        "tables": sum(bool(item.sheets) for item in shown.items),
        "figures": sum(bool(item.png) for item in shown.items),
        "runs": sum(result.finished for result in made.results),
        "seeds": len(made.seeds),
    }
    write_page(
        path,
        "paper.html",
        title="Tables and figures of the paper, reproduced",
        lead=" ".join(f"On {name}. {about}" for name, about in shown.sources.items()),
        numbers=[(what, f"{count:,}") for what, count in counts.items()],
        explained=_explained(made),
        items=shown.items,
        wide=_is_wide,
        common=COMMON_NOTES,  # said once, above
    )
    return path


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
    kept: dict[str, Any] = {"items": {}, "sources": {}}
    if file.is_file():
        kept = read_json(file, "Delete it: the page then shows what is made from now on.")
    known = {
        name: _previous(recipes[name], values, file.parent)
        for name, values in kept["items"].items()
        if name in recipes
    }
    joined = known | {item.recipe.name: item for item in items}
    shown = Shown(
        tuple(sorted(joined.values(), key=lambda item: item.recipe.place)),
        {**kept["sources"], **sources},
    )
    values = {
        item.recipe.name: {
            "sheets": [{**vars(sheet), "strong": sorted(sheet.strong)} for sheet in item.sheets],
            "missing": item.missing,
        }
        for item in shown.items
    }
    content = {"items": values, "sources": shown.sources}
    atomic_write(file, json.dumps(content, indent=1) + "\n")
    return shown


def _previous(recipe: Recipe, values: Mapping[str, Any], out: Path) -> Made:
    """A table or figure as it was made; pictures are read from their own files."""
    png = out / "figures" / f"{recipe.name}.png"
    sheets = [
        Sheet(
            **{**sheet, **{name: tuple(sheet[name]) for name in ("head", "notes")}}
            | {"rows": tuple(map(tuple, sheet["rows"]))}
            | {"strong": frozenset(map(tuple, sheet["strong"]))}
        )
        for sheet in values["sheets"]
    ]
    drawn = png.read_bytes() if recipe.kind == "figure" and png.is_file() else b""
    return Made(recipe, tuple(sheets), drawn, values["missing"])


def _about(source: Source) -> str:
    """A data set in words: where it is from, its size, and what is trained on it."""
    if source.paper_sizes is None:
        return source.about
    train, other, base = source.complete_labels(), source.other_sizes(), source.base
    sizes = f"{len(train):,} training and {len(source.test_labels()):,} test images"
    paper = f"the paper has {other}" if other else "as in the paper"
    model = f"{base.model.model} at {base.model.image_size} px, {base.epochs} epochs"
    return f"{source.about} {sizes}, {len(train.classes)} classes ({paper}); {model}."


def _explained(made: Reproduction) -> list[str]:
    hours = sum(result.seconds for result in made.results) / 3600
    texts = [
        f"{_comparable(made)} Printed numbers with a letter are known misprints, kept as they are.",
        "Levels are named as in the paper: of n labels of an image, floor(n (1 - r)) + 1 are kept,"
        " with r = 0.5 (75% labels left), 0.8 (40% labels left) and 1 (single label).",
        *COMMON_NOTES,
        f"The runs behind what was made last took {hours:.1f} hours of training time; a run that"
        " several tables need was made once.",
    ]
    pairs = [
        f"{config.model.model} for {large}"
        for source in made.sources.values()
        for large, config in source.stand_ins.items()
        if any(large in item.recipe.models for item in made.items)
    ]
    if pairs:
        texts.append(f"Small models stand in for the backbones, with one seed: {', '.join(pairs)}.")
    if made.failed:
        texts.append(made.failed)
    return texts


def _comparable(made: Reproduction) -> str:
    """Whether numbers can be held against the paper's."""
    names = [source.name for source in made.sources.values()]
    if made.sources and all(source.paper_sizes for source in made.sources.values()):
        return (
            "Data sets are the paper's as far as their sizes above agree; docs/reproducing.md lists"
            " every other difference."
        )
    return (
        "The paper's numbers are for its own data sets and networks; what was measured here is for"
        f" {listed(names) or 'no data'}. Compare the order of methods and the gaps between"
        " them, not the numbers themselves."
    )


def _is_wide(png: bytes) -> bool:
    """Whether a figure fills both columns of a paper's page."""
    with Image.open(io.BytesIO(png)) as image:
        dots: float = image.info.get("dpi", (_DPI, _DPI))[0]
        return image.width / dots > _COLUMN
