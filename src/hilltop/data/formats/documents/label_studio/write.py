"""Tasks for Label Studio: known labels as annotations, likely missing ones as predictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from hilltop.data.files import atomic_write
from hilltop.data.formats.base import Handoff
from hilltop.data.formats.documents.label_studio.records import IMAGE_ID
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_LOCAL_FILES = "/data/local-files/?d="


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write tasks with annotations, ready for import; only "present" can be expressed.

    The labelling setup needs ``<Image name="image" value="$image"/>`` and
    ``<Choices name="choice" toName="image" choice="multiple">``.
    """
    check_expressible(
        table,
        path,
        lossy,
        states=(State.PRESENT,),
        unused_classes=False,
        unlisted=(State.UNKNOWN, State.ABSENT),
    )
    images = table.images.to_pylist()
    _write_tasks(path, [_task(table, row, {"image": image}) for row, image in enumerate(images)])


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


def _task(table: LabelTable, row: int, data: dict[str, str]) -> dict[str, Any]:
    names = table.labels_of(row)
    annotation = {"result": [_choices(names)] if names else [], "was_cancelled": False}
    return {"id": row + 1, "data": data, "annotations": [annotation]}


def _prediction(known: Sequence[str], likely: Sequence[tuple[str, float]]) -> dict[str, Any]:
    score = max(probability for _, probability in likely)
    names = [*known, *(name for name, _ in likely)]
    return {"model_version": "hilltop", "score": round(score, 6), "result": [_choices(names)]}


def _choices(names: Sequence[str]) -> dict[str, Any]:
    return {
        "from_name": "choice",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": list(names)},
    }


def _write_tasks(path: Path, tasks: list[dict[str, Any]]) -> None:
    atomic_write(path, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")


def _setup(classes: Sequence[str]) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image" zoom="true"/>\n'
        '  <Choices name="choice" toName="image" choice="multiple" showInLine="true">\n'
        f"{choices}\n  </Choices>\n</View>\n"
    )
