"""ARFF, dense and sparse: attributes and, row by row, their values as text.

Written here because scipy's reader takes neither sparse rows nor text, and names no lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error

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


def read_arff(source: Source) -> ArffFile:
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
