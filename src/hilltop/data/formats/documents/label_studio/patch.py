"""Label Studio's tasks with choices added to their annotations, and all else left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.text.json_text import (
    Edit,
    Span,
    dump_like,
    elements,
    first_value,
    replace_spans,
)
from hilltop.data.state import State


def patch_tasks(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
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
