"""Reading and writing labels in every format in the wild."""

from __future__ import annotations

from pathlib import Path

from hilltop.checks import did_you_mean
from hilltop.data.data_errors import data_error
from hilltop.data.formats import (
    coco,
    huggingface,
    label_studio,
    list_column,
    long,
    lvis,
    native,
    nus,
    openimages,
    paper_list,
    voc,
    voc_xml,
    wide,
)
from hilltop.data.formats.base import Format, ReadOptions, Source
from hilltop.data.label_table import LabelTable
from hilltop.errors import OptionNeeded

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        native.FORMAT,
        long.FORMAT,
        coco.FORMAT,
        lvis.FORMAT,
        voc.FORMAT,
        voc_xml.FORMAT,
        nus.FORMAT,
        paper_list.FORMAT,
        openimages.FORMAT,
        wide.FORMAT,
        list_column.FORMAT,
        huggingface.FORMAT,
        label_studio.FORMAT,
    )
}


def read_labels(
    path: Path | str, *, format: str | None = None, options: ReadOptions | None = None
) -> LabelTable:
    """Read a label file in any known format.

    Args:
        path: The file, or the folder of a data set.
        format: Name of the format; None recognises it from the content.
        options: What the file leaves open.

    Raises:
        DataError: The file cannot be read as labels; the message names line and remedy.
        OptionNeeded: The file leaves something open that an option has to settle.
    """
    source = Source(Path(path))
    if not source.path.exists():
        raise data_error(source.path, "there is no such file or folder.")
    chosen = _named(format) if format else recognise(source)
    if source.is_folder and not chosen.folders:
        raise data_error(source.path, f"this is a folder, but {chosen.name!r} is read from a file.")
    return chosen.read(source, options or ReadOptions())


def write_labels(
    table: LabelTable, path: Path | str, *, format: str | None = None, lossy: bool = False
) -> None:
    """Write a table; without ``lossy``, only in a format that can express all of it."""
    target = Path(path)
    chosen = _named(format) if format else _by_suffix(target)
    if not target.parent.is_dir():
        raise data_error(target, "its folder does not exist. Create it first.")
    chosen.write(table, target, lossy)


def recognise(source: Source) -> Format:
    """Return the one format that the content fits."""
    fitting = [format for format in FORMATS.values() if format.fits(source)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(format.name for format in fitting or FORMATS.values())
    if fitting:
        raise OptionNeeded(
            f"{source.path}: the content fits {len(fitting)} formats: {names}."
            " Choose one with --format."
        )
    raise OptionNeeded(
        f"{source.path}: the content fits no known format. If it is one of {names},"
        " say so with --format to see what is wrong with it."
    )


def _named(name: str) -> Format:
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
