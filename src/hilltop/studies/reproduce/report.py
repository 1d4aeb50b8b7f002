"""One page with all tables and figures, in the order of the paper."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

from PIL import Image

from hilltop.report.page import (
    Html,
    figure,
    key_numbers,
    paragraph,
    section,
    side_by_side,
    write_page,
)
from hilltop.studies.reproduce.beside import COMMON_NOTES
from hilltop.studies.reproduce.run import Made, Reproduction

_COLUMN, _DPI = 4.5, 300  # inches that a figure for one column may have, and their usual dots


def write_reproduction_report(path: Path, made: Reproduction) -> Path:
    """Write the page and return its path."""
    sections = [_overview(made), *(_item(item) for item in made.items)]
    write_page(
        path,
        title="Tables and figures of the paper, reproduced",
        lead=" ".join(f"On {source.name}. {source.about}" for source in made.sources.values()),
        sections=sections,
    )
    return path


def _overview(made: Reproduction) -> Html:
    tables = sum(bool(item.sheets) for item in made.items)
    figures = sum(bool(item.png) for item in made.items)
    trained = sum(result.finished for result in made.results)
    numbers = [
        ("tables", str(tables)),
        ("figures", str(figures)),
        ("runs", f"{trained:,}"),
        ("seeds", str(len(made.seeds))),
    ]
    return section(
        "Overview",
        key_numbers(numbers),
        *(paragraph(text) for text in _explained(made)),
    )


def _explained(made: Reproduction) -> list[str]:
    hours = sum(result.seconds for result in made.results) / 3600
    texts = [
        "The paper's numbers are for its own data sets and networks; what was measured here is for"
        f" {made.name}. Compare the order of methods and the gaps between them, not the"
        " numbers themselves. Printed numbers with a letter are known misprints, kept as they are.",
        "Levels are named as in the paper: of n labels of an image, floor(n (1 - r)) + 1 are kept,"
        " with r = 0.5 (75% labels left), 0.8 (40% labels left) and 1 (single label).",
        *COMMON_NOTES,
        f"All runs together took {hours:.1f} hours of training time; a run that several tables need"
        " was made once.",
    ]
    if made.stand_ins:
        pairs = ", ".join(f"{small} for {large}" for large, small in made.stand_ins.items())
        texts.append(f"Small models stand in for the backbones, with one seed: {pairs}.")
    if made.failed:
        texts.append(made.failed)
    return texts


def _item(item: Made) -> Html:
    recipe = item.recipe
    parts: list[Html] = []
    for sheet in item.sheets:
        own = tuple(note for note in sheet.notes if note not in COMMON_NOTES)
        parts.append(dataclasses.replace(sheet, notes=own).html())  # the others: in the overview
    if item.png:
        caption = " ".join([f"{recipe.title}.", *recipe.notes])
        wide = _is_wide(item.png)
        shown = figure(item.png, alt=recipe.title, caption=caption, wide=wide)
        parts.append(shown if wide else side_by_side(shown))
    if item.missing:
        parts.append(paragraph(item.missing))
    return section(f"{recipe.title} ({recipe.name})", *parts)


def _is_wide(png: bytes) -> bool:
    """Whether a figure fills both columns of a paper's page."""
    with Image.open(io.BytesIO(png)) as image:
        dots: float = image.info.get("dpi", (_DPI, _DPI))[0]
        return image.width / dots > _COLUMN
