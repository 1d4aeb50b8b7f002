"""Makes tables and figures: trains what is missing, once for all of them, and writes a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from hilltop.data import LabelTable
from hilltop.data.files import atomic_write
from hilltop.errors import HilltopError
from hilltop.report.paper_figures import render_figure
from hilltop.report.tables import Sheet, write_rows, write_sheets
from hilltop.studies.compare import COMPLETE, Cell, Result, Results, run_study, write_tables
from hilltop.studies.compare.level import NAMED
from hilltop.studies.compare.runs import failed_runs, read_result
from hilltop.studies.reproduce.dataset_files import data_title
from hilltop.studies.reproduce.figures import FIGURES, NUMBERS, Material
from hilltop.studies.reproduce.paper_comparison import (
    Measured,
    Measurements,
    csv_rows,
    statistics_sheet,
)
from hilltop.studies.reproduce.paper_values import read_paper_values
from hilltop.studies.reproduce.plan import Job, Selection, plan_jobs
from hilltop.studies.reproduce.recipe import Recipe
from hilltop.studies.reproduce.source import Source, all_levels, source_of
from hilltop.studies.reproduce.table_layouts import paper_sheet

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
    stand_ins: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What everything was measured on."""
        return " and ".join(source.name for source in self.sources.values()) or "no data"


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
    items = tuple(_make(recipe, sources, measured, out, seeds) for recipe in recipes)
    return Reproduction(
        sources,
        tuple(seeds),
        items,
        tuple(every),
        time.perf_counter() - began,
        failed_runs(every),
        _stand_ins(recipes, sources),
    )


def _train(planned: Sequence[Job], jobs: int, say: Say) -> tuple[Measurements, list[Result]]:
    """Train everything that is not finished."""
    measured: dict[str, Measured] = {}
    every: list[Result] = []
    for job in planned:
        read = job.source.only_read
        done = _finished(job, job.cells + job.others) if read else _run(job, jobs, say)
        before = measured.get(job.data) or Measured(facts=job.source.facts())
        results = {**before.results, job.setting: Results(done)}
        measured[job.data] = Measured(results, before.facts)
        every += done
    return measured, every


def _run(job: Job, jobs: int, say: Say) -> list[Result]:
    done = run_study(job.study, list(job.cells), jobs=jobs, say=say) if job.cells else []
    done += _finished(job, job.others)
    write_tables(Results(done), job.study.folder)
    return done


def _finished(job: Job, cells: Sequence[Cell]) -> list[Result]:
    found = [read_result(job.study, cell) for cell in cells]
    return [result for result in found if result is not None and result.finished]


def _make(
    recipe: Recipe,
    sources: Mapping[str, Source],
    measured: Measurements,
    out: Path,
    seeds: Sequence[int],
) -> Made:
    """Make one item and write its files."""
    if recipe.kind == "figure":
        return _figure(recipe, sources, measured, out, seeds[0])
    paper = read_paper_values()
    names = " and ".join(_names(recipe, sources))
    if recipe.kind == "statistics":
        tables = {source.name: _tables(source, seeds[0]) for source in sources.values()}
        sheet, rows = statistics_sheet(recipe, paper, tables)
    else:
        sheet = paper_sheet(recipe, paper, measured, name=names)
        rows = csv_rows(recipe, paper, measured)
    write_sheets([sheet], out / "tables" / recipe.name)
    write_rows(out / "tables" / f"{recipe.name}.csv", rows)
    return Made(recipe, (sheet,), missing=_left_blank(recipe, sources, measured))


def _names(recipe: Recipe, sources: Mapping[str, Source]) -> list[str]:
    found = [source_of(data, sources) for data in recipe.data_sets]
    return list(dict.fromkeys(source.name for source in found if source is not None))


def _left_blank(recipe: Recipe, sources: Mapping[str, Source], measured: Measurements) -> str:
    """What a table lacks because a data set is not there, or cannot be trained with a backbone."""
    absent = [data_title(data) for data in recipe.data_sets if source_of(data, sources) is None]
    trained = {setting for found in measured.values() for setting in found.results}
    models = [column.model for column in recipe.columns if column.setting not in trained]
    sentences = [
        f"{' and '.join(absent)}: not run, so its cells are blank." if absent else "",
        f"Not run on this source: {', '.join(dict.fromkeys(filter(None, models)))}."
        if any(models)
        else "",
    ]
    return " ".join(filter(None, sentences))


def _figure(
    recipe: Recipe,
    sources: Mapping[str, Source],
    measured: Measurements,
    out: Path,
    seed: int,
) -> Made:
    runs: dict[str, Result] = {}
    stopped: set[str] = set()
    source = source_of(recipe.data, sources)
    if recipe.methods and source is None:
        return Made(recipe, missing=f"{data_title(recipe.data)} is not there.")
    if source is not None:
        filled = recipe.filled(source.facts())
        levels = all_levels(source, filled.used_levels)
        every = [
            run
            for found in measured.values()
            for results in found.results.values()
            for run in results.all
        ]
        for name in recipe.methods:
            setting, cell = filled.run(name, levels, seed)
            folder = out / source.folder / str(setting)
            chosen = [
                run for run in every if run.cell == cell and run.folder.is_relative_to(folder)
            ]
            if not chosen or not chosen[0].finished:
                return Made(recipe, missing=f"Its run {cell} is not there.")
            runs[name] = chosen[0]
            if setting.epochs is not None:
                stopped.add(name)
    material = Material(runs, source, frozenset(stopped))
    try:
        figure: Figure = FIGURES.build(recipe.draw)(material)
    except HilltopError as reason:  # one figure less, and it says why
        return Made(recipe, missing=str(reason))
    sheets = (NUMBERS[recipe.draw](material),) if recipe.draw in NUMBERS else ()
    if sheets:
        write_sheets(sheets, out / "figures" / recipe.name)
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    png = render_figure(figure, kind="png")
    atomic_write(folder / f"{recipe.name}.png", png)
    atomic_write(folder / f"{recipe.name}.pdf", render_figure(figure, kind="pdf"))
    return Made(recipe, sheets, png)


def _tables(source: Source, seed: int) -> dict[str, LabelTable]:
    """Labels of the source at every level."""
    levels = [COMPLETE, *(source.level(name) for name in NAMED)]
    return {level.title: source.labels_at(level, seed) for level in levels}


def _stand_ins(recipes: Sequence[Recipe], sources: Mapping[str, Source]) -> dict[str, str]:
    """Backbones of the paper whose place another model took."""
    settings = dict.fromkeys(setting for recipe in recipes for setting in recipe.settings)
    found = {}
    for source in sources.values():
        for setting in settings:
            config = source.settings(setting)
            if setting.model and config is not None and config.model.model != setting.model:
                found[setting.model] = config.model.model
    return found
