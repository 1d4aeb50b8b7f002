"""FiftyOne's image classification dataset: ``labels.json`` with several labels an image.

FiftyOne finds an image by its path without the ending. So that ids are read back as they were, they
stand under a key of our own, which FiftyOne passes over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hilltop.data.assemble import Collector
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.formats.base import Format, Handoff, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.formats.text.folder_files import file_to_write
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

_IDS = "hilltop_images"
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_EXPECTED = 'names such as "cat", or objects with a "label"'


def fits(source: LabelSource) -> bool:
    """Whether this is a JSON object whose ``labels`` are an object, one key an image."""
    if source.is_folder or not source.head.lstrip().startswith("{"):
        return False
    if '"labels"' not in source.head:
        return False
    try:
        content = source.json
    except DataError:
        return False
    return isinstance(content, dict) and isinstance(content.get("labels"), dict)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the classifications of every image; those with the attribute ``missing`` are not labels.

    A label is a name, an object with a ``label``, or a number in the list of classes; an image has
    one, a list of them, or null. What other classes are is left open: ``--unlisted`` says it.
    """
    content = source.json
    labels = content.get("labels") if isinstance(content, dict) else None
    if not isinstance(labels, dict):
        raise data_error(source.path, "expected a JSON object with 'classes' and 'labels'.")
    known = _known_classes(source.path, content.get("classes"))
    ids = content.get(_IDS)
    ids = ids if isinstance(ids, dict) else {}
    collector = Collector(source.path, options.class_list() or known)
    for key, said in labels.items():
        names = [_name(one, known) for one in (said if isinstance(said, list) else [said])]
        image: Any = ids.get(key, key)
        if None in names or not _is_text(image, *filter(None, names)):
            collector.errors.add(f"image {key!r:.60}: its labels must be {_EXPECTED}.")
            continue
        row = collector.image(image, once=True)
        for name in filter(None, names):
            collector.label(row, name, State.PRESENT)
    collector.errors.check()
    return collector.table(unlisted=options.need_unlisted(source.path), format="fiftyone")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write the present labels, with confidence 1; into a folder, as ``labels.json``."""
    said = (State.UNKNOWN, State.ABSENT)
    check_expressible(table, path, lossy, states=(State.PRESENT,), unlisted=said)
    hand_off(table, path, Handoff(files=table.images.to_pylist(), folder=None, likely={}))


def hand_off(table: LabelTable, path: Path, handoff: Handoff) -> list[Path]:
    """Write known labels with confidence 1, likely missing ones with their probability.

    The latter have the attribute ``missing``. Load the file with ``data_path`` naming the folder of
    images.
    """
    target = file_to_write(path, "labels.json")
    keys = [_ENDING.sub("", file) for file in handoff.files]
    if len(set(keys)) < len(keys):
        raise data_error(path, "this format cannot express images that differ only in the ending.")
    labels = {}
    for row, key in enumerate(keys):
        known = [_classification(name, 1.0, missing=False) for name in table.labels_of(row)]
        likely = handoff.likely.get(row, ())
        labels[key] = known + [_classification(*one, missing=True) for one in likely]
    ids = dict(zip(keys, table.images.to_pylist(), strict=True))
    content = {"classes": list(table.classes), "labels": labels, _IDS: ids}
    atomic_write(target, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return [target]


def _classification(name: str, confidence: float, *, missing: bool) -> dict[str, Any]:
    return {
        "label": name,
        "confidence": round(confidence, 6),
        "attributes": {"missing": missing},
    }


def _known_classes(path: Path, given: Any) -> list[str] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(_is_text(name) and name for name in given):
        raise data_error(path, "'classes' must be a list of names.")
    if len(set(given)) < len(given):
        raise data_error(path, "a name stands twice among the 'classes'. Names must differ.")
    return given


def _name(said: Any, known: Sequence[str] | None) -> str | None:
    """The class that is said to be present, empty for none; None if it cannot be a label."""
    if said is None:
        return ""
    if isinstance(said, str):
        return said or None
    if isinstance(said, int) and not isinstance(said, bool):
        return known[said] if known is not None and 0 <= said < len(known) else None
    if not isinstance(said, Mapping) or not isinstance(said.get("label"), str):
        return None
    attributes = said.get("attributes")
    missing = isinstance(attributes, Mapping) and attributes.get("missing") is True
    return "" if missing else said["label"] or None


def _is_text(*words: Any) -> bool:
    try:
        return all(isinstance(word, str) and word.encode() is not None for word in words)
    except UnicodeEncodeError:
        return False


FORMAT = Format(
    name="fiftyone",
    summary="FiftyOne's image classification dataset: labels.json with classes and labels.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=write,
    hand_off=hand_off,
    file_names=True,
)
