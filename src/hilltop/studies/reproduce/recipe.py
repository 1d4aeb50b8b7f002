"""Recipes: for every table and figure of the paper, which runs it is made of."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilltop.checks import did_you_mean
from hilltop.data.small_files import read_yaml
from hilltop.errors import ArgumentError, ConfigError
from hilltop.studies.compare import BASELINE, COMPLETE, Cell, Level, Method

KINDS = ("table", "statistics", "figure")
FORMS = ("beside", "stacked", "transposed")
PAPER_TRAINING = "paper.yaml"
"""How the paper trains, as a configuration of ``hilltop train``."""


@dataclass(frozen=True)
class Setting:
    """In what a run differs from the usual ones of its source: backbone, and where it stops."""

    model: str | None = None
    epochs: int | None = None

    def __str__(self) -> str:
        """Return the folder of such runs."""
        if self.epochs is not None:
            return f"epochs/{self.epochs}"
        return "runs" if self.model is None else f"backbones/{self.model}"


USUAL = Setting()


@dataclass(frozen=True)
class Row:
    """A row of a table: its name in the paper, and the method that gives its numbers.

    Attributes:
        paper: Name in the paper and in ``paper_values.csv``.
        method: The method, in the notation of ``hilltop compare``.
        complete: Trained on complete labels.
        at: Another method at some levels.
        group: Heading that the paper has above it, if it is the first row of a group.
    """

    paper: str
    method: str
    complete: bool = False
    at: dict[str, str] = field(default_factory=dict)
    group: str = ""

    def filled(self, facts: typing.Mapping[str, str]) -> Row:
        """The same with facts of a data set put into its methods."""
        return dataclasses.replace(
            self, method=_fill(self.method, facts), at=_fill_all(self.at, facts)
        )

    def method_at(self, level: str) -> Method:
        """The method at a level."""
        return Method.parse(self.at.get(level, self.method))


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in the paper, the labels, the metric, and the backbone if any.

    ``metric`` is what the printed values are, where the paper's own heading is wrong. ``data`` is
    the data set, where it is not that of the whole table.
    """

    paper: str
    level: str
    metric: str
    model: str | None = None
    data: str = ""

    @property
    def setting(self) -> Setting:
        """How its runs are trained."""
        return Setting(model=self.model)


@dataclass(frozen=True)
class Recipe:
    """A table or figure of the paper.

    Attributes:
        name: Its short name: the name of the file.
        kind: table, statistics or figure.
        place: Its place in the paper, counting from 1.
        title: Its caption.
        data: The data set that it is made from; several for statistics.
        form: How a table is set: numbers of the paper beside measured ones, below them (stacked),
            or that with rows and columns exchanged (transposed).
        draw: For a figure, the name of the function that draws it.
        level: For a figure, the labels that its runs were trained on.
        methods: For a figure, its methods by the names that it shows. "complete bce" is trained
            on complete labels, "epoch 3 splc" is stopped after three epochs.
        rows: For a table.
        columns: For a table.
        notes: Sentences below it.
    """

    name: str
    kind: str
    place: int
    title: str
    data: str = ""
    form: str = "beside"
    draw: str = ""
    level: str = ""
    methods: dict[str, str] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()

    def filled(self, facts: typing.Mapping[str, str]) -> Recipe:
        """The same with facts of a data set put into methods: ``{labels_per_image}``."""
        rows = tuple(row.filled(facts) for row in self.rows)
        return dataclasses.replace(self, rows=rows, methods=_fill_all(self.methods, facts))

    def on(self, data: str) -> Recipe:
        """The part of it that is made from one data set; all of it for no name."""
        if not data:
            return self
        columns = tuple(column for column in self.columns if column.data == data)
        methods = self.methods if self.data == data else {}
        return dataclasses.replace(self, columns=columns, methods=methods)

    def cells(
        self, levels: typing.Mapping[str, Level], seeds: Sequence[int], setting: Setting = USUAL
    ) -> list[Cell]:
        """Runs that it needs in one setting. Figures need one seed."""
        if self.kind == "figure":
            runs = [self.run(name, levels, seeds[0]) for name in self.methods]
            return [cell for found, cell in runs if found == setting]
        columns = [column for column in self.columns if column.setting == setting]
        methods = [
            (COMPLETE, BASELINE) if row.complete else (levels[at], row.method_at(at))
            for at in dict.fromkeys(column.level for column in columns)
            for row in self.rows
        ]
        baselines = [(levels[column.level], BASELINE) for column in columns]
        every = [*methods, *baselines]
        return [Cell(level, method, seed) for seed in seeds for level, method in every]

    def run(self, name: str, levels: typing.Mapping[str, Level], seed: int) -> tuple[Setting, Cell]:
        """The run behind a name in a figure, and how it is trained."""
        word, setting = self.methods[name], USUAL
        if word.startswith("epoch "):
            _, number, word = word.split(" ", 2)
            setting = Setting(epochs=int(number))
        complete = word.removeprefix("complete ")
        level = levels[self.level] if complete == word else COMPLETE
        return setting, Cell(level, Method.parse(complete), seed)

    @property
    def data_sets(self) -> list[str]:
        """Short names of the data sets that it is made from; none if it needs no data."""
        names = [*self.data.split(), *(column.data for column in self.columns)]
        return [name for name in dict.fromkeys(names) if name]

    @property
    def settings(self) -> list[Setting]:
        """How its runs are trained: the usual way, and others."""
        stops = [word.split()[1] for word in self.methods.values() if word.startswith("epoch ")]
        others = [Setting(model) for model in self.models]
        return [USUAL, *others, *(Setting(epochs=int(stop)) for stop in dict.fromkeys(stops))]

    @property
    def models(self) -> list[str]:
        """Backbones other than the usual one."""
        return [model for model in dict.fromkeys(c.model for c in self.columns) if model]

    @property
    def used_levels(self) -> list[str]:
        """Names of the levels that its runs need."""
        names = [self.level] if self.level else []
        return list(dict.fromkeys([*names, *(column.level for column in self.columns)]))


def recipe_folder() -> Path:
    """Where the recipes lie: beside this file in an installed package, or in the repository."""
    return _shipped("recipes")


def paper_values_file() -> Path:
    """Where the numbers of the paper lie."""
    return _shipped("reproduction/paper_values.csv")


def _shipped(name: str) -> Path:
    inside = Path(__file__).parent / Path(name).name
    return inside if inside.exists() else Path(__file__).parents[4] / name


def read_recipes(folder: Path | None = None) -> dict[str, Recipe]:
    """Read all recipes, in the order of the paper; faults are reported together.

    Raises:
        ConfigError: There is none, or some cannot be used.
    """
    where = folder or recipe_folder()
    files = sorted(where.glob("*/*.yaml"))
    if not files:
        raise ConfigError(f"{where}: there are no recipes here (tables/*.yaml, figures/*.yaml).")
    faults: list[str] = []
    recipes = {file.stem: _read(file, faults) for file in files}
    if faults:
        raise ConfigError("\n".join(faults))
    sound = [recipe for recipe in recipes.values() if recipe is not None]
    return {recipe.name: recipe for recipe in sorted(sound, key=lambda recipe: recipe.place)}


def choose_recipes(names: Sequence[str], recipes: dict[str, Recipe]) -> list[Recipe]:
    """Find recipes by name; a data set that shares a table with others stands for that table."""
    known = {**_shared_tables(recipes), **recipes}
    for name in names:
        if name not in known:
            raise ArgumentError(
                f"There is no table or figure {name!r}.{did_you_mean(name, known)}"
                " See hilltop reproduce --list."
            )
    return list({known[name].name: known[name] for name in names}.values())


def unnamed_data(names: Sequence[str], recipes: dict[str, Recipe]) -> set[str]:
    """Data sets of a shared table that were not named, while another one of it was."""
    chosen = {data for recipe in choose_recipes(names, recipes) for data in recipe.data_sets}
    named = [recipes[name].data_sets if name in recipes else [name] for name in names]
    return chosen - {data for group in named for data in group}


def _shared_tables(recipes: dict[str, Recipe]) -> dict[str, Recipe]:
    """Tables of several data sets, by the names of these."""
    tables = [recipe for recipe in recipes.values() if len({c.data for c in recipe.columns}) > 1]
    return {data: recipe for recipe in tables for data in recipe.data_sets}


def _fill(method: str, facts: typing.Mapping[str, str]) -> str:
    for name, value in facts.items():
        method = method.replace(f"{{{name}}}", value)
    return method


def _fill_all(methods: dict[str, str], facts: typing.Mapping[str, str]) -> dict[str, str]:
    return {name: _fill(method, facts) for name, method in methods.items()}


def _read(path: Path, faults: list[str]) -> Recipe | None:
    """Read one recipe and check that all its methods can be built."""
    try:
        values = read_yaml(path)
    except ValueError as error:
        faults.append(f"{path}: {error}")
        return None
    if not isinstance(values, dict):
        faults.append(f"{path}: expected names and values.")
        return None
    before = len(faults)
    rows = [_part(Row, item, path, faults) for item in values.pop("rows", [])]
    columns = [_part(Column, item, path, faults) for item in values.pop("columns", [])]
    notes = tuple(values.pop("notes", ()))
    recipe: Recipe | None = _part(
        Recipe, {"name": path.stem, "notes": notes, **values}, path, faults
    )
    if recipe is not None and recipe.kind not in KINDS:
        faults.append(f"{path}: kind must be one of {', '.join(KINDS)}, but is {recipe.kind!r}.")
    if recipe is not None and recipe.form not in FORMS:
        faults.append(f"{path}: form must be one of {', '.join(FORMS)}, but is {recipe.form!r}.")
    if recipe is None or len(faults) > before:
        return None
    placed = [dataclasses.replace(column, data=column.data or recipe.data) for column in columns]
    return dataclasses.replace(recipe, rows=tuple(rows), columns=tuple(placed))


def _part(kind: type[Any], values: Any, path: Path, faults: list[str]) -> Any:
    """Build a part of a recipe, or report what is wrong with it."""
    known = {item.name for item in dataclasses.fields(kind)}
    if not isinstance(values, dict):
        faults.append(f"{path}: expected names and values, but got {values!r}.")
        return None
    for key in values:
        if key not in known:
            faults.append(f"{path}: {key!r} is not known.{did_you_mean(str(key), known)}")
            return None
    try:
        return kind(**values)
    except TypeError as error:
        faults.append(f"{path}: {error}.")
        return None
