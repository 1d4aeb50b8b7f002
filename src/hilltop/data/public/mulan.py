"""Mulan and MEKA: ARFF with features and labels in one file, and which attributes are labels.

Mulan names the labels in an XML file beside it, MEKA counts them in the name of the relation
(``-C 6``: the first six, ``-C -6``: the last). Rows have no names: ids are their numbers, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.documents import parse_xml
from hilltop.data.format import (
    Change,
    Format,
    InFile,
    Original,
    Patched,
    plain_layout,
    without_absents,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions
from hilltop.data.public.arff import MISSING, ArffFile, read_arff
from hilltop.data.public.feature_matrix import feature_matrix
from hilltop.data.tables.cells import Table
from hilltop.data.tables.words import find_meanings

_START = re.compile(r"(?:\s|%[^\n]*\n)*@relation\b", re.IGNORECASE)
_PART = re.compile(r"[-_.](train|test|all|dense|sparse)$", re.IGNORECASE)
_MEKA = re.compile(r"-C\s+(-?[0-9]{1,6})\b")


def matches(source: Source) -> bool:
    """Whether the file begins with ``@relation``."""
    return source.is_file and _START.match(source.head) is not None


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the attributes that are labels, and what zeros mean."""
    content = read_arff(source)
    layout = plain_layout("mulan", options, classes)
    names = [attribute.name for attribute in content.attributes]
    questions: list[Question] = []
    labels = _label_names(source, content, options, layout.classes)
    if labels is None:
        labels = []
        questions.append(
            Question(
                "Which attributes are labels? Put the XML file that names them beside it, as"
                f" {source.path.stem}.xml, or pass --class-columns with their names or numbers.",
                {"class_columns": _likely(content)},
            )
        )
    number = {name: at for at, name in enumerate(names)}
    columns = [number[name] for name in labels]
    zeros = sum(_value(content, cells, at) == "0" for _, cells in content.rows for at in columns)
    meanings = find_meanings({"0": zeros} if zeros else {}, options, {})
    questions += meanings.questions
    if questions:
        return Ambiguous(source.path, questions, options)
    zero = meanings.values.get("0", "unknown")
    return replace(
        layout,
        label_columns=tuple(labels),
        classes=None,
        unlisted=State.parse(zero),
        values=(("1", "present"), ("0", zero), (MISSING, "unknown")),
    )


def read(source: Source, layout: Layout) -> LabelTable:
    """Read the labels."""
    content = read_arff(source)
    columns = _columns_named(content, layout.label_columns)
    collector = Collector(source.path, layout.label_columns)
    for number, (line, cells) in enumerate(content.rows):
        row = collector.image(str(number))
        for at in columns:
            value = _value(content, cells, at)
            state = layout.state_of(value)
            if state is not None:
                collector.label(row, content.attributes[at].name, state, line=line)
            else:
                collector.errors.add(
                    f"label {content.attributes[at].name!r} must be 0 or 1, but is {value!r:.40}.",
                    line=line,
                )
    return collector.table(unlisted=layout.unlisted, format="mulan")


def features(source: Source, layout: Layout) -> InFile:
    """The attributes that are no labels; values of nominal ones are numbered from 0."""
    content = read_arff(source)
    named = layout.label_columns or _label_names(source, content, ReadOptions(), layout.classes)
    if named is None:
        raise data_error(source.path, "nothing says which attributes are labels.")
    labels = set(_columns_named(content, named))
    chosen = [at for at in range(len(content.attributes)) if at not in labels]
    matrix = feature_matrix(source.path, len(content.rows), len(chosen))
    place = {at: column for column, at in enumerate(chosen)}
    errors = ErrorCollector(source.path)
    for row, (line, cells) in enumerate(content.rows):
        for at, cell in cells.items():
            if at not in labels:
                number = _feature(content, at, cell)
                if number is None:
                    name = content.attributes[at].name
                    errors.add(
                        f"feature {name!r} must be a number, but is {cell!r:.40}.", line=line
                    )
                else:
                    matrix[row, place[at]] = number
    errors.check()
    return InFile([str(number) for number in range(len(content.rows))], matrix)


def patch(original: Original, changes: Sequence[Change]) -> Patched:
    """Change the values of the pairs in their rows: 1, or 0 where it means what is wanted."""
    source, layout = original.source, original.layout
    content = read_arff(source)
    columns = _columns_named(content, layout.label_columns)
    said = without_absents(changes, layout.unlisted)
    lines = source.text.split("\n")
    for change in said:
        line, cells = content.rows[int(change.image)]
        value = "1" if change.state == State.PRESENT else "0"
        lines[line - 1] = _with_cell(lines[line - 1], columns[change.column], cells, value)
    beside = _xml_beside(source.path)
    files = {"": "\n".join(lines).encode(source.encoding)}
    if beside is not None:
        files[".xml"] = beside.read_bytes()
    return Patched(files, layout, said)


def _with_cell(text: str, column: int, cells: dict[int, str], value: str) -> str:
    """The row with another value in one column."""
    if not text.strip().startswith("{"):
        parts = text.split(",")
        parts[column] = re.sub(r"[^\s'\"]+", value, parts[column], count=1)
        return ",".join(parts)
    if column in cells:
        return re.sub(rf"(?<![0-9.]){column}\s+[^,\s}}]+", f"{column} {value}", text, count=1)
    before = max((at for at in cells if at < column), default=None)
    if before is None:
        rest = text.lstrip("{ ")
        return f"{{{column} {value}}}" if rest.startswith("}") else f"{{{column} {value},{rest}"
    found = re.search(rf"(?<![0-9.]){before}\s+[^,}}]+", text)
    end = found.end() if found else len(text)
    return f"{text[:end].rstrip()},{column} {value}{text[end:]}"


def _value(content: ArffFile, cells: dict[int, str], at: int) -> str:
    value = cells.get(at, content.attributes[at].default)
    return {"1.0": "1", "0.0": "0"}.get(value, value)


def _feature(content: ArffFile, at: int, cell: str) -> float | None:
    values = content.attributes[at].values
    if values:
        return float(values.index(cell)) if cell in values else None
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if abs(number) <= np.finfo(np.float32).max else None


def _label_names(
    source: Source, content: ArffFile, options: ReadOptions, closed: Sequence[str] | None
) -> Sequence[str] | None:
    """Names of the attributes that are labels: as the user, the XML or the relation says."""
    names = tuple(attribute.name for attribute in content.attributes)
    if options.class_columns is not None:
        outline = Table(source.path, names, [], lambda row: row)
        return [names[at] for at in outline.indices(options.class_columns)]
    beside = _xml_beside(source.path)
    counted = _MEKA.search(content.relation)
    if closed is None and beside is not None:
        closed = _xml_names(beside)
    if closed is not None:
        _columns_named(content, closed)
        return closed
    if counted is None:
        return None
    count, total = int(counted[1]), len(names)
    if not 0 < abs(count) <= total:
        raise data_error(
            source.path, f"the relation says -C {count}, but there are {total} attributes."
        )
    return names[:count] if count > 0 else names[count:]


def _likely(content: ArffFile) -> str:
    """The attributes at the end, or else at the beginning, that are 0 or 1."""
    binary = [set(one.values) == {"0", "1"} for one in content.attributes]
    total = len(binary)
    last = next((at for at, one in enumerate(reversed(binary)) if not one), total)
    first = next((at for at, one in enumerate(binary) if not one), total)
    if last:
        return f"{total - last}:"
    return f"0:{first}" if first else f"{total - 1}:"


def _columns_named(content: ArffFile, names: Sequence[str]) -> list[int]:
    number = {attribute.name: at for at, attribute in enumerate(content.attributes)}
    errors = ErrorCollector(content.path)
    for name in names:
        if name not in number:
            errors.add(f"there is no attribute for label {name!r}.")
    errors.check()
    return [number[name] for name in names]


def _xml_beside(path: Path) -> Path | None:
    """The file that names the labels: ``birds.xml`` of ``birds-train.arff``."""
    stems = (path.name, path.stem, _PART.sub("", path.stem))
    places = (path.with_name(f"{stem}.xml") for stem in stems)
    return next((place for place in places if place.is_file()), None)


def _xml_names(path: Path) -> list[str]:
    """Names of all labels, those below others too."""
    errors = ErrorCollector(path)
    root = parse_xml(Source(path), "labels", errors)
    errors.check()
    found = [] if root is None else [one for one in root.iter() if one.tag.endswith("label")]
    names = [(one.get("name") or "").strip() for one in found]
    if not names or not all(names) or len(set(names)) < len(names):
        raise data_error(path, "expected elements 'label' with names that differ.")
    return names


FORMAT = Format(
    name="mulan",
    summary="Mulan or MEKA: an ARFF file of features and labels, and an XML file of label names.",
    matches=matches,
    detect=detect,
    read=read,
    patch=patch,
    features=features,
)
