"""``inspect``, ``convert``, ``simulate`` and ``statistics``: commands about label files."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from hilltop.checks import pluralize
from hilltop.data import (
    FORMATS,
    LabelTable,
    ReadOptions,
    State,
    Thinned,
    drop_positives,
    keep_each,
    read_labels,
    single_positive,
    write_labels,
)
from hilltop.data.class_names import write_renames
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats import LabelSource, named_format, recognise
from hilltop.data.mistakes import likely_renames
from hilltop.data.summary import statistics_row, summarise
from hilltop.errors import ArgumentError

_KNOWN = f"Known: {', '.join(FORMATS)}."
_READ = f"Name of the format; recognised from the content without it. {_KNOWN}"
_WRITE = f"Format to write; known from the ending of OUT where one alone has it. {_KNOWN}"
ReadFormat = Annotated[str | None, tyro.conf.arg(help=_READ)]
WriteFormat = Annotated[str | None, tyro.conf.arg(help=_WRITE)]


@dataclass(frozen=True)
class Inspect:
    """Show what is in a label file, and what looks wrong.

    Example: hilltop inspect labels.csv --unlisted unknown
    """

    labels: tyro.conf.Positional[Path]
    """The label file, or the folder of a data set."""
    format: ReadFormat = None
    json: bool = False
    """Print JSON instead of text."""
    write_renames: Path | None = None
    """CSV file to write: all classes with likely new names, to be edited and given to --renames."""
    reading: ReadOptions = field(default_factory=ReadOptions)

    def run(self) -> None:
        """Read, summarise, print."""
        table = read_labels(self.labels, format=self.format, options=self.reading)
        summary = summarise(table)
        print(json.dumps(summary.as_dict(), indent=2) if self.json else summary)
        if self.write_renames is not None:
            write_renames(table, self.write_renames, likely_renames(table))
            if not self.json:
                print(f"\n{self.write_renames}: edit the column rename, then pass it to --renames")


@dataclass(frozen=True)
class Convert:
    """Write the labels of one file in another format.

    Example: hilltop convert instances.json labels.parquet --unlisted absent
    """

    source: tyro.conf.Positional[Path]
    """The label file, or the folder of a data set."""
    out: tyro.conf.Positional[Path]
    """The file or folder to write."""
    format: ReadFormat = None
    to: WriteFormat = None
    lossy: bool = False
    """Leave out what the new format cannot express, instead of stopping."""
    reading: ReadOptions = field(default_factory=ReadOptions)

    def run(self) -> None:
        """Read and write."""
        source = LabelSource(self.source)
        table = read_labels(self.source, format=self.format, options=self.reading)
        write_labels(table, self.out, format=self.to, lossy=self.lossy)
        written = self._read_back(table)
        print(f"{self.out}: {describe_counts(written)}")
        if describe_counts(written) != describe_counts(table):
            print(f"{self.source} had {describe_counts(table)}; the rest cannot be expressed")
        if (named_format(self.format) if self.format else recognise(source)).boxes:
            print(
                "labels alone were written: boxes, segmentations and sizes of images are left out"
            )

    def _read_back(self, table: LabelTable) -> LabelTable:
        """What the output says, read as its user will; without loss it says the same."""
        if not self.lossy:
            return table
        options = ReadOptions(unlisted="unknown", minus_one="absent")
        if table.unlisted == State.ABSENT:
            options = ReadOptions(unlisted="absent", minus_one="unknown")
        return read_labels(self.out, format=self.to, options=options)


@dataclass(frozen=True)
class Simulate:
    """Drop labels from a complete file, to see how methods cope; the dropped ones are kept aside.

    Give one of --r (the paper's rule), --keep (each label by itself) and --single. Beside OUT, a
    file such as reduced.dropped.parquet lists what was dropped, so that recovery can be scored.

    Example: hilltop simulate labels.csv --r 0.8 --seed 0 --out reduced.parquet
    """

    labels: tyro.conf.Positional[Path]
    """The complete labels."""
    out: Path
    """The file to write."""
    seed: int = 0
    """The same seed drops the same labels on every machine."""
    r: str | None = None
    """Of n labels, floor(n (1 - r)) + 1 stay: 0.5, 0.8, 1 are "75% left", "40% left", "single"."""
    keep: str | None = None
    """Probability that a label stays: one number, or a CSV file with the columns class and keep."""
    single: bool = False
    """Keep one label of each image, as --r 1 does."""
    format: ReadFormat = None
    to: WriteFormat = None
    lossy: bool = False
    """Leave out what the new format cannot express, instead of stopping."""
    reading: ReadOptions = field(default_factory=ReadOptions)

    def run(self) -> None:
        """Read, thin, write both files."""
        # In the result unlisted pairs are unknown, whatever they were: there is no need to ask.
        table = read_labels(self.labels, format=self.format, options=_positives(self.reading))
        thinned = self._thin(table)
        aside = self.out.with_name(f"{self.out.stem}.dropped.parquet")
        write_labels(thinned.table, self.out, format=self.to, lossy=self.lossy)
        write_labels(thinned.dropped, aside, format="hilltop")
        dropped = thinned.dropped.count(State.PRESENT)
        print(f"{self.labels}: {describe_counts(table)}")
        print(f"{self.out}: {describe_counts(thinned.table)}")
        print(f"{aside}: {pluralize(dropped, 'label', 'labels')} dropped")

    def _thin(self, table: LabelTable) -> Thinned:
        given = [self.r is not None, self.keep is not None, self.single]
        if sum(given) != 1:
            raise ArgumentError(
                f"Give one of --r, --keep and --single, but got {sum(given)} of them."
            )
        if self.single:
            return single_positive(table, seed=self.seed)
        if self.r is not None:
            return drop_positives(table, self.r, seed=self.seed)
        return keep_each(table, _keep(str(self.keep)), seed=self.seed)


@dataclass(frozen=True)
class Statistics:
    """Print samples, classes and labels of some files: the paper's table of data sets.

    Example: hilltop statistics full.txt reduced.txt
    """

    labels: tyro.conf.Positional[tuple[Path, ...]]
    """The label files."""
    format: ReadFormat = None
    reading: ReadOptions = field(default_factory=ReadOptions)

    def run(self) -> None:
        """Read all files and print one line each."""
        options = _positives(self.reading)
        width = max(len(str(path)) for path in self.labels)
        print(f"{'':{width}}  {'samples':>10} {'classes':>8} {'labels':>11} {'avg.label/img':>14}")
        for path in self.labels:
            row = statistics_row(read_labels(path, format=self.format, options=options))
            print(
                f"{path!s:{width}}  {row['samples']:>10,} {row['classes']:>8,}"
                f" {row['labels']:>11,} {row['avg.label/img']:>14.2f}"
            )


def _positives(reading: ReadOptions) -> ReadOptions:
    """The options where only positives matter, so that nothing need be said of the rest."""
    rest = reading.unlisted or "unknown"
    return replace(reading, unlisted=rest, zero=reading.zero or rest, blank=reading.blank or rest)


def describe_counts(table: LabelTable) -> str:
    """Say in one line what a table holds."""
    said = [
        pluralize(len(table), "image", "images"),
        pluralize(len(table.classes), "class", "classes"),
        pluralize(table.count(State.PRESENT), "label", "labels"),
    ]
    absent = table.count(State.ABSENT)
    if absent:
        said.append(pluralize(absent, "confirmed absent", "confirmed absents"))
    return ", ".join(said)


def _keep(text: str) -> float | dict[str, float]:
    """A probability, or the probabilities in a CSV file with the columns class and keep."""
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise ArgumentError(f"--keep must be a number or a CSV file, but got {text!r}.")
    errors = ErrorCollector(path)
    chances: dict[str, float] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                chances[row["class"]] = float(row["keep"])
            except (KeyError, TypeError, ValueError):
                errors.add("expected a class and a number in the columns class and keep.")
    errors.check()
    return chances
