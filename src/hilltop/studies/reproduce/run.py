"""Makes tables and figures: trains what is missing, once for all of them, and writes a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from hilltop.data import LabelTable
from hilltop.errors import HilltopError
from hilltop.report.paper_figures import render_figure
from hilltop.report.tables import Sheet, write_rows, write_sheets
from hilltop.studies.compare import (
    COMPLETE,
    Cell,
    Level,
    Result,
    Results,
    Study,
    run_study,
    write_tables,
)
from hilltop.studies.compare.level import NAMED
from hilltop.studies.compare.runs import failed_runs
from hilltop.studies.reproduce.beside import Measured, csv_rows, paper_sheets, statistics_sheet
from hilltop.studies.reproduce.figures import FIGURES, Material
from hilltop.studies.reproduce.paper_values import read_paper_values
from hilltop.studies.reproduce.recipe import Recipe
from hilltop.studies.reproduce.source import Source, all_levels

Say = Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """A table or figure that was made.

    Attributes:
        recipe: What it is.
        sheets: Its tables, if it is one.
        png: Its picture, if it is a figure.
        missing: Why there is nothing, or what is left out.
    """

    recipe: Recipe
    sheets: tuple[Sheet, ...] = ()
    png: bytes = b""
    missing: str = ""


@dataclass(frozen=True)
class Reproduction:
    """Everything that was made, and what it took."""

    source: Source
    seeds: tuple[int, ...]
    items: tuple[Made, ...]
    results: tuple[Result, ...]
    seconds: float
    failed: str = ""
    stand_ins: dict[str, str] = field(default_factory=dict)


def reproduce(
    recipes: Sequence[Recipe],
    source: Source,
    out: Path,
    *,
    seeds: Sequence[int],
    jobs: int,
    say: Say = print,
) -> Reproduction:
    """Make tables and figures in ``out``.

    Runs lie in ``out/runs`` (the folder of a comparison) and ``out/backbones``; a run that several
    tables need is made once, and a later call goes on where this one was stopped.

    Args:
        recipes: What to make.
        source: The data set, and how runs on it are trained.
        out: Where to write ``tables``, ``figures`` and the runs.
        seeds: Every run of a table is made once for each; figures take the first.
        jobs: How many runs at the same time.
        say: Takes one line for each run that ends.
    """
    began = time.perf_counter()
    filled = [recipe.filled(source.facts()) for recipe in recipes]
    names = [name for recipe in filled for name in recipe.used_levels]
    levels = all_levels(source, list(dict.fromkeys(names)))
    measured, every = _train(filled, levels, source, out, tuple(seeds), jobs, say)
    items = tuple(_make(recipe, levels, source, measured, out, seeds) for recipe in filled)
    return Reproduction(
        source,
        tuple(seeds),
        items,
        tuple(every),
        time.perf_counter() - began,
        failed_runs(every),
        _stand_ins(filled, source),
    )


def _train(
    recipes: Sequence[Recipe],
    levels: dict[str, Level],
    source: Source,
    out: Path,
    seeds: tuple[int, ...],
    jobs: int,
    say: Say,
) -> tuple[Measured, list[Result]]:
    """Train what all recipes need, backbone by backbone."""
    measured: dict[str | None, Results] = {}
    every: list[Result] = []
    models = [model for recipe in recipes for model in recipe.models]
    for model in (None, *dict.fromkeys(models)):
        base = source.base if model is None else source.backbones.get(model)
        chosen = seeds if model is None else seeds[:1]  # other backbones are dear: one seed
        cells: list[Cell] = [
            cell for recipe in recipes for cell in recipe.cells(levels, chosen, model)
        ]
        if base is None or not cells:
            continue
        folder = out / "runs" if model is None else out / "backbones" / model
        done = run_study(Study(folder, base), list(dict.fromkeys(cells)), jobs=jobs, say=say)
        measured[model] = Results(done)
        write_tables(measured[model], folder)
        every += done
    return measured, every


def _make(
    recipe: Recipe,
    levels: dict[str, Level],
    source: Source,
    measured: Measured,
    out: Path,
    seeds: Sequence[int],
) -> Made:
    """Make one item and write its files."""
    if recipe.kind == "figure":
        return _figure(recipe, levels, source, measured, out, seeds[0])
    paper = read_paper_values()
    if recipe.kind == "statistics":
        sheet, rows = statistics_sheet(recipe, paper, source.name, _tables(source, seeds[0]))
        sheets = [sheet]
    else:
        sheets = paper_sheets(recipe, paper, measured, name=source.name)
        rows = csv_rows(recipe, paper, measured)
    write_sheets(sheets, out / "tables" / recipe.name)
    write_rows(out / "tables" / f"{recipe.name}.csv", rows)
    absent = [model for model in recipe.models if model not in measured]
    missing = f"Not run on this source: {', '.join(absent)}." if absent else ""
    return Made(recipe, tuple(sheets), missing=missing)


def _figure(
    recipe: Recipe,
    levels: dict[str, Level],
    source: Source,
    measured: Measured,
    out: Path,
    seed: int,
) -> Made:
    results = measured.get(None, Results([]))
    runs: dict[str, Result] = {}
    for name in recipe.methods:
        cell = recipe.run(name, levels, seed)
        found = [run for run in results.runs(cell.level.name, cell.method) if run.cell == cell]
        if not found:
            return Made(recipe, missing=f"Its run {cell} failed.")
        runs[name] = found[0]
    try:
        figure: Figure = FIGURES.build(recipe.draw)(Material(runs, source))
    except HilltopError as reason:  # one figure less, and it says why
        return Made(recipe, missing=str(reason))
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    png = render_figure(figure, kind="png")
    (folder / f"{recipe.name}.png").write_bytes(png)
    (folder / f"{recipe.name}.pdf").write_bytes(render_figure(figure, kind="pdf"))
    return Made(recipe, png=png)


def _tables(source: Source, seed: int) -> dict[str, LabelTable]:
    """Labels of the source at every level."""
    levels = [COMPLETE, *(source.level(name) for name in NAMED)]
    return {level.title: source.labels_at(level, seed) for level in levels}


def _stand_ins(recipes: Sequence[Recipe], source: Source) -> dict[str, str]:
    """Backbones of the paper whose place another model took."""
    models = dict.fromkeys(model for recipe in recipes for model in recipe.models)
    trained = {model: source.backbones.get(model) for model in models}
    return {
        model: config.model.model
        for model, config in trained.items()
        if config is not None and config.model.model != model
    }
