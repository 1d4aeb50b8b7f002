"""``inspect``, ``convert``, ``simulate`` and ``statistics``: commands about label files."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from cyclopts import Parameter

from hilltop.checks import pluralize
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, Out, Reading
from hilltop.data import (
    FORMATS,
    Ambiguous,
    LabelTable,
    ReadOptions,
    State,
    detect,
    read,
    read_labels,
    write_labels,
)
from hilltop.data.class_names import write_class_map
from hilltop.data.formats import can_patch, named_table, open_source
from hilltop.data.layout import Layout
from hilltop.data.summary import likely_renames, statistics_row, summarise

_KNOWN = f"Known: {', '.join(FORMATS)}."
_READ = f"Name of the format; recognised from the content without it. {_KNOWN}"
WRITTEN = f"Known: {', '.join(name for name, one in FORMATS.items() if one.writes)}."
_WRITE = (
    "Format to write; by default Hilltop's own for .parquet, a wide table for .csv, .tsv and .xlsx,"
    f" lists of labels for .jsonl. {WRITTEN}"
)
ReadFormat = Annotated[str | None, Parameter(help=_READ)]
WriteFormat = Annotated[str | None, Parameter(help=_WRITE)]


@dataclass(frozen=True)
class Inspect:
    """Show what is in a label file, and what looks wrong.

    Example: hilltop inspect labels.csv --unlisted unknown
    """

    labels: Path
    """The label file, or the folder of a data set."""
    _: KW_ONLY
    format: ReadFormat = None
    write_class_map: Path | None = None
    """CSV file to write: all classes with likely new names, to be edited for --class-map."""
    force: Force = False
    reading: Reading = field(default_factory=ReadOptions)
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Read, summarise, print."""
        if self.write_class_map is not None:
            check_written(self, self.write_class_map)
        table, layout = read_with_layout(self.labels, self.format, self.reading)
        summary = summarise(table)
        changed = "can be changed in place" if can_patch(self.labels, layout) else "read only"
        print(f"{layout.describe()}; {changed}\n")
        print(summary)
        if self.write_class_map is not None:
            write_class_map(table, self.write_class_map, likely_renames(table))
            print(f"\n{self.write_class_map}: edit the column rename, then pass it to --class-map")
        return {**summary.as_dict(), "layout": layout.to_json()}


def read_with_layout(
    path: Path, format: str | None, options: ReadOptions
) -> tuple[LabelTable, Layout]:
    """Read labels, and return them with their layout."""
    source = open_source(path, options)
    layout = detect(source, options, format=format)
    if isinstance(layout, Ambiguous):
        raise layout.error()
    return named_table(read(source, layout), source.path, options), layout


@dataclass(frozen=True)
class Convert:
    """Write the labels of one file in another format.

    Example: hilltop convert instances.json labels.parquet --unlisted absent
    """

    source: Path
    """The label file, or the folder of a data set."""
    out: Out
    """The file or folder to write."""
    _: KW_ONLY
    format: ReadFormat = None
    to: WriteFormat = None
    lossy: bool = False
    """Leave out what the new format cannot express, instead of stopping."""
    force: Force = False
    reading: Reading = field(default_factory=ReadOptions)

    def run(self) -> dict[str, Any]:
        """Read, write, and read back."""
        check_written(self, self.out)
        table, layout = read_with_layout(self.source, self.format, self.reading)
        as_written = write_labels(table, self.out, format=self.to, lossy=self.lossy)
        written = read(self.out, as_written)
        print(f"{self.out}: {describe_counts(written)}")
        if describe_counts(written) != describe_counts(table):
            print(f"{self.source} had {describe_counts(table)}; the rest cannot be expressed")
        if FORMATS[layout.format].boxes:
            print(
                "labels alone were written: boxes, segmentations and sizes of images are left out"
            )
        return {"out": self.out, **count_states(written)}


@dataclass(frozen=True)
class Statistics:
    """Print samples, classes and labels of some files: the paper's table of data sets.

    Example: hilltop statistics full.txt reduced.txt
    """

    labels: tuple[Path, ...]
    """The label files."""
    _: KW_ONLY
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Read all files and print one line each."""
        options = positives_only(self.reading)
        width = max(len(str(path)) for path in self.labels)
        print(f"{'':{width}}  {'samples':>10} {'classes':>8} {'labels':>11} {'avg.label/img':>14}")
        rows = {}
        for path in self.labels:
            row = rows[str(path)] = statistics_row(
                read_labels(path, format=self.format, options=options)
            )
            print(
                f"{path!s:{width}}  {row['samples']:>10,} {row['classes']:>8,}"
                f" {row['labels']:>11,} {row['avg.label/img']:>14.2f}"
            )
        return {"files": rows}


def positives_only(reading: ReadOptions) -> ReadOptions:
    """The options where only positives matter, so that nothing need be said of the rest."""
    rest = reading.unlisted or "unknown"
    return replace(reading, unlisted=rest, zero=reading.zero or rest, empty=reading.empty or rest)


def count_states(table: LabelTable) -> dict[str, int]:
    """What a table holds, in numbers."""
    return {
        "images": len(table),
        "classes": len(table.classes),
        "labels": table.count(State.PRESENT),
        "confirmed_absents": table.count(State.ABSENT),
    }


def describe_counts(table: LabelTable) -> str:
    """Say in one line what a table holds."""
    said = [
        pluralize(len(table), "image"),
        pluralize(len(table.classes), "class", "classes"),
        pluralize(table.count(State.PRESENT), "label"),
    ]
    absent = table.count(State.ABSENT)
    if absent:
        said.append(pluralize(absent, "confirmed absent"))
    return ", ".join(said)
