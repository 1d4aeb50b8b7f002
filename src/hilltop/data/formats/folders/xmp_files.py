"""XMP files beside pictures, as Lightroom, digiKam and darktable write them: keywords by picture.

The keywords are those of ``dc:subject``; what stands above them in a hierarchy is not read.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.folder_files import IMAGE_ENDINGS, files_in
from hilltop.data.formats.text.record_rows import IMAGE, LABELS, table_from_records
from hilltop.data.formats.text.xml_text import parse_xml
from hilltop.data.label_table import LabelTable

_SUFFIX = ".xmp"
_MARK = "<x:xmpmeta"
_SUBJECT = "{http://purl.org/dc/elements/1.1/}subject"
_ITEM = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}li"
_PEEKED = 5


def fits(source: LabelSource) -> bool:
    """Whether this is an XMP file, or a folder that holds some."""
    files = _files(source)
    heads = (LabelSource(path).head for path in itertools.islice(files, _PEEKED))
    return bool(files) and all(_MARK in head for head in heads)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the keywords of every picture; it is named by its file, where that lies beside it."""
    files = _files(source)
    if not files:
        raise data_error(source.path, "there are no XMP files here.")
    errors = ErrorCollector(source.path)
    pictures = _pictures(files[0].parent)
    records = []
    for path in files:
        named = pictures.get(path.stem, path.stem)
        records.append({IMAGE: named, LABELS: _keywords(path, errors)})
    errors.check()
    return table_from_records(source.path, records, options, format="xmp_files")


def _files(source: LabelSource) -> list[Path]:
    if not source.is_folder:
        return [source.path] if source.suffix == _SUFFIX else []
    return [path for path in files_in(source.path).values() if path.suffix.lower() == _SUFFIX]


def _pictures(folder: Path) -> dict[str, str]:
    """Pictures by their name, and by their name without the ending."""
    names = [name for name in files_in(folder) if name.lower().endswith(IMAGE_ENDINGS)]
    return {**{name.rpartition(".")[0]: name for name in names}, **{name: name for name in names}}


def _keywords(path: Path, errors: ErrorCollector) -> list[str]:
    element = parse_xml(path, "xmpmeta", ErrorCollector(path, errors.found))
    if element is None:
        return []
    items = (item for subject in element.iter(_SUBJECT) for item in subject.iter(_ITEM))
    words = ((item.text or "").strip() for item in items)
    return [word for word in dict.fromkeys(words) if word]


FORMAT = Format(
    name="xmp_files",
    summary="XMP files beside pictures, as Lightroom and digiKam write them: keywords.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold how pictures were developed"),
    folders=True,
)
