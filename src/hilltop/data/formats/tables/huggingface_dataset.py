"""Hugging Face datasets: Parquet files whose metadata name the classes, and ``save_to_disk``.

Labels are class numbers there (``ClassLabel``, or a sequence of them). Rows without a column of ids
are named by their number, from 0. Pictures in the same file are not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.arrow_files import write_parquet
from hilltop.data.formats.text.express import check_expressible, check_lines
from hilltop.data.formats.text.folder_files import choose_split, files_in, folders_in
from hilltop.data.formats.text.hf_features import (
    class_labels,
    described_features,
    description,
    named_lists,
)
from hilltop.data.formats.text.label_cells import lists_of
from hilltop.data.formats.text.label_lists import pick_column, read_list_rows
from hilltop.data.formats.text.sample import is_image_name, is_label_name
from hilltop.data.formats.text.table_file import TableFile, is_parquet
from hilltop.data.label_table import LabelTable
from hilltop.data.parquet_files import check_parquet
from hilltop.data.state import State

_DICT, _INFO, _STATE = "dataset_dict.json", "dataset_info.json", "state.json"
_SHARD = re.compile(r"(.+?)(?:-[0-9]+-of-[0-9]+.*)?\.parquet")
_ROW = "row number"
_FAULTS = (pa.ArrowException, OSError, ValueError, KeyError)


class _Rows(TableFile):
    """Some columns of Arrow or Parquet files."""

    def __init__(self, path: Path, content: pa.Table) -> None:
        self.path, self.content, self._is_parquet = path, content, True
        self.notes = []

    def line_of(self, row: int) -> int:
        """Number of a row, counted from 1."""
        return row + 1


@dataclass(frozen=True)
class _Part:
    """One split: its files, their columns, and what is said of these.

    Attributes:
        files: Parquet or Arrow files.
        schema: The columns; those of a struct are called ``outer.inner``.
        features: Hugging Face's description.
    """

    files: list[Path]
    schema: pa.Schema
    features: Any

    def load(self, path: Path, columns: list[str]) -> pa.Table:
        """Read some columns of all files."""
        try:
            parts = [_load(file, columns) for file in self.files]
            content = pa.concat_tables(parts).combine_chunks()
            content.validate(full=True)
        except _FAULTS as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise data_error(path, f"its data cannot be read: {reason}.") from None
        return content


def fits(source: LabelSource) -> bool:
    """Whether classes are named in a Parquet file's metadata, or ``save_to_disk`` made a folder."""
    if source.is_folder:
        names = files_in(source.path)
        return _DICT in names or (_INFO in names and _STATE in names) or _has_shards(source.path)
    return is_parquet(source) and bool(class_labels(_parquet_features(source.path)))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read one split; numbers become the names that the data set gives them."""
    part = _open(source, options)
    flat = _flat_names(part.schema)
    described = class_labels(part.features)
    known = [name for name in flat if name in described] or [*filter(is_label_name, flat)]
    outline = _Rows(source.path, pa.table({name: [] for name in flat}))
    label = pick_column(
        outline,
        options.label_column,
        known.__contains__,
        "--label-column",
        "labels of an image",
    )
    image = _image_column(outline, part.schema, options)
    content = part.load(source.path, [label] if image is None else [label, image])
    rows = _Rows(source.path, content)
    if image is None:
        numbers = pa.array(map(str, range(len(content))), pa.string())
        rows.content = content.append_column(_ROW, numbers)
    names = described.get(label)
    if names is not None:
        lists = named_lists(source.path, rows.column(label), names)
        rows.content = rows.content.set_column(content.column_names.index(label), label, lists)
    named = replace(options, label_column=label)
    table = read_list_rows(rows, image or _ROW, named, format="huggingface_dataset")
    return table if names is None or options.classes else table.with_classes(names)


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a Parquet file that ``datasets.load_dataset`` reads with the names of the classes."""
    said = (State.UNKNOWN, State.ABSENT)
    check_expressible(table, path, lossy, states=(State.PRESENT,), unlisted=said)
    if path.suffix.lower() != ".parquet":
        raise data_error(path, "this format is a Parquet file. Give it the ending .parquet.")
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    check_lines(table, path, classes=False)
    number = {name: at for at, name in enumerate(table.classes)}
    names = lists_of(table, State.PRESENT)
    numbers = pa.array([number[name] for name in names.flatten().to_pylist()], pa.int64())
    labels = pa.ListArray.from_arrays(names.offsets, numbers)
    classes = {"names": list(table.classes), "_type": "ClassLabel"}
    columns = {
        "image": {"dtype": "string", "_type": "Value"},
        "labels": {"feature": classes, "_type": "Sequence"},
    }
    content = pa.table({"image": table.images, "labels": labels})
    write_parquet(content.replace_schema_metadata(description(columns)), path)


def _open(source: LabelSource, options: ReadOptions) -> _Part:
    if not source.is_folder:
        return _parquet_part(source.path, [source.path])
    names = files_in(source.path)
    if _DICT in names:
        splits = {
            name: path for name, path in folders_in(source.path).items() if _INFO in files_in(path)
        }
        if not splits:
            raise data_error(source.path, f"there are no splits beside {_DICT}.")
        return _saved_part(splits[choose_split(source.path, splits, options.split)])
    if _INFO in names:
        return _saved_part(source.path)
    shards = _shards(source.path)
    if not shards:
        raise data_error(source.path, "there is no data set of Hugging Face here.")
    return _parquet_part(source.path, shards[choose_split(source.path, shards, options.split)])


def _saved_part(folder: Path) -> _Part:
    """What ``save_to_disk`` wrote into one folder."""
    files = files_in(folder)
    info = LabelSource(files[_INFO]).json
    state = LabelSource(files[_STATE]).json if _STATE in files else {}
    if not isinstance(info, dict) or not isinstance(state, dict):
        raise data_error(folder, f"{_INFO} and {_STATE} must be JSON objects.")
    if state.get("_indices_files"):
        raise data_error(
            folder, "this data set is a selection of another. Save it again with flatten_indices()."
        )
    chosen = _listed(state.get("_data_files")) or [name for name in files if _is_arrow(name)]
    missing = [name for name in chosen if name not in files]
    if missing or not chosen:
        gone = repr(missing[0])[:60] if missing else "any .arrow file"
        raise data_error(folder, f"there is not {gone}. Was the folder copied whole?")
    paths = [files[name] for name in chosen]
    schema = _schema(folder, paths[0])
    return _Part(paths, schema, info.get("features") or described_features(schema))


def _listed(data_files: Any) -> list[str]:
    """Names of the files that the state lists; none where it is silent or damaged."""
    entries = data_files if isinstance(data_files, list) else []
    names = [entry.get("filename") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str)]


def _is_arrow(name: str) -> bool:
    return name.endswith(".arrow")


def _parquet_part(path: Path, files: list[Path]) -> _Part:
    schema = _schema(path, files[0])
    return _Part(files, schema, described_features(schema))


def _schema(path: Path, file: Path) -> pa.Schema:
    try:
        if file.suffix == ".arrow":
            return _arrow(file).schema
        return pq.read_schema(file)
    except _FAULTS as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"{file.name} cannot be read: {reason}.") from None


def _load(file: Path, columns: list[str]) -> pa.Table:
    if file.suffix == ".arrow":
        stream = _arrow(file)
        batches = []
        for batch in stream:
            batch.validate(full=True)  # Taking a damaged batch apart would end the process.
            batches.append(batch)
        return pa.Table.from_batches(batches, stream.schema).flatten().select(columns)
    check_parquet(file)
    return pq.ParquetFile(file).read(columns=columns).flatten().select(columns)


def _arrow(file: Path) -> Any:
    """Open an Arrow file, which Hugging Face writes as a stream."""
    return pa.ipc.open_stream(pa.memory_map(str(file)))


def _flat_names(schema: pa.Schema) -> list[str]:
    return list(schema.empty_table().flatten().column_names)


def _image_column(outline: TableFile, schema: pa.Schema, options: ReadOptions) -> str | None:
    """The column of ids; None where there is none."""
    types = schema.empty_table().flatten().schema
    fitting = [
        field.name
        for field in types
        if is_image_name(field.name)
        and (pa.types.is_string(field.type) or pa.types.is_integer(field.type))
    ]
    if options.image_column is None and not fitting:
        return None
    fitting = [name for name in fitting if "." not in name] or fitting  # a column before its part
    return pick_column(
        outline, options.image_column, fitting.__contains__, "--image-column", "image ids"
    )


def _parquet_features(path: Path) -> Any:
    try:
        return described_features(pq.read_schema(path))
    except _FAULTS:
        return None


def _shards(folder: Path) -> dict[str, list[Path]]:
    """Parquet files by split, here or in ``data``: ``train-00000-of-00002.parquet``."""
    found: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        for name, path in files_in(place).items():
            if match := _SHARD.fullmatch(name):
                found.setdefault(match[1], []).append(path)
    return found


def _has_shards(folder: Path) -> bool:
    first = [files[0] for files in _shards(folder).values()]
    return bool(first) and all(bool(class_labels(_parquet_features(path))) for path in first)


FORMAT = Format(
    name="huggingface_dataset",
    summary="Hugging Face datasets: Parquet with ClassLabel names, or a folder of save_to_disk.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=write,
    folders=True,
)
