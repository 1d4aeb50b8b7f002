"""Open Images labels and boxes: CSV with ImageID, Source, LabelName and Confidence.

By the data set's own definition Confidence 1 is present, Confidence 0 was checked and is absent,
and a pair without a row is unknown. Fractions come from machines; the user has to say where to cut.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hilltop.data.content import Source, read_class_file
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.format import (
    FilePatch,
    Format,
    Patched,
    plain_layout,
)
from hilltop.data.label_table import State
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions
from hilltop.data.tables.cells import Table, apply_header, read_cells
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import read_table
from hilltop.data.tables.words import canonical, number_in

IMAGE, SOURCE, LABEL, CONFIDENCE = "ImageID", "Source", "LabelName", "Confidence"
_HEADER = ("LabelName", "DisplayName")
_BOX = "XMin"


def matches(source: Source) -> bool:
    """Whether the four columns of Open Images are there."""
    names = [cell.strip(' "\r') for cell in source.head.partition("\n")[0].split(",")]
    return {IMAGE, SOURCE, LABEL, CONFIDENCE} <= set(names)


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the names of the classes, and whether confidences are fractions.

    A class file is either a plain list or has lines such as ``/m/01g317,Person``, whose names then
    replace the codes. Where two codes share a name, each is followed by its code in brackets.
    """
    table = _table(source)
    words = table.counts(table.index(CONFIDENCE))
    numbers = {word: number_in(canonical(word)) for word in words}
    errors = ErrorCollector(source.path)
    for word, number in numbers.items():
        if number is None or not 0 <= number <= 1:
            line = table.rows_with(table.index(CONFIDENCE), word, 1)[0]
            errors.add(f"Confidence must lie between 0 and 1, but got {word!r}.", line=line)
    errors.check()
    fractions = [word for word, number in numbers.items() if number not in (0, 1)]
    if fractions and options.label_threshold is None:
        return Ambiguous(
            source.path,
            [
                Question(
                    f"Some confidences are fractions, for example {fractions[0]}. Pass"
                    " --label-threshold with the value from which on they mean present; below it"
                    " they mean unknown.",
                    {"label_threshold": "0.5"},
                )
            ],
            options,
        )
    if options.label_threshold is not None and not 0 < options.label_threshold <= 1:
        raise data_error(
            source.path,
            "--label-threshold must be greater than 0 and at most 1, but got"
            f" {options.label_threshold!r}.",
        )
    plain = replace(options, classes=None)
    layout = plain_layout("openimages", plain, classes, unlisted=State.UNKNOWN)
    if options.classes is not None:
        names = _class_names(options.classes)
        layout = replace(
            layout,
            classes=tuple(names.values()),
            codes=tuple((code, at) for at, code in enumerate(names)),
        )
    return replace(
        layout,
        table="long",
        threshold=options.label_threshold,
        image_column=IMAGE,
        label_columns=(LABEL,),
        state_column=CONFIDENCE,
        values=(("1", "present"), ("0", "absent")),
        header_row=1,
        separator=",",
        encoding=source.encoding,
    )


def _table(source: Source) -> Table:
    cells = read_cells(source, separator=",", sheet=None)
    if cells is None:
        raise data_error(source.path, "this is not a table with rows and columns.")
    return apply_header(cells, 1, ())


def _class_names(path: Path) -> dict[str, str]:
    """The name of each code, in order."""
    names = _read_descriptions(path)
    if names is None:
        return {name: name for name in read_class_file(path)[0]}
    used = Counter(names.values())
    return {code: name if used[name] == 1 else f"{name} ({code})" for code, name in names.items()}


def _read_descriptions(path: Path) -> dict[str, str] | None:
    """Names by code; None if the file has names alone."""
    if not path.is_file():
        return None
    errors = ErrorCollector(path)
    names: dict[str, str] = {}
    lines = Source(path).lines
    first = [cell.strip() for cell in lines[0][1].split(",")] if lines else []
    if len(first) < 2 or not (tuple(first) == _HEADER or first[0].startswith("/")):
        return None
    for line, text in lines:
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], strict=True), [])]
        except csv.Error as error:
            raise data_error(path, f"this row is not valid CSV: {error}.", line=line) from None
        if not cells or tuple(cells) == _HEADER:
            continue
        if len(cells) != 2 or not all(cells):
            message = f"expected a code and a name such as '/m/01g317,Person', but got {cells}."
            errors.add(message, line=line)
        elif cells[0] in names:
            errors.add(f"the code {cells[0]!r} is here again.", line=line)
        else:
            names[cells[0]] = cells[1]
    errors.check()
    return names


def patch(asked: FilePatch) -> Patched:
    """Change the confidence of a pair, or append a verified row: Confidence 1 or 0."""
    if _BOX in _table(asked.source).names:
        raise asked.refused("a file of boxes is read, but not changed.")
    said = asked.without_absents() if asked.layout.unlisted == State.ABSENT else asked
    return patch_table(said, further={SOURCE: "verification"})


FORMAT = Format(
    name="openimages",
    summary="Open Images CSV: ImageID, Source, LabelName, Confidence; image labels or boxes.",
    matches=matches,
    detect=detect,
    read=read_table,
    patch=patch,
    unlisted=State.UNKNOWN,
)
