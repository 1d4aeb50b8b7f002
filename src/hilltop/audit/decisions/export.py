"""Corrected labels and open candidates for other tools: Label Studio, FiftyOne and data formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pyarrow as pa

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.decisions.corrected import corrected, verdicts
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.inputs.image_files import find_images

LIKELY = 0.5
"""Open candidates at least as probable as this are exported as predictions."""
Likely = dict[int, list[tuple[str, float]]]
Export = Callable[[AuditFolder, LabelTable, Likely, Path], list[Path]]


def export_audit(folder: AuditFolder, out: Path, *, to: str) -> list[Path]:
    """Write the corrected labels, and what is still open, for another tool.

    Args:
        folder: The audit; it need not be reviewed yet.
        out: The file to write; for FiftyOne and Hugging Face, a folder will do too.
        to: One of ``EXPORTS``.

    Returns:
        The files that were written.
    """
    if not out.parent.is_dir():
        raise data_error(out, "its folder does not exist. Create it first.")
    labels = folder.table()
    answers = read_answers(folder) if folder.decisions.is_file() else Answers()
    table = corrected(labels, verdicts(labels, answers).changes)
    return EXPORTS[to](folder, table, _open(folder, labels, table, answers), out)


def write_label_studio(
    folder: AuditFolder, table: LabelTable, candidates: Likely, out: Path
) -> list[Path]:
    """Write tasks with the known labels as annotations and likely missing ones as predictions.

    The labelling setup goes beside them as XML. With a folder of images, tasks refer to them as
    Label Studio's local files: set LOCAL_FILES_DOCUMENT_ROOT to the folder of images.
    """
    references = _local_files(folder, table)
    tasks = []
    for row, image in enumerate(table.images.to_pylist()):
        known = table.labels_of(row)
        likely = candidates.get(row, [])
        annotation = {"result": [_choices(known)] if known else [], "was_cancelled": False}
        task: dict[str, Any] = {
            "id": row + 1,
            "data": {"image": references[row], "hilltop_image": image},
            "annotations": [annotation],
            "predictions": [],
        }
        if likely:
            score = max(probability for _, probability in likely)
            names = [*known, *(name for name, _ in likely)]
            task["predictions"].append(
                {"model_version": "hilltop", "score": round(score, 6), "result": [_choices(names)]}
            )
        tasks.append(task)
    atomic_write(out, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    config = out.with_suffix(".xml")
    atomic_write(config, _label_studio_config(table.classes))
    return [out, config]


def write_fiftyone(
    folder: AuditFolder, table: LabelTable, candidates: Likely, out: Path
) -> list[Path]:
    """Write ``labels.json`` of a FiftyOneImageClassificationDataset with several labels an image.

    Known and confirmed labels have confidence 1, likely missing ones their probability and the
    attribute ``missing``. Load it with ``data_path`` naming the folder of images.
    """
    target = out / "labels.json" if out.is_dir() else out
    content: dict[str, list[dict[str, Any]]] = {}
    for row, key in enumerate(_keys(folder, table)):
        known = [_classification(name, 1.0, False) for name in table.labels_of(row)]
        likely = [_classification(name, chance, True) for name, chance in candidates.get(row, [])]
        content[key] = known + likely
    written = {"classes": list(table.classes), "labels": content}
    atomic_write(target, json.dumps(written, ensure_ascii=False, indent=1) + "\n")
    return [target]


def _write_format(name: str) -> Export:
    """Through the formats of the data room; what a format cannot say is left out."""

    def write(folder: AuditFolder, table: LabelTable, candidates: Likely, out: Path) -> list[Path]:
        files = pa.array(_files(folder, table), pa.string())
        write_labels(replace(table, images=files), out, format=name, lossy=True)
        return [out / "metadata.jsonl" if out.is_dir() else out]

    return write


EXPORTS: dict[str, Export] = {
    "label_studio": write_label_studio,
    "fiftyone": write_fiftyone,
    "huggingface": _write_format("huggingface"),
    "coco": _write_format("coco"),
    "lvis": _write_format("lvis"),
}


def _open(folder: AuditFolder, labels: LabelTable, table: LabelTable, answers: Answers) -> Likely:
    """The likely candidates of each image that nobody has answered yet."""
    index = CandidateIndex.read(folder, labels)
    found: Likely = {}
    for column, name in enumerate(table.classes):
        answered = {image for image, _ in answers.pairs(name)}
        chances = index.class_probabilities(column)
        for place in (chances >= LIKELY).nonzero()[0]:
            row = int(index.class_rows(column)[place])
            if not answered or table.images[row].as_py() not in answered:
                found.setdefault(row, []).append((name, float(chances[place])))
    return found


def _files(folder: AuditFolder, table: LabelTable) -> list[str]:
    """File names with endings where the folder of images is known, else the ids."""
    ids: list[str] = table.images.to_pylist()
    if folder.images is None or not folder.images.is_dir():
        return ids
    found = find_images(folder.images, table.images).to_pylist()
    return [file or image for file, image in zip(found, ids, strict=True)]


def _local_files(folder: AuditFolder, table: LabelTable) -> list[str]:
    files = _files(folder, table)
    if folder.images is None:
        return files
    return [f"/data/local-files/?d={file}" for file in files]


def _keys(folder: AuditFolder, table: LabelTable) -> list[str]:
    """FiftyOne finds an image by its path without the ending."""
    return [str(Path(file).with_suffix("")) for file in _files(folder, table)]


def _choices(names: Any) -> dict[str, Any]:
    return {
        "from_name": "choice",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": list(names)},
    }


def _classification(name: str, confidence: float, missing: bool) -> dict[str, Any]:
    return {
        "label": name,
        "confidence": round(confidence, 6),
        "attributes": {"missing": missing},
    }


def _label_studio_config(classes: tuple[str, ...]) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image" zoom="true"/>\n'
        '  <Choices name="choice" toName="image" choice="multiple" showInLine="true">\n'
        f"{choices}\n  </Choices>\n</View>\n"
    )
