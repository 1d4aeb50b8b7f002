"""VGG Image Annotator 3: a project with files, views of them, attributes and metadata.

An attribute with options (a list, or boxes to tick) holds the classes; what is said of a region or
of the whole file counts alike. ``via.py`` reads version 2.
"""

from __future__ import annotations

from typing import Any

from hilltop.data.assemble import Collector
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError, OptionNeeded

_KEYS = ("project", "attribute", "file", "metadata", "view")


def fits(source: LabelSource) -> bool:
    """Whether this is JSON with the five parts of such a project."""
    if source.is_folder or not source.head.lstrip().startswith("{"):
        return False
    if not all(f'"{key}"' in source.head for key in _KEYS[:3]):
        return False
    try:
        return _is_project(source.json)
    except DataError:
        return False


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the options that were chosen for every file."""
    content = source.json
    if not _is_project(content):
        raise data_error(source.path, f"expected a project with {', '.join(_KEYS)}.")
    chosen = _attribute(source, content["attribute"], options)
    names = _options_of(content["attribute"][chosen])
    collector = Collector(source.path, options.class_list() or list(names.values()) or None)
    file_of = _files_of_views(content)
    row_of = {key: collector.image(name) for key, name in _file_names(content).items()}
    for one in content["metadata"].values():
        said = one.get("av") if isinstance(one, dict) else None
        row = row_of.get(file_of.get(str(one.get("vid")), "")) if isinstance(said, dict) else None
        value = said.get(chosen) if isinstance(said, dict) else None
        for word in str(value or "").split(","):
            if row is not None and word.strip():
                collector.label(row, names.get(word.strip(), word.strip()), State.PRESENT)
    collector.errors.check()
    return collector.table(unlisted=options.need_unlisted(source.path), format="via_three")


def _is_project(content: Any) -> bool:
    return isinstance(content, dict) and all(isinstance(content.get(key), dict) for key in _KEYS)


def _attribute(source: LabelSource, attributes: dict[str, Any], options: ReadOptions) -> str:
    """The attribute of the classes, by its number or name: as said, or the only one."""
    named = {
        key: str(one.get("aname", key)) for key, one in attributes.items() if isinstance(one, dict)
    }
    said = options.label_column
    found = [key for key, name in named.items() if said in (None, key, name)]
    if len(found) == 1:
        return found[0]
    names = list(named.values())
    example = ready_command(source.path, options, label_column=names[0]) if names else ""
    raise OptionNeeded(
        f"{source.path}: which attribute holds the classes? Pass --label-column with one of"
        f" {', '.join(names) or 'none'}, for example: {example}"
    )


def _options_of(attribute: dict[str, Any]) -> dict[str, str]:
    options = attribute.get("options")
    found = options if isinstance(options, dict) else {}
    return {str(key): str(name) for key, name in found.items() if str(name)}


def _file_names(content: dict[str, Any]) -> dict[str, str]:
    """Name of each file by its number."""
    return {
        key: str(one.get("fname") or one.get("src") or key)
        for key, one in content["file"].items()
        if isinstance(one, dict)
    }


def _files_of_views(content: dict[str, Any]) -> dict[str, str]:
    """The file that each view shows; views of several compare them, and say nothing of one."""
    lists = {
        key: one.get("fid_list") if isinstance(one, dict) else None
        for key, one in content["view"].items()
    }
    return {
        key: str(files[0])
        for key, files in lists.items()
        if isinstance(files, list) and len(files) == 1
    }


FORMAT = Format(
    name="via_three",
    summary="VGG Image Annotator 3: a project as JSON; --label-column names the attribute.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("Such projects hold files, views and places"),
)
