"""Hugging Face: metadata files of image folders, Parquet with ClassLabel, and ``save_to_disk``.

In data sets labels are class numbers (``ClassLabel``, or a list of them), named in the metadata of
the file. Rows without a column of ids are named by their number, from 0. Pictures are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.data.array_files import check_parquet
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.folders import choose_split, file_to_write, files_in
from hilltop.data.format import (
    FilePatch,
    Format,
    Patched,
    check_cells,
    check_present_only,
)
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import (
    JSON_LISTS,
    NO_DELIMITER,
    ROW_NUMBER,
    Ambiguous,
    Layout,
    Question,
    ReadOptions,
)
from hilltop.data.tables.cells import arrow_table_cells
from hilltop.data.tables.infer import detect_as
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import read_table
from hilltop.data.tables.words import image_candidates, is_label_name
from hilltop.data.tables.write import write_lists
from hilltop.errors import MissingExtra

METADATA_NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Names of the files that Hugging Face's imagefolder takes labels from."""
_KEY = b"huggingface"
_SAVED = ("dataset_dict.json", "state.json")
_SHARD = re.compile(r"(.+?)(?:-[0-9]+-of-[0-9]+.*)?\.parquet")
_FAULTS = (pa.ArrowException, OSError, ValueError, KeyError)


def matches(source: Source) -> bool:
    """Whether this is a metadata file or folder, or a data set with ClassLabel."""
    if source.is_folder:
        files = files_in(source.path)
        if any(name in files for name in _SAVED) or _metadata_files(source.path):
            return True
        shards = _shards(source.path)
        return bool(shards) and all(class_labels(_features(f[0])) for f in shards.values())
    if not source.is_file:
        return False
    if source.path.name in METADATA_NAMES and _file_columns(source):
        return True
    return source.suffix == ".parquet" and bool(class_labels(_features(source)))


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the columns of images and labels, and the split."""
    inner = _metadata_source(source, options.split)
    if inner is not None:
        return _detect_metadata(source, inner, options, classes)
    part = _open(source, options.split)
    described = class_labels(part.features)
    questions: list[Question] = []
    label = options.label_columns or _label_column(part, described, questions)
    image = options.image_column or _image_column(part, label, questions)
    part.load(source, [label, image])
    kind = part.schema.field(label).type
    if classes is None and options.classes is None:
        classes = described.get(label) or None
    found = detect_as(
        "huggingface",
        source,
        options,
        "list_column",
        classes=classes,
        label_columns=label,
        image_column=image,
        delimiter=JSON_LISTS if pa.types.is_nested(kind) else NO_DELIMITER,
        separator=None,
        sheet=None,
    )
    if isinstance(found, Ambiguous):
        questions += found.questions
    if questions or found is None or isinstance(found, Ambiguous):
        return Ambiguous(source.path, questions, options)
    if pa.types.is_integer(kind.value_type if pa.types.is_nested(kind) else kind):
        found = _with_numbers(found)
    return replace(found, split=part.split)


def _with_numbers(layout: Layout) -> Layout:
    """The layout with class numbers as cells, of which -1 stands for no class."""
    numbers = tuple((str(at), at) for at in range(len(layout.classes or ())))
    return replace(layout, codes=layout.codes or numbers, values=(("-1", "empty"),))


def _label_column(
    part: _Part, described: Mapping[str, Sequence[str]], questions: list[Question]
) -> str:
    """The column of labels: the only one with names of classes, or the only one called so."""
    names: list[str] = part.schema.names
    known = [name for name in names if name in described] or [*filter(is_label_name, names)]
    if len(known) != 1:
        shown = ", ".join(known or names)
        text = f"Which column holds the labels? Pass --label-columns with one of {shown}."
        questions.append(Question(text, {"label_columns": (known or names[-1:])[0]}))
    return known[0] if known else names[-1]


def _image_column(part: _Part, label: str, questions: list[Question]) -> str:
    """The column of ids; row numbers where there is none."""
    fields = [
        field.name
        for field in part.schema
        if field.name != label
        and (pa.types.is_string(field.type) or pa.types.is_integer(field.type))
    ]
    # A column of its own comes before a part of another, such as the path of a picture.
    outer = [name for name in fields if "." not in name]
    found = image_candidates(outer) or image_candidates(fields)
    if len(found) > 1:
        shown = ", ".join(found)
        text = f"Which column holds the image names? Pass --image-column with one of {shown}."
        questions.append(Question(text, {"image_column": found[0]}))
    return found[0] if found else ROW_NUMBER


def read(source: Source, layout: Layout) -> LabelTable:
    """Read one split; numbers become the names that the data set gives them."""
    table = read_table(_opened(source, layout), layout)
    step = Step("read", {"file": str(source.path), "format": "huggingface"})
    return replace(table, history=(step,))


def _opened(source: Source, layout: Layout) -> Source:
    """The table of one split: a metadata file, or the columns of images and labels."""
    inner = _metadata_source(source, layout.split)
    if inner is None:
        columns = [*layout.label_columns, layout.image_column or ROW_NUMBER]
        _open(source, layout.split).load(source, columns)
    return inner or source


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a metadata file, or a Parquet file that ``datasets`` reads with names of classes.

    Into a folder, or under the name of a metadata file, labels are lists of names; under any other
    name that ends with .parquet, they are class numbers.
    """
    if path.is_dir() or path.name in METADATA_NAMES:
        target = file_to_write(path, "metadata.jsonl")
        layout = write_lists(table, target, lossy, image_column="file_name")
        return replace(layout, format="huggingface", table="list_column")
    if path.suffix.lower() != ".parquet":
        raise data_error(
            path,
            f"Hugging Face takes labels from files named {', '.join(METADATA_NAMES)}, or from any"
            " other Parquet file. Rename it.",
        )
    check_present_only(table, path, lossy)
    check_cells(table, path)
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    classes = {"names": list(table.classes), "_type": "ClassLabel"}
    columns = {
        "image": {"dtype": "string", "_type": "Value"},
        "labels": {"feature": classes, "_type": "Sequence"},
    }
    names = table.lists(State.PRESENT, coded=True)
    numbers = names.values.indices.cast(pa.int64())
    labels = pa.ListArray.from_arrays(names.offsets, numbers)
    content = pa.table({"image": table.images, "labels": labels})
    about = {_KEY: json.dumps({"info": {"features": columns}}).encode()}
    with replacing(path) as temporary:
        pq.write_table(content.replace_schema_metadata(about), temporary)
    layout = Layout(
        "huggingface",
        unlisted=table.unlisted,
        image_column="image",
        label_columns=("labels",),
        classes=table.classes,
    )
    return _with_numbers(layout)


def patch(asked: FilePatch) -> Patched:
    """Change the labels in a metadata file or a Parquet file; all other columns stay."""
    inner = _opened(asked.source, asked.layout)
    if inner.is_folder:
        raise asked.refused("only a single Parquet file can be changed in place.")
    named = inner.path.name in METADATA_NAMES
    found = patch_table(replace(asked if named else asked.without_absents(), source=inner))
    if not asked.source.is_folder:
        return found
    return replace(found, files={str(inner.path.relative_to(asked.source.path)): found.files[""]})


# Metadata files


def _file_columns(source: Source) -> list[str]:
    """Columns that Hugging Face's imagefolder takes for image files."""
    line = source.head.partition("\n")[0]
    if source.suffix == ".csv":
        words = [cell.strip(' "\r') for cell in line.split(",")]
    elif source.suffix == ".jsonl":
        words = re.findall(r'"([\w.-]+)"\s*:', line)
    else:
        try:
            words = pq.read_schema(pa.BufferReader(source.raw)).names
        except _FAULTS:
            return []
    return [word for word in words if word == "file_name" or word.endswith("_file_name")]


def _metadata_files(folder: Path) -> list[Path]:
    """Metadata files in a folder; if there is none, those in the folders of its splits."""
    here = [folder / name for name in METADATA_NAMES if (folder / name).is_file()]
    found = here or sorted(path for name in METADATA_NAMES for path in folder.glob(f"*/{name}"))
    return [path for path in found if _file_columns(Source(path))]


def _metadata_source(source: Source, split: str | None) -> Source | None:
    """The metadata file of a folder, or the file itself if it is one."""
    if not source.is_folder:
        is_metadata = source.path.name in METADATA_NAMES and bool(_file_columns(source))
        return source if is_metadata else None
    files = _metadata_files(source.path)
    if not files:
        return None
    if files[0].parent != source.path:
        chosen = choose_split(source.path, {path.parent.name for path in files}, split)
        files = [path for path in files if path.parent.name == chosen]
    if len(files) > 1:
        names = " and ".join(path.name for path in files)
        raise data_error(files[0].parent, f"this folder holds {names}. Name one of these files.")
    key = ("metadata", files[0])
    if key not in source.cache:
        source.cache[key] = Source(files[0])
    found: Source = source.cache[key]
    return found


def _detect_metadata(
    source: Source, inner: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    columns = _file_columns(inner)
    known = {} if inner.suffix != ".csv" else {"separator": options.separator or ","}
    if options.image_column is None and len(columns) == 1:
        known["image_column"] = columns[0]
    found = detect_as("huggingface", inner, options, "list_column", classes=classes, **known)
    if isinstance(found, Ambiguous):
        return replace(found, path=source.path)
    split = (
        inner.path.parent.name if source.is_folder and inner.path.parent != source.path else None
    )
    return None if found is None else replace(found, split=split)


# Data sets


@dataclass(frozen=True)
class _Part:
    """One split: its columns, what is said of these, and how to load some of them."""

    path: Path
    schema: pa.Schema
    features: Any
    split: str | None
    tables: Any

    def load(self, source: Source, columns: Sequence[str]) -> None:
        """Read some columns, which are the table of the source from now on."""
        try:
            content = pa.concat_tables(self.tables([one for one in columns if one != ROW_NUMBER]))
            content = content.combine_chunks()
            content.validate(full=True)
        except _FAULTS as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise data_error(self.path, f"its data cannot be read: {reason}.") from None
        source.cache["cells", None, None] = arrow_table_cells(source, content)


def _open(source: Source, split: str | None) -> _Part:
    if not source.is_folder:
        return _parquet_part(source.path, [source], None)
    if any(name in files_in(source.path) for name in _SAVED):
        return _saved_part(source.path, split)
    shards = _shards(source.path)
    if not shards:
        raise data_error(source.path, "there is no data set of Hugging Face here.")
    chosen = choose_split(source.path, shards, split)
    return _parquet_part(source.path, shards[chosen], chosen)


def _saved_part(folder: Path, split: str | None) -> _Part:
    """What ``save_to_disk`` wrote into a folder."""
    try:
        from datasets import DatasetDict, load_from_disk
    except ImportError as error:
        raise MissingExtra("Reading a saved data set", error.name, "datasets") from None
    for file in sorted(folder.rglob("*.arrow")):
        _check_arrow(file)
    try:
        found = load_from_disk(str(folder))
    except Exception as error:  # the library raises whatever its readers do
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(folder, f"this saved data set cannot be read: {reason}.") from None
    chosen = None
    if isinstance(found, DatasetDict):
        chosen = choose_split(folder, list(found), split)
        found = found[chosen]
    features = found.features.to_dict()
    schema = pa.schema(found.features.arrow_schema).empty_table().flatten().schema

    def tables(columns: Sequence[str]) -> list[pa.Table]:
        outer = list(dict.fromkeys(name.split(".")[0] for name in columns))
        whole = found.select_columns(outer).with_format("arrow")
        return (
            [whole[:].flatten().select(columns)]
            if len(whole)
            else [schema.empty_table().select(columns)]
        )

    return _Part(folder, schema, features, chosen, tables)


def _check_arrow(file: Path) -> None:
    """Raise if a file is damaged: taking a damaged batch apart would end the process."""
    try:
        with pa.memory_map(str(file)) as stored:
            for batch in pa.ipc.open_stream(stored):
                batch.validate(full=True)
    except _FAULTS as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(file, f"this part of a saved data set is damaged: {reason}.") from None


def _parquet_part(path: Path, files: Sequence[Source], split: str | None) -> _Part:
    try:
        stored = pq.read_schema(pa.BufferReader(files[0].raw))
    except _FAULTS as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this is not a whole Parquet file: {reason}.") from None

    def tables(columns: Sequence[str]) -> list[pa.Table]:
        for file in files:
            if file.path.is_file():
                check_parquet(file.path)
        return [
            pq.ParquetFile(pa.BufferReader(file.raw))
            .read(columns=list(columns))
            .flatten()
            .select(columns)
            for file in files
        ]

    flat = stored.empty_table().flatten().schema
    return _Part(path, flat, _described(stored), split, tables)


def _shards(folder: Path) -> dict[str, list[Source]]:
    """Parquet files by split, here or in ``data``: ``train-00000-of-00002.parquet``."""
    found: dict[str, list[Source]] = {}
    for place in (folder, folder / "data"):
        for name, path in files_in(place).items():
            if match := _SHARD.fullmatch(name):
                found.setdefault(match[1], []).append(Source(path))
    return found


def _features(source: Source) -> Any:
    try:
        return _described(pq.read_schema(pa.BufferReader(source.raw)))
    except _FAULTS:
        return None


def _described(schema: pa.Schema) -> Any:
    """The description in the metadata of a schema; None where there is none or it is damaged."""
    try:
        return json.loads((schema.metadata or {}).get(_KEY, b"{}"))["info"]["features"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def class_labels(features: Any) -> dict[str, list[str]]:
    """Names of the classes of every column that holds class numbers, one or a list of them."""
    if not isinstance(features, dict):
        return {}
    return {name: names for name, names in _found(features) if names}


def _found(features: dict[str, Any], outer: str = "") -> Iterator[tuple[str, list[str]]]:
    for name, feature in features.items():
        inner = feature
        if isinstance(feature, list) and len(feature) == 1:
            inner = feature[0]
        elif isinstance(feature, dict) and feature.get("_type") in (
            "Sequence",
            "List",
            "LargeList",
        ):
            inner = feature.get("feature")
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            names = inner.get("names")
            whole = isinstance(names, list) and all(isinstance(one, str) and one for one in names)
            yield f"{outer}{name}", names if whole and names is not None else []
        elif isinstance(inner, dict) and "_type" not in inner and not outer:
            yield from _found(inner, f"{name}.")


FORMAT = Format(
    name="huggingface",
    summary="Hugging Face: metadata files, Parquet with ClassLabel, or a save_to_disk folder.",
    matches=matches,
    detect=detect,
    read=read,
    write=write,
    patch=patch,
    folders=True,
    file_names=True,
)
