"""One page with all tables and figures, in the order of the paper."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from hilltop.checks import listed
from hilltop.data.files import atomic_write
from hilltop.data.small_files import read_json
from hilltop.report.page import (
    Html,
    figure,
    key_numbers,
    paragraph,
    section,
    side_by_side,
    write_page,
)
from hilltop.studies.reproduce.recipe import read_recipes
from hilltop.studies.reproduce.run import Made, Reproduction
from hilltop.studies.reproduce.source import Source
from hilltop.studies.reproduce.tables import COMMON_NOTES

_COLUMN, _DPI = 4.5, 300  # inches that a figure for one column may have, and their usual dots


def write_reproduction_report(path: Path, made: Reproduction) -> Path:
    """Write the page, with what earlier calls made in its folder, and return its path."""
    kept = _joined(path.with_suffix(".json"), made)
    shown = [kept["items"][name] for name in read_recipes() if name in kept["items"]]
    write_page(
        path,
        title="Tables and figures of the paper, reproduced",
        lead=" ".join(f"On {name}. {about}" for name, about in kept["sources"].items()),
        sections=[_overview(made, shown), *(Html(item["html"]) for item in shown)],
    )
    return path


def _joined(file: Path, made: Reproduction) -> dict[str, Any]:
    """Join what was made now with what earlier calls made, and keep both for the next.

    What was made now takes the place of what has the same name.
    """
    kept: dict[str, Any] = {}
    if file.is_file():
        kept = read_json(file, "Delete it: the page then shows what is made from now on.")
    items = {name: item for name, item in kept.get("items", {}).items() if "html" in item}
    for item in made.items:
        kind = "tables" if item.sheets and not item.png else "figures" if item.png else ""
        items[item.recipe.name] = {"kind": kind, "html": _item(item)}
    sources = {source.name: _about(source) for source in made.sources.values()}
    joined = {"items": items, "sources": kept.get("sources", {}) | sources}
    atomic_write(file, json.dumps(joined, indent=1) + "\n")
    return joined


def _about(source: Source) -> str:
    """A data set in words: where it is from, its size, and what is trained on it."""
    if source.paper_sizes is None:
        return source.about
    train, other, base = source.complete_labels(), source.other_sizes(), source.base
    sizes = f"{len(train):,} training and {len(source.test_labels()):,} test images"
    paper = f"the paper has {other}" if other else "as in the paper"
    model = f"{base.model.model} at {base.model.image_size} px, {base.epochs} epochs"
    return f"{source.about} {sizes}, {len(train.classes)} classes ({paper}); {model}."


def _overview(made: Reproduction, shown: Sequence[Mapping[str, str]]) -> Html:
    counts = [(kind, str(sum(item["kind"] == kind for item in shown)))
              for kind in ("tables", "figures")]  # fmt: skip
    trained = sum(result.finished for result in made.results)
    return section(
        "Overview",
        key_numbers([*counts, ("runs", f"{trained:,}"), ("seeds", str(len(made.seeds)))]),
        *(paragraph(text) for text in _explained(made)),
    )


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


def _item(item: Made) -> Html:
    recipe = item.recipe
    parts: list[Html] = []
    if item.png:
        caption = " ".join([f"{recipe.title}.", *recipe.notes])
        wide = _is_wide(item.png)
        shown = figure(item.png, alt=recipe.title, caption=caption, wide=wide)
        parts.append(shown if wide else side_by_side(shown))
    for sheet in item.sheets:
        own = tuple(note for note in sheet.notes if note not in COMMON_NOTES)
        parts.append(dataclasses.replace(sheet, notes=own).html())  # the others: in the overview
    if item.missing:
        parts.append(paragraph(item.missing))
    return section(f"{recipe.title} ({recipe.name})", *parts)


def _is_wide(png: bytes) -> bool:
    """Whether a figure fills both columns of a paper's page."""
    with Image.open(io.BytesIO(png)) as image:
        dots: float = image.info.get("dpi", (_DPI, _DPI))[0]
        return image.width / dots > _COLUMN
