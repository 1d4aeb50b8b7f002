"""The one door for labels: ``detect`` finds the layout of a file, ``read`` and ``patch`` follow it.

:func:`read_labels` and :func:`write_labels` are made of these for everyday use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hilltop.checks import did_you_mean
from hilltop.data import native
from hilltop.data.annotations import (
    coco,
    cvat,
    fiftyone,
    huggingface,
    image_folders,
    label_studio,
    voc,
    yolo,
)
from hilltop.data.class_names import (
    apply_background_class,
    check_look_alikes,
    class_map,
    rename_by_map,
)
from hilltop.data.content import PACKED_SUFFIXES, Source, is_archive, likely_encoding
from hilltop.data.data_errors import data_error
from hilltop.data.files import check_folder
from hilltop.data.folders import candidate_files
from hilltop.data.format import Change, Changes, FilePatch, Format, Patched, with_changes
from hilltop.data.label_table import LabelTable, Step, checked_classes
from hilltop.data.layout import Ambiguous, Layout, ReadOptions, ask, read_options
from hilltop.data.public import features, known_tables, lists, nus
from hilltop.data.review_record import read_provenance
from hilltop.data.tables.cells import PARQUET_SUFFIXES, SHEET_SUFFIXES
from hilltop.data.tables.infer import FORMATS as TABLE_FORMATS
from hilltop.data.tables.infer import detect_table
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import open_table, read_table
from hilltop.data.tables.words import word_set
from hilltop.data.tables.write import write_lists, write_long, write_wide
from hilltop.deprecation import warn_renamed
from hilltop.errors import AmbiguousInputError, ArgumentTypeError, DataError

_MOST_SHOWN = 5
_MOST_WIDE_CLASSES = 1000
_STDIN = Path("standard input")
_FRAME = Path("the DataFrame")
_TABLES = (".csv", ".tsv", ".tab", ".xlsx", ".xlsm")


def _table_format(name: str, summary: str, write: Any, suffixes: tuple[str, ...] = ()) -> Format:
    def detect(
        source: Source, options: ReadOptions, classes: Sequence[str] | None
    ) -> Layout | Ambiguous | None:
        return detect_table(source, options, format=name, classes=classes)

    return Format(
        name=name,
        summary=summary,
        matches=None,
        detect=detect,
        read=read_table,
        write=write,
        patch=patch_table,
        suffixes=suffixes,
    )


_ALL = (
    native.FORMAT,
    _table_format("wide", "A table with a row per image and a column per class.", write_wide),
    _table_format(
        "list_column",
        "A table with a row per image and one or several columns of labels.",
        write_lists,
        (".jsonl", ".ndjson"),
    ),
    _table_format("long", "A table with a row per label: image, class, perhaps state.", write_long),
    huggingface.FORMAT,
    coco.FORMAT,
    coco.LVIS,
    yolo.FORMAT,
    voc.FORMAT,
    voc.XML_FORMAT,
    image_folders.CLASS_FOLDERS,
    label_studio.FORMAT,
    cvat.FORMAT,
    fiftyone.FORMAT,
    image_folders.SIDECAR,
    nus.FORMAT,
    known_tables.OPEN_IMAGES,
    lists.PAPER_LIST,
    lists.CELEBA,
    known_tables.AUDIOSET,
    features.MULAN,
    features.LIBSVM,
    lists.MULTI_HOT,
)
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
"""Every format by name."""
RENAMED_FORMATS = {
    "long_values": "long",
    "label_columns": "list_column",
    "json_records": "list_column",
    "huggingface_dataset": "huggingface",
    "tag_files": "sidecar",
    "zero_one_list": "multi_hot",
}
"""Old names of formats, with their new ones."""
_READ_ONLY = (*PACKED_SUFFIXES, ".xls", ".xlsb", ".ods")
_RECIPES = word_set(
    """
    id_class named_arrays name_list matrix triples fasttext tfrecord class_values datumaro
    ground_truth labelbox object_values prodigy via via_three xml_records class_lists json_files
    object_files value_files xmp_files
    """
)


def named_format(name: str) -> Format:
    """Return the format of a name.

    Raises:
        AmbiguousInputError: There is no such format.
    """
    if name in RENAMED_FORMATS:
        warn_renamed(name, RENAMED_FORMATS[name])
        name = RENAMED_FORMATS[name]
    if name in _RECIPES:
        raise AmbiguousInputError(
            f"The format {name!r} is not read any more. docs/recipes.md shows the few lines of"
            " pandas that read such files into LabelTable.from_dataframe."
        )
    if name not in FORMATS:
        raise AmbiguousInputError(
            f"Unknown format {name!r}.{did_you_mean(name, FORMATS)}"
            f" Known formats: {', '.join(FORMATS)}."
        )
    return FORMATS[name]


def _is_frame(value: Any) -> bool:
    # A lazy frame of polars would have to be run to name its columns.
    lazy = hasattr(type(value), "collect_schema") and not hasattr(type(value), "__len__")
    return not lazy and hasattr(value, "columns")


def open_source(path: Any, options: ReadOptions) -> Source:
    """Return what labels are read from: a path, ``-`` for standard input, or a DataFrame.

    Raises:
        DataError: There is no such file.
        ArgumentTypeError: This is neither a path nor a DataFrame.
    """
    if not isinstance(path, str | os.PathLike):
        if not _is_frame(path):
            raise ArgumentTypeError(
                f"Expected a path or a DataFrame of pandas or polars, but got"
                f" {type(path).__name__}."
            )
        return Source(_FRAME, frame=path)
    if str(path) == "-":
        return Source(_STDIN, content=sys.stdin.buffer.read(), encoding=options.encoding)
    named = Path(path)
    if named.is_fifo():  # as `<(command)` of a shell is; it can be read but once
        return Source(named, content=named.read_bytes(), encoding=options.encoding)
    if not named.exists():
        raise data_error(named, "there is no such file or folder.")
    if not named.is_file() and not named.is_dir():  # a device may have no end
        raise data_error(named, "this is neither a file nor a folder.")
    return Source(named, encoding=options.encoding)


def detect(
    source: Source | Any,
    options: ReadOptions | None = None,
    *,
    format: str | None = None,
    classes: Sequence[str] | None = None,
) -> Layout | Ambiguous:
    """Find out how a label file is laid out.

    Args:
        source: A path, a DataFrame, or a source that was opened already.
        options: What the user said of it.
        format: Name of the format; None recognises it from the content.
        classes: The closed list of classes, in place of ``options.classes``.

    Returns:
        The layout, by which :func:`read` and :func:`patch` go; or all questions that are open.

    Raises:
        DataError: The file is damaged, or no format matches.
    """
    said = options or ReadOptions()
    opened = source if isinstance(source, Source) else open_source(source, said)
    if said.minus_one is None and _says_absent(opened):
        said = replace(said, minus_one="absent")
    try:
        if format is not None:
            found = _named_layout(opened, said, named_format(format), classes)
        else:
            found = _found_layout(opened, said, classes)
        _check_split(opened, said, found)
        return found
    except AmbiguousInputError as error:
        if not isinstance(error.ambiguous, Ambiguous):
            raise
        return replace(error.ambiguous, options=said, format=format)
    except UnicodeEncodeError:
        raise _half_a_character(opened.path) from None


def _check_split(source: Source, options: ReadOptions, found: Layout | Ambiguous) -> None:
    """Raise if the user named a split that a column of the table names: all rows would be read."""
    if options.split is None or isinstance(found, Ambiguous) or found.format not in TABLE_FORMATS:
        return
    table = open_table(source, found)
    for name in found.ignored:
        if options.split in table.counts(table.index(name)):
            raise data_error(
                source.path,
                f"--split does not choose rows by the column {name!r}. Leave it out, or keep the"
                f" rows of {options.split!r} in a file of their own.",
            )


def _half_a_character(path: Path) -> DataError:
    """The error for what JSON can write, but no other file can."""
    return data_error(path, "a name holds half a character (a lone surrogate). Write it anew.")


def _says_absent(source: Source) -> bool:
    """Whether `hilltop apply` wrote this file, with answers that make -1 mean absent."""
    if not source.is_file or not source.path.is_file():
        return False
    return any(record.outcome == "absent" for record in read_provenance(source.path))


def _named_layout(
    source: Source, options: ReadOptions, format: Format, classes: Sequence[str] | None
) -> Layout | Ambiguous:
    if source.is_folder and not format.folders:
        raise data_error(source.path, f"this is a folder, but {format.name!r} is read from a file.")
    if source.frame is not None and format.matches is not None:
        raise data_error(source.path, f"{format.name!r} is read from a file, not from a DataFrame.")
    found = format.find_layout(source, options, classes)
    if found is None and source.is_file and not source.raw.strip():
        raise data_error(source.path, "the file is empty.")
    if found is None:
        raise data_error(source.path, f"this is not {format.name!r}: {format.summary}")
    return replace(found, format=format.name)


def _found_layout(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous:
    matching = (
        [format for format in _ALL if format.recognises(source)] if source.frame is None else []
    )
    special = [format for format in matching if not format.general]
    matching = special or matching
    if len(matching) > 1:
        names = ", ".join(format.name for format in matching)
        raise ask(
            source.path,
            f"The content matches {len(matching)} formats: {names}. Pass --format with one.",
            options,
            format=matching[0].name,
        )
    if matching:
        found = matching[0].find_layout(source, options, classes)
        if found is not None:
            return found
    if source.is_folder:
        raise _describe_folder(source, options)
    table = detect_table(source, options, classes=classes)
    if table is not None:
        return table
    raise _describe_file(source)


def find_format(path: Path, options: ReadOptions) -> str:
    """Return the name of the format of a file that is read with some options.

    Raises:
        AmbiguousInputError: The file leaves something open.
    """
    found = detect(path, options)
    if isinstance(found, Ambiguous):
        raise found.error()
    return found.format


def _describe_folder(source: Source, options: ReadOptions) -> DataError:
    """Say which files of a folder may hold labels, or that none does."""
    files = candidate_files(source.path)
    if not files:
        return data_error(
            source.path, "this folder matches no known format, and no file in it may hold labels."
        )
    shown = ", ".join(str(path.relative_to(source.path)) for path in files[:_MOST_SHOWN])
    more = f" and {len(files) - _MOST_SHOWN} more" if len(files) > _MOST_SHOWN else ""
    return AmbiguousInputError(
        f"{source.path}: this folder matches no known format. It holds {shown}{more}: name the file"
        " with the labels."
    )


def _describe_file(source: Source) -> DataError:
    """Say what was expected of a file that nothing matches."""
    if source.frame is None and is_archive(source.path):
        source.raw  # noqa: B018 (an archive of several files says what it holds)
    if source.frame is not None:
        return data_error(source.path, "it has no columns of images and labels.")
    if source.suffix in (*SHEET_SUFFIXES, *PARQUET_SUFFIXES):
        return data_error(source.path, "it holds no table with images and labels.")
    if not source.raw.strip():
        return data_error(source.path, "the file is empty.")
    if "\0" in source.text:
        if (likely := likely_encoding(source.raw)) is not None:
            return ask(
                source.path, f"This looks like {likely}. Pass --encoding {likely}.", encoding=likely
            )
        line = source.text.count("\n", 0, source.text.index("\0")) + 1
        return data_error(
            source.path, "this is not text: it holds a zero byte. Save the file anew.", line=line
        )
    lines = source.head.strip().split("\n")[:_MOST_SHOWN]
    first = lines[0]
    even = len({len(line.split()) for line in lines}) == 1 and len(first.split()) > 1
    if even and first[0] not in "{[<":
        return ask(
            source.path,
            f"Are the cells separated by spaces, as in {first!r:.80}? Then pass --separator space.",
            separator="space",
        )
    return AmbiguousInputError(
        f"{source.path}: the content matches no known format; it begins with {first!r:.80}."
        " Expected a table (rows of cells separated by commas, tabs or semicolons) or one of the"
        " formats that docs/formats.md shows; docs/recipes.md shows how to read other files."
    )


def read(source: Source | Any, layout: Layout) -> LabelTable:
    """Read labels as a layout says; nothing is inferred.

    Raises:
        DataError: The file does not hold what the layout says; the message names rows.
    """
    opened = source
    if not isinstance(source, Source):
        encoding = None if layout.encoding.startswith("utf-8") else layout.encoding
        opened = open_source(source, ReadOptions(encoding=encoding))
    try:
        return FORMATS[layout.format].read(opened, layout)
    except UnicodeEncodeError:
        raise _half_a_character(opened.path) from None


def can_patch(path: Path, layout: Layout) -> bool:
    """Whether labels can be changed in a file without writing all of it anew."""
    there = path.is_dir() or (path.is_file() and path.suffix.lower() not in _READ_ONLY)
    return there and FORMATS[layout.format].patch is not None


def patch(source: Source, layout: Layout, table: LabelTable, changes: Sequence[Change]) -> Patched:
    """Change some pairs of a file and leave all else alone.

    Args:
        source: The file as it was read.
        layout: How it was read.
        table: What was read.
        changes: The pairs with their new states, under the names in the file.

    Returns:
        The new files, which are not written yet. They are read back before they are returned.

    Raises:
        DataError: The format cannot be changed so, or the result would not read back equal.
    """
    format = FORMATS[layout.format]
    if format.patch is None:
        raise data_error(
            source.path,
            f"files of the format {layout.format!r} are read, but not changed. Write the labels in"
            " another one with --format, such as --format hilltop.",
        )
    patched = format.patch(FilePatch(source, layout, table, Changes(changes)))
    expected = with_changes(table, patched.changes, step="patch")
    if patched.images is not None:
        expected = expected.with_images(patched.images, step=Step("rename", {}))
    found = read_patched(source, patched)
    if set(found.classes) <= set(expected.classes):  # a class may have lost its last label
        found = found.with_classes(expected.classes)
    if found != expected:
        raise data_error(
            source.path,
            "its labels could not be changed without disturbing others. Write them anew in another"
            " format with --format, such as --format hilltop.",
        )
    return patched


def read_patched(source: Source, patched: Patched) -> LabelTable:
    """Read what a patch would write."""
    from tempfile import TemporaryDirectory

    if set(patched.files) == {""}:
        encoding = patched.layout.encoding
        plain = None if encoding.startswith("utf-8") else encoding
        copy = Source(source.path, content=patched.files[""], encoding=plain)
        return FORMATS[patched.layout.format].read(copy, patched.layout)
    with TemporaryDirectory() as scratch:
        target = Path(scratch) / source.path.name
        write_files(target, patched.files)
        return FORMATS[patched.layout.format].read(Source(target), patched.layout)


def write_files(target: Path, files: Mapping[str, bytes]) -> None:
    """Write a file with those beside it, or the files of a folder."""
    beside = "" in files
    for name, content in files.items():
        path = target.with_name(f"{target.name}{name}") if beside else target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_labels(
    source: Any,
    *,
    format: str | None = None,
    options: ReadOptions | None = None,
    classes: Path | str | Sequence[str] | None = None,
    **keywords: Any,
) -> LabelTable:
    """Read labels from a file, a folder or a DataFrame.

    Args:
        source: A path, ``-`` for standard input, or a DataFrame of pandas or polars.
        format: Name of the format; None recognises it from the content.
        options: What the file leaves open, as an object.
        classes: The closed list of classes: a file with a name per line, or the names.
        keywords: The same as keywords: ``unlisted="unknown"``, ``label_columns="tags"`` and all
            other fields of :class:`ReadOptions`.

    Raises:
        DataError: The file cannot be read as labels; the message names row and remedy.
        AmbiguousInputError: The file leaves something open that an option has to settle.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"image": ["a.jpg", "b.jpg"], "tags": ["cat;dog", "dog"]})
        >>> read_labels(frame, unlisted="unknown")
        LabelTable(2 images, 2 classes, 3 present, 0 absent, 1 unknown)
    """
    if isinstance(classes, str | os.PathLike):
        keywords["classes"], classes = classes, None
    said = read_options(keywords, options)
    opened = open_source(source, said)
    found = detect(opened, said, format=format, classes=classes)
    if isinstance(found, Ambiguous):
        raise found.error()
    return named_table(read(opened, found), opened.path, said)


def named_table(table: LabelTable, path: Path, options: ReadOptions) -> LabelTable:
    """The table with its classes named as the user wants them."""
    table = rename_by_map(table, class_map(table, options))
    check_look_alikes(table, path, options)
    if options.background_class is not None:
        table = apply_background_class(table, options.background_class, path)
    return table


def write_labels(
    table: LabelTable, path: Path | str, *, format: str | None = None, lossy: bool = False
) -> Layout:
    """Write a table; without ``lossy``, only in a format that can express all of it.

    Args:
        table: The labels.
        path: The file or folder to write.
        format: Name of the format; None for the usual one of the ending: Hilltop's own for
            .parquet, a wide table for .csv, .tsv and .xlsx (lists of labels from 1,000 classes on).
        lossy: Leave out what the format cannot express.

    Returns:
        How it is laid out: ``read(path, layout)`` gives the same table.
    """
    target = Path(path)
    chosen = named_format(format) if format else _by_suffix(target, table)
    check_folder(target)
    if chosen.write is None:
        raise data_error(
            target,
            f"files of the format {chosen.name!r} are read, but not written. Write another format,"
            " such as wide.",
        )
    if target.suffix.lower() in PACKED_SUFFIXES:
        raise data_error(target, "compressed files are read, but not written.")
    return chosen.write(table, target, lossy)


def _by_suffix(path: Path, table: LabelTable) -> Format:
    suffix = path.suffix.lower()
    if suffix in _TABLES:
        return FORMATS["wide" if len(table.classes) <= _MOST_WIDE_CLASSES else "list_column"]
    fitting = [format for format in FORMATS.values() if suffix in format.suffixes]
    if len(fitting) != 1:
        names = ", ".join(format.name for format in fitting or FORMATS.values() if format.writes)
        raise AmbiguousInputError(
            f"{path}: its ending does not say which format to write. Pass --to with one of {names};"
            " .csv, .tsv, .xlsx, .jsonl and .parquet have one of their own."
        )
    return fitting[0]


def table_from_dataframe(
    frame: Any,
    *,
    image: str | None,
    label: str | Sequence[str] | None,
    classes: Sequence[str] | None,
    delimiter: str | None,
    format: str | None,
    options: ReadOptions | None,
    **keywords: Any,
) -> LabelTable:
    """Read a DataFrame as any other table; nothing is inferred that was given."""
    said = read_options(keywords, options)
    if not _is_frame(frame):
        raise ArgumentTypeError(
            f"Expected a DataFrame of pandas or polars, but got {type(frame).__name__}."
        )
    if isinstance(classes, str | os.PathLike) or label in ([], ()):
        raise ArgumentTypeError("classes must be a list of names, and label a column or several.")
    names = [str(name) for name in frame.columns]
    if image is not None:
        said = replace(said, image_column=str(image))
    if label is not None:
        several = label if isinstance(label, list | tuple) else [label]
        columns = [str(one) for one in several]
        said = replace(said, label_columns=columns[0] if len(columns) == 1 else _quoted(columns))
    if delimiter is not None:
        said = replace(said, delimiter=delimiter)
    closed = None if classes is None else checked_classes(map(str, classes))
    if closed is not None and label is None and format is None and {*closed} & {*names}:
        missing = [name for name in closed if name not in names]
        if missing:
            raise DataError(
                f"classes names columns of the DataFrame, but there is no column {missing[0]!r}."
                f"{did_you_mean(missing[0], names)}"
            )
        said = replace(said, class_columns=_quoted(closed))
    source = Source(_FRAME, frame=frame)
    try:
        found = detect(source, said, format=format, classes=closed)
        if isinstance(found, Ambiguous):
            raise found.error()
        table = named_table(read(source, found), source.path, said)
    except pa.ArrowException as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"the DataFrame holds a column that is no text: {reason}.") from None
    step = Step("from_dataframe", {"rows": len(frame), "columns": len(names)})
    return replace(table, history=(step, *table.history[1:]))


def _quoted(names: Sequence[str]) -> str:
    """Names of columns as the options take them."""
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)
