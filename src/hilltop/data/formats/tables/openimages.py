"""Open Images image-level labels: CSV with ImageID, Source, LabelName and Confidence.

By the data set's own definition Confidence 1 is present, Confidence 0 was checked and is absent,
and a pair without a row is unknown. Fractions come from machines; the user has to say where to cut.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.patching import Change, Original, Patched
from hilltop.data.formats.source import LabelSource, read_class_file, read_lines
from hilltop.data.formats.text.arrow_files import write_arrow
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.express import check_expressible, with_listed_absents
from hilltop.data.formats.text.table_file import TableFile, column_names, is_binary
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

IMAGE, SOURCE, LABEL, CONFIDENCE = "ImageID", "Source", "LabelName", "Confidence"
_HEADER = ("LabelName", "DisplayName")


def fits(source: LabelSource) -> bool:
    """Whether the four columns of Open Images are there."""
    return {IMAGE, SOURCE, LABEL, CONFIDENCE} <= set(column_names(source))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read verified or machine labels; unlisted pairs are unknown unless the user says otherwise.

    ``options.classes`` is either a plain class list or a file of class descriptions with lines
    such as ``/m/01g317,Person``, whose names then replace the codes. Where two codes share a name,
    each is followed by its code in brackets, since names must differ.
    """
    table = TableFile(source)
    images = table.images(IMAGE)
    labels = table.text(LABEL).dictionary_encode()
    states, notes = _states(table, options)
    names, clashes = _class_names(labels.dictionary.to_pylist(), options.classes)
    return assemble(
        images.dictionary,
        list(names.values()),
        _codes(images),
        table.class_codes(labels, list(names)),
        states,
        unlisted=State.parse(options.unlisted or "unknown"),
        source=source.path,
        line_of=table.line_of,
        step=Step("read", {"file": str(source.path), "format": "openimages"}),
        notes=notes + clashes,
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a row for each present or absent pair, with the source "verification".

    Class names are written as label names: a table does not know the codes they once had.
    """
    table = with_listed_absents(table)
    check_expressible(
        table,
        path,
        lossy,
        states=(State.PRESENT, State.ABSENT),
        images_without_entries=False,
        unused_classes=False,
        unlisted=(State.UNKNOWN,),
    )
    chosen = table.states != State.UNKNOWN
    rows, columns = pa.array(table.rows[chosen]), pa.array(table.columns[chosen])
    content = pa.table(
        {
            IMAGE: table.images.take(rows),
            SOURCE: pa.repeat("verification", len(rows)),
            LABEL: pa.array(table.classes, pa.string()).take(columns),
            CONFIDENCE: pa.array(table.states[chosen] == State.PRESENT).cast(pa.int8()),
        }
    )
    write_arrow(content, path)


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Append a verified row for each change: Confidence 1 or 0."""
    if is_binary(LabelSource(original.path)):
        return
    text = CsvText(original.path)
    at = {name: text.names.index(name) for name in text.names}
    found = sorted({record.cells[at[LABEL]] for record in text.records if record.cells})
    codes = _class_names(found, original.options.classes)[0]  # names back to codes
    code_of = {name: code for code, name in codes.items()}
    for change in changes:
        cells = [""] * len(text.names)
        cells[at[IMAGE]] = change.image
        cells[at[SOURCE]] = "verification"
        cells[at[LABEL]] = code_of[change.class_name]
        cells[at[CONFIDENCE]] = "1" if change.state == State.PRESENT else "0"
        text.append(cells)
    yield Patched(text.content(), original.options)


def _codes(column: pa.DictionaryArray) -> npt.NDArray[Any]:
    return np.asarray(column.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _states(table: TableFile, options: ReadOptions) -> tuple[npt.NDArray[np.int8], list[str]]:
    """State of every row, and how many fractions fell on which side of the cut."""
    written = table.text(CONFIDENCE).dictionary_encode()
    codes, words = _codes(written), written.dictionary.to_pylist()
    numbers = np.array([_number(word) for word in words], dtype=np.float64)
    errors = ErrorCollector(table.path)
    for code in np.flatnonzero(~((numbers >= 0) & (numbers <= 1))):
        line = table.line_of(int(np.argmax(codes == code)))
        errors.add(f"Confidence must lie between 0 and 1, but got {words[code]!r}.", line=line)
    errors.check()
    fraction = (numbers > 0) & (numbers < 1)
    if not fraction.any():
        return np.where(numbers == 1, State.PRESENT, State.ABSENT).astype(np.int8)[codes], []
    cut = _cut(table, words[int(np.argmax(fraction))], options)
    above = np.where(numbers >= cut, State.PRESENT, State.UNKNOWN)
    meaning = np.where(numbers == 0, State.ABSENT, np.where(fraction, above, State.PRESENT))
    states = meaning.astype(np.int8)[codes]
    kept = int(np.count_nonzero(fraction[codes] & (states == State.PRESENT)))
    total = int(np.count_nonzero(fraction[codes]))
    fractions = pluralize(total, "fractional confidence", "fractional confidences")
    are = pluralize(kept, f"of {fractions} is", f"of {fractions} are")
    return states, [f"{are} at least {cut:g}, which counts as present."]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def _cut(table: TableFile, example: str, options: ReadOptions) -> float:
    if options.confidence_cut is None:
        command = ready_command(table.path, options, confidence_cut="0.5")
        raise OptionNeeded(
            f"{table.path}: some confidences are fractions, for example {example}. Pass"
            " --confidence-cut with the value from which on they mean present; below it they"
            f" mean unknown, for example: {command}"
        )
    if not 0 < options.confidence_cut <= 1:
        raise OptionNeeded(
            f"{table.path}: --confidence-cut must be greater than 0 and at most 1, but got"
            f" {options.confidence_cut!r}."
        )
    return options.confidence_cut


def _class_names(found: list[str], path: Path | None) -> tuple[dict[str, str], list[str]]:
    """Class name of each known label in order, and what to note about them."""
    if path is None:
        return {label: label for label in sorted(found)}, []
    if not path.is_file() or not _has_descriptions(LabelSource(path)):
        return {name: name for name in read_class_file(path)}, []
    names = _read_descriptions(path)
    used = Counter(names.values())
    shared = sum(count > 1 for count in used.values())
    if not shared:
        return names, []
    belong = pluralize(shared, f"name in {path.name} belongs", f"names in {path.name} belong")
    note = f"{belong} to several codes; the code was added to each."
    return {
        code: name if used[name] == 1 else f"{name} ({code})" for code, name in names.items()
    }, [note]


def _has_descriptions(source: LabelSource) -> bool:
    """Whether a class file has two columns, the first being codes such as /m/01g317."""
    first = source.header
    return len(first) == 2 and (first == _HEADER or first[0].startswith("/"))


def _read_descriptions(path: Path) -> dict[str, str]:
    errors = ErrorCollector(path)
    names: dict[str, str] = {}
    lines = [f"{text}\n" for _, text in read_lines(path)]
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if not cells or tuple(cells) == _HEADER:
                continue
            if len(cells) != 2 or not all(cells):
                message = f"expected a code and a name such as '/m/01g317,Person', but got {cells}."
                errors.add(message, line=reader.line_num)
            elif cells[0] in names:
                errors.add(f"the code {cells[0]!r} stands here again.", line=reader.line_num)
            else:
                names[cells[0]] = cells[1]
    except csv.Error as error:
        raise data_error(
            path, f"this row is not valid CSV: {error}.", line=reader.line_num
        ) from None
    errors.check()
    return names


FORMAT = Format(
    name="openimages",
    summary="Open Images CSV: ImageID, Source, LabelName, Confidence.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
)
