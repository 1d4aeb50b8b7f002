"""Hilltop's own Parquet file: one row an image, lists of classes; says everything a table knows."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hilltop.data.array_files import check_parquet
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.format import FilePatch, Format, Patched, with_changes
from hilltop.data.label_table import LabelTable, Scopes, State, Step
from hilltop.data.layout import Ambiguous, Layout, ReadOptions

_KEY = b"hilltop"
_VERSION = 1
_VERSION_WITH_SCOPES = 2  # which a reader that does not know of them must refuse
_SCOPE = "scope"
_COLUMNS = {State.PRESENT: "present", State.ABSENT: "absent", State.UNKNOWN: "unknown"}


def matches(source: Source) -> bool:
    """Whether this is a Parquet file with our own metadata."""
    return source.suffix == ".parquet" and _metadata(source) is not None


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write everything the table knows; nothing is ever lost."""
    with replacing(path) as temporary:
        pq.write_table(_content(table), temporary, compression="zstd", row_group_size=1 << 18)
    return Layout("hilltop", unlisted=table.unlisted)


def _content(table: LabelTable) -> pa.Table:
    metadata = {
        "version": _VERSION if table.scopes is None else _VERSION_WITH_SCOPES,
        "classes": table.classes,
        "unlisted": table.unlisted.name.lower(),
        "history": [_written(step) for step in table.history],
        "notes": table.notes,
    }
    columns = {"image": table.images}
    for state, name in _COLUMNS.items():
        if state != table.unlisted:
            columns[name] = table.lists(state, coded=True)
    if table.scopes is not None:
        columns[_SCOPE] = pa.array(table.scopes.of_image)
        metadata["scopes"] = _written_scopes(table.scopes)
    return pa.table(columns).replace_schema_metadata({_KEY: json.dumps(metadata).encode()})


def read(source: Source, layout: Layout) -> LabelTable:
    """Read a table just as it was written."""
    metadata = _metadata(source)
    if metadata is None:
        raise data_error(source.path, "this is not a whole Parquet file written by hilltop.")
    if metadata.get("version") not in (_VERSION, _VERSION_WITH_SCOPES):
        raise data_error(
            source.path,
            f"this file has version {metadata.get('version')}, but this hilltop reads up to"
            f" {_VERSION_WITH_SCOPES}. Install a newer hilltop.",
        )
    try:
        if source.path.is_file():
            check_parquet(source.path)
        content = pq.read_table(pa.BufferReader(source.raw))
        return _table(source.path, content, metadata)
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
        raise data_error(source.path, f"this file is damaged: {error}.") from None


def _table(path: Path, content: pa.Table, metadata: dict[str, Any]) -> LabelTable:
    content.validate(full=True)
    rows, columns, states = [], [], []
    for state, name in _COLUMNS.items():
        if name in content.column_names:
            row, column = _entries(path, content.column(name), metadata["classes"])
            rows.append(row)
            columns.append(column)
            states.append(np.full(len(row), state, dtype=np.int8))
    table = LabelTable.from_coo(
        content.column("image").combine_chunks().cast(pa.string()),
        metadata["classes"],
        np.concatenate(rows),
        np.concatenate(columns),
        np.concatenate(states),
        unlisted=State.parse(metadata["unlisted"]),
        source=path,
        notes=metadata["notes"],
    )
    history = tuple(Step(*step) for step in metadata["history"])
    return replace(table, history=history, scopes=_scopes(content, metadata))


def _written_scopes(scopes: Scopes) -> list[Any]:
    """Name and class numbers of each scope."""
    numbers = (np.flatnonzero(found).tolist() for found in scopes.looked_for)
    return [list(one) for one in zip(scopes.names, numbers, strict=True)]


def _scopes(content: pa.Table, metadata: dict[str, Any]) -> Scopes | None:
    if "scopes" not in metadata:
        return None
    looked_for = np.zeros((len(metadata["scopes"]), len(metadata["classes"])), dtype=bool)
    for row, (_, numbers) in enumerate(metadata["scopes"]):
        looked_for[row, numbers] = True
    of_image = content.column(_SCOPE).to_numpy().astype(np.int32)
    if len(of_image) and not 0 <= of_image.min() <= of_image.max() < len(looked_for):
        raise ValueError("an image has a scope that is not listed")
    return Scopes(tuple(name for name, _ in metadata["scopes"]), of_image, looked_for)


def _written(step: Step) -> list[Any]:
    return [step.name, dict(step.details), step.by, step.seed]


def _entries(
    path: Path, column: pa.ChunkedArray, classes: list[str]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Image and class number of every name in a column of lists."""
    lists = column.combine_chunks()
    names = lists.flatten()
    if pa.types.is_dictionary(names.type):
        code_of = pc.index_in(names.dictionary, value_set=pa.array(classes, pa.string()))
        columns = code_of.take(names.indices)
    else:
        columns = pc.index_in(names, value_set=pa.array(classes, pa.string()))
    if columns.null_count:
        raise data_error(path, "some labels are not in the file's own list of classes.")
    lengths = pc.fill_null(lists.value_lengths(), 0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(lists)), lengths), columns.to_numpy(zero_copy_only=False)


def _metadata(source: Source) -> Any:
    try:
        stored = pq.read_schema(pa.BufferReader(source.raw)).metadata or {}
        return json.loads(stored[_KEY]) if _KEY in stored else None
    except (pa.ArrowException, OSError, ValueError):
        return None


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Everything stands in the file itself."""
    return Layout("hilltop") if matches(source) else None


def patch(asked: FilePatch) -> Patched:
    """Write the file anew: it holds nothing but the table."""
    changed = with_changes(asked.table, asked.changes, step="review")
    stored = io.BytesIO()
    pq.write_table(_content(changed), stored, compression="zstd", row_group_size=1 << 18)
    return asked.patched(stored.getvalue())


FORMAT = Format(
    name="hilltop",
    summary="Hilltop's own Parquet file, which keeps everything.",
    matches=matches,
    read=read,
    detect=detect,
    write=write,
    patch=patch,
    suffixes=(".parquet",),
)
