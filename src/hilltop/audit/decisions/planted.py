"""Planted pairs: known ones among those that are asked about, to see how reliable reviewers are.

Labels that scores support most are known to be there, the least probable candidates not to be.
What people answer to them says how often they agree; it changes no label.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from hilltop.audit.decisions.answers import Answers, Pair
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.checks import check_whole
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.review_record import AnswerWord
from hilltop.missing.interval import proportion_interval

_COLUMNS = ("class", "image", "known")
_SURE = 0.2
"""Share of the labels of a class, and of its candidates, that planted pairs are drawn from."""
Planted = dict[Pair, AnswerWord]
"""What is known of each planted pair."""


@dataclass(frozen=True)
class Agreement:
    """How often a reviewer agrees with what is known.

    Attributes:
        reviewer: Who.
        agreed: Planted pairs that were answered as they are known.
        answered: Planted pairs that were answered yes or no.
        low: Lower end of a 90% interval of the share that agrees.
        high: Upper end.
    """

    reviewer: str
    agreed: int
    answered: int
    low: float
    high: float


def plant_pairs(folder: AuditFolder, number: int, *, seed: int = 0) -> Planted:
    """Choose known pairs, half of them labels, and write them into the folder of the audit.

    Args:
        folder: The audit.
        number: How many, at most; they are spread over the classes that have both kinds, those
            that miss most labels first.
        seed: The same seed plants the same pairs.

    Raises:
        DataError: The audit does not say which labels are sure.
    """
    check_whole("plant", number, low=1)
    if not folder.suspects.is_file():
        raise data_error(
            folder.suspects,
            "this audit does not say which labels are sure. Run `hilltop audit` again.",
        )
    labels = folder.table()
    there = CandidateIndex.read_file(folder.suspects, labels)
    missing = CandidateIndex.read(folder, labels)
    rng = np.random.default_rng(seed)
    found = read_planted(folder)  # answers to earlier ones must never become labels
    usable = [at for at in range(len(labels.classes)) if there.count(at) and missing.count(at)]
    usable.sort(key=lambda column: -missing.expected(column))  # as the page offers them
    kinds: tuple[tuple[CandidateIndex, AnswerWord], ...] = ((there, "present"), (missing, "absent"))
    for turn in range(number):
        if not usable:
            break
        index, known = kinds[turn % 2]
        column = usable[(turn // 2) % len(usable)]
        rows = index.class_rows(column)
        sure = rows[-max(1, int(_SURE * len(rows))) :]  # the least probable of either kind
        image = labels.images[int(rng.choice(sure))].as_py()
        found[labels.classes[column], image] = known
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([*pair, known] for pair, known in found.items())
    atomic_write(folder.planted, text.getvalue())
    return found


def read_planted(folder: AuditFolder) -> Planted:
    """Return the planted pairs of an audit; none if nobody planted any."""
    if not folder.planted.is_file():
        return {}
    with folder.planted.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    words: dict[str, AnswerWord] = {"present": "present", "absent": "absent"}
    try:
        return {(line["class"], line["image"]): words[line["known"]] for line in lines}
    except KeyError:
        raise data_error(
            folder.planted, "this is not a list of planted pairs. Plant them anew with --plant."
        ) from None


def agreements(answers: Answers, planted: Planted) -> list[Agreement]:
    """How often every reviewer agrees with what is known; "unsure" does not count.

    Example:
        >>> from hilltop.audit.decisions.store import Answer
        >>> answers = Answers()
        >>> said = Answer("1", "1", "Ann", "2026-01-31", "a", "dog", "absent", "ranked", 0.9)
        >>> _ = answers.take(said)
        >>> [(one.reviewer, one.agreed, one.answered)
        ...  for one in agreements(answers, {("dog", "a"): "present"})]
        [('Ann', 0, 1)]
    """
    counts: dict[str, list[int]] = {}
    for (name, image), known in planted.items():
        for reviewer, vote in answers.votes(name, image).items():
            if vote.answer != "unsure":
                one = counts.setdefault(reviewer, [0, 0])
                one[0] += vote.answer == known
                one[1] += 1
    return [
        Agreement(reviewer, agreed, answered, *proportion_interval(agreed, answered))
        for reviewer, (agreed, answered) in sorted(counts.items())
    ]
