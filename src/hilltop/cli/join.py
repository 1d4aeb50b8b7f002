"""``join``: label sets of different people, with different lists of classes, in one table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat, count_states, describe_counts
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, Out, Reading, parse_words
from hilltop.data import LabelSet, LabelTable, ReadOptions, join_tables, read_labels, write_labels
from hilltop.data.content import read_class_file
from hilltop.data.summary import likely_mistakes
from hilltop.errors import ArgumentError

_OPTION = re.compile(r":(?=[a-z][a-z-]*=)")


@dataclass(frozen=True)
class SourceOptions:
    """What may be said of one source behind its name."""

    _: KW_ONLY
    format: ReadFormat = None
    looked_for: Path | None = None
    """File with one class name a line: what was looked for; all classes of the source without."""
    reading: Reading = field(default_factory=ReadOptions)


@dataclass(frozen=True)
class Join:
    """Put label sets of different people into one table that knows who looked for what.

    A class that the sources of an image did not look for takes no part there: in training it is
    neither a label nor a negative, in metrics it is left out, and an audit ranks it by its scores.
    Options hold for all sources; those of one alone stand behind its name, after colons:
    b.json:unlisted=absent:looked-for=list.txt.

    Example: hilltop join a.csv b.json:unlisted=absent --unlisted unknown --out joined.parquet
    """

    sources: tuple[str, ...]
    """Label files or folders, in any format; each with options of its own after colons."""
    _: KW_ONLY
    out: Out
    """The file to write, in Hilltop's own format, which alone can say what was looked for."""
    contradictions: Literal["stop", "unknown"] = "stop"
    """Where one source says present and another absent: stop and name them, or unknown."""
    force: Force = False
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)

    def run(self) -> dict[str, Any]:
        """Read all, join, write, say what is in it."""
        if len(self.sources) < 2:
            raise ArgumentError("Joining needs at least two label files.")
        check_written(self, self.out, inputs=[path for one in self.sources for path in _files(one)])
        usual = SourceOptions(format=self.format, reading=self.reading)
        sets = [read_set(words, usual) for words in self.sources]
        joined = join_tables(sets, contradictions=self.contradictions)
        write_labels(joined, self.out, format="hilltop")
        for one in sets:
            print(f"{one.name}: {describe_counts(one.table)}{_looked_for(one)}")
        print(f"{self.out}: {describe_counts(joined)}")
        remarks = list(_remarks(joined))
        print("\n".join(remarks))
        return {"out": self.out, **count_states(joined), "remarks": remarks}


def read_set(words: str, usual: SourceOptions) -> LabelSet:
    """Read a source named as on the command line: its file, and options of its own after colons."""
    name, *given = _parts(words)
    options = usual
    if given:
        said = [word for text in given for word in _argument(text)]
        options = parse_words(SourceOptions, said, name="join", base=usual)
    table = read_labels(name, format=options.format, options=options.reading)
    listed = None if options.looked_for is None else list(read_class_file(options.looked_for)[0])
    return LabelSet(name, table, listed)


def _files(words: str) -> Iterator[Path]:
    """The files that a source is read from: its own, and those that its options name."""
    name, *given = _parts(words)
    yield Path(name)
    yield from (Path(text.partition("=")[2]) for text in given)


def _parts(words: str) -> list[str]:
    """A name and its options; a file that is called like both has none."""
    return [words] if Path(words).exists() else _OPTION.split(words)


def _argument(text: str) -> Iterator[str]:
    """An option as the parser expects it; a flag has nothing behind its equals sign."""
    option, _, value = text.partition("=")
    yield f"--{option}"
    if value:
        yield value


def _looked_for(one: LabelSet) -> str:
    if one.looked_for is None:
        return ""
    return f", {pluralize(len(one.looked_for), 'class', 'classes')} looked for"


def _remarks(table: LabelTable) -> Iterator[str]:
    beyond = int(table.not_looked_for().sum())
    share = beyond / max(1, len(table) * len(table.classes))
    pairs = pluralize(beyond, "pair")
    yield (
        f"{pairs} ({share:.0%}) nobody looked for; they take no part"
        if beyond
        else ("every class was looked for in every image")
    )
    clashes = table.history[-1].details.get("contradictions", 0)
    if clashes:
        yield f"{pluralize(clashes, 'contradicted pair is', 'contradicted pairs are')} unknown"
    yield from table.notes
    yield from (f"likely mistake: {text}" for text in likely_mistakes(table))
