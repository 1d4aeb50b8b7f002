"""Mulan and MEKA: ARFF with features and labels in one file, and which attributes are labels.

Mulan names the labels in an XML file beside it, MEKA counts them in the name of the relation
(``-C 6``: the first six, ``-C -6``: the last). Rows have no names: ids are their numbers, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hilltop.data.assemble import Collector
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, InFile, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.patching import Change, Original, Patched, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.arff import MISSING, ArffFile, read_arff
from hilltop.data.formats.text.column_roles import resolve_columns
from hilltop.data.formats.text.feature_matrix import feature_matrix
from hilltop.data.formats.text.xml_text import parse_xml
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

_START = re.compile(r"(?:\s|%[^\n]*\n)*@relation\b", re.IGNORECASE)
_PART = re.compile(r"[-_.](train|test|all|dense|sparse)$", re.IGNORECASE)
_MEKA = re.compile(r"-C\s+(-?[0-9]{1,6})\b")


def fits(source: LabelSource) -> bool:
    """Whether the file begins with ``@relation``."""
    return not source.is_folder and _START.match(source.head) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels; ``--classes`` names them where neither XML nor relation does."""
    content = read_arff(source.path)
    columns = _label_columns(content, options)
    collector = Collector(source.path, [content.attributes[at].name for at in columns])
    zero = State.UNKNOWN
    if any(_value(content, cells, at) == "0" for _, cells in content.rows for at in columns):
        zero = options.need_zero(source.path)
    meaning = {"1": State.PRESENT, "0": zero, MISSING: State.UNKNOWN}
    for number, (line, cells) in enumerate(content.rows):
        row = collector.image(str(number))
        for at in columns:
            value = _value(content, cells, at)
            if value in meaning:
                collector.label(row, content.attributes[at].name, meaning[value], line=line)
            else:
                collector.errors.add(
                    f"label {content.attributes[at].name!r} must be 0 or 1, but is {value!r:.40}.",
                    line=line,
                )
    return collector.table(unlisted=zero, format="mulan")


def features(source: LabelSource) -> InFile:
    """The attributes that are no labels; values of nominal ones are numbered from 0."""
    content = read_arff(source.path)
    labels = set(_label_columns(content, source.options or ReadOptions()))
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


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the values of the pairs in their rows; absents cannot be told from other zeros."""
    content = read_arff(original.path)
    columns = _label_columns(content, original.options)
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    for change in of_state(changes, State.PRESENT):
        line, cells = content.rows[int(change.image)]
        lines[line - 1] = _with_one(lines[line - 1], columns[change.column], cells)
    beside = _xml_beside(original.path)
    files = {} if beside is None else {".xml": beside.read_bytes()}
    yield Patched("\n".join(lines).encode(), original.options, absents=False, beside=files)


def _with_one(text: str, column: int, cells: dict[int, str]) -> str:
    """The row with a 1 in one column."""
    if not text.strip().startswith("{"):
        parts = text.split(",")
        parts[column] = re.sub(r"[^\s'\"]+", "1", parts[column], count=1)
        return ",".join(parts)
    if column in cells:
        return re.sub(rf"(?<![0-9.]){column}\s+[^,\s}}]+", f"{column} 1", text, count=1)
    before = max((at for at in cells if at < column), default=None)
    if before is None:
        rest = text.lstrip("{ ")
        return f"{{{column} 1}}" if rest.startswith("}") else f"{{{column} 1,{rest}"
    found = re.search(rf"(?<![0-9.]){before}\s+[^,}}]+", text)
    end = found.end() if found else len(text)
    return f"{text[:end].rstrip()},{column} 1{text[end:]}"


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


def _label_columns(content: ArffFile, options: ReadOptions) -> list[int]:
    """Places of the attributes that are labels: as the user, the XML or the relation says."""
    closed, names = options.class_list(), [attribute.name for attribute in content.attributes]
    if options.class_columns is not None:
        chosen = resolve_columns(content.path, options.class_columns, names)
        return [names.index(name) for name in chosen]
    beside = _xml_beside(content.path)
    counted = _MEKA.search(content.relation)
    if closed is None and beside is not None:
        closed = _xml_names(beside)
    if closed is not None:
        return _columns_named(content, closed)
    if counted is None:
        raise OptionNeeded(
            f"{content.path}: which attributes are labels? Put the XML file that names them beside"
            f" it, as {content.path.stem}.xml, or name or count them with --class-columns, for"
            f" example: {ready_command(content.path, options, class_columns=_likely(content))}"
        )
    count, total = int(counted[1]), len(content.attributes)
    if not 0 < abs(count) <= total:
        raise data_error(
            content.path, f"the relation says -C {count}, but there are {total} attributes."
        )
    return list(range(count)) if count > 0 else list(range(total + count, total))


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
    root = parse_xml(path, "labels", errors)
    errors.check()
    found = [] if root is None else [one for one in root.iter() if one.tag.endswith("label")]
    names = [(one.get("name") or "").strip() for one in found]
    if not names or not all(names) or len(set(names)) < len(names):
        raise data_error(path, "expected elements 'label' with names that differ.")
    return names


FORMAT = Format(
    name="mulan",
    summary="Mulan or MEKA: an ARFF file of features and labels, and an XML file of label names.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("ARFF holds features as well"),
    patch=patch,
    features=features,
)
