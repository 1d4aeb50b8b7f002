"""Finds the layout of a table, once: header, columns, delimiter and meaning of cells.

A decision is taken only where names or cells leave no other. All else is a question, and all
questions are asked together. What is decided never depends on how often something occurs, so that
another row can lead to a question or an error, but never to another reading of the rows before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.content import Source, read_class_file
from hilltop.data.data_errors import data_error
from hilltop.data.label_table import State
from hilltop.data.layout import (
    JSON_LISTS,
    MULTI_HOT,
    NO_DELIMITER,
    ROW_NUMBER,
    Ambiguous,
    Layout,
    ReadOptions,
    ask,
    row_words,
    unlisted_question,
)
from hilltop.data.tables.cells import (
    DELIMITERS,
    Table,
    apply_header,
    is_list,
    parse_labels,
    parse_list,
    parse_vector,
    read_cells,
)
from hilltop.data.tables.rows import (
    NONE,
    Found,
    check_repeated,
    check_widths,
    even_rows,
    few,
    find_rows,
    is_file,
    without_strange,
)
from hilltop.data.tables.words import (
    EMPTY,
    NO_NAMES,
    SPREADSHEET_ERRORS,
    all_values,
    are_likely,
    canonical,
    find_meanings,
    image_candidates,
    is_label_name,
    is_no_class,
    is_single_name,
    is_state_name,
    number_in,
    numbered_group,
    odd_values_question,
    odd_words,
    parse_values,
)

FORMATS = ("wide", "list_column", "long")
_DELIMITER_WORDS = {"space": " ", "newline": "\n", "tab": "\t", "comma": ",", "semicolon": ";"}
_PERHAPS = (" ", "/", "+", "&", "#")
_ASIAN = ("\u3001", "\uff0c", "\uff1b")
"""An ideographic comma, and a wide comma and semicolon."""
_BITS = frozenset(["0", "1", "0.0", "1.0", "false", "true"])
_LISTED = re.compile(r"[ ,;|]")
_VECTOR = re.compile(r"[01]( *[ ,;|] *[01])+")
_SPLIT = re.compile(r" *[,;|] *| +")


def detect_table(
    source: Source,
    options: ReadOptions,
    *,
    format: str | None = None,
    classes: Sequence[str] | None = None,
) -> Layout | Ambiguous | None:
    """Find the layout of a table.

    Args:
        source: The file or DataFrame.
        options: What the user said.
        format: ``wide``, ``list_column`` or ``long``, if the user named it.
        classes: The closed list of classes, if it does not come from a file.

    Returns:
        The layout; the questions that are open; or None if this is not a table.
    """
    cells = read_cells(source, separator=options.separator, sheet=options.sheet)
    if cells is None or not cells.columns:
        return None
    found = Found(source, options, cells)
    find_rows(found)
    table = apply_header(even_rows(found), found.header_row, found.left_out())
    if len(table.names) < 2 and options.image_column != ROW_NUMBER and cells.names is None:
        return None
    layout = _find_columns(found, table, format, classes)
    if layout is None:
        return Ambiguous(source.path, found.questions, options, format) if found.questions else None
    if found.questions:
        return Ambiguous(source.path, found.questions, options, format)
    return layout


def detect_as(
    name: str,
    source: Source,
    options: ReadOptions,
    shape: str,
    *,
    classes: Sequence[str] | None = None,
    **known: Any,
) -> Layout | Ambiguous | None:
    """Find the layout of a table of which its format says some options.

    Args:
        name: The format.
        source: The file, or the table that was made of it.
        options: What the user said; questions are asked with these.
        shape: ``wide``, ``list_column`` or ``long``.
        classes: The closed list of classes, if it does not come from a file.
        known: Options that the format says.
    """
    said = replace(options, classes=None if classes is not None else options.classes, **known)
    found = detect_table(source, said, format=shape, classes=classes)
    if isinstance(found, Ambiguous):
        return replace(found, options=options, format=None)
    return None if found is None else replace(found, format=name, table=shape)


def _find_columns(
    found: Found, table: Table, format: str | None, classes: Sequence[str] | None
) -> Layout | None:
    options = found.options
    codes: Mapping[str, int] = {}
    closed = None if classes is None else tuple(classes)
    if closed is None and options.classes is not None:
        closed, codes = read_class_file(options.classes)
    elif closed is not None and not any(name.isdigit() for name in closed):
        codes = {str(at): at for at in range(len(closed))}
    image = _image_column(found, table)
    layout = Layout(
        format=format or "",
        classes=closed,
        codes=tuple(codes.items()),
        image_column=ROW_NUMBER if image is None else table.name(image),
        header_row=found.header_row,
        separator=found.cells.separator,
        sheet=found.cells.sheet,
        encoding=found.source.encoding if found.cells.separator else "utf-8",
        threshold=options.label_threshold,
    )
    table = without_strange(found, table, image)
    labels = _label_columns(found, table, image, format, closed)
    if labels is None:
        return None
    shape, columns = labels
    check_widths(found, shape, columns[0] if columns else 1)
    layout = replace(layout, format=shape, ragged=found.ragged)
    if shape == "wide":
        layout = _wide(found, table, layout, columns)
    else:
        layout = _listed(found, table, layout, columns)
    layout = replace(layout, skip_rows=tuple(found.skip_rows))
    check_repeated(found, table, image, layout)
    return layout


def _image_column(found: Found, table: Table) -> int | None:
    """Number of the column with the image ids; None for row numbers."""
    said = found.options.image_column
    if said == ROW_NUMBER and said not in table.names:
        return None
    if said is not None:
        return table.index(said)
    named = image_candidates(table.names)
    if len(named) == 1:
        return table.index(named[0])
    taken = [found.options.label_columns, found.options.class_columns]
    gone = {at for said in taken if said and ":" not in said for at in table.indices(said)}
    free = [at for at in range(len(table.names)) if at not in gone]
    pool = [at for at in free if table.names[at] in named] or free
    files = [at for at in pool if not is_list(table.columns[at]) and _all_files(table, at)]
    if len(files) == 1:
        return files[0]
    candidates = [*files] or [*pool]
    distinct = [at for at in candidates if _all_distinct(table, at)]
    plain = [at for at in distinct if not any(map(_LISTED.search, _sample(table, at)))]
    likely = next(iter([*plain, *distinct]), None)
    shown = "".join(f"{table.names[at]}, " for at in candidates)
    found.ask(
        f"Which column holds the image names? Pass --image-column with one of {shown}or"
        f" {ROW_NUMBER} if rows have no names.",
        image_column=ROW_NUMBER if likely is None else table.name(likely),
    )
    return likely


def _sample(table: Table, at: int) -> list[str]:
    return [str(word) for word in table.distinct(at).dictionary[:100].to_pylist()]


def _all_files(table: Table, at: int) -> bool:
    words = table.distinct(at).dictionary.to_pylist()
    return bool(words) and all(map(is_file, words))  # an empty cell could be a file elsewhere


def _all_distinct(table: Table, at: int) -> bool:
    found = table.distinct(at)
    words = found.dictionary.to_pylist()
    return "" not in words and len(words) == len(table) and not all_values(words, {})


def _label_columns(
    found: Found,
    table: Table,
    image: int | None,
    format: str | None,
    closed: tuple[str, ...] | None,
) -> tuple[str, list[int]] | None:
    """The shape of the table, and the columns of its labels or classes."""
    options = found.options
    others = [at for at in range(len(table.names)) if at != image]
    if options.label_columns is not None:
        columns = [at for at in table.indices(options.label_columns) if at != image]
        if not columns:
            raise data_error(
                found.source.path,
                f"the column {options.label_columns!r} holds the image names, so it cannot hold the"
                " labels. Pass --label-columns or --image-column with another one.",
            )
        found.ragged = options.label_columns.strip().endswith(":")
        single = len(columns) == 1 and (
            format == "long" or _state_column(found, table, columns[0], others) is not None
        )
        return ("long" if single else "list_column"), columns
    if options.class_columns is not None or options.ignore_columns is not None or format == "wide":
        return "wide", _class_columns(found, table, others, closed)
    names = [table.names[at] for at in others]
    group = numbered_group(names)
    if group:
        columns = [at for at in others if table.names[at] in group]
        words = {word for at in columns for word in table.values(at)} - EMPTY
        values = words - {*odd_words(words)}
        if words and values == words:
            return "wide", _class_columns(found, table, others, closed)
        if len(table) and (values or not words):
            _ask_binary(found, table, columns)
        return "list_column", columns
    labelled = [at for at in others if is_label_name(table.names[at])]
    several = [at for at in labelled if not is_single_name(table.names[at])]
    wordy = [at for at in (several or labelled) if not _holds_values(found, table, at)]
    if len(wordy) == 1:
        return _shape(found, table, wordy[0], others, format)
    if len(wordy) > 1:
        shown = ", ".join(table.names[at] for at in wordy)
        found.ask(
            f"Which column holds the labels? Pass --label-columns with one or several of {shown}.",
            label_columns=table.name(wordy[0]),
        )
        return _shape(found, table, wordy[0], others, format)
    rest = [at for at in others if at not in labelled]
    if labelled:
        silent = all(word in EMPTY for at in labelled for word in table.values(at))
        if format is None and not (silent and not _class_columns(found, table, rest, closed)):
            _ask_binary(found, table, labelled[:1])
        return _shape(found, table, labelled[0], others, format)
    chosen = _class_columns(found, table, others, closed)
    if found.is_uneven and not all(_holds_values(found, table, at) for at in others):
        chosen = []
    if chosen and format is None:
        silent = bool(len(table)) and EMPTY.issuperset(table.values(others[0]))
        headless = found.header_row is None and found.cells.names is None
        if len(others) == 1 and (silent or headless):
            _ask_binary(found, table, chosen)
        return "wide", chosen
    return _ask_labels(found, table, image, others, format)


def _ask_binary(found: Found, table: Table, columns: Sequence[int]) -> None:
    """Ask about columns that may hold labels, but have 0 and 1: class numbers, or classes."""
    name = ",".join(table.called(columns))
    found.ask(
        f"Column {table.names[columns[0]]!r} may hold labels, but has only values such as 0, 1, x"
        f" and empty cells. Pass --label-columns {name} if these are labels or"
        " class numbers, or --class-columns with the columns that are classes.",
        label_columns=name,
    )


def _shape(
    found: Found, table: Table, column: int, others: list[int], format: str | None
) -> tuple[str, list[int]]:
    state = _state_column(found, table, column, others)
    single = is_single_name(table.names[column]) and not is_list(table.columns[column])
    if format is not None:
        return format, [column]
    return ("long" if state is not None or single else "list_column"), [column]


def _ask_words(found: Found, table: Table, others: list[int]) -> bool:
    """Ask about columns that all hold the same few words: a value for each class."""
    words = Counter(word for at in others for word in table.values(at).elements())
    alike = [at for at in others if set(table.values(at)) & set(words)]
    few = len(words) <= 5 and len(alike) > 1 and all(len(word) <= 12 for word in words)
    shared = few and any(
        set(table.values(one)) & set(table.values(other)) - {""}
        for one in others
        for other in others
        if one < other
    )
    if shared:
        odd = {word: words[word] for word in odd_words(words)}
        names = table.called(others)
        found.questions.append(odd_values_question(odd, names, [], no_class=False, votes=False))
    return shared


def _ask_labels(
    found: Found, table: Table, image: int | None, others: list[int], format: str | None
) -> tuple[str, list[int]] | None:
    if not others:
        return None
    if found.is_uneven or (len(others) == 1 and image is not None):
        return _shape(found, table, others[0], others, format)
    if format is None and not found.is_uneven and _ask_words(found, table, others):
        return "wide", others
    # Labels come back, alone or in lists; texts and ids differ in every row, scores are no labels.
    wordy = [at for at in others if not is_state_name(table.names[at])] or others
    lists = [at for at in wordy if any(_mix(_sample(table, at), mark) for mark in ";|,")]
    many = [at for at in wordy if len(table.distinct(at).dictionary) > 1]
    likely = min(lists or many or wordy, key=lambda at: len(table.distinct(at).dictionary))
    shown = ", ".join(table.names[at] for at in others)
    found.ask(
        f"Which column holds the labels? Pass --label-columns with one or several of {shown},"
        " or --class-columns if every class has a column of its own.",
        label_columns=table.name(likely),
    )
    return _shape(found, table, likely, others, format)


def _state_column(found: Found, table: Table, labels: int, others: Sequence[int]) -> int | None:
    said = found.options.state_column
    if said is not None:
        return None if said == NONE and said not in table.names else table.index(said)
    named = [at for at in others if at != labels and is_state_name(table.names[at])]
    exact = [at for at in named if table.names[at].strip().lower() == "state"]
    if len(exact) == 1:
        return exact[0]
    if not named or is_list(table.columns[labels]):
        return None
    if len(named) > 1 and not any(
        "state_column" in question.answers for question in found.questions
    ):
        shown = ", ".join(table.names[at] for at in named)
        found.ask(
            f"Which column says whether a label is present: {shown}? Pass --state-column with one"
            f" of them, or --state-column {NONE} if every row is a label.",
            state_column=table.name(named[0]),
        )
    return named[0]


def _holds_values(found: Found, table: Table, at: int) -> bool:
    """Whether a column holds nothing but 1, 0, -1, yes, no, x and empty cells."""
    if is_list(table.columns[at]):
        return False
    said = parse_values(found.options, found.source.path)
    return all_values(table.distinct(at).dictionary.to_pylist(), said)


def _class_columns(
    found: Found, table: Table, others: list[int], closed: tuple[str, ...] | None
) -> list[int]:
    """The columns that are classes: as the user says, else all that hold mostly values."""
    options = found.options
    if options.ignore_columns is not None:
        gone = set(table.indices(options.ignore_columns))
        others = [at for at in others if at not in gone]
    if options.class_columns is not None:
        return [at for at in table.indices(options.class_columns) if at in others]
    if closed is not None and any(table.names[at] in closed for at in others):
        return [at for at in others if table.names[at] in closed]
    said = parse_values(options, found.source.path)
    chosen, sure = [], False
    for at in others:
        if is_no_class(table.names[at]) or is_list(table.columns[at]):
            continue
        if at == 0 and at in table.unnamed and _are_row_numbers(table, at):
            continue  # as pandas writes them
        words = table.values(at)
        # A column without any value or empty cell is no class; other cells beside these are asked
        # about, be they few or many. So are numbers that may be votes or confidences.
        odd = odd_words(words, said, options.label_threshold)
        likely = are_likely(word for word in words if word)
        if len(odd) < len(words) or not words or likely or _are_votes(words):
            chosen.append(at)
            sure |= not odd or likely or {*words} - {*odd} != {""}
    return [] if not sure or all(is_state_name(table.names[at]) for at in chosen) else chosen


def _are_row_numbers(table: Table, at: int) -> bool:
    words = table.columns[at].to_pylist()
    return any(words == [str(n) for n in range(first, len(words) + first)] for first in (0, 1))


def _are_votes(words: Mapping[str, int]) -> bool:
    """Whether numbers are shares from 0 to 1 or small whole numbers with 0 or 1 among them."""
    numbers = [number_in(word) for word in words if word not in EMPTY]
    if not numbers or any(number is None for number in numbers):
        return False
    found = [number for number in numbers if number is not None]
    shares = all(0 <= number <= 1 for number in found)
    votes = all(number == int(number) and 0 <= number <= 20 for number in found)
    return shares or (votes and min(found) <= 1)


# Wide tables


def _wide(found: Found, table: Table, layout: Layout, columns: list[int]) -> Layout:
    options = found.options
    said = parse_values(options, found.source.path)
    odd: Counter[str] = Counter()
    where: dict[int, str] = {}
    for at in columns:
        values = table.values(at)
        for word in odd_words(values, said, options.label_threshold):
            odd[word] += values[word]
            where.setdefault(at, word)
    # Columns with texts that are few, or hold no value beside them, are likely no classes.
    beside = {word for at in where for word in table.values(at) if word not in odd}
    no_class = 2 * len(where) < len(columns) or (len(where) < len(columns) and beside <= {""})
    typed = bool(beside - {""}) and 2 * max(odd.values(), default=0) < len(table)  # few cells alone
    no_class = no_class and not are_likely(odd) and not typed
    counts: Counter[str] = Counter()
    for at in columns:
        if not (no_class and at in where):
            counts.update(table.values(at))
    if not columns:
        found.ask(
            "No column besides the images holds 1, 0, -1, yes, no or x. Pass --class-columns"
            f" with the classes among {', '.join(table.names)}.",
            class_columns="1:",
        )
    rows = [row for at, word in where.items() for row in _rows_of(table, at, word)]
    alone = len(set(rows)) == 1 and sum(odd.values()) == len(where)
    asked = alone and _ask_odd_row(found, table, layout, columns, rows[0], [*odd])
    if odd and not asked and not any("values" in question.answers for question in found.questions):
        found.questions.append(
            odd_values_question(
                odd,
                table.called(where),
                sorted(set(rows))[:5],
                no_class=no_class,
                votes="0" in counts or "1" in counts,
            )
        )
    names = [table.names[at] for at in columns]
    closed = layout.classes
    missing = closed is not None and len(set(closed) - set(names)) > 0 and len(names) < len(closed)
    below = any("header_row" in question.answers for question in found.questions)
    first = {name: at for at, name in zip(reversed(columns), reversed(names), strict=True)}
    twice = [at for at, name in zip(columns, names, strict=True) if first[name] != at]
    if twice and closed is None and not below:
        name = table.names[twice[0]]
        found.ask(
            f"Several columns are called {name!r}. Rename them, or pass --ignore-columns with the"
            " numbers of those that are no class of their own.",
            ignore_columns=",".join(map(str, twice)),
        )
    nameless = table.called(at for at in columns if at in table.unnamed)
    if nameless and options.class_columns is None and not below:
        found.ask(
            f"{pluralize(len(nameless), 'column has', 'columns have')} no name but hold values of a"
            f" class, the first is {nameless[0]!r}. Name it, pass --ignore-columns if it is no"
            " class, or --class-columns with all that are.",
            ignore_columns=",".join(nameless),
        )
    meanings = find_meanings(counts, options, said, silent=missing and bool(len(table)))
    found.questions += meanings.questions
    called = table.called(columns)
    used = {layout.image_column, *called}
    ignored = [name for name in table.called(range(len(table.names))) if name not in used]
    return replace(
        layout,
        unlisted=meanings.unlisted,
        label_columns=called,
        values=tuple(meanings.values.items()),
        words=tuple(word for word in meanings.values if word in counts),
        ignored=tuple(ignored),
    )


def _ask_odd_row(
    found: Found, table: Table, layout: Layout, columns: Sequence[int], row: int, odd: Sequence[str]
) -> bool:
    """Ask about the only row with odd words if it may be a header, a remark or a sum.

    A header or remark holds no other words. Sums are whole numbers in the last row, where 0 and 1
    may stand beside them.
    """
    at = next(at for at in range(len(table)) if table.row_of(at) == row)
    image = None if layout.image_column == ROW_NUMBER else table.index(layout.image_column or "")
    name = None if image is None else table.distinct(image)[at].as_py()
    held = [canonical(table.distinct(column)[at].as_py()) for column in columns]
    sums = all(word.isdigit() for word in odd)
    if is_file(name or "") or (sums and at < len(table) - 1):
        return False
    if not sums and (any(map(number_in, odd)) or not {*held} <= {*odd, ""}):
        return False
    answer = {"skip_rows": row_words([*found.skip_rows, row])}
    # Under a header, the cell for the images is empty, or merged with the name above.
    names = image is not None and name in ("", table.names[image])
    if names and at == 0 and not sums and len(odd) == len(held) and found.cells.names is None:
        answer = {"header_row": str(row)}
    option = "--label-threshold or --values" if sums else "--values"
    found.ask(
        f"Row {row} alone holds {few(odd)}. Pass --header-row {row} if it names the columns,"
        f" --skip-rows {row} if it is no image, or {option} to say what that means.",
        **answer,
    )
    return True


def _rows_of(table: Table, at: int, word: str) -> list[int]:
    raw = next(cell for cell in table.counts(at) if canonical(cell) == word)
    return table.rows_with(at, raw, 2)


# Tables that list labels


def _listed(found: Found, table: Table, layout: Layout, columns: list[int]) -> Layout:
    options = found.options
    others = [at for at in range(len(table.names)) if at not in columns]
    state = _state_column(found, table, columns[0], others) if layout.shape == "long" else None
    beside: dict[str, str | None] = {"absent": None, "unknown": None}
    if layout.shape == "list_column":
        for name in beside:
            if name in table.names and table.index(name) not in columns:
                beside[name] = name
    for at in columns:
        if at in table.faults:
            raise data_error(found.source.path, table.faults[at])
    nameless = [
        at for at in others if at in table.unnamed and not (at == 0 and _are_row_numbers(table, at))
    ]
    if nameless and options.label_columns is None and layout.image_column != ROW_NUMBER:
        image = table.index(layout.image_column or "")
        _ask_nameless(found, table, columns, [at for at in nameless if at != image])
    every = [*columns, *(table.index(name) for name in beside.values() if name is not None)]
    delimiter = _delimiter(found, table, every, layout, single=len(columns) > 1)
    values, unlisted = {}, State.parse(options.unlisted or "unknown")
    values.update(_label_words(found, table, every, delimiter))
    if state is not None:
        values.update(_state_values(found, table, state, options))
    elif delimiter == MULTI_HOT:
        meanings = find_meanings(_vector_words(table, columns), options, {})
        found.questions += meanings.questions
        values.update(meanings.values)
        unlisted = meanings.unlisted
    if delimiter != MULTI_HOT and options.unlisted is None:
        found.questions.append(unlisted_question())
    used = {layout.image_column, table.name(state) if state is not None else None}
    called = table.called(columns)
    used |= {*called, *beside.values()}
    return replace(
        layout,
        unlisted=unlisted,
        label_columns=called,
        state_column=None if state is None else table.name(state),
        absent_column=beside["absent"],
        unknown_column=beside["unknown"],
        delimiter=delimiter,
        values=tuple(values.items()),
        ignored=tuple(one for one in table.called(range(len(table.names))) if one not in used),
    )


def _ask_nameless(
    found: Found, table: Table, columns: Sequence[int], nameless: Sequence[int]
) -> None:
    """Ask about columns without a name, which may go on with the labels of the one before."""
    if nameless:
        at = nameless[0]
        cell = next(filter(None, table.counts(at)))
        found.ask(
            f"Column {at} has no name, but holds {cell!r:.40} in row"
            f" {table.rows_with(at, cell, 1)[0]}. Name it, or pass --label-columns with all columns"
            " that hold labels.",
            label_columns=",".join(map(str, [*columns, *nameless])),
        )


def _state_values(found: Found, table: Table, state: int, options: ReadOptions) -> dict[str, str]:
    said = parse_values(options, found.source.path)
    counts = table.values(state)
    odd = {word: counts[word] for word in odd_words(counts, said, options.label_threshold)}
    if odd:
        word = next(iter(odd))
        rows = _rows_of(table, state, word)
        names = [table.name(state)]
        found.questions.append(odd_values_question(odd, names, rows, no_class=False, votes=True))
    # Rows and pairs without a row are different things: each is asked for by its own option.
    meanings = find_meanings(counts, options, said, apart=True)
    found.questions += meanings.questions
    return meanings.values


def _delimiter(
    found: Found, table: Table, columns: list[int], layout: Layout, *, single: bool
) -> str | None:
    said = found.options.delimiter
    if said is not None:
        if not said:
            raise ask(
                found.source.path,
                f"--delimiter must not be empty. Pass --delimiter {NO_DELIMITER} for one label per"
                " cell.",
                found.options,
                delimiter=NO_DELIMITER,
            )
        word = _DELIMITER_WORDS.get(said, said)
        return None if word == NO_DELIMITER else word
    if all(is_list(table.columns[at]) for at in columns):
        return _lists(found, [one for at in columns for one in _typed_lists(table, at)], layout)
    cells = [word for at in columns for word in _names(table, at)]
    bracketed = [cell for cell in cells if cell[0] in "[{(" and cell[-1] in "]})"]
    if any(cell[0] in "[{" or parse_list(cell) is not None for cell in bracketed):
        mixed = [at for at in columns if len({cell[0] in "[{(" for cell in _names(table, at)}) > 1]
        plain = [cell for at in columns for cell in _names(table, at) if cell[0] not in "[{("]
        if len(columns) > 1 and not mixed and all(parse_labels(cell) for cell in plain):
            return JSON_LISTS  # some columns hold lists, others one label
        return _brackets(found, table, columns, bracketed, layout)
    if cells and all(map(_VECTOR.fullmatch, cells)) and not single:
        marks = {mark for cell in cells for mark in _SPLIT.findall(cell)}
        if len(marks) == 1 and _are_vectors([_SPLIT.split(cell) for cell in cells], layout):
            return _ask_vectors(found, cells[0], _delimiter_word(marks.pop().strip() or " "))
    single = single or layout.shape == "long"
    here = [mark for mark in DELIMITERS if any(mark in cell for cell in cells)]
    if here and any(re.fullmatch(r"[0-9]+( +[0-9]+)+", cell) for cell in cells):
        here.append(" ")  # numbers with spaces between them are a list of their own
    if len(here) == 1 and not single:
        return here[0]
    if here:
        often = Counter({mark: _rows_holding(table, columns, mark) for mark in here})
        likely = max(here, key=lambda mark: often[mark])
        return _ask_delimiter(found, cells, here, None if single and likely == "," else likely)
    if single:
        return None
    spaced = [cell for cell in cells if " " in cell]
    if spaced and all(re.fullmatch(r"[0-9]+( +[0-9]+)*", cell) for cell in cells):
        return " "
    if spaced:
        return _ask_delimiter(found, cells, [" "], " " if _mix(cells, " ") else None)
    asian = [mark for mark in _ASIAN if any(mark in cell for cell in cells)]
    perhaps = [mark for mark in _PERHAPS[1:] if _mix(cells, mark)] + asian
    if perhaps:
        return _ask_delimiter(found, cells, perhaps, perhaps[0])
    return None


def _names(table: Table, at: int) -> list[str]:
    return [word for word in table.distinct(at).dictionary.to_pylist() if word]


def _rows_holding(table: Table, columns: Sequence[int], mark: str) -> int:
    return sum(n for at in columns for cell, n in table.counts(at).items() if mark in cell)


def _ask_delimiter(
    found: Found, cells: Sequence[str], marks: Sequence[str], likely: str | None
) -> str | None:
    counts = [
        f"{len({p.strip() for c in cells for p in c.split(m)} - {''})} classes with"
        f" --delimiter {_delimiter_word(m)}"
        for m in marks
    ]
    example = next(cell for cell in cells if any(mark in cell for mark in marks))
    found.ask(
        f"Is {example!r:.60} one label or several? There are {', '.join(counts)} and"
        f" {len(set(cells))} with --delimiter none (one label per cell).",
        delimiter=_delimiter_word(likely),
    )
    return likely


def _delimiter_word(mark: str | None) -> str:
    if mark is None:
        return NO_DELIMITER
    return {" ": "space", "\n": "newline", "\t": "tab"}.get(mark, mark)


def _mix(cells: Sequence[str], mark: str) -> bool:
    """Whether parts come back alone or in other places, as labels do and parts of names do not."""
    split = [[part.strip() for part in cell.split(mark)] for cell in cells]
    several = [parts for parts in split if len(parts) > 1]
    first = {parts[0] for parts in split}
    later = {part for parts in several for part in parts[1:]}
    counts = Counter(part for parts in split for part in set(parts))
    back = sum(count > 1 for count in counts.values())
    return len(several) > 1 and bool(first & later) and 3 * back >= len(counts)


def _brackets(
    found: Found, table: Table, columns: Sequence[int], bracketed: Sequence[str], layout: Layout
) -> str | None:
    """What cells in brackets are: lists as JSON or Python writes them, or a question."""
    cells = [(at, cell) for at in columns for cell in _names(table, at)]
    lists = [parse_list(cell) for _, cell in cells]
    if None in lists:
        at, odd = cells[lists.index(None)]
        marks = [mark for mark in DELIMITERS if mark in odd]
        text = (
            f"Some cells are lists in brackets, such as {bracketed[0]!r:.40}, but {odd!r:.40}"
            " is no list of names as JSON or Python writes it. Correct such cells; or pass"
            " --delimiter with what stands between labels (none if nothing does), with which"
            " brackets are part of names."
        )
        if 2 * len(bracketed) >= len(cells):
            raise data_error(found.source.path, text, line=table.rows_with(at, odd, 1)[0])
        found.ask(text, delimiter=_delimiter_word(marks[0] if marks else None))
        return marks[0] if marks else None
    return _lists(found, [parsed for parsed in lists if parsed is not None], layout)


def _typed_lists(table: Table, at: int) -> list[list[str]]:
    """The lists in a column of lists; none where they cannot hold a 0 or 1 for each class."""
    column = table.columns[at]
    if "." in table.names[at]:  # a part of objects has a value for each of them
        return []
    if not _BITS.issuperset(pc.unique(column.flatten()).to_pylist()):
        return []
    return [one for one in column.to_pylist() if one is not None]


def _lists(found: Found, lists: Sequence[Sequence[str]], layout: Layout) -> str:
    """Whether lists name classes, or hold a 0 or 1 for each class."""
    if _are_vectors(lists, layout):
        return _ask_vectors(found, f"[{', '.join(lists[0])}]", JSON_LISTS)
    return JSON_LISTS


def _are_vectors(lists: Sequence[Sequence[str]], layout: Layout) -> bool:
    """Whether lists may hold a 0 or 1 for each class: one as long as the other, of these alone."""
    lengths = {len(parsed) for parsed in lists if parsed}
    whole = layout.classes is None or lengths == {len(layout.classes)}
    words = {word for parsed in lists for word in parsed}
    return whole and len(lengths) == 1 and lengths != {1} and words <= _BITS


def _ask_vectors(found: Found, shown: str, numbers: str) -> str:
    found.ask(
        f"Is {shown!s:.60} a list of class numbers, or a 0 or 1 per class? Pass --delimiter"
        f" {numbers} or --delimiter multi-hot.",
        delimiter=MULTI_HOT,
    )
    return MULTI_HOT


def _vector_words(table: Table, columns: Sequence[int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for at in columns:
        if is_list(table.columns[at]):
            counts.update(map(canonical, table.columns[at].flatten().to_pylist()))
            continue
        for cell, count in table.counts(at).items():
            for word in parse_vector(cell):
                counts[canonical(word)] += count
    return counts


def _label_words(
    found: Found, table: Table, columns: Sequence[int], delimiter: str | None
) -> dict[str, str]:
    """Labels that look like nothing: what the user says of them, or the question."""
    options = found.options
    said = parse_values(options, found.source.path)
    said = {word: meaning for word, meaning in said.items() if meaning in ("empty", "label")}
    strange = (EMPTY - {"", "none"}) | SPREADSHEET_ERRORS | NO_NAMES
    seen: dict[str, int] = {}
    for at in columns:
        if is_list(table.columns[at]) or delimiter in (JSON_LISTS, MULTI_HOT):
            continue
        for cell in table.distinct(at).dictionary.to_pylist():
            parts = [cell] if delimiter is None else cell.split(delimiter)
            for part in parts:
                word = part.strip().lower()
                if word in strange and word not in said and word not in seen:
                    seen[word] = table.rows_with(at, cell, 1)[0]
    if seen:
        shown = ", ".join(f"{word!r} (row {row})" for word, row in seen.items())
        likely = [f"{word}=empty" for word in seen] + [f"{w}={m}" for w, m in said.items()]
        word = next(iter(seen))
        found.ask(
            f"Among the labels are {shown}. Pass --values {word}=empty if that means nothing,"
            f" or {word}=label if it is a class.",
            values=",".join(likely),
        )
    return said
