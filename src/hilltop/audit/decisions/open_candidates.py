"""What is still open in an audit, for other tools: likely candidates and the files of images."""

from __future__ import annotations

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable
from hilltop.inputs.image_files import find_images

LIKELY = 0.5
"""Open candidates at least as probable as this are handed to other tools."""


def likely_candidates(
    folder: AuditFolder, labels: LabelTable, answers: Answers
) -> dict[int, list[tuple[str, float]]]:
    """By row, the likely candidates that nobody has answered yet, with their probability."""
    index = CandidateIndex.read(folder, labels)
    found: dict[int, list[tuple[str, float]]] = {}
    for column, name in enumerate(labels.classes):
        answered = {image for image, _ in answers.pairs(name)}
        probs = index.class_probabilities(column)
        for place in (probs >= LIKELY).nonzero()[0]:
            row = int(index.class_rows(column)[place])
            if not answered or labels.images[row].as_py() not in answered:
                found.setdefault(row, []).append((name, float(probs[place])))
    return found


def image_files(folder: AuditFolder, labels: LabelTable) -> list[str]:
    """File names with endings where the folder of images is known, else the ids."""
    ids: list[str] = labels.images.to_pylist()
    if folder.images is None or not folder.images.is_dir():
        return ids
    found = find_images(folder.images, labels.images).to_pylist()
    return [file or image for file, image in zip(found, ids, strict=True)]
