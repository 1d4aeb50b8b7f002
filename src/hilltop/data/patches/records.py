"""Patches of JSON files: COCO, LVIS and Label Studio's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hilltop.data import State
from hilltop.data.formats import coco, lvis
from hilltop.data.patches.base import Change, Original, Patched, by_image, of_state
from hilltop.data.patches.json_text import (
    Span,
    append_elements,
    dump_like,
    elements,
    first_value,
    members,
    replace_spans,
)

Edit = tuple[int, int, str]


def patch_coco(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add annotations without extent; only "present" can be said. Boxes and all else stay."""
    text = original.path.read_bytes().decode("utf-8")
    parts = dict(members(text, first_value(text)))
    ids = {coco.name_of(image): image["id"] for image in parts["images"].value}
    edits = _annotations(text, parts, ids, changes)
    yield Patched(replace_spans(text, edits).encode(), original.options, absents=False)


def patch_lvis(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add annotations without extent, and absents to ``neg_category_ids``."""
    text = original.path.read_bytes().decode("utf-8")
    parts = dict(members(text, first_value(text)))
    ids = {lvis.name_of(image): image["id"] for image in parts["images"].value}
    edits = _annotations(text, parts, ids, changes)
    category = _categories(parts)
    of_image = by_image(of_state(changes, State.ABSENT))
    for image in elements(text, parts["images"].start):
        wanted = of_image.get(lvis.name_of(image.value), [])
        if wanted:
            negatives = dict(members(text, image.start))[coco.NEGATIVE]
            new = [category[change.class_name] for change in wanted]
            edits.append(append_elements(text, negatives, new))
    yield Patched(replace_spans(text, edits).encode(), original.options)


def patch_label_studio(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add choices to the annotations of the tasks; only "present" can be said."""
    text = original.path.read_bytes().decode("utf-8")
    start = first_value(text)
    if text[start : start + 1] != "[":
        return  # the CSV export
    tasks = list(elements(text, start))
    if not all(isinstance(task.value, dict) and "annotations" in task.value for task in tasks):
        return  # the flat export
    present = of_state(changes, State.PRESENT)
    for key in {key for task in tasks for key in task.value["data"]}:
        edits = _choices(text, tasks, key, by_image(present), original.options.label_column)
        yield Patched(replace_spans(text, edits).encode(), original.options, absents=False)


def _annotations(
    text: str, parts: dict[str, Span], ids: dict[str, Any], changes: Sequence[Change]
) -> list[Edit]:
    category = _categories(parts)
    used = [record.get("id") for record in parts["annotations"].value]
    highest = max((number for number in used if isinstance(number, int)), default=0)
    new = [
        {
            "id": highest + number,
            "image_id": ids[change.image],
            "category_id": category[change.class_name],
            "iscrowd": 0,
            "area": 0,
            "bbox": [0, 0, 0, 0],
            "segmentation": [],
        }
        for number, change in enumerate(of_state(changes, State.PRESENT), 1)
    ]
    return [append_elements(text, parts["annotations"], new)] if new else []


def _categories(parts: dict[str, Span]) -> dict[str, Any]:
    return {record["name"]: record["id"] for record in parts["categories"].value}


def _choices(
    text: str,
    tasks: list[Span],
    key: str,
    of_image: dict[str, list[Change]],
    control: str | None,
) -> list[Edit]:
    usual = _usual_choice(tasks, control)
    edits = []
    for task in tasks:
        wanted = of_image.get(str(task.value["data"].get(key)), [])
        names = [change.class_name for change in wanted]
        valid = [one for one in task.value["annotations"] if not one.get("was_cancelled")]
        if names and valid:
            for annotation in valid:
                _add_choices(annotation["result"], names, usual)
            like = text[task.start : task.end]
            line = text[text.rfind("\n", 0, task.start) + 1 : task.start]
            indent = line if not line.strip() else ""
            edits.append((task.start, task.end, dump_like(like, task.value, indent)))
    return edits


def _usual_choice(tasks: list[Span], control: str | None) -> dict[str, Any]:
    """What an answer to the choices looks like in this file, without its names."""
    for task in tasks:
        for annotation in task.value["annotations"]:
            for part in annotation["result"]:
                if part.get("type") == "choices" and control in (None, part.get("from_name")):
                    return {key: part[key] for key in ("from_name", "to_name", "type")}
    return {"from_name": control or "choice", "to_name": "image", "type": "choices"}


def _add_choices(result: list[Any], names: list[str], usual: dict[str, Any]) -> None:
    for part in result:
        if part.get("type") == "choices" and part.get("from_name") == usual["from_name"]:
            part["value"]["choices"] = [*part["value"]["choices"], *names]
            return
    result.append({**usual, "value": {"choices": names}})
