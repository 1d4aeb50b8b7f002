"""Columns of Parquet files that hold objects, as columns of paths, lists of names, or values."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.formats.text.json_shapes import NAME_KEYS

_PATHS = ("path", "file_name", "filename", "uri", "url")


def plain_columns(content: pa.Table) -> pa.Table:
    """The table with paths in place of pictures, and names in place of objects with names.

    Pictures are stored as ``{bytes, path}``; labels as lists of ``{label, score}``; values for
    each class as ``{cat: true, dog: false}``, which become columns ``labels.cat``.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for name in dict.fromkeys(content.column_names):
        if content.column_names.count(name) > 1:
            return content
        column = content.column(name)
        kind = column.type
        if pa.types.is_struct(kind):
            columns.update(_fields(name, column))
        elif _is_list(kind) and pa.types.is_struct(kind.value_type):
            columns[name] = _names(column)
        else:
            columns[name] = column
    return pa.table(columns) if columns else content


def _fields(name: str, column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    keys = [field.name for field in column.type]
    if len(set(keys)) < len(keys) or not keys:
        return {name: column}
    path = next((key for key in _PATHS if key in keys), None)
    if path is not None and pa.types.is_string(column.type.field(path).type):
        return {name: pc.struct_field(column, path)}
    if all(_is_value(field.type) for field in column.type):
        return {f"{name}.{key}": pc.struct_field(column, key) for key in keys}
    return {name: column}


def _names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of the first key that names an object; the objects as they are without one."""
    inner = column.type.value_type
    keys = [field.name for field in inner]
    key = next((one for one in NAME_KEYS if keys.count(one) == 1), None)
    if key is None or not _is_name(inner.field(key).type):
        return column
    lists = column.combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], column.type)
    lengths = pc.fill_null(lists.value_lengths(), 0).to_pylist()
    names = pc.struct_field(lists.flatten(), key).to_pylist()
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    found = [
        [one for one in names[start:end] if one is not None]
        for start, end in itertools.pairwise(starts)
    ]
    return pa.chunked_array([pa.array(found, pa.list_(inner.field(key).type))])


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_value(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    )


def _is_name(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    )
