"""``reproduce``: the tables and figures of the paper."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from cyclopts import Parameter

from hilltop.cli.compare import SET_HERE, check_common, parse_seeds, run_row, settings_of_runs
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Out
from hilltop.cli.train import GROUPS, RunOptions
from hilltop.errors import ArgumentError, HilltopError
from hilltop.machine import usable_cores
from hilltop.progress import logger, say
from hilltop.training.config import TrainConfig

if TYPE_CHECKING:
    from hilltop.studies.reproduce.plan import Job, Selection
    from hilltop.studies.reproduce.recipe import Recipe
    from hilltop.studies.reproduce.source import Source

MOST_WORKERS = 16
"""Processes that decode images, as the released code has it, where there are so many cores."""


@dataclass(frozen=True)
class Reproduce:
    """Make tables and figures of the paper, with its numbers beside what is measured.

    Give --root with the paper's data sets as they come (COCO, VOC, NUS-WIDE, Open Images), --source
    embedded, or a data set of your own: --labels with complete training labels, --val-labels with
    complete labels to judge by, and --features or --images. On images, runs are trained as in the
    paper (recipes/paper.yaml). Every run is kept in OUT and made once. Figures of formulas need
    none of it. --methods, --keep and --seeds make some of the runs, or a single one.

    Example: hilltop reproduce coco --root data --methods hill --keep 0.4 --seeds 0
    """

    names: tuple[str, ...] = ()
    """Short names of tables and figures, or "Table 3", see --list; voc or nus is that column."""
    _: KW_ONLY
    every: Annotated[bool, Parameter(name="--all")] = False
    """Make all of them."""
    show: Annotated[bool, Parameter(name="--list")] = False
    """List them and stop."""
    root: Path | None = None
    """Folder with the paper's data sets, unpacked as they come."""
    source: Literal["embedded"] | None = None
    """embedded: pictures that the project draws itself."""
    open_images: Literal["boxes", "labels"] = "boxes"
    """Open Images below --root: boxes, judged on validation, as the paper most probably has it; or
    human-verified image labels, judged on the test part."""
    dry_run: bool = False
    """Say what is missing and what would be trained, with an estimate of the time, and stop."""
    name: str | None = None
    """What to call your data set in tables; without it the name of the label file."""
    reduced: tuple[str, ...] = ()
    """Reduced label files as LEVEL=FILE, for example 0.4=coco_train_0.4left.txt."""
    methods: str | None = None
    """Make the runs of these methods alone, with commas between them, such as hill,bce; one that
    the paper has not gets a row of its own."""
    keep: str | None = None
    """Make the runs on these labels alone: complete, 0.75, 0.4, single."""
    seeds: str = "0,1,2"
    """Seeds with commas between them."""
    out: Out = Path("reproduced")
    """Folder for tables, figures, report.html and the runs."""
    jobs: int | None = None
    """How many runs at the same time; without it one for each core if embedded, one otherwise."""
    config: Path | None = None
    """YAML file with any of these options; what stands on the command line wins."""
    run_options: RunOptions = field(default_factory=TrainConfig)
    device: Device = "auto"
    groups: ClassVar = {
        "What to make": (
            "all", "list", "root", "source", "open_images", "dry_run", "name", "reduced", "methods",
            "keep", "seeds", "jobs",
        ),
        **GROUPS,
    }  # fmt: skip
    hidden: ClassVar = SET_HERE
    prints_answer: ClassVar = True

    def base(self) -> Reproduce | None:
        """Options from ``--config``; on images without one, the paper's way of training."""
        from hilltop.studies.reproduce.recipe import PAPER_TRAINING, recipe_folder

        path = self.config
        if path is None and (self.root or self.run_options.images) is not None:
            path = recipe_folder() / PAPER_TRAINING
        if path is None:
            return None
        options = settings_of_runs(path)
        if path == recipe_folder() / PAPER_TRAINING:
            # The recipe leaves open what the machine decides.
            options = dataclasses.replace(options, workers=min(MOST_WORKERS, usable_cores()))
        return Reproduce(run_options=options)

    def run(self) -> dict[str, Any]:
        """List, or make what was asked for; of several processes the first one speaks."""
        if os.environ.get("RANK", "0") == "0":
            return self._run()
        logger.setLevel(logging.WARNING)
        with contextlib.redirect_stdout(io.StringIO()):
            return self._run()

    def _run(self) -> dict[str, Any]:
        from hilltop.studies.reproduce.plan import (
            absent_data,
            check_weights,
            describe_plan,
            plan_jobs,
            with_own_rows,
        )
        from hilltop.studies.reproduce.recipe import choose_recipes, read_recipes, unnamed_data
        from hilltop.studies.reproduce.report import write_reproduction_report
        from hilltop.studies.reproduce.run import reproduce

        recipes = read_recipes()
        if self.show:
            width = max(map(len, recipes))
            for recipe in recipes.values():
                print(f"{recipe.name:{width}}  {recipe.number:9}  {recipe.title}")
            return {"recipes": {recipe.name: recipe.title for recipe in recipes.values()}}
        if self.every == bool(self.names):
            raise ArgumentError("Give names of tables and figures, or --all; see --list.")
        chosen = list(recipes.values()) if self.every else choose_recipes(self.names, recipes)
        seeds = parse_seeds(self.seeds)
        unnamed = unnamed_data(self.names, recipes)
        sources = self._sources(chosen, unnamed)
        only = self._selection()
        chosen = with_own_rows(chosen, sources, () if only is None else only.methods)

        def planned(seeds: Sequence[int]) -> list[Job]:
            return plan_jobs(chosen, sources, self.out, seeds, only=only)

        jobs, plan = planned(seeds), []
        by_seeds = {} if self.root is None else {n: planned(range(n)) for n in (1, 3)}
        for line in describe_plan(jobs, measure=self.root is not None, by_seeds=by_seeds):
            plan.append(line)
            print(line, flush=True)
        if absent := absent_data(chosen, sources, unnamed):
            plan.append(f"Not there, so left out: {absent}.")
            print(plan[-1], flush=True)
        check_weights(jobs)
        if self.dry_run:
            return {"plan": plan}
        begun = (self.out / "tables").is_dir() or (self.out / "figures").is_dir()
        check_written(self, self.out / "report.html", force=begun)
        usual = usable_cores() if self.source == "embedded" else 1
        made = reproduce(
            chosen, sources, self.out, seeds=seeds, jobs=self.jobs or usual, only=only, say=say
        )
        page = write_reproduction_report(self.out / "report.html", made)
        missing = {item.recipe.name: item.missing for item in made.items if item.missing}
        for item in made.items:
            for sheet in item.sheets if item.png else ():
                sheet.print()
        for name, why in missing.items():
            print(f"{name}: {why}")
        print(f"{made.seconds:.0f} s; {page}, tables and figures beside it")
        results = [one for one in made.results if only is not None and only.has(one.cell)]
        for result in results:
            print(f"{result.cell}: {result.folder}")
        if made.failed:
            raise HilltopError(made.failed)
        made_names = [item.recipe.name for item in made.items]
        runs = [run_row(result) for result in results]
        return {"report": page, "made": made_names, "missing": missing, "runs": runs}

    def _selection(self) -> Selection | None:
        """Which runs to make; None for all."""
        from hilltop.studies.compare.method import parse_methods
        from hilltop.studies.reproduce.plan import Selection

        if self.methods is None and self.keep is None:
            return None
        methods = () if self.methods is None else parse_methods(self.methods)
        levels = tuple(word.strip() for word in (self.keep or "").split(",") if word.strip())
        if self.keep is not None and not levels:
            raise ArgumentError(f"keep must name at least one level, but got {self.keep!r}.")
        return Selection(methods, levels)

    def _sources(self, recipes: Sequence[Recipe], unnamed: set[str]) -> dict[str, Source]:
        """What tables and figures are made from, by data set; nothing if none of them needs any."""
        from hilltop.studies.reproduce.official import official_sources
        from hilltop.studies.reproduce.source import EVERY, embedded_source, given_source

        needed = [recipe.data_sets for recipe in recipes if recipe.data_sets]
        if not needed:
            return {}
        own = self.run_options.labels != Path() or self.run_options.val_labels is not None
        both = self.source is not None and self.root is not None
        if both or not (self.source or self.root or own):
            raise ArgumentError(
                "Give one source: --root DIR with the paper's data sets, --source embedded, or"
                " --labels and --val-labels with --features or --images of your own."
            )
        if self.source is not None:
            self._check_embedded()
            return {EVERY: embedded_source(self.out / "embedded")}
        if self.root is not None:
            self._check_root()
            return official_sources(
                needed,
                self.root,
                self.out,
                self.run_options,
                unnamed=unnamed,
                open_images=self.open_images,
                whatever_is_there=self.every,
            )
        check_common("reproduce", self.run_options)
        return {EVERY: given_source(self.run_options, name=self.name, reduced=self.reduced)}

    def _check_embedded(self) -> None:
        usual = TrainConfig()
        for item in fields(usual):
            if getattr(self.run_options, item.name) != getattr(usual, item.name):
                option = item.name.replace("_", "-")
                raise ArgumentError(f"--source embedded brings its own settings; drop --{option}.")

    def _check_root(self) -> None:
        """Labels and images are those of the data sets; everything else may be changed."""
        given = self.run_options
        parts = {
            "labels": given.labels != Path(), "val-labels": given.val_labels is not None,
            "images": given.images is not None, "features": given.features is not None,
            "reduced": bool(self.reduced), "name": self.name is not None,
        }  # fmt: skip
        for option, wrong in parts.items():
            if wrong:
                raise ArgumentError(f"--root finds labels and images by itself; drop --{option}.")
        if given.format is not None or given.reading != TrainConfig().reading:
            raise ArgumentError(
                "--root knows how its label files are read; drop --format and options such as"
                " --unlisted or --difficult."
            )
        check_common("reproduce", dataclasses.replace(given, val_labels=Path()))
