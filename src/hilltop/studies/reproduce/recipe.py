"""Recipes: for every table and figure of the paper, its runs; and the numbers that it prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hilltop.checks import did_you_mean
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.small_files import read_rows, read_yaml
from hilltop.errors import ArgumentError, ConfigError
from hilltop.studies.compare import BASELINE, COMPLETE, Method
from hilltop.training.config import build_dataclass

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

Parse = Callable[[str], Method]
"""Reads a method as it stands in a recipe."""
LABELS_PER_IMAGE = "{labels_per_image}"
"""In a method: the mean number of complete labels of its data set, as ROLE is told it."""


@dataclass(frozen=True)
class Spec:
    """A run that a table or figure needs, whatever its seed.

    Attributes:
        setting: How it is trained.
        level: Name of the level of its labels.
        method: The method.
    """

    setting: Setting
    level: str
    method: Method


@dataclass(frozen=True)
class Row:
    """A row of a table: its name in the paper, and the method that gives its numbers.

    Attributes:
        paper: Name in the paper and in ``paper_values.csv``.
        method: The method, in the notation of ``hilltop compare``; a data set fills in
            :data:`LABELS_PER_IMAGE`.
        complete: Trained on complete labels.
        at: Another method at some levels.
        group: Heading that the paper has above it, if it is the first row of a group.
    """

    paper: str
    method: str
    complete: bool = False
    at: dict[str, str] = field(default_factory=dict)
    group: str = ""

    def written(self, level: str) -> str:
        """The method in a column of a level."""
        return self.at.get(level, self.method)


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

    def spec(self, row: Row, parse: Parse = Method.parse) -> Spec:
        """The run whose numbers stand in this column of a row."""
        if row.complete:
            return Spec(Setting(self.model), COMPLETE.name, BASELINE)
        return Spec(Setting(self.model), self.level, parse(row.written(self.level)))


@dataclass(frozen=True)
class Recipe:
    """A table or figure of the paper.

    Attributes:
        name: Its short name: the name of the file.
        kind: table, statistics or figure.
        place: Its place in the paper, counting from 1.
        title: Its caption.
        number: What the paper calls it, such as "Table 3".
        data: The data set that it is made from; several for statistics.
        form: How a table is set: numbers of the paper beside measured ones, below them (stacked),
            or that with rows and columns exchanged (transposed).
        level: For a figure, the labels that its runs were trained on.
        methods: For a figure, its methods by the names that it shows. "complete bce" is trained
            on complete labels, "epoch 3 splc" is stopped after three epochs.
        rows: For a table.
        columns: For a table.
        notes: Sentences below it.
    """

    name: str
    kind: Literal["table", "statistics", "figure"]
    place: int
    title: str
    number: str = ""
    data: str = ""
    form: Literal["beside", "stacked", "transposed"] = "beside"
    level: str = ""
    methods: dict[str, str] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()

    def specs(self, data: str = "", parse: Parse = Method.parse) -> Iterator[Spec]:
        """The runs that it needs.

        Args:
            data: The data set that they are made on; all without a name.
            parse: Reads methods for that data set.
        """
        if data in ("", self.data):
            yield from (self.figure_spec(name, parse) for name in self.methods)
        for column in self.columns:
            if data in ("", column.data):
                yield from (column.spec(row, parse) for row in self.rows)
                yield Spec(Setting(column.model), column.level, BASELINE)

    def figure_spec(self, name: str, parse: Parse = Method.parse) -> Spec:
        """The run behind a name in a figure."""
        word, setting, level = self.methods[name], USUAL, self.level
        if word.startswith("epoch "):
            _, number, word = word.split(" ", 2)
            setting = Setting(epochs=int(number))
        if word.startswith("complete "):
            word, level = word.removeprefix("complete "), COMPLETE.name
        return Spec(setting, level, parse(word))

    @property
    def data_sets(self) -> list[str]:
        """Short names of the data sets that it is made from; none if it needs no data."""
        names = [*self.data.split(), *(column.data for column in self.columns)]
        return [name for name in dict.fromkeys(names) if name]

    @property
    def models(self) -> list[str]:
        """Backbones other than the usual one."""
        return [model for model in dict.fromkeys(c.model for c in self.columns) if model]


def recipe_folder() -> Path:
    """Where the recipes lie: beside this file in an installed package, or in the repository."""
    return _shipped("recipes")


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
    read = [_read(file, faults) for file in files]
    if faults:
        raise ConfigError("\n".join(faults))
    return {recipe.name: recipe for recipe in sorted(read, key=lambda recipe: recipe.place)}


def _read(path: Path, faults: list[str]) -> Recipe:
    """Read one recipe; what is wrong with it is added to the faults."""

    def part(kind: type[Any], values: Any) -> Any:
        if not isinstance(values, dict):
            faults.append(f"{path}: expected names and values, but got {values!r}.")
            return None
        try:
            return build_dataclass(kind, values, f"{path}: ", faults)
        except TypeError as error:  # something is missing
            faults.append(f"{path}: {error}.")
            return None

    try:
        content = read_yaml(path)
    except ValueError as error:
        content = None
        faults.append(f"{path}: {error}")
    values = dict(content) if isinstance(content, dict) else {}
    lists = {name: values.pop(name, []) for name in ("rows", "columns", "notes")}
    recipe = part(Recipe, {"name": path.stem, **values})
    rows = [part(Row, item) for item in lists["rows"]]
    columns = [part(Column, item) for item in lists["columns"]]
    if not isinstance(recipe, Recipe) or not all([*rows, *columns]):
        return Recipe(path.stem, "table", 0, "")  # never seen: there are faults
    columns = [dataclasses.replace(c, data=c.data or recipe.data) for c in columns]
    return dataclasses.replace(
        recipe, rows=tuple(rows), columns=tuple(columns), notes=tuple(lists["notes"])
    )


def choose_recipes(names: Sequence[str], recipes: dict[str, Recipe]) -> list[Recipe]:
    """Find recipes by name or number; a data set of a table with several stands for that table."""
    tables = [recipe for recipe in recipes.values() if len({c.data for c in recipe.columns}) > 1]
    known = {data: recipe for recipe in tables for data in recipe.data_sets} | recipes
    numbered = {_spelled(recipe.number): recipe for recipe in recipes.values()}
    found = {}
    for name in names:
        recipe = (numbered | known).get(_spelled(name))
        if recipe is None:
            raise ArgumentError(
                f"There is no table or figure {name!r}.{did_you_mean(name, known)}"
                " See hilltop reproduce --list."
            )
        found[recipe.name] = recipe
    return list(found.values())


def _spelled(name: str) -> str:
    """A name without what people write differently, such as "Table 3" and "table3"."""
    return name.casefold().replace(" ", "")


def unnamed_data(names: Sequence[str], recipes: dict[str, Recipe]) -> set[str]:
    """Data sets of a shared table that were not named, while another one of it was."""
    chosen = {data for recipe in choose_recipes(names, recipes) for data in recipe.data_sets}
    named = [
        [name.casefold()]
        if name.casefold() in chosen
        else choose_recipes([name], recipes)[0].data_sets
        for name in names
    ]
    return chosen - {data for group in named for data in group}


@dataclass(frozen=True)
class PaperValue:
    """One printed number: its text, with all digits, and what is known to be wrong with it."""

    text: str
    note: str = ""

    def __float__(self) -> float:
        """Return the number."""
        return float(self.text)


@dataclass(frozen=True)
class PaperValues:
    """Numbers by table, row and column, all named as in the recipes."""

    values: Mapping[tuple[str, str, str], PaperValue]

    def get(self, table: str, row: str, column: str) -> PaperValue | None:
        """The printed number, or None where the paper has none."""
        return self.values.get((table, row, column))

    def rows(self, table: str) -> Sequence[str]:
        """Names of the rows of a table, in the paper's order."""
        return list(dict.fromkeys(row for name, row, _ in self.values if name == table))

    def columns(self, table: str) -> Sequence[str]:
        """Names of the columns of a table, in the paper's order."""
        return list(dict.fromkeys(column for name, _, column in self.values if name == table))


def read_paper_values(path: Path | None = None) -> PaperValues:
    """Read ``paper_values.csv``.

    Raises:
        DataError: A line is not a number with its place, or a place stands twice.
    """
    file = path or _shipped("reproduction/paper_values.csv")
    faults = ErrorCollector(file)
    values: dict[tuple[str, str, str], PaperValue] = {}
    for number, line in read_rows(file, ("table", "row", "column", "value", "note")):
        place = (line["table"], line["row"], line["column"])
        value = PaperValue(line["value"], line["note"])
        try:
            float(value)
        except ValueError:
            faults.add(f"{value.text!r} is not a number.", line=number)
        if place in values:
            faults.add(f"{', '.join(place)} stands twice.", line=number)
        values[place] = value
    faults.check()
    return PaperValues(values)
