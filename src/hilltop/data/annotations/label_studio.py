"""Label Studio: tasks with annotations (JSON), or their flat forms (JSON-MIN and CSV).

The labels of a flat record are a bare string for one choice, an object ``{"choices": [...]}`` for
several, a list of these for choices made more than once, and missing for none. In a CSV, all but
the bare string stand as JSON text, so a choice whose name begins with ``{`` or ``[`` is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.documents import (
    Edit,
    Span,
    edit_elements,
    elements,
    first_value,
    members,
    replace_spans,
)
from hilltop.data.files import atomic_write
from hilltop.data.format import (
    Changes,
    FilePatch,
    Format,
    Handoff,
    Patched,
    check_present_only,
    plain_layout,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, Question, ReadOptions, unlisted_question
from hilltop.data.tables.cells import apply_header, read_cells
from hilltop.data.tables.words import word_set

IMAGE_ID = "hilltop_image"
"""Where tasks that we hand over keep the id of their image, by which they find back."""
CHOICES = "choices"
SHAPES = word_set(
    """
    rectanglelabels polygonlabels brushlabels keypointlabels ellipselabels labels
    hypertextlabels paragraphlabels timeserieslabels vectorlabels videorectangle
    """
)
"""Kinds of results that name what was marked, which count where nothing was chosen."""
_SYSTEM = word_set(
    """
    id annotation_id annotator created_at updated_at lead_time agreement project
    """
)
_REFERENCE = re.compile(
    r"(/data/|[a-z][a-z0-9+.-]*://).*"
    r"|.*\.(jpe?g|png|gif|bmp|webp|tiff?|svg|avif|heic)([?#].*)?",
    re.IGNORECASE | re.DOTALL,
)
_LOCAL_FILES = "/data/local-files/?d="
_FLAT = frozenset(["annotation_id", "annotator"])
_MORE = "Export it again as JSON."
JsonObject = dict[str, Any]


def matches(source: Source) -> bool:
    """Whether the first task has data and annotations, or the flat form names its annotation."""
    if source.start != "[":
        first_line = source.head.partition("\n")[0]
        return {cell.strip(' "\r') for cell in first_line.split(",")} >= _FLAT
    try:
        first, _ = json.JSONDecoder().raw_decode(source.head.lstrip()[1:].lstrip())
    except (ValueError, RecursionError):
        # The first task is longer than the first look, or broken.
        return all(f'"{key}"' in source.head for key in ("annotations", "result", "from_name"))
    if not isinstance(first, dict):
        return False
    later = isinstance(first.get("data"), dict) and '"annotations"' in source.head
    return later or _is_task(first) or set(first) >= _FLAT


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the key of the image and the name of the choices; ask where there are several."""
    layout = plain_layout("label_studio", options, classes)
    kind, records = _records(source)
    questions: list[Question] = []
    if kind == "tasks":
        data = [task["data"] for task in records]
        controls = sorted({str(part.get("from_name")) for part in _wanted_parts(records)})
        what = "choices"
    else:
        keys = dict.fromkeys(key for record in records for key in record if key not in _SYSTEM)
        data = [{key: record.get(key) for key in keys} for record in records]
        controls, what = [], "key with the choices"
    image = _image_key(data, options.image_column, questions)
    if kind != "tasks":
        rest = [key for key in keys if key != image]
        fitting = [key for key in rest if _may_be_labels(records, key, kind)]
        controls = fitting or rest
    label = options.label_columns
    if label is None and len(controls) > 1:
        questions.append(
            Question(
                f"Which {what} are the labels? Pass --label-columns with one of"
                f" {', '.join(controls)}.",
                {"label_columns": controls[0]},
            )
        )
    if label is not None and controls and label not in controls:
        raise data_error(
            source.path,
            f"no choices are called {label!r}.{did_you_mean(label, controls)}"
            f" They are called {', '.join(controls)}.",
        )
    if options.unlisted is None:
        questions.append(unlisted_question("choices that were not made"))
    if questions:
        return Ambiguous(source.path, questions, options)
    chosen = label or (controls[0] if controls else None)
    return replace(layout, image_column=image, label_columns=() if chosen is None else (chosen,))


def _image_key(data: Sequence[JsonObject], named: str | None, questions: list[Question]) -> str:
    """The key of the image: the one named, our own, the only one, or the only reference."""
    keys = list(dict.fromkeys(key for values in data for key in values))
    if named is None and data and all(IMAGE_ID in values for values in data):
        return IMAGE_ID
    if named is not None or len(keys) < 2:
        return named or "".join(keys)
    found = [key for key in keys if _is_reference([values.get(key) for values in data])] or keys
    if len(found) > 1:
        questions.append(
            Question(
                f"Which key holds the image? Pass --image-column with one of {', '.join(found)}.",
                {"image_column": found[0]},
            )
        )
    return found[0]


def _is_reference(values: Sequence[Any]) -> bool:
    """Whether all values that are there look like links to images or uploads."""
    given = [value for value in values if value is not None]
    return bool(given) and all(
        isinstance(value, str) and _REFERENCE.fullmatch(value) for value in given
    )


def _may_be_labels(records: Sequence[JsonObject], key: str, kind: str) -> bool:
    given = [record.get(key) for record in records if record.get(key) is not None]
    if _is_reference(given):
        return False
    return not given or any(_names_in(_value(one, kind)) is not None for one in given)


def _records(source: Source) -> tuple[str, list[JsonObject]]:
    """The form of the export, ``tasks``, ``flat`` or ``csv``, and its sound records.

    Raises:
        DataError: A record is damaged.
    """
    if not (source.head.lstrip().startswith("[") or source.suffix == ".json"):
        cells = read_cells(source, separator=",", sheet=None)
        table = None if cells is None else apply_header(cells, 1, ())
        if table is None or not set(table.names) >= _FLAT:
            raise data_error(
                source.path,
                "expected columns 'annotation_id' and 'annotator', as Label Studio exports them.",
                line=1,
            )
        columns = [table.distinct(at).to_pylist() for at in range(len(table.names))]
        rows = zip(*columns, strict=True)
        return "csv", [
            dict(zip(table.names, (cell or None for cell in row), strict=True)) for row in rows
        ]
    content = source.json
    if not isinstance(content, list):
        raise data_error(source.path, "expected a JSON list of tasks. Export as JSON or JSON-MIN.")
    first = next((task for task in content if isinstance(task, dict)), {})
    tasks = not content or _is_task(first)
    for number, record in enumerate(content, 1):
        problem = _task_problem(record) if tasks else _flat_problem(record)
        if problem:
            raise data_error(source.path, f"record {number} {problem} {_MORE}")
    return ("tasks" if tasks else "flat"), content


def _is_task(record: JsonObject) -> bool:
    return isinstance(record.get("data"), dict) and bool({"annotations", "predictions"} & {*record})


def _task_problem(task: Any) -> str:
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        return "is not a task: it has no 'data'."
    if not isinstance(task.get("annotations"), list):
        return "is not a task: it has no list of 'annotations'."
    for annotation in task["annotations"]:
        result = annotation.get("result") if isinstance(annotation, dict) else None
        if not isinstance(result, list) or not all(isinstance(part, dict) for part in result):
            return "is not a task: an annotation has no list 'result' of objects."
    return ""


def _flat_problem(record: Any) -> str:
    if isinstance(record, dict) and set(record) >= _FLAT:
        return ""
    return (
        "is neither a task with 'data' and 'annotations' nor a flat record with 'annotation_id' and"
        " 'annotator'."
    )


def read(source: Source, layout: Layout) -> LabelTable:
    """Read the choices of every annotated task.

    An annotation without a choice says that the image has no labels; a task without any
    annotation, or with skipped ones only, says nothing and is left out. Predictions are not read.
    """
    kind, records = _records(source)
    collector = Collector(source.path, layout.classes)
    answers = _Answers(collector)
    label = layout.label_columns[0] if layout.label_columns else None
    notes: list[str] = []
    if kind == "tasks":
        notes = _read_tasks(records, layout, label, answers)
    for number, record in enumerate(records if kind != "tasks" else (), 1):
        names = _names_in(_value(record.get(label) if label else None, kind))
        place = f"record {number}"
        if names is None:
            collector.errors.add(
                f'{place}: {label!r} must be a name or {{"choices": [...]}}, but is'
                f" {str(record.get(str(label)))[:40]!r}."
            )
            continue
        image = record.get(layout.image_column or "")
        task = record.get("id")
        answers.add(f"image {image!r}" if task is None else f"task {task}", image, names, place)
    collector.errors.check()
    return collector.table(
        unlisted=layout.unlisted, sort_classes=True, notes=notes, format="label_studio"
    )


def _read_tasks(
    tasks: Sequence[JsonObject], layout: Layout, control: str | None, answers: _Answers
) -> list[str]:
    wanted = _wanted(tasks)
    silent, others = 0, []
    for number, task in enumerate(tasks, 1):
        name = f"task {task['id']}" if "id" in task else f"record {number}"
        valid = _valid(task)
        silent += not valid
        for annotation in valid:
            others += [p.get("type") for p in annotation["result"] if p.get("type") not in wanted]
            chosen = _chosen(annotation["result"], control, wanted)
            if chosen is None:
                answers.collector.errors.add(f"{name}: its choices are not a list of names.")
            else:
                answers.add(name, task["data"].get(layout.image_column or ""), chosen, name)
    notes = []
    kinds = ", ".join(sorted({str(kind) for kind in others}))
    if others and control is None:
        answers.collector.errors.add(f"there are no choices, but results of type {kinds} alone.")
    if silent:
        left = pluralize(silent, "task without an annotation is", "tasks without an annotation are")
        notes.append(f"{left} left out.")
    if others:
        notes.append(f"{pluralize(len(others), 'result', 'results')} of type {kinds} are not read.")
    return notes


class _Answers:
    """Collects the choices of annotations; those of one task must agree."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._seen: dict[str, tuple[str, frozenset[str]]] = {}

    def add(self, task: str, image: Any, names: Sequence[str], place: str) -> None:
        """Add one annotation of a task; ``place`` says where it stands."""
        errors = self.collector.errors
        known = str(image) if isinstance(image, str | int) and not isinstance(image, bool) else ""
        if not known:
            errors.add(f"{place}: the image reference is missing or no text.")
            return
        try:
            "".join([known, *names]).encode()
        except UnicodeEncodeError:
            errors.add(f"{place}: a name holds half a character (a lone surrogate).")
            return
        mine = (known, frozenset(names))
        before = self._seen.setdefault(task, mine)
        if before[0] != known:
            errors.add(f"{task} has two images: {before[0]!r} and {known!r}. Keep one of them.")
        elif before[1] != frozenset(names):
            errors.add(
                f"{task} has annotations that disagree: {sorted(before[1])} and {sorted(names)}."
                " Keep one of them."
            )
        if before is not mine:
            return
        row = self.collector.image(known, once=True)
        for name in names:
            self.collector.label(row, name, State.PRESENT)


def _valid(task: JsonObject) -> list[JsonObject]:
    return [one for one in task["annotations"] if not one.get("was_cancelled")]


def _wanted(tasks: Sequence[JsonObject]) -> frozenset[str]:
    """Kinds of results that are read: choices or, where there are none, labels of shapes."""
    kinds = {part.get("type") for task in tasks for one in _valid(task) for part in one["result"]}
    return frozenset([CHOICES]) if CHOICES in kinds else SHAPES


def _wanted_parts(tasks: Sequence[JsonObject]) -> list[JsonObject]:
    wanted = _wanted(tasks)
    parts = [part for task in tasks for one in _valid(task) for part in one["result"]]
    return [part for part in parts if part.get("type") in wanted]


def _chosen(
    result: Sequence[JsonObject], control: str | None, wanted: frozenset[str]
) -> list[str] | None:
    names: list[str] = []
    for part in result:
        kind = part.get("type")
        if kind in wanted and str(part.get("from_name")) == control:
            value = part.get("value")
            more = _names_in(value, str(kind)) if isinstance(value, dict) else None
            if more is None:
                return None
            names.extend(more)
    return names


def _names_in(value: Any, kind: str = CHOICES) -> list[str] | None:
    """Names in the labels of one record; None if they have another shape."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        names = value.get(kind, next((value[key] for key in value if key in SHAPES), None))
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        return None
    if not isinstance(value, list):
        return None
    parts = [_names_in(part, kind) if isinstance(part, str | dict) else None for part in value]
    return None if None in parts else [name for part in parts for name in part or []]


def _value(value: Any, kind: str) -> Any:
    """The labels of a record; in a CSV, all but a bare string are JSON text."""
    if kind != "csv" or value is None or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return False  # No labels have this shape.


def patch(asked: FilePatch) -> Patched:
    """Add choices to the annotations of the tasks, and take wrong ones out."""
    said, layout = asked.without_absents(), asked.layout
    kind, tasks = _records(asked.source)
    if kind != "tasks" or (_wanted(tasks) is SHAPES and tasks):
        raise asked.refused("only the JSON export of choices can be changed. Export it as JSON.")
    text = asked.text
    control = layout.label_columns[0] if layout.label_columns else "choice"
    usual = {"from_name": control, "to_name": "image", "type": CHOICES}
    for part in _wanted_parts(tasks):
        usual["to_name"] = part.get("to_name", "image")
    edits = []
    for task in elements(text, first_value(text)):
        wanted = said.of(str(task.value["data"].get(layout.image_column)))
        if wanted:
            whole = dict(members(text, task.start))
            for annotation in elements(text, whole["annotations"].start):
                if not annotation.value.get("was_cancelled"):
                    result = dict(members(text, annotation.start))["result"]
                    edits += _choice_edits(text, result, wanted, usual)
    return said.patched(replace_spans(text, edits))


def _choice_edits(text: str, result: Span, wanted: Changes, usual: JsonObject) -> list[Edit]:
    """The edits of the lists of choices in one result; the first of them gets those that come."""
    edits, new = [], wanted.added
    for part in elements(text, result.start):
        if (
            part.value.get("type") == CHOICES
            and str(part.value.get("from_name")) == usual["from_name"]
        ):
            value = dict(members(text, part.start))["value"]
            choices = dict(members(text, value.start))[CHOICES]
            edits.append(edit_elements(text, choices, new, wanted.struck.__contains__))
            new = []
    if new:
        part_of_its_own = {**usual, "value": {CHOICES: new}}
        edits.append(edit_elements(text, result, [part_of_its_own]))
    return edits


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write tasks with annotations, ready for import; only "present" can be expressed.

    The labelling setup needs ``<Image name="image" value="$image"/>`` and
    ``<Choices name="choice" toName="image" choice="multiple">``.
    """
    check_present_only(table, path, lossy, unused_classes=False)
    images = table.images.to_pylist()
    _write_tasks(path, [_task(table, row, {"image": image}) for row, image in enumerate(images)])
    return Layout(
        "label_studio",
        unlisted=table.unlisted,
        image_column="image",
        label_columns=("choice",),
        classes=table.classes,
    )


def hand_off(table: LabelTable, path: Path, handoff: Handoff) -> list[Path]:
    """Write tasks with predictions, and the labelling setup beside them as XML.

    With a folder of images, tasks refer to them as Label Studio's local files, see
    :func:`instructions`. The image id is kept as ``hilltop_image``, by which it is read back.
    """
    tasks = []
    before = _before_files(handoff)
    for row, image in enumerate(table.images.to_pylist()):
        data = {"image": f"{before}{_quoted(handoff, row)}", IMAGE_ID: image}
        likely = handoff.likely.get(row, ())
        predictions = [_prediction(table.labels_of(row), likely)] if likely else []
        tasks.append({**_task(table, row, data), "predictions": predictions})
    _write_tasks(path, tasks)
    setup = path.with_suffix(".xml")
    atomic_write(setup, _setup(table.classes))
    return [path, setup]


def instructions(handoff: Handoff) -> str:
    """What to do so that the pictures show."""
    steps = "import the tasks, and paste the XML under Settings > Labeling Interface > Code."
    if handoff.prefix is not None or handoff.folder is None:
        return f"In Label Studio: {steps}"
    folder = handoff.folder.resolve()
    return (
        "Start Label Studio with LOCAL_FILES_SERVING_ENABLED=true"
        f" LOCAL_FILES_DOCUMENT_ROOT={folder.parent} label-studio; in the project, add under"
        f" Settings > Cloud Storage a source storage of the kind Local files with the path {folder}"
        f" (no need to sync it), then {steps}"
    )


def _before_files(handoff: Handoff) -> str:
    """What stands before the name of a file; a storage must lie below the root of local files."""
    if handoff.prefix is not None:
        return handoff.prefix
    if handoff.folder is None:
        return ""
    return f"{_LOCAL_FILES}{quote(handoff.folder.resolve().name)}/"


def _quoted(handoff: Handoff, row: int) -> str:
    """A file as part of an address, where it becomes one."""
    file = handoff.files[row]
    return file if handoff.prefix is None and handoff.folder is None else quote(file)


def _task(table: LabelTable, row: int, data: dict[str, str]) -> JsonObject:
    names = table.labels_of(row)
    annotation = {"result": [_choices(names)] if names else [], "was_cancelled": False}
    return {"id": row + 1, "data": data, "annotations": [annotation]}


def _prediction(known: Sequence[str], likely: Sequence[tuple[str, float]]) -> JsonObject:
    score = max(probability for _, probability in likely)
    names = [*known, *(name for name, _ in likely)]
    return {"model_version": "hilltop", "score": round(score, 6), "result": [_choices(names)]}


def _choices(names: Sequence[str]) -> JsonObject:
    return {
        "from_name": "choice",
        "to_name": "image",
        "type": CHOICES,
        "value": {"choices": list(names)},
    }


def _write_tasks(path: Path, tasks: list[JsonObject]) -> None:
    atomic_write(path, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")


def _setup(classes: Sequence[str]) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image" zoom="true"/>\n'
        '  <Choices name="choice" toName="image" choice="multiple" showInLine="true">\n'
        f"{choices}\n  </Choices>\n</View>\n"
    )


FORMAT = Format(
    name="label_studio",
    summary="Label Studio's exports JSON, JSON-MIN and CSV: the answers to <Choices>.",
    matches=matches,
    detect=detect,
    read=read,
    write=write,
    patch=patch,
    hand_off=hand_off,
    instructions=instructions,
    file_names=True,
)
