"""Files that hold features and labels in one: Mulan's and MEKA's ARFF, and multi-label LIBSVM.

Mulan names the labels in an XML file beside the ARFF file, MEKA counts them in the name of the
relation (``-C 6``: the first six, ``-C -6``: the last). ARFF is parsed here because scipy's reader
takes neither sparse rows nor text, and names no lines.

A line of LIBSVM and extreme-classification files is ``3,7 12:0.5 40:1``: labels, then features. The
files of the extreme-classification repository begin with a line ``rows features labels``.

Rows have no names in either: ids are their numbers, from 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.documents import parse_xml
from hilltop.data.format import Format, InFile, plain_layout
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions
from hilltop.data.public.lists import class_names, numbered_names
from hilltop.data.tables.cells import Table
from hilltop.data.tables.words import find_meanings

_MOST_BYTES = 4 << 30


def _feature_matrix(path: Path, rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Return zeros; sparse features become dense.

    Raises:
        DataError: The matrix would need more than 4 GiB, or there are no features.
    """
    size = rows * columns * np.dtype(np.float32).itemsize
    if size > _MOST_BYTES:
        raise data_error(
            path,
            f"{rows:,} rows with {columns:,} features would take {size / (1 << 30):.1f} GiB of"
            " memory, more than the 4 that are allowed. Reduce the features first, for example"
            " with a random projection, and pass them as .npz.",
        )
    if not size:
        raise data_error(path, "there are no features beside the labels.")
    return np.zeros((rows, columns), dtype=np.float32)


# ARFF


_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_RELATION = re.compile(rf"@relation\s+({_WORD}|.+)\s*", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
_CELL = re.compile(rf"\s*({_WORD}|[^,]*?)\s*(?:,|$)")
_PAIR = re.compile(rf"\s*([0-9]{{1,9}})\s+({_WORD}|[^,\s]+)\s*(?:,|$)")
MISSING = "?"
"""What stands for a value that is not known."""


@dataclass(frozen=True)
class Attribute:
    """A column: its name and, where it is nominal, the values it may have."""

    name: str
    values: tuple[str, ...] = ()

    @property
    def default(self) -> str:
        """What a sparse row means by leaving it out: zero, or the first of the values."""
        return self.values[0] if self.values else "0"


@dataclass(frozen=True)
class ArffFile:
    """The content of an ARFF file.

    Attributes:
        path: The file.
        relation: Its name, which MEKA gives options such as ``-C 6``.
        attributes: The columns.
        rows: Cells by the number of their attribute, where a sparse row has some, and the line.
    """

    path: Path
    relation: str
    attributes: tuple[Attribute, ...]
    rows: tuple[tuple[int, dict[int, str]], ...]


def _read_arff(source: Source) -> ArffFile:
    """Read a file.

    Raises:
        DataError: The header or a row is damaged.
    """
    path = source.path
    errors = ErrorCollector(path)
    lines = iter(source.lines)
    relation, attributes = _header(path, lines, errors)
    errors.check()
    rows = []
    for line, text in lines:
        bare = text.strip()
        if not bare or bare.startswith("%"):
            continue
        sparse = bare.startswith("{")
        cells = _sparse(bare) if sparse else _dense(bare)
        if cells is None:
            errors.add(f"this row is not valid ARFF: {bare!r:.60}.", line=line)
        elif not sparse and len(cells) != len(attributes):
            errors.add(
                f"expected {len(attributes)} values, one for each attribute, but got {len(cells)}.",
                line=line,
            )
        elif cells and max(cells) >= len(attributes):
            errors.add(
                f"attribute number {max(cells)} is too high: there are {len(attributes)},"
                " counted from 0.",
                line=line,
            )
        else:
            rows.append((line, cells))
    errors.check()
    return ArffFile(path, relation, tuple(attributes), tuple(rows))


def _header(
    path: Path, lines: Iterator[tuple[int, str]], errors: ErrorCollector
) -> tuple[str, list[Attribute]]:
    """Name and attributes; the lines are read up to ``@data``."""
    relation, attributes = "", list[Attribute]()
    for line, text in lines:
        bare = text.strip()
        if not bare or bare.startswith("%"):
            continue
        if bare.lower() == "@data":
            _check_attributes(path, attributes)
            return relation, attributes
        if match := _RELATION.fullmatch(bare):
            relation = _unquoted(match[1])
        elif match := _ATTRIBUTE.fullmatch(bare):
            attributes.append(_attribute(_unquoted(match[1]), match[2].strip()))
        else:
            errors.add(f"expected @relation, @attribute or @data, but got {bare!r:.60}.", line=line)
    raise data_error(path, "there is no line @data. Was the file cut off?")


def _check_attributes(path: Path, attributes: list[Attribute]) -> None:
    names = [attribute.name for attribute in attributes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise data_error(path, f"the attribute {twice!r} stands twice. Names must differ.")
    if not names:
        raise data_error(path, "there are no attributes before @data.")


def _attribute(name: str, kind: str) -> Attribute:
    if not kind.startswith("{"):
        return Attribute(name)
    inside = kind.strip("{} \t")
    return Attribute(name, tuple((_dense(inside) or {}).values()))


def _dense(text: str) -> dict[int, str] | None:
    """The cells of a row with commas between."""
    if "'" not in text and '"' not in text:
        return dict(enumerate(cell.strip() for cell in text.split(",")))
    cells, at = dict[int, str](), 0
    while at < len(text):
        match = _CELL.match(text, at)
        if match is None or match.end() == at:
            return None
        cells[len(cells)] = _unquoted(match[1])
        at = match.end()
    return cells


def _sparse(text: str) -> dict[int, str] | None:
    """The cells of a row such as ``{3 1, 7 0.5}``."""
    if not text.endswith("}"):
        return None
    inside, cells, at = text[1:-1].strip(), dict[int, str](), 0
    while at < len(inside):
        match = _PAIR.match(inside, at)
        if match is None or int(match[1]) in cells:
            return None
        cells[int(match[1])] = _unquoted(match[2])
        at = match.end()
    return cells


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word


# Mulan and MEKA


_START = re.compile(r"(?:\s|%[^\n]*\n)*@relation\b", re.IGNORECASE)
_PART = re.compile(r"[-_.](train|test|all|dense|sparse)$", re.IGNORECASE)
_MEKA = re.compile(r"-C\s+(-?[0-9]{1,6})\b")


def matches_mulan(source: Source) -> bool:
    """Whether the file begins with ``@relation``."""
    return _START.match(source.head) is not None


def detect_mulan(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the attributes that are labels, and what zeros mean."""
    content = _read_arff(source)
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


def read_mulan(source: Source, layout: Layout) -> LabelTable:
    """Read the labels."""
    content = _read_arff(source)
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


def features_mulan(source: Source, layout: Layout) -> InFile:
    """The attributes that are no labels; values of nominal ones are numbered from 0."""
    content = _read_arff(source)
    named = layout.label_columns or _label_names(source, content, ReadOptions(), layout.classes)
    if named is None:
        raise data_error(source.path, "nothing says which attributes are labels.")
    labels = set(_columns_named(content, named))
    chosen = [at for at in range(len(content.attributes)) if at not in labels]
    matrix = _feature_matrix(source.path, len(content.rows), len(chosen))
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


MULAN = Format(
    name="mulan",
    summary="Mulan or MEKA: an ARFF file of features and labels, and an XML file of label names.",
    matches=matches_mulan,
    begins="@%",
    detect=detect_mulan,
    read=read_mulan,
    features=features_mulan,
)


# LIBSVM


_SVM_HEADER = re.compile(r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*", re.ASCII)
_SVM_LABELS = re.compile(r"[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*", re.ASCII)
_SVM_LINE = re.compile(r"(?:[0-9]+(?:,[0-9]+)*)?(?:\s*[0-9]+:[^\s:]+)+\s*(?:#.*)?", re.ASCII)
_MOST_CLASSES = 4_000_000


@dataclass(frozen=True)
class _SvmRow:
    line: int
    labels: list[int]
    features: list[tuple[int, float]]


def matches_libsvm(source: Source) -> bool:
    """Whether the first line, perhaps behind a header, is numbers and ``number:value``."""
    lines = [line.strip() for line in source.head.split("\n")[:3]]
    body = lines[1:] if _SVM_HEADER.fullmatch(lines[0]) else lines
    return bool(body) and _SVM_LINE.fullmatch(body[0]) is not None


def read_libsvm(source: Source, layout: Layout) -> LabelTable:
    """Read the labels; classes are named by the class list, a file beside it, or numbered."""
    header, rows = _parse_libsvm(source)
    names, notes = class_names(source.path, layout)
    highest = max((number for row in rows for number in row.labels), default=-1)
    count = header[2] if header else highest + 1
    if max(count, highest + 1) > _MOST_CLASSES:
        raise data_error(
            source.path, f"there are more than {_MOST_CLASSES:,} classes; is the file damaged?"
        )
    classes = numbered_names(count) if names is None else names
    collector = Collector(source.path, classes)
    for number, row in enumerate(rows):
        image = collector.image(str(number))
        for label in row.labels:
            if label < len(classes):
                collector.label(image, classes[label], State.PRESENT, line=row.line)
            else:
                collector.errors.add(
                    f"label number {label} is too high: labels are counted from 0 and there are"
                    f" {len(classes)}.",
                    line=row.line,
                )
    return collector.table(unlisted=layout.unlisted, notes=notes, format="libsvm")


def features_libsvm(source: Source, layout: Layout) -> InFile:
    """The features as a dense matrix; numbers count from 0 if the file has a 0, else from 1.

    With a header, they count from 0 unless the highest number is the count of features itself.
    """
    header, rows = _parse_libsvm(source)
    numbers = [number for row in rows for number, _ in row.features]
    lowest, highest = min(numbers, default=1), max(numbers, default=0)
    first = 1 if lowest > 0 and (not header or highest == header[1]) else 0
    width = header[1] if header else highest + 1 - first
    if highest - first >= width:
        raise data_error(
            source.path, f"feature number {highest} is too high: the header says {width}."
        )
    matrix = _feature_matrix(source.path, len(rows), width)
    for row, parsed in enumerate(rows):
        for number, value in parsed.features:
            matrix[row, number - first] = value
    return InFile([str(number) for number in range(len(rows))], matrix)


def _parse_libsvm(source: Source) -> tuple[tuple[int, int, int] | None, list[_SvmRow]]:
    """The header, if there is one, and all rows."""
    path, lines = source.path, source.lines
    errors = ErrorCollector(path)
    match = _SVM_HEADER.fullmatch(lines[0][1]) if lines else None
    header = None if match is None else (int(match[1]), int(match[2]), int(match[3]))
    rows = [_svm_row(line, text, errors) for line, text in (lines[1:] if header else lines)]
    errors.check()
    if header and header[0] != len(rows):
        said = pluralize(header[0], "row", "rows")
        raise data_error(
            path, f"the header says {said}, but there are {len(rows)}. Was it cut off?", line=1
        )
    if not rows:
        raise data_error(path, "the file is empty. Expected labels and features on every line.")
    return header, rows


def _svm_row(line: int, text: str, errors: ErrorCollector) -> _SvmRow:
    body = text.partition("#")[0].strip()
    start = _SVM_LABELS.match(body)
    labelled = start is not None and body[start.end() : start.end() + 1] != ":"
    labels = [int(word) for word in start[0].split(",")] if start and labelled else []
    features = []
    for word in body[start.end() if start and labelled else 0 :].split():
        number, _, value = word.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 10 and _is_finite(value)):
            errors.add(
                f"expected labels and features such as '3,7 12:0.5', but got {word!r:.40}.",
                line=line,
            )
            break
        features.append((int(number), float(value)))
    return _SvmRow(line, labels, features)


def _is_finite(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


LIBSVM = Format(
    name="libsvm",
    summary="Multi-label LIBSVM or extreme classification: label numbers, then number:value.",
    matches=matches_libsvm,
    read=read_libsvm,
    features=features_libsvm,
)
