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

from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.documents import (
    dump_like,
    edit_elements,
    first_value,
    is_text,
    members,
    replace_spans,
)
from hilltop.data.files import atomic_write
from hilltop.data.folders import file_to_write
from hilltop.data.format import (
    FilePatch,
    Format,
    Handoff,
    Patched,
    check_present_only,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Layout
from hilltop.errors import DataError

_IDS = "hilltop_images"
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_EXPECTED = 'names such as "cat", or objects with a "label"'


def matches(source: Source) -> bool:
    """Whether this is a JSON object whose ``labels`` are an object, one key an image."""
    if '"labels"' not in source.head or source.suffix in (".jsonl", ".ndjson"):
        return False
    try:
        content = source.json
    except DataError:
        return False
    return isinstance(content, dict) and isinstance(content.get("labels"), dict)


def read(source: Source, layout: Layout) -> LabelTable:
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
    collector = Collector(source.path, layout.classes or known)
    for key, said in labels.items():
        names = [_name(one, known) for one in (said if isinstance(said, list) else [said])]
        image: Any = ids.get(key, key)
        if None in names or not is_text(image, *filter(None, names)):
            collector.errors.add(f"image {key!r:.60}: its labels must be {_EXPECTED}.")
            continue
        row = collector.image(image, once=True)
        for name in filter(None, names):
            collector.label(row, name, State.PRESENT)
    collector.errors.check()
    return collector.table(unlisted=layout.unlisted, format="fiftyone")


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write the present labels, with confidence 1; into a folder, as ``labels.json``."""
    check_present_only(table, path, lossy)
    hand_off(table, path, Handoff(files=table.images.to_pylist(), folder=None, likely={}))
    return Layout("fiftyone", unlisted=table.unlisted)


def patch(asked: FilePatch) -> Patched:
    """Add classifications to the images, and take out those of labels that were wrong."""
    said, text = asked.without_absents(), asked.text
    parts = dict(members(text, first_value(text)))
    known = parts["classes"].value if "classes" in parts else None
    ids = parts[_IDS].value if _IDS in parts else {}
    edits = []
    for key, labels in members(text, parts["labels"].start):
        wanted = said.of(ids.get(key, key))
        if not wanted:
            continue
        gone, names = wanted.struck, wanted.added
        if isinstance(labels.value, list):
            plain = bool(labels.value) and not isinstance(labels.value[0], dict)
            new = [one if plain else _classification(one, 1.0, missing=False) for one in names]
            if known is not None and plain and isinstance(labels.value[0], int):
                new = [known.index(name) for name in names]
            wrong = [one for one in labels.value if _name(one, known) in gone]
            edits.append(edit_elements(text, labels, new, wrong.__contains__))
        else:
            kept = (
                [] if labels.value is None or _name(labels.value, known) in gone else [labels.value]
            )
            value = [*kept, *(_classification(name, 1.0, missing=False) for name in names)]
            edits.append((labels.start, labels.end, dump_like(text[:200], value)))
    return said.patched(replace_spans(text, edits))


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
    if not isinstance(given, list) or not all(is_text(name) for name in given):
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


FORMAT = Format(
    name="fiftyone",
    summary="FiftyOne's image classification dataset: labels.json with classes and labels.",
    matches=matches,
    read=read,
    write=write,
    patch=patch,
    hand_off=hand_off,
    begins="{",
    file_names=True,
)
