"""Hugging Face imagefolder: a metadata file beside the images, with file names and labels."""

from __future__ import annotations

from pathlib import Path

from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.folder_files import choose_split, file_to_write
from hilltop.data.formats.text.label_lists import (
    open_rows,
    pick_column,
    read_list_rows,
    write_list_rows,
)
from hilltop.data.formats.text.list_patch import patch_list_rows
from hilltop.data.formats.text.sample import peek_names
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.label_table import LabelTable

METADATA_NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Names of the files that Hugging Face's imagefolder takes labels from."""


def fits(source: LabelSource) -> bool:
    """Whether this is a metadata file with file names, or a folder that holds one."""
    if not source.is_folder:
        return _is_metadata(source)
    return any(_is_metadata(LabelSource(path)) for path in _metadata_files(source.path))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels in a metadata file.

    The image id is the file name as it stands there. Labels are lists of names, or of class
    numbers if ``--classes`` gives the names; ``objects`` with ``categories`` or ``category``
    are read too. What unlisted classes are is left open by the format: ``--unlisted`` says it.
    """
    rows = open_rows(LabelSource(_metadata_file(source, options)))
    if isinstance(rows, TableFile):
        rows.content = rows.content.flatten()  # objects: {categories} -> objects.categories
    image = pick_column(rows, options.image_column, _is_file_name, "--image-column", "file names")
    return read_list_rows(rows, image, options, format="huggingface")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a metadata file; into a folder, as ``metadata.jsonl``."""
    target = file_to_write(path, "metadata.jsonl")
    if target.name not in METADATA_NAMES:
        raise data_error(
            path,
            f"Hugging Face takes labels only from files named {', '.join(METADATA_NAMES)}."
            " Rename it.",
        )
    write_list_rows(table, target, lossy, image_column="file_name")


def _is_metadata(source: LabelSource) -> bool:
    """Whether this is a file that Hugging Face's imagefolder takes labels from."""
    return source.path.name in METADATA_NAMES and any(
        _is_file_name(name) for name in peek_names(source)
    )


def _is_file_name(name: str) -> bool:
    """Whether Hugging Face's imagefolder takes a column of this name for image files."""
    return name == "file_name" or name.endswith("_file_name")


def _metadata_files(folder: Path) -> list[Path]:
    """Metadata files in a folder; if there is none, those in the folders of its splits."""
    here = [folder / name for name in METADATA_NAMES if (folder / name).is_file()]
    if here:
        return here
    return sorted(
        path for name in METADATA_NAMES for path in folder.glob(f"*/{name}") if path.is_file()
    )


def _metadata_file(source: LabelSource, options: ReadOptions) -> Path:
    if not source.is_folder:
        return source.path
    files = _metadata_files(source.path)
    if not files:
        raise data_error(source.path, f"this folder holds none of {', '.join(METADATA_NAMES)}.")
    if files[0].parent != source.path:
        split = choose_split(source.path, {path.parent.name for path in files}, options.split)
        files = [path for path in files if path.parent.name == split]
    if len(files) > 1:
        names = " and ".join(path.name for path in files)
        raise data_error(files[0].parent, f"this folder holds {names}. Name one of these files.")
    return files[0]


FORMAT = Format(
    name="huggingface",
    summary="Hugging Face imagefolder: metadata.csv, .jsonl or .parquet with file_name and labels.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch_list_rows,
    folders=True,
    file_names=True,
)
