"""Label Studio: tasks with annotations (JSON), or their flat forms (JSON-MIN and CSV)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.assemble import Collector
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.documents.label_studio.flat import (
    SHAPES,
    names_in,
    read_csv,
    read_json,
)
from hilltop.data.formats.documents.label_studio.patch import patch_tasks
from hilltop.data.formats.documents.label_studio.records import (
    TaskChoices,
    image_key,
    is_label_studio_header,
    one_of,
)
from hilltop.data.formats.documents.label_studio.write import hand_off, instructions, write
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.table_file import column_names
from hilltop.data.label_table import LabelTable

_CHOICES = "choices"


def fits(source: LabelSource) -> bool:
    """Whether the first task has data and annotations, or the flat form names its annotation."""
    if source.is_folder:
        return False
    if not source.head.lstrip().startswith("["):
        return is_label_studio_header(column_names(source))
    first = _first_record(source.head)
    if first is None:
        # The first task is longer than the first look, or broken.
        return all(f'"{key}"' in source.head for key in ("annotations", "result", "from_name"))
    return _is_task(first) or is_label_studio_header(list(first))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the choices of every annotated task.

    An annotation without a choice says that the image has no labels; a task without any
    annotation, or with skipped ones only, says nothing and is left out. Predictions are not
    read. What choices that were not made mean is left open by the format: ``--unlisted`` says it.
    The image id is the reference as it stands in the file.
    """
    if not (source.head.lstrip().startswith("[") or source.suffix == ".json"):
        return read_csv(source, options)
    tasks = source.json
    if not isinstance(tasks, list):
        raise data_error(source.path, "expected a JSON list of tasks. Export as JSON or JSON-MIN.")
    first = next((task for task in tasks if isinstance(task, dict)), {})
    if tasks and not _is_task(first):
        return read_json(source, tasks, options)
    return _read_tasks(source, tasks, options)


def _first_record(head: str) -> dict[str, Any] | None:
    try:
        first, _ = json.JSONDecoder().raw_decode(head.lstrip()[1:].lstrip())
    except (ValueError, RecursionError):
        return None
    return first if isinstance(first, dict) else {}


def _is_task(record: dict[str, Any]) -> bool:
    return isinstance(record.get("data"), dict) and "annotations" in record


def _read_tasks(source: LabelSource, tasks: list[Any], options: ReadOptions) -> LabelTable:
    collector = Collector(source.path, options.class_list())
    answers = TaskChoices(collector)
    sound = [
        (number, task)
        for number, task in enumerate(tasks, start=1)
        if _check_task(task, number, collector)
    ]
    collector.errors.check()
    key = image_key(source.path, [task["data"] for _, task in sound], options.image_column)
    control = _control(source.path, [task for _, task in sound], options.label_column)
    wanted = _wanted([part for _, task in sound for part in _results(task)])
    silent = 0
    for number, task in sound:
        name = f"task {task['id']}" if "id" in task else f"record {number}"
        valid = [found for found in task["annotations"] if not found.get("was_cancelled")]
        silent += not valid
        for annotation in valid:
            chosen = _chosen(annotation["result"], control, wanted)
            if chosen is None:
                collector.errors.add(f"{name}: its choices are not a list of names.")
            else:
                answers.add(name, task["data"].get(key), chosen, place=name)
    left = pluralize(silent, "task without an annotation is", "tasks without an annotation are")
    notes = [f"{left} left out."] if silent else []
    return answers.table(options, [*notes, *_other_results([task for _, task in sound])])


def _check_task(task: Any, number: int, collector: Collector) -> bool:
    """Whether a task has the parts that the others are read from."""
    problem = None
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        problem = "it has no 'data'"
    elif not isinstance(task.get("annotations"), list):
        problem = "it has no list of 'annotations'"
    else:
        for annotation in task["annotations"]:
            result = annotation.get("result") if isinstance(annotation, dict) else None
            if not isinstance(result, list) or not all(isinstance(part, dict) for part in result):
                problem = "an annotation has no list 'result' of objects"
    if problem:
        collector.errors.add(f"record {number} is not a task: {problem}. Export it again as JSON.")
    return problem is None


def _control(path: Path, tasks: list[dict[str, Any]], named: str | None) -> str | None:
    """Name of the control whose choices are the labels; None if nothing was ever chosen."""
    results = [result for task in tasks for result in _results(task)]
    wanted = _wanted(results)
    names = {str(part.get("from_name")) for part in results if part.get("type") in wanted}
    kinds = sorted({str(part.get("type")) for part in results})
    if results and not names:
        raise data_error(
            path,
            f"no annotation holds choices or labels of shapes, only {', '.join(kinds)}.",
        )
    if named is not None and names and named not in names:
        raise data_error(
            path,
            f"no choices are called {named!r}.{did_you_mean(named, names)}"
            f" They are called {', '.join(sorted(names))}.",
        )
    if named is not None or not names:
        return named
    return one_of(path, sorted(names), "--label-column", "choices are the labels")


def _wanted(results: list[dict[str, Any]]) -> frozenset[str]:
    """Kinds of results that are read: choices or, where there are none, labels of shapes."""
    if any(part.get("type") == _CHOICES for part in results):
        return frozenset([_CHOICES])
    return SHAPES


def _results(task: dict[str, Any]) -> list[dict[str, Any]]:
    """All parts of the annotations of a sound task that were not skipped."""
    valid = (found for found in task["annotations"] if not found.get("was_cancelled"))
    return [part for annotation in valid for part in annotation["result"]]


def _chosen(
    result: list[dict[str, Any]], control: str | None, wanted: frozenset[str]
) -> list[str] | None:
    names: list[str] = []
    for part in result:
        kind = part.get("type")
        if kind in wanted and str(part.get("from_name")) == control:
            value = part.get("value")
            more = names_in(value, kind) if isinstance(value, dict) else None
            if more is None:
                return None
            names.extend(more)
    return names


def _other_results(tasks: list[dict[str, Any]]) -> list[str]:
    parts = [part for task in tasks for part in _results(task)]
    wanted = _wanted(parts)
    others = [str(part.get("type")) for part in parts if part.get("type") not in wanted]
    if not others:
        return []
    kinds = ", ".join(sorted(set(others)))
    are = pluralize(len(others), f"result of type {kinds} is", f"results of type {kinds} are")
    return [f"{are} not read."]


FORMAT = Format(
    name="label_studio",
    summary="Label Studio's exports JSON, JSON-MIN and CSV: the answers to <Choices>.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=write,
    patch=patch_tasks,
    hand_off=hand_off,
    instructions=instructions,
    file_names=True,
)
