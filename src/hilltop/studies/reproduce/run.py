"""Makes tables and figures: trains what is missing, once for all of them, and writes a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.checks import listed
from hilltop.data import LabelTable
from hilltop.data.files import atomic_write
from hilltop.errors import HilltopError
from hilltop.report.paper_figures import render_figure
from hilltop.report.tables import Sheet, write_rows, write_sheets
from hilltop.studies.compare import COMPLETE, Result, Results, run_study, write_tables
from hilltop.studies.compare.level import NAMED
from hilltop.studies.compare.runs import failed_runs, read_result
from hilltop.studies.reproduce.dataset_files import data_title
from hilltop.studies.reproduce.figures import FIGURES, NUMBERS, Material
from hilltop.studies.reproduce.plan import Job, Selection, plan_jobs
from hilltop.studies.reproduce.recipe import Recipe, Setting, read_paper_values
from hilltop.studies.reproduce.source import Source, of_data
from hilltop.studies.reproduce.tables import (
    Measured,
    Measurements,
    csv_rows,
    paper_sheet,
    statistics_sheet,
    table_entries,
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """A table or figure that was made.

    Attributes:
        recipe: What it is.
        sheets: Its tables, if it is one; of a figure what stands below it.
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

    sources: Mapping[str, Source]
    seeds: tuple[int, ...]
    items: tuple[Made, ...]
    results: tuple[Result, ...]
    seconds: float
    failed: str = ""


def reproduce(
    recipes: Sequence[Recipe],
    sources: Mapping[str, Source],
    out: Path,
    *,
    seeds: Sequence[int],
    jobs: int,
    only: Selection | None = None,
    say: Say = print,
) -> Reproduction:
    """Make tables and figures in ``out``.

    Runs lie in ``out/runs`` (the folder of a comparison), ``out/backbones`` and ``out/epochs``, for
    a source with a folder of its own in that; a run that several tables need is made once, and a
    later call goes on where this one was stopped.

    Args:
        recipes: What to make.
        sources: Data sets by their short names, and how runs on them are trained; ``EVERY`` stands
            for all. None is needed for figures of formulas.
        out: Where to write ``tables``, ``figures`` and the runs.
        seeds: Every run of a table is made once for each; figures take the first.
        jobs: How many runs at the same time.
        only: Which runs to make; the others are shown where earlier calls made them.
        say: Takes one line for each run that ends.
    """
    began = time.perf_counter()
    planned = plan_jobs(recipes, sources, out, seeds, only=only)
    measured, every = _train(planned, jobs, say)
    items = tuple(
        (_figure if recipe.kind == "figure" else _table)(recipe, sources, measured, out, seeds[0])
        for recipe in recipes
    )
    seconds = time.perf_counter() - began
    return Reproduction(sources, tuple(seeds), items, tuple(every), seconds, failed_runs(every))


def _train(planned: Sequence[Job], jobs: int, say: Say) -> tuple[Measurements, list[Result]]:
    """Train everything that is not finished."""
    measured: dict[str, Measured] = {}
    every: list[Result] = []
    for job in planned:
        done = run_study(job.study, job.cells, jobs=jobs, say=say) if job.cells else []
        found = [read_result(job.study, cell) for cell in job.others]
        done += [result for result in found if result is not None and result.finished]
        if job.cells:
            write_tables(Results(done), job.study.folder)
        before = measured[job.data].results if job.data in measured else {}
        results = {**before, job.setting: Results(done)}
        measured[job.data] = Measured(results, job.source.parse)
        every += done
    return measured, every


def _table(
    recipe: Recipe, sources: Mapping[str, Source], measured: Measurements, out: Path, seed: int
) -> Made:
    """Make a table and write its files."""
    paper = read_paper_values()
    found = [of_data(data, sources) for data in recipe.data_sets]
    if recipe.kind == "statistics":
        tables = {source.name: _tables(source, seed) for source in sources.values()}
        sheet, rows = statistics_sheet(recipe, paper, tables)
    else:
        names = dict.fromkeys(source.name for source in found if source is not None)
        entries = table_entries(recipe, paper, measured)
        sheet = paper_sheet(recipe, entries, name=listed(names))
        rows = csv_rows(recipe, entries)
    write_sheets([sheet], out / "tables" / recipe.name)
    write_rows(out / "tables" / f"{recipe.name}.csv", rows)
    absent = [data_title(data) for data in recipe.data_sets if of_data(data, sources) is None]
    trained = {setting for known in measured.values() for setting in known.results}
    models = [model for model in recipe.models if Setting(model) not in trained]
    left_out = [
        f"{listed(absent)}: not there or not run, so its cells are blank." if absent else "",
        f"Not run on this source: {', '.join(models)}." if models else "",
    ]
    return Made(recipe, (sheet,), missing=" ".join(filter(None, left_out)))


def _tables(source: Source, seed: int) -> dict[str, LabelTable]:
    """Labels of the source at every level."""
    levels = [COMPLETE, *(source.level(name) for name in NAMED)]
    return {level.title: source.labels_at(level, seed) for level in levels}


def _figure(
    recipe: Recipe, sources: Mapping[str, Source], measured: Measurements, out: Path, seed: int
) -> Made:
    """Draw a figure and write its files, unless a run behind it is not there."""
    source, known = of_data(recipe.data, sources), of_data(recipe.data, measured) or Measured()
    if recipe.methods and source is None:
        return Made(recipe, missing=f"{data_title(recipe.data)} is not there.")
    runs: dict[str, Result] = {}
    specs = {name: recipe.figure_spec(name, known.parse) for name in recipe.methods}
    for name, spec in specs.items():
        found = [run for run in known.runs(spec) if run.cell.seed == seed]
        if not found:
            run = f"{spec.level} {spec.method} seed {seed}"
            return Made(recipe, missing=f"Its run {run} is not there.")
        runs[name] = found[0]
    stopped = {name for name, spec in specs.items() if spec.setting.epochs is not None}
    material = Material(runs, source, frozenset(stopped))
    try:
        figure = FIGURES[recipe.name](material)
    except HilltopError as reason:  # one figure less, and it says why
        return Made(recipe, missing=str(reason))
    sheets = (NUMBERS[recipe.name](material),) if recipe.name in NUMBERS else ()
    file = out / "figures" / recipe.name
    file.parent.mkdir(parents=True, exist_ok=True)
    if sheets:
        write_sheets(sheets, file)
    png = render_figure(figure, kind="png")
    atomic_write(file.with_suffix(".png"), png)
    atomic_write(file.with_suffix(".pdf"), render_figure(figure, kind="pdf"))
    return Made(recipe, sheets, png)
