"""Pairs that ``hilltop evaluate --plan`` drew, as a queue of the review page, and their answers.

An audit keeps every plan it was given, in the order in which they were drawn, so that answers can
be told apart by the sample that they belong to.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable
from hilltop.data.data_errors import data_error, unknown_class
from hilltop.data.files import atomic_write, holding_alone
from hilltop.data.small_files import csv_text, format_rows, parse_rows

_NEEDED = ("image", "class", "sampled_with")
_WORDS = {"present": "yes", "absent": "no", "unsure": "unsure", "disputed": "unsure"}


def keep_plan(folder: AuditFolder, path: Path) -> int:
    """Take a plan into the audit, unless it is there; return how many pairs it asks about.

    Args:
        folder: An audit of the labels that were planned for.
        path: What ``hilltop evaluate --plan`` wrote.

    Raises:
        DataError: The file is no plan, or is about other images, classes or known pairs.
    """
    text = csv_text(path)
    labels = folder.table()
    index = CandidateIndex.read(folder, labels)
    lines = _lines(path, text)
    column_of = {name: column for column, name in enumerate(labels.classes)}
    rows = pc.index_in(pa.array([one["image"] for one in lines]), value_set=labels.images)
    for line, (one, row) in enumerate(zip(lines, rows.to_pylist(), strict=True), start=2):
        if row is None:
            problem = f"image {one['image']!r} is not in this audit. Audit the labels you test on."
            raise data_error(path, problem, line=line)
        if one["class"] not in column_of:
            raise data_error(path, unknown_class(one["class"], column_of), line=line)
        if index.place(column_of[one["class"]], row) is None:
            raise data_error(
                path,
                f"class {one['class']!r} of image {one['image']!r} is known already, or is not"
                " among the pairs that the audit lists.",
                line=line,
            )
    kept = folder.path / "plans"
    kept.mkdir(exist_ok=True)
    with holding_alone(kept, "another command takes in a plan. Try again."):
        if text not in [csv_text(plan) for plan in folder.plans]:
            # The next after the last, not their number: somebody may have removed one.
            last = max(
                (int(plan.stem) for plan in folder.plans if plan.stem.isdecimal()), default=0
            )
            atomic_write(kept / f"{last + 1:03}.csv", text)
    return len(lines)


def planned_places(folder: AuditFolder, labels: LabelTable, index: CandidateIndex) -> list[Ints]:
    """Places of planned pairs among the candidates of each class, in the order of the plans."""
    lines = [one for plan in folder.plans for one in _lines(plan, csv_text(plan))]
    rows = pc.index_in(pa.array([one["image"] for one in lines], pa.string()), labels.images)
    by_class: dict[str, list[int]] = {}
    for one, row in zip(lines, rows.to_pylist(), strict=True):
        by_class.setdefault(one["class"], []).append(-1 if row is None else row)
    places = []
    for column, name in enumerate(labels.classes):
        found = [index.place(column, row) for row in by_class.get(name, [])]
        places.append(np.array([at for at in found if at is not None], dtype=np.int64))
    return places


def answered_plans(folder: AuditFolder) -> list[tuple[Path, str]]:
    """Every plan with a column ``answer``, from what reviewers said of its pairs by now."""
    answers = read_answers(folder) if folder.decisions.is_file() else Answers()
    if not folder.plans:
        raise data_error(
            folder.path,
            "this audit was never given a plan. Run `hilltop evaluate --plan`, then `hilltop review"
            f" {folder.path} --queue FILE`.",
        )
    return [(plan, _answered(plan, answers)) for plan in folder.plans]


def _answered(plan: Path, answers: Answers) -> str:
    rows = []
    for one in _lines(plan, csv_text(plan)):
        votes = answers.votes(one["class"], one["image"])
        word = _WORDS[resolve(votes.values())] if votes else ""
        rows.append([*(one[name] for name in _NEEDED), word])
    return format_rows([*_NEEDED, "answer"], rows)


def _lines(path: Path, text: str) -> list[dict[str, str]]:
    return [cells for _, cells in parse_rows(path, text, _NEEDED)]
