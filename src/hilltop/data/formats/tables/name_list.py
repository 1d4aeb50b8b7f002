"""Lists such as ``a.jpg cat dog``: a file and its labels on every line, without a header.

Blanks, tabs or commas stand between them. A line may begin with its part of the data set, as the
import files of cloud services do: ``TRAIN,gs://bucket/a.jpg,cat,dog``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.files import atomic_write
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.dialect import FILE_ENDING, is_labels_alone
from hilltop.data.formats.text.express import check_expressible, check_names
from hilltop.data.formats.text.folder_files import choose_split
from hilltop.data.formats.text.known_names import ROW_NUMBER
from hilltop.data.formats.text.record_rows import IMAGE, LABELS, table_from_records
from hilltop.data.formats.text.table_file import is_binary
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_PARTS = {
    **{"train": "train", "training": "train", "test": "test", "unassigned": "unassigned"},
    **{"validation": "validation", "validate": "validation"},
}
_NAME = re.compile(rf"(.*?{FILE_ENDING})(?:\s+(.*))?$", re.IGNORECASE)
_JOINED = re.compile(
    rf"(\S.*?{FILE_ENDING})(?:\s*(?::|->|=>|\u2192)\s*|\s+[-=\u2013\u2014](?:\s+|$))(.*)",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_FIT = 0.9
_BOX = 4
_FEWEST_IDS = 5
_ID = re.compile(r"[\w./-]*\d[\w./-]*")
_WORD = re.compile(r"[^\d\W][\w'&()/-]*")
_SAMPLE = 200
Row = tuple[str, str, list[str]]


def fits(source: LabelSource) -> bool:
    """Whether nearly every line is the name of a file and words of which none is a measure."""
    if source.is_folder or is_binary(source) or source.head.lstrip()[:1] in ("{", "[", "<"):
        return False
    lines = source.head.split("\n")
    lines = [line for line in lines[:-1] or lines if line.strip()][:_SAMPLE]
    lines = _without_arrows(lines)
    mark = _mark(lines)
    if _has_plain_ids(lines, mark):
        return True
    options = source.options or ReadOptions()
    if options.image_column == ROW_NUMBER:
        return is_labels_alone(lines)
    rows = [_row(line, mark) for line in lines]
    named = [row for row in rows if row[1]]
    if not lines or not rows[0][1] or len(named) < _FIT * len(rows):
        return False
    widths = {len(labels) for _, _, labels in named}
    words = {word for _, _, labels in named for word in labels}
    numeric = [word for word in words if re.fullmatch(r"-?[\d.]+", word)]
    if not words or any(_PAIRS.search(word) for word in words):
        return False
    if numeric and not all(_WHOLE.fullmatch(word) for word in words):
        return False
    if mark == "," and not rows[0][0] and (numeric or (len(widths) == 1 and not _are_cells(named))):
        return False  # a table, or a name with class numbers
    return not (numeric and len(widths) == 1 and widths != {1})


_PAIRS = re.compile(r"\d,-?\d|[{}\[\]=]")
"""What stands in boxes and settings, but not in the name of a class."""


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of every line; a file in several lines has those of all."""
    lines = _without_arrows([line for _, line in read_lines(source.path) if line.strip()])
    mark = _mark(lines[:_SAMPLE])
    if options.image_column == ROW_NUMBER:
        lines, mark = [f"{row} {line}" for row, line in enumerate(lines)], " "
    plain = options.image_column == ROW_NUMBER or _has_plain_ids(lines[:_SAMPLE], mark)
    rows = [row for row in (_row(line, mark, plain) for line in lines) if row[1]]
    parts = {row[0] for row in rows}
    notes = []
    if parts - {""} and (len(parts) == 1 or options.split is not None):
        chosen = choose_split(source.path, parts, options.split)
        rows = [row for row in rows if row[0] == chosen]
    elif parts - {""}:
        notes.append(f"all parts are read together: {', '.join(sorted(parts))}; --split takes one.")
    if len(rows) < len(lines) and not parts - {""}:
        left = pluralize(len(lines) - len(rows), "line names", "lines name")
        notes.append(f"{left} no file and is left out.")
    cells = _are_cells(rows)
    records = [
        {IMAGE: name, LABELS: "".join(labels) if cells else labels} for _, name, labels in rows
    ]
    return table_from_records(source.path, records, options, format="name_list", notes=notes)


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a line an image, with tabs between."""
    said = (State.UNKNOWN, State.ABSENT)
    check_expressible(
        table, path, lossy, states=(State.PRESENT,), unlisted=said, unused_classes=False
    )
    images = table.images.to_pylist()
    check_names(path, "image", images, without="\t")
    check_names(path, "class", table.classes, without="\t,")
    lines = ("\t".join([name, *table.labels_of(row)]) for row, name in enumerate(images))
    atomic_write(path, "".join(f"{line}\n" for line in lines))


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add labels to the first line of each image; only "present" can be said."""
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    if original.options.image_column == ROW_NUMBER:
        return
    filled = [line for line in lines if line.strip()][:_SAMPLE]
    if _without_arrows(filled) != filled:
        return
    mark = _mark(filled)
    plain = _has_plain_ids(filled, mark)
    wanted = by_image(of_state(changes, State.PRESENT))
    for at, line in enumerate(lines):
        new = wanted.pop(_row(line, mark, plain)[1], []) if line.strip() else []
        end = line[len(line.rstrip()) :].lstrip(mark)
        if new:
            lines[at] = mark.join([line.rstrip(), *(one.class_name for one in new)]) + end
    if not wanted:
        yield Patched("\n".join(lines).encode(), original.options, absents=False)


def _without_arrows(lines: Sequence[str]) -> list[str]:
    """Lines such as ``a.jpg: cat, dog`` or ``a.jpg -> cat`` with tabs in place of all marks."""
    found = [_JOINED.fullmatch(line.strip(" \r\ufeff")) for line in lines]
    if not lines or sum(one is not None for one in found) < _FIT * len(lines):
        return list(lines)
    mark = r"\s*[,;|]\s*" if any(re.search("[,;|]", one[2]) for one in found if one) else r"\s+"
    return [
        line if one is None else "\t".join([one[1], *re.split(mark, one[2].strip())])
        for line, one in zip(lines, found, strict=True)
    ]


def _mark(lines: Sequence[str]) -> str:
    """What stands between the words: the first of tab, comma and blank that most lines hold."""
    for mark in ("\t", ","):
        if sum(mark in line for line in lines) * 2 > len(lines):
            return mark
    tabs = any("\t" in line for line in lines)
    commas = any("," in line and " " not in line.strip() for line in lines)
    return "\t" if tabs else "," if commas else " "


def _is_word(cell: str) -> bool:
    return bool(cell) and re.fullmatch(r"[\d.]+", cell) is None


def _has_plain_ids(lines: Sequence[str], mark: str) -> bool:
    """Whether lines are ids without an ending, and words of which there are few: ``1000 sky sun``.

    Ids have a digit and never come twice; words are no numbers and come back in other lines.
    """
    rows = [line.strip(" \r\ufeff").split(None if mark == " " else mark) for line in lines]
    ids = [row[0].strip() for row in rows if row]
    words = [word.strip() for row in rows for word in row[1:] if word.strip()]
    return (
        mark != ","
        and len(ids) >= _FEWEST_IDS
        and len(set(ids)) == len(ids)
        and all(_ID.fullmatch(one) for one in ids)
        and 2 * len(set(words)) <= len(words) >= len(ids)
        and all(_WORD.fullmatch(word) for word in words)
    )


def _are_cells(rows: Sequence[Row]) -> bool:
    """Whether the labels of a line are one cell, with marks of its own: ``a.jpg,"cat, dog"``."""
    one = all(len(labels) <= 1 for _, _, labels in rows)
    return one and any(re.search("[,;|]", label) for _, _, labels in rows for label in labels)


def _row(line: str, mark: str, plain: bool = False) -> Row:
    """The part of the data set, the image (nothing if there is none) and the labels of a line.

    Args:
        line: The line.
        mark: What stands between its words.
        plain: Whether the first word is the image, although it is not called like a file.
    """
    text = line.strip(" \r\ufeff")
    if plain:
        words = [word.strip() for word in text.split(None if mark == " " else mark)]
        return "", words[0], [word for word in words[1:] if word]
    if mark == " ":
        found = _NAME.match(text)
        return ("", found[1], (found[2] or "").split()) if found else ("", "", [])
    try:
        words = [word.strip() for word in next(csv.reader([text], delimiter=mark))]
    except (csv.Error, StopIteration):
        return "", "", []
    part = _PARTS.get(words[0].lower(), "") if len(words) > 1 else ""
    name, labels = (words[1], words[2:]) if part else (words[0], words[1:])
    is_file = _NAME.fullmatch(name) is not None
    if part and len(labels) > _BOX and not any(map(_is_word, labels[1:])):
        labels = labels[:1]  # The corners of a box follow the label.
    return part, name if is_file else "", [label for label in labels if label]


FORMAT = Format(
    name="name_list",
    summary="A file and its labels on every line, with blanks, tabs or commas between: a.jpg cat.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
)
