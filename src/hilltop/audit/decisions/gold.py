"""Gold questions: pairs with a known answer among the others, to see how reliable reviewers are.

Labels that scores support most are known to be present, the least probable candidates to be absent.
Answers to gold questions tell how often a reviewer agrees with what is known; they change no label.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from hilltop.audit.decisions.answers import Answers, Pair
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.checks import check_whole
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.review_record import AnswerWord
from hilltop.data.small_files import format_rows, read_rows
from hilltop.missing.interval import proportion_interval

_COLUMNS = ("class", "image", "known")
_SURE = 0.2
"""Share of the labels of a class, and of its candidates, that gold questions are drawn from."""
Gold = dict[Pair, AnswerWord]
"""The known answer to each gold question."""
PAIRS_PER_QUESTION = 16
"""The page shows at most one gold question for so many candidates."""


class Agreement(NamedTuple):
    """How often a reviewer agrees with what is known.

    Attributes:
        agreed: Gold questions that were answered as they are known.
        answered: Gold questions that were answered yes or no.
        low: Lower end of a 90% interval of the share that agrees.
        high: Upper end.
    """

    agreed: int
    answered: int
    low: float
    high: float


def add_gold_questions(folder: AuditFolder, number: int, *, seed: int = 0) -> Gold:
    """Choose known pairs, half of them labels, and write them into the folder of the audit.

    Args:
        folder: The audit.
        number: How many, at most; they are spread over the classes that have both kinds, those
            that miss most labels first.
        seed: The same seed chooses the same pairs.

    Raises:
        DataError: The audit does not say which labels are sure.
    """
    check_whole("gold", number, low=1)
    pairs = AuditPairs.read(folder)
    labels, missing, there = pairs.labels, pairs.candidates, pairs.suspects
    if there is None:
        raise data_error(
            folder.suspects,
            "this audit does not say which labels are sure. Run `hilltop audit` again.",
        )
    rng = np.random.default_rng(seed)
    found = read_gold(folder)  # answers to earlier ones must never become labels
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
    atomic_write(
        folder.gold, format_rows(_COLUMNS, ([*pair, known] for pair, known in found.items()))
    )
    return found


def read_gold(folder: AuditFolder) -> Gold:
    """Return the gold questions of an audit; none if nobody added any."""
    if not folder.gold.is_file():
        return {}
    lines = [cells for _, cells in read_rows(folder.gold, _COLUMNS)]
    words: dict[str, AnswerWord] = {"present": "present", "absent": "absent"}
    try:
        return {(line["class"], line["image"]): words[line["known"]] for line in lines}
    except KeyError:
        raise data_error(
            folder.gold, "this is not a list of gold questions. Add them again with --gold."
        ) from None


def agreements(answers: Answers, gold: Gold) -> dict[str, Agreement]:
    """How often each reviewer agrees with what is known; "unsure" does not count.

    Example:
        >>> from hilltop.audit.decisions.store import Answer
        >>> answers = Answers()
        >>> said = Answer("1", "1", "Ann", "2026-01-31", "a", "dog", "absent", "ranked", 0.9)
        >>> _ = answers.take(said)
        >>> agreements(answers, {("dog", "a"): "present"})["Ann"][:2]
        (0, 1)
    """
    right: dict[str, list[bool]] = {}
    for (name, image), known in gold.items():
        for reviewer, vote in answers.votes(name, image).items():
            if vote.answer != "unsure":
                right.setdefault(reviewer, []).append(vote.answer == known)
    return {
        reviewer: Agreement(sum(one), len(one), *proportion_interval(sum(one), len(one)))
        for reviewer, one in right.items()
    }


class GoldMixer:
    """Mixes gold questions into the pages of their class, so that they look like candidates."""

    def __init__(self, gold: Gold) -> None:
        """Group the pairs by class."""
        self.pairs = gold
        self._of: dict[str, list[str]] = {}
        for name, image in gold:
            self._of.setdefault(name, []).append(image)

    def images(self, class_name: str, start: int, count: int) -> list[str]:
        """The images of gold questions among the candidates from ``start`` on."""
        mine = self._of.get(class_name, [])
        return mine[start // PAIRS_PER_QUESTION : -(-(start + count) // PAIRS_PER_QUESTION)]

    def mix(self, name: str, pairs: list[dict[str, Any]], gold: list[dict[str, Any]]) -> None:
        """Insert gold questions of a class between other pairs; their labels are not shown."""
        for pair in gold:
            place = 1 + zlib.crc32(pair["image"].encode()) % max(1, len(pairs) - 1)
            near = pairs[min(place, len(pairs)) - 1]["probability"] if pairs else None
            labels = [label for label in pair["labels"] if label != name]
            like = {"labels": labels, "probability": near, "alike": None}
            pairs.insert(place, {**pair, **like})
