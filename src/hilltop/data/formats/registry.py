"""Every format there is, found by looking, and the two functions that read and write labels.

A module or package below this one that has a ``FORMAT`` is a format; nothing lists them by name.
"""

from __future__ import annotations

import importlib
import pkgutil
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hilltop.checks import did_you_mean
from hilltop.data.class_names import (
    apply_none_class,
    merge_names,
    read_renames,
    rename_classes,
)
from hilltop.data.data_errors import data_error
from hilltop.data.files import check_folder
from hilltop.data.formats import documents, folders, tables
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.alike_tables import find_alike, join_tables
from hilltop.data.formats.text.columns_seen import describe_content
from hilltop.data.formats.text.content import (
    PACKED_SUFFIXES,
    is_archive,
    read_content,
)
from hilltop.data.formats.text.encodings import check_encoding, decoded, likely_encoding
from hilltop.data.formats.text.folder_files import candidate_files
from hilltop.data.formats.text.markdown_tables import is_markdown_table, markdown_as_csv
from hilltop.data.formats.text.spreadsheet import SUFFIXES
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.review_record import read_provenance
from hilltop.errors import DataError, NotUtf8, OptionNeeded


def find_formats() -> Iterator[Format]:
    """Yield the format of every module and package that has one."""
    for room in (tables, documents, folders):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            format = getattr(importlib.import_module(module.name), "FORMAT", None)
            if isinstance(format, Format):
                yield format


MOST_SHOWN = 5
_STDIN = "standard input"
FORMATS: dict[str, Format] = {
    format.name: format for format in sorted(find_formats(), key=lambda format: format.name)
}
"""Every format by name."""


def read_labels(
    path: Path | str, *, format: str | None = None, options: ReadOptions | None = None
) -> LabelTable:
    """Read a label file in any known format.

    Args:
        path: The file, or the folder of a data set; ``-`` is standard input.
        format: Name of the format; None recognises it from the content.
        options: What the file leaves open.

    Raises:
        DataError: The file cannot be read as labels; the message names line and remedy.
        OptionNeeded: The file leaves something open that an option has to settle.
    """
    options = options or ReadOptions()
    if str(path) == "-":
        return _read_copy(sys.stdin.buffer.read(), _STDIN, _STDIN, "-", format, options)
    if Path(path).is_fifo():  # as `<(command)` of a shell is; it can be read but once
        shown = shlex.quote(str(path))
        content = Path(path).read_bytes()
        return _read_copy(content, Path(path).name, str(path), shown, format, options)
    if options.encoding is not None and Path(path).is_file():
        return _read_decoded(Path(path), format, options)
    try:
        return _read_utf8(Path(path), format, options)
    except OptionNeeded as error:
        raise OptionNeeded(_with_format(str(error), format)) from None
    except NotUtf8 as error:
        raise OptionNeeded(f"{error}{_encoding_hint(Path(path), options)}") from None
    except UnicodeEncodeError:  # JSON can write them, but no other file can
        raise data_error(
            Path(path), "a name holds half a character (a lone surrogate). Write it anew."
        ) from None


def _with_format(message: str, format: str | None) -> str:
    """A message that ends with a command, which says the format again where the user did."""
    command = message.rpartition("hilltop inspect ")[2]
    if format is None or command == message or "\n" in command or "--format" in command:
        return message
    return f"{message} --format {format}"


def _read_utf8(path: Path, format: str | None, options: ReadOptions) -> LabelTable:
    source = LabelSource(path, options)
    if not source.path.exists():
        raise data_error(source.path, "there is no such file or folder.")
    if not source.path.is_file() and not source.is_folder:  # a device may have no end
        raise data_error(source.path, "this is neither a file nor a folder.")
    if options.minus_one is None and _has_absents(source.path):
        return _read_utf8(path, format, replace(options, minus_one="absent"))
    if source.has_double_colons and not source.is_folder:
        content = read_content(path).replace(b"::", b"\t")
        return _read_copy(content, path.name, str(path), shlex.quote(str(path)), format, options)
    if not source.is_folder and is_markdown_table(source.head):
        content = markdown_as_csv(source.text).encode()
        name = f"{path.stem}.csv"
        return _read_copy(content, name, str(path), shlex.quote(str(path)), format, options)
    if source.is_folder and format is None and (files := _alike_tables(source)):
        return _read_alike(path, files, options)
    chosen = named_format(format) if format else recognise(source)
    if source.is_folder and not chosen.folders:
        raise data_error(source.path, f"this is a folder, but {chosen.name!r} is read from a file.")
    return _with_names(chosen.read(source, options), source.path, options)


def _alike_tables(source: LabelSource) -> list[Path]:
    """Tables with one header that are all the labels of a folder, which is nothing else."""
    files = find_alike(source.path)
    if not files or any(format.fits(source) for format in FORMATS.values()):
        return []
    labels = label_files(source.path)
    return files if labels and set(labels) <= set(files) else []


def _read_alike(folder: Path, files: list[Path], options: ReadOptions) -> LabelTable:
    """Read tables with one header together, and say so."""
    title = f"{folder} (its {len(files)} tables one below the other)"
    shown = shlex.quote(str(folder))
    table = _read_copy(join_tables(files), files[0].name, title, shown, None, options)
    names = ", ".join(path.name for path in files[:MOST_SHOWN])
    more = f" and {len(files) - MOST_SHOWN} more" if len(files) > MOST_SHOWN else ""
    note = f"{len(files)} tables with the same columns are read together: {names}{more}."
    return replace(table, notes=(note, *table.notes))


def _has_absents(path: Path) -> bool:
    """Whether `hilltop apply` wrote the file, with absents: -1 stands for them then."""
    return any(record.outcome == "absent" for record in read_provenance(path))


def _with_names(table: LabelTable, path: Path, options: ReadOptions) -> LabelTable:
    """The table with its classes named as the user wants them."""
    if options.renames is not None:
        step = Step("rename", {"file": str(options.renames)})
        table = rename_classes(table, read_renames(options.renames), step)
    if options.merge_names:
        table = merge_names(table)
    if options.none_class is not None:
        table = apply_none_class(table, options.none_class, path)
    return table


def _read_copy(
    content: bytes, name: str, title: str, shown: str, format: str | None, options: ReadOptions
) -> LabelTable:
    """Read what is in no file, or not as it is there; readers look twice, so a file holds it.

    Args:
        content: The bytes.
        name: What the file is called.
        title: What it is called in messages.
        shown: What it is called in commands.
        format: The format, if it is known.
        options: What the user said.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / name
        path.write_bytes(content)
        try:
            return read_labels(path, format=format, options=options)
        except DataError as error:
            text = str(error).replace(f"inspect {shlex.quote(str(path))}", f"inspect {shown}")
            raise type(error)(text.replace(str(path), title)) from None


def _read_decoded(path: Path, format: str | None, options: ReadOptions) -> LabelTable:
    """Read a file that is not UTF-8 as the user says; the command names it and the encoding."""
    encoding = check_encoding(str(options.encoding))
    shown = f"{shlex.quote(str(path))} --encoding {encoding}"
    suffixes = [one for one in path.suffixes if one.lower() not in PACKED_SUFFIXES]
    name = f"{path.name.partition('.')[0]}{''.join(suffixes)}"
    return _read_copy(
        decoded(path, encoding), name, str(path), shown, format, replace(options, encoding=None)
    )


def _encoding_hint(path: Path, options: ReadOptions) -> str:
    """What a file that is not UTF-8 is likely encoded in, with a command."""
    likely = likely_encoding(path) if path.is_file() else None
    if likely is None:
        return ""
    command = ready_command(path, options, encoding=likely)
    return f" Or say how it is encoded; this looks like {likely}, for example: {command}"


def write_labels(
    table: LabelTable, path: Path | str, *, format: str | None = None, lossy: bool = False
) -> None:
    """Write a table; without ``lossy``, only in a format that can express all of it."""
    target = Path(path)
    chosen = named_format(format) if format else _by_suffix(target)
    check_folder(target)
    if target.suffix.lower() in (*SUFFIXES, *PACKED_SUFFIXES):
        raise data_error(target, "such files are read, but not written. Write a .csv file instead.")
    chosen.write(table, target, lossy)


def recognise(source: LabelSource) -> Format:
    """Return the format that the content fits: of several, the one of highest priority."""
    fitting = [format for format in FORMATS.values() if format.fits(source)]
    highest = max((format.priority for format in fitting), default=None)
    best = [format for format in fitting if format.priority == highest]
    if len(best) == 1 and not (source.is_folder and highest == Priority.GENERAL):
        return best[0]
    if len(best) == 1:
        # Pictures in folders may be labelled by these folders, or by a file among them.
        files = label_files(source.path)
        if not files:
            return best[0]
        raise OptionNeeded(f"{source.path}: {describe_folder(source, files, best[0].name)}")
    if best:
        names = ", ".join(format.name for format in best)
        raise OptionNeeded(
            f"{source.path}: the content fits {len(best)} formats: {names}."
            " Choose one with --format, for example:"
            f" {ready_command(source.path, source.options or ReadOptions())}"
            f" --format {best[-1].name}"
        )
    if source.is_folder:
        raise OptionNeeded(f"{source.path}: {describe_folder(source, [])}")
    if is_archive(source.path):
        read_content(source.path)  # says what is wrong with an archive of several files
    if "\ufffd" in source.head:
        hint = _encoding_hint(source.path, source.options or ReadOptions())
        if hint:
            raise OptionNeeded(f"{source.path}: this is not UTF-8. Save the file as UTF-8.{hint}")
    raise OptionNeeded(
        f"{source.path}: the content fits no known format. {describe_content(source)}"
    )


def label_files(folder: Path) -> list[Path]:
    """Files in a folder and below that are recognised as labels: the surest, then the largest."""
    found = []
    for path in candidate_files(folder):
        source = LabelSource(path)
        fitting = [format.priority for format in FORMATS.values() if format.fits(source)]
        if fitting:
            found.append((-max(fitting), -path.stat().st_size, path))
    return [path for *_, path in sorted(found, key=lambda one: one[:2])]


def describe_folder(source: LabelSource, files: list[Path], else_format: str = "") -> str:
    """Say which files of a folder hold labels, or that none does."""
    files = files or label_files(source.path)
    if not files:
        return (
            "this folder fits no known format, and no file in it was recognised as labels. Name the"
            " label file itself to see what it holds."
        )
    shown = ", ".join(str(path.relative_to(source.path)) for path in files[:MOST_SHOWN])
    more = f" and {len(files) - MOST_SHOWN} more" if len(files) > MOST_SHOWN else ""
    either = f", or pass --format {else_format} if its folders are the classes" * bool(else_format)
    command = ready_command(files[0], source.options or ReadOptions())
    return f"this folder holds {shown}{more}. Name a file{either}, for example: {command}"


def named_format(name: str) -> Format:
    """Return the format of a name.

    Raises:
        OptionNeeded: There is no such format.
    """
    if name not in FORMATS:
        raise OptionNeeded(
            f"Unknown format {name!r}.{did_you_mean(name, FORMATS)}"
            f" Known formats: {', '.join(FORMATS)}."
        )
    return FORMATS[name]


def _by_suffix(path: Path) -> Format:
    fitting = [format for format in FORMATS.values() if path.suffix.lower() in format.suffixes]
    if len(fitting) != 1:
        names = ", ".join(format.name for format in fitting or FORMATS.values())
        raise OptionNeeded(
            f"{path}: its ending does not say which format to write. Choose one with --to: {names}."
        )
    return fitting[0]
