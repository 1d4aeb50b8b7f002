"""Which rows of a table are images: its header, rows that are left out, and odd ones.

Rows that may be a header, titles, sums or remarks, or that differ in length, are asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.layout import Layout, Question, ReadOptions, ask, row_words
from hilltop.data.tables.cells import Cells, Table, apply_header, codes_of, with_comment_row
from hilltop.data.tables.words import (
    FILE_ENDING,
    canonical,
    image_candidates,
    is_label_name,
    names_a_column,
    number_in,
    odd_words,
    parse_values,
)

_SUMS = pa.array(
    [
        f"{form}{end}"
        for word in ("total", "totals", "sum", "sums", "subtotal", "average", "mean", "count")
        for form in (word, word.title(), word.upper())
        for end in ("", ":")
    ]
)
_TITLES = 8
NONE = "none"


@dataclass
class Found:
    """What was found of one table so far."""

    source: Source
    options: ReadOptions
    cells: Cells
    questions: list[Question] = field(default_factory=list)
    header_row: int | None = None
    skip_rows: tuple[int, ...] = ()
    ragged: bool = False

    @property
    def widths(self) -> dict[int, int]:
        """Number of cells of rows that have fewer or more than the others, by row number."""
        return self.cells.widths(self.header_row, self.skip_rows)

    @property
    def is_uneven(self) -> bool:
        """Whether rows without a header differ in length, as lists of labels do."""
        return self.header_row is None and bool(self.widths)

    def left_out(self) -> list[int]:
        """Rows from which nothing follows: those left out, and those that miss cells."""
        said = self.options.label_columns
        if self.header_row is None or (said is not None and said.endswith(":")):
            return [*self.skip_rows]
        usual = self.cells.usual(self.header_row, self.skip_rows)
        return [*self.skip_rows, *(row for row, width in self.widths.items() if width < usual)]

    def ask(self, text: str, **answers: str) -> None:
        """Note a question, with the options that would settle it."""
        self.questions.append(Question(text, answers))


def find_rows(found: Found) -> None:
    """Find the header and the rows that are left out."""
    options, cells = found.options, found.cells
    found.skip_rows = parse_rows(options.skip_rows, found) or cells.comments
    if cells.names is not None:
        return
    if options.header_row is not None:
        found.header_row = _said_header(options.header_row, found)
        if found.header_row in cells.comments:
            found.skip_rows = tuple(row for row in found.skip_rows if row != found.header_row)
            found.cells = with_comment_row(found.source, cells, found.header_row)
        elif found.header_row is not None:
            above = tuple(range(1, found.header_row))
            found.skip_rows = tuple(sorted({*found.skip_rows, *above}))
        return
    rows = cells.first_rows(_TITLES + 1)
    numbers = [cells.row_of(at) for at in range(len(rows))]
    filled = [sum(map(bool, row)) for row in rows]
    first = next((at for at, row in enumerate(rows) if filled[at] > 1 or _has_index(row)), None)
    if first is None:
        first = next((at for at, count in enumerate(filled) if count), 0)
    titles = [at for at in range(first) if filled[at]]
    verdict = _is_header(found, rows, first)
    likely = str(numbers[first]) if verdict is not False else NONE
    if titles and (verdict is not True or any(is_file(cell) for at in titles for cell in rows[at])):
        found.ask(
            f"Row {numbers[titles[0]]} holds {_one_cell(rows[titles[0]])!r} alone, and row"
            f" {numbers[first]} several cells. Pass --header-row with the row that names the"
            " columns, or --header-row none if there is none.",
            header_row=likely,
        )
    elif verdict is not True and cells.comments and len(_comment_cells(found)) > 1:
        last = cells.comments[-1]
        found.ask(
            f"Row {last} begins with '#', but may name the columns or be data. Pass --header-row"
            f" {last} if it names them, or --header-row none if it is a comment; if it is data,"
            " quote its first cell.",
            header_row=str(last) if _names_image(_comment_cells(found)) else NONE,
        )
        found.header_row = None
        return
    elif verdict is None:
        below = next((at for at in range(first + 1, len(rows)) if _names_image(rows[at])), None)
        if below is not None:
            likely = str(numbers[below])
        elif rows[first][0] and any(number_in(cell) is not None for cell in rows[first] if cell):
            likely = NONE
        found.ask(
            f"Row {numbers[first]} ({few(rows[first])}) may name the columns or be data. Pass"
            f" --header-row {numbers[first]} or --header-row none.",
            header_row=likely,
        )
    found.header_row = None if likely == NONE else int(likely)
    if found.header_row is not None:
        over = [row for row in range(1, found.header_row) if row not in found.skip_rows]
        blank = {numbers[at] for at in range(len(rows)) if not filled[at]}
        found.skip_rows = (*found.skip_rows, *(row for row in over if row not in blank))


def _said_header(said: str, found: Found) -> int | None:
    if said.lower() == NONE:
        return None
    if said.isdigit() and int(said) > 0:
        return int(said)
    raise ask(
        found.source.path,
        f"--header-row must be a row number from 1, or none, but got {said!r}.",
        found.options,
        header_row="1",
    )


def _comment_cells(found: Found) -> list[str]:
    line = found.source.lines[found.cells.comments[-1] - 1][1].lstrip("#")
    return [cell.strip() for cell in line.split(found.cells.separator or ",")]


def parse_rows(said: str | None, found: Found) -> tuple[int, ...] | None:
    """The rows that the user leaves out: ``1-2,40``."""
    if said is None:
        return None
    rows: set[int] = set()
    last = found.cells.row_of(len(found.cells) - 1) if len(found.cells) else 0
    for part in [] if said.lower() == NONE else said.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match is None:
            raise ask(
                found.source.path,
                f"--skip-rows must be row numbers such as 1-2,40, or none, but got {said!r}.",
                found.options,
                skip_rows="1",
            )
        if int(match[1]) > last:
            raise data_error(
                found.source.path,
                f"there is no row {match[1]} to leave out with --skip-rows; the last is {last}.",
            )
        rows |= set(range(int(match[1]), min(int(match[2] or match[1]), last) + 1))
    return tuple(sorted(rows))


def _is_header(found: Found, rows: Sequence[Sequence[str]], at: int) -> bool | None:
    """Whether a row names the columns; None if that cannot be told."""
    row = rows[at] if rows else []
    if any(is_file(cell) for cell in row):
        return False
    if _names_image(row) or any(is_label_name(cell) for cell in row if cell):
        return True
    said = parse_values(found.options, found.source.path)
    for column, cell in zip(found.cells.columns, row, strict=False):
        if not cell or not odd_words([canonical(cell)]) or number_in(cell) is not None:
            continue
        below = {canonical(word or "") for word in pc.unique(column[at + 1 :]).to_pylist()} - {""}
        if below and all(number_in(word) is not None for word in odd_words(below, said)):
            return True
    return None


def _names_image(row: Sequence[str]) -> bool:
    return len([cell for cell in row if cell]) > 1 and bool(image_candidates([c for c in row if c]))


def is_file(cell: str) -> bool:
    """Whether a cell is the name of a picture or a sound."""
    return FILE_ENDING.search(cell.strip()) is not None


def _has_index(row: Sequence[str]) -> bool:
    """Whether a row names its last column alone, as pandas writes a table with an index."""
    return len(row) == 2 and not row[0] and names_a_column(row[1])


def _one_cell(row: Sequence[str]) -> str:
    return next((cell for cell in row if cell), "")


def few(cells: Sequence[str]) -> str:
    """Some cells for a message."""
    shown = ", ".join(repr(cell) for cell in cells[:4] if cell)
    return f"{shown}, ..." if len(cells) > 4 else shown


def even_rows(found: Found) -> Cells:
    """The cells without those of rows that are too long, which are asked about."""
    cells = found.cells
    said = found.options.label_columns
    merged = [row for row in cells.merged if row > (found.header_row or 0)]
    if merged and found.options.skip_rows is None:
        found.ask(
            f"Cells of rows {row_words(merged)} are merged across columns. Unmerge them, pass"
            f" --skip-rows {row_words(merged)} to leave these rows out, or --skip-rows none to take"
            " what the first of the merged cells holds for that cell alone.",
            skip_rows=row_words(merged),
        )
    if not found.widths or (said is not None and said.endswith(":")):
        return cells
    return replace(
        cells, columns=cells.columns[: cells.usual(found.header_row, found.skip_rows)], tables={}
    )


def check_widths(found: Found, shape: str, first: int) -> None:
    """Ask about rows that have more or fewer cells than the others."""
    widths = found.widths
    if not widths or found.ragged:
        return
    rows = [*widths]
    shown = ", ".join(
        f"row {row} has {pluralize(widths[row], 'cell', 'cells')}" for row in rows[:3]
    )
    more = f" and {pluralize(len(rows) - 3, 'more row', 'more rows')}" if len(rows) > 3 else ""
    likely = {"skip_rows": row_words(sorted({*found.skip_rows, *rows}))}
    rest, from_here = "", 1 if found.header_row is None else first
    said = found.options.label_columns is not None
    if shape != "wide" and not said and max(widths.values()) > from_here:
        likely = {"label_columns": f"{from_here}:"}
        rest = f" --label-columns {from_here}: reads all cells from there on as labels."
    found.questions.append(
        Question(
            f"Rows differ in length: {shown}{more}, unlike the rows before. Correct them, or"
            f" leave them out with --skip-rows {row_words(rows[:20])}.{rest}",
            likely,
        )
    )


def without_strange(found: Found, table: Table, image: int | None) -> Table:
    """The table without rows that look like sums or remarks, which are asked about."""
    if found.options.skip_rows is not None or image is None or found.cells.names is not None:
        return table
    strange: dict[int, str] = {}
    ids = table.distinct(image)
    words = ids.dictionary
    odd = pc.or_(
        pc.is_in(words, value_set=_SUMS),
        pc.match_substring_regex(words, "^:?-{3,}:?$"),  # a ruler, as in Markdown
    )
    # Files that were put together have the header again in between; right below it is another.
    name = table.names[image]
    if found.header_row is not None and len(table) and ids[0].as_py() != name:
        odd = pc.or_(odd, pc.equal(words, name))
    for word in words.filter(pc.and_(odd, pc.not_equal(words, ""))).to_pylist():
        strange.update(dict.fromkeys(table.rows_with(image, word, len(table)), word))
    if len(table):
        last = len(table) - 1
        remark = ids[last].as_py()
        alone = all(
            not table.distinct(at)[last].as_py() for at in range(len(table.names)) if at != image
        )
        if len(remark.split()) > 2 and alone and not is_file(remark) and _only_spaced(ids):
            strange[table.row_of(last)] = remark
    if strange:
        rows = sorted(strange)
        shown = ", ".join(f"row {row} ({strange[row]!r:.40})" for row in rows[:3])
        found.ask(
            f"Is this no image but a sum, a remark or a header: {shown}? Pass --skip-rows"
            f" {row_words(rows)} to leave it out, or --skip-rows none to read it.",
            skip_rows=row_words(sorted({*found.skip_rows, *rows})),
        )
        return apply_header(even_rows(found), found.header_row, [*found.left_out(), *rows])
    return table


def _only_spaced(ids: pa.DictionaryArray) -> bool:
    """Whether one id alone holds a space."""
    return bool(pc.sum(pc.match_substring(ids.dictionary, " ")).as_py() == 1)


def check_repeated(found: Found, table: Table, image: int | None, layout: Layout) -> None:
    """Ask before rows of one image are merged, unless that is what the table is for."""
    if image is None or layout.shape == "long" or found.options.image_column is not None:
        return
    ids = table.distinct(image)
    counts = np.bincount(codes_of(ids), minlength=len(ids.dictionary))
    twice = np.flatnonzero(counts > 1)
    if not len(twice):
        return
    words = ids.dictionary.to_pylist()
    word = words[int(twice[0])]
    if not word:
        return  # an empty name is an error of its own
    rows = table.rows_with(image, word, 3)
    found.ask(
        f"{pluralize(len(twice), 'name is', 'names are')} in several rows of column"
        f" {table.names[image]!r}, such as {word!r} in rows {', '.join(map(str, rows))}. Pass"
        f" --image-column {table.name(image)} to merge their labels, or name another column.",
        image_column=table.name(image),
    )
