"""What has to be trained for some tables and figures, and how long that may take on this device."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from hilltop.checks import listed, pluralize
from hilltop.data import LabelTable
from hilltop.errors import ArgumentError, DataError, HilltopWarning
from hilltop.inputs.image_files import find_images
from hilltop.losses import build
from hilltop.models import build_image_model
from hilltop.studies.compare import Cell, Method, Study
from hilltop.studies.compare.runs import read_result
from hilltop.studies.reproduce.dataset_files import data_title
from hilltop.studies.reproduce.recipe import Recipe, Row, Setting
from hilltop.studies.reproduce.source import Source, of_data
from hilltop.training.config import ModelConfig, TrainConfig
from hilltop.training.distributed import launch

_ON_GPU = 3  # steps that are timed, of whole batches, after one that is not
_CPU_IMAGES = 2  # in the one step that is timed on a CPU, where a batch would take minutes
_DECODED = 8  # images that are decoded and augmented to see how long that takes


@dataclass(frozen=True)
class Job:
    """Runs of one source in one setting.

    Attributes:
        data: Key of the source.
        source: What they are trained on.
        setting: How they differ from the usual runs.
        study: Their folder and settings.
        cells: The runs.
        others: Runs that are not made now, but shown where earlier calls made them.
    """

    data: str
    source: Source
    setting: Setting
    study: Study
    cells: tuple[Cell, ...]
    others: tuple[Cell, ...] = ()

    @property
    def waiting(self) -> list[Cell]:
        """Runs that are not finished."""
        results = {cell: read_result(self.study, cell) for cell in self.cells}
        return [cell for cell, result in results.items() if not (result and result.finished)]

    def epochs(self) -> int:
        """Epochs to go. Stage one of pseudo labels is another run, where that is there."""
        waiting, epochs = self.waiting, self.study.base.epochs
        again = [cell for cell in waiting if cell.method.pseudo_label is not None]
        alone = [cell for cell in again if cell.first_stage not in self.cells]
        return epochs * (len(waiting) + len(alone))


@dataclass(frozen=True)
class Selection:
    """Some of the runs behind tables and figures.

    Attributes:
        methods: Their methods; all without any.
        levels: Names of the levels of their labels; all without any.
    """

    methods: tuple[Method, ...] = ()
    levels: tuple[str, ...] = ()

    def has(self, cell: Cell) -> bool:
        """Whether a run is among them."""
        named = not self.methods or any(stands_for(one, cell.method) for one in self.methods)
        return named and (not self.levels or cell.level.name in self.levels)

    def check(self, cells: Sequence[Cell]) -> None:
        """Raise if there is nothing to choose from, or no run has one of the levels.

        Raises:
            ArgumentError: That is so.
        """
        if not cells:
            raise ArgumentError("No runs stand behind these; drop --methods and --keep.")
        levels = sorted({cell.level.name for cell in cells})
        for level in self.levels:
            if level not in levels:
                raise ArgumentError(f"--keep {level}: there is {', '.join(levels)} here.")


def stands_for(named: Method, method: Method) -> bool:
    """Whether a method is meant by a name; a loss alone stands for it with any options."""
    return named in (method, Method(method.loss, (), method.pseudo_label))


def with_own_rows(
    recipes: Sequence[Recipe], sources: Mapping[str, Source], methods: Sequence[Method]
) -> list[Recipe]:
    """Give every method that no recipe has a row of its own in all tables.

    Raises:
        ArgumentError: There are such methods, but no table.
    """
    there = {
        spec.method
        for data, source in sources.items()
        for recipe in recipes
        for spec in recipe.specs(data, source.parse)
    }
    new = [one for one in methods if not any(stands_for(one, other) for other in there)]
    if new and there and not any(recipe.columns for recipe in recipes):
        raise ArgumentError(
            f"--methods {new[0]}: no run of these figures has it; there are"
            f" {', '.join(sorted(map(str, there)))}."
        )
    rows = tuple(Row(str(method), str(method)) for method in new)
    return [
        replace(recipe, rows=(*recipe.rows, *rows)) if recipe.columns else recipe
        for recipe in recipes
    ]


@dataclass(frozen=True)
class Pace:
    """Seconds that one image takes: in a step of training, and when it is judged."""

    train: float
    judge: float


def plan_jobs(
    recipes: Sequence[Recipe],
    sources: Mapping[str, Source],
    out: Path,
    seeds: Sequence[int],
    *,
    only: Selection | None = None,
) -> list[Job]:
    """Everything that recipes need, source by source; a run that several need is there once.

    Args:
        recipes: Tables and figures.
        sources: Data sets.
        out: Where runs lie.
        seeds: Of the runs of tables; other backbones and figures take the first.
        only: Which of these runs to make; all without it.
    """
    jobs = []
    for data, source in sources.items():
        for setting, cells in _cells(recipes, data, source, seeds).items():
            config = source.settings(setting)
            if config is not None:
                study = Study(out / source.folder / str(setting), config)
                chosen = [cell for cell in cells if only is None or only.has(cell)]
                made = () if source.only_read else tuple(chosen)
                others = tuple(cell for cell in cells if cell not in made)
                study.check(made)
                jobs.append(Job(data, source, setting, study, made, others))
    if only is not None:
        only.check([cell for job in jobs for cell in (*job.cells, *job.others)])
    return jobs


def _cells(
    recipes: Sequence[Recipe], data: str, source: Source, seeds: Sequence[int]
) -> dict[Setting, list[Cell]]:
    """The runs on one source, by how they are trained."""
    found: dict[Setting, list[Cell]] = {}
    for recipe in recipes:
        specs = dict.fromkeys(recipe.specs(data, source.parse))
        for seed, spec in itertools.product(seeds, specs):
            # Other backbones are dear, and a figure shows one run.
            once = spec.setting.model is not None or recipe.kind == "figure"
            cell = Cell(source.level(spec.level), spec.method, seed)
            cells = found.setdefault(spec.setting, [])
            if cell not in cells and not (once and seed != seeds[0]):
                cells.append(cell)
    return found


def describe_plan(
    jobs: Sequence[Job], *, measure: bool, by_seeds: Mapping[int, Sequence[Job]] | None = None
) -> Iterator[str]:
    """Yield lines on what would be trained: runs, images, steps and, if measured, hours.

    Args:
        jobs: What there is to do.
        measure: Whether to time a few steps of each model on this device.
        by_seeds: The same for other numbers of seeds, whose hours are said too.
    """
    paces = dict[ModelConfig, Pace]()
    told = list[Source]()
    for job in jobs:
        config, waiting = job.study.base, job.waiting
        train, val = job.source.complete_labels(), job.source.test_labels()
        steps = math.ceil(len(train) / config.batch_size)
        epochs = job.epochs()
        runs = pluralize(len(job.cells), "run", "runs")
        length = pluralize(config.epochs, "epoch", "epochs")
        yield (
            f"{job.source.name}, {config.model.model}{_stopped(job.setting)}: {len(train):,}"
            f" training and {len(val):,} test images, {len(train.classes)} classes; {runs},"
            f" {len(job.cells) - len(waiting)} finished; {length} of"
            f" {pluralize(steps, 'step', 'steps')} each,"
            f" {pluralize(epochs * steps, 'step', 'steps')} to go."
        )
        if job.source not in told:
            told.append(job.source)
            yield f"  {job.source.about}"
            if other := job.source.other_sizes():
                yield f"  The paper has {other}."
        if measure and waiting and config.kind == "images":
            if config.model not in paces:
                paces[config.model] = measure_pace(config, train)
            pace = paces[config.model]
            loaders = pluralize(config.workers, "process", "processes")
            yield (
                f"  An image takes {_short(pace.train)} in training and {_short(pace.judge)} when"
                f" judged on this device, with {loaders} to decode images (--workers): about"
                f" {_hours(_seconds_of(job, paces))}."
            )
    total = sum(_seconds_of(job, paces) for job in jobs)
    if total:
        yield f"All of it, one run after another: about {_hours(total)}."
        for number, others in (by_seeds or {}).items():
            runs = pluralize(sum(len(job.waiting) for job in others), "run", "runs")
            seconds = sum(_seconds_of(job, paces) for job in others)
            seeds = ",".join(map(str, range(number)))
            yield f"  With --seeds {seeds}: {runs}, about {_hours(seconds)}."


def _seconds_of(job: Job, paces: Mapping[ModelConfig, Pace]) -> float:
    """Seconds that the runs of a job take, by the pace of their model, if it is known."""
    pace = paces.get(job.study.base.model)
    if pace is None:
        return 0.0
    train, val = len(job.source.complete_labels()), len(job.source.test_labels())
    judged = val * (2 if job.study.base.ema else 1)  # the average and the plain model
    return job.epochs() * (train * pace.train + judged * pace.judge)


def absent_data(
    recipes: Sequence[Recipe], sources: Mapping[str, Source], unnamed: Collection[str] = ()
) -> str:
    """Names of data sets that recipes need and that are not there, but for those nobody named."""
    names = dict.fromkeys(data for recipe in recipes for data in recipe.data_sets)
    return listed(
        data_title(data) for data in names if data not in unnamed and of_data(data, sources) is None
    )


def check_weights(jobs: Sequence[Job]) -> None:
    """Have the weights that models start from: fetch them, or read their files, before any run.

    Raises:
        DataError: Weights cannot be had, or do not fit; all of them are named at once.
    """
    wanted = dict.fromkeys(
        job.study.base.model for job in jobs if job.waiting and job.study.base.kind == "images"
    )
    faults = []
    for model in wanted:
        if model.weights == "none":
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HilltopWarning)  # a new classifier is meant
                build_image_model(
                    model.model, 1, weights=model.weights, image_size=model.image_size
                )
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(["Before anything can be trained, this is missing:", *faults]))


def measure_pace(config: TrainConfig, train: LabelTable) -> Pace:
    """Time a few steps of a model with random pixels, and the decoding of a few images."""
    fabric = launch(config.precision)
    on_gpu = fabric.device.type == "cuda"
    images = config.batch_size if on_gpu else _CPU_IMAGES
    size = config.model.image_size
    with torch.random.fork_rng():
        model = build_image_model(
            config.model.model, len(train.classes), weights="none", image_size=size
        ).to(fabric.device)
        pixels = torch.rand(images, 3, size, size, device=fabric.device)
    targets = torch.zeros(images, len(train.classes), device=fabric.device)
    loss = build("bce", reduction="sum")

    def step() -> None:
        with fabric.autocast():
            logits = model(pixels)
        loss(logits.float(), targets).backward()

    def judge() -> None:
        with torch.no_grad(), fabric.autocast():
            model(pixels)

    stepping = _seconds(step, on_gpu) / images
    model.eval()
    judging = _seconds(judge, on_gpu) / images
    augmented, plain = (_decoding(config, train, augment) for augment in (config.augment, None))
    workers = max(1, config.workers)
    if on_gpu and config.workers:  # decoding goes on while the GPU works
        return Pace(max(stepping, augmented / workers), max(judging, plain / workers))
    return Pace(stepping + augmented / workers, judging + plain / workers)


def _seconds(action: Callable[[], None], on_gpu: bool) -> float:
    """Seconds of one call; on a GPU, whose first call is slow, after one that is not counted."""
    if on_gpu:
        action()
        torch.cuda.synchronize()
    calls, began = _ON_GPU if on_gpu else 1, time.perf_counter()
    for _ in range(calls):
        action()
    if on_gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls


def _decoding(config: TrainConfig, train: LabelTable, augment: str | None) -> float:
    """Seconds that one image takes to be read, and augmented if it is for training."""
    from hilltop.inputs.decode import read_image
    from hilltop.inputs.transforms import evaluation_pixels, training_pixels

    assert config.images is not None
    rows = np.unique(np.linspace(0, len(train) - 1, min(_DECODED, len(train)), dtype=np.int64))
    files = find_images(config.images, train.images.take(rows))
    began, size = time.perf_counter(), config.model.image_size
    for name in files.drop_null().to_pylist():
        image = read_image(config.images / name)
        if augment is None:
            evaluation_pixels(image, size)
        else:
            training_pixels(image, size, augment=augment, seed=0, epoch=0, row=0)
    return (time.perf_counter() - began) / max(1, len(rows))


def _stopped(setting: Setting) -> str:
    return "" if setting.epochs is None else f" up to epoch {setting.epochs}"


def _short(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    if hours < 1:
        return f"{max(1, round(seconds / 60))} min"
    return f"{hours:,.0f} hours" if hours >= 10 else f"{hours:.1f} hours"
