"""Queues: which pairs a person is asked about first, by what the answers are for.

- ``labels`` cleans the labels: the most probable missing label first;
- ``model`` helps the model most: the most probable missing labels of the classes with few labels;
- ``wrong`` asks for labels that should go, the most probable mistake first;
- ``images`` asks image by image, about its candidates and its labels, first those that lack most;
- ``measure`` is a random sample with known sampling probabilities, from which rates follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.checks import check_choice, check_whole
from hilltop.data import LabelTable, State
from hilltop.data.data_errors import data_error, unknown_class
from hilltop.data.files import atomic_write, holding_alone
from hilltop.data.small_files import csv_text, format_rows, parse_rows
from hilltop.missing.answers import inclusion_probabilities, systematic_sample

MOST_CLASSES = 10
"""Candidates of an image that are asked about at the most; any class can be added by name."""
FEWEST_CLASSES = 3
LEAST_PROBABILITY = 0.02
"""Beyond the first few, candidates less probable than this are not asked about."""


@dataclass(frozen=True)
class ImageItem:
    """A class of an image that a person is asked about.

    Attributes:
        column: Class number.
        probability: That its label is missing; of a label, that it is wrong; None if nobody knows.
    """

    column: int
    probability: float | None


class WholeImages:
    """Images in the order in which to ask, with the candidates and labels of each."""

    def __init__(self, pairs: AuditPairs) -> None:
        """Sort the pairs by image."""
        self._pairs, number = pairs, len(pairs.labels)
        self._candidates = _ByImage(pairs.candidates, number)
        self._suspects = None if pairs.suspects is None else _ByImage(pairs.suspects, number)
        gain = self._candidates.sums()
        rows = np.flatnonzero(self._candidates.counts())
        self.order: Ints = rows[np.argsort(-gain[rows], kind="stable")]

    def __len__(self) -> int:
        """Number of images with candidates."""
        return len(self.order)

    def candidates(self, row: int) -> list[ImageItem]:
        """The classes that an image may lack, the most probable first."""
        columns, probs = self._candidates.of(row)
        likely = probs >= LEAST_PROBABILITY
        likely[:FEWEST_CLASSES] = True
        chosen = np.flatnonzero(likely)[:MOST_CLASSES]
        pairs = zip(columns[chosen].tolist(), probs[chosen].tolist(), strict=True)
        return [ImageItem(column, prob) for column, prob in pairs]

    def prob_complete(self, row: int) -> float:
        """The probability that an image lacks none of its candidates, taken as independent."""
        return float(np.exp(np.log1p(-np.minimum(self._candidates.of(row)[1], 1 - 1e-6)).sum()))

    def labels(self, row: int) -> list[ImageItem]:
        """The labels of an image, the most doubtful first."""
        known: dict[int, float] = {}
        if self._suspects is not None:
            columns, probs = self._suspects.of(row)
            known = dict(zip(columns.tolist(), probs.tolist(), strict=True))
        found = [self._pairs.column_of[name] for name in self._pairs.labels.labels_of(row)]
        found.sort(key=lambda column: -known.get(column, 0.0))
        return [ImageItem(column, known.get(column)) for column in found]


class _ByImage:
    """Pairs of an index sorted by image and, within it, by probability."""

    def __init__(self, index: CandidateIndex, images: int) -> None:
        order = np.lexsort((-index.probabilities, index.rows))
        self._columns, self._probs = index.columns()[order], index.probabilities[order]
        self._starts = np.searchsorted(index.rows[order], np.arange(images + 1))

    def of(self, row: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        mine = slice(self._starts[row], self._starts[row + 1])
        return self._columns[mine], self._probs[mine]

    def counts(self) -> Ints:
        return np.diff(self._starts)

    def sums(self) -> npt.NDArray[np.float64]:
        """Number of labels that the probabilities of each image add up to."""
        total = np.concatenate([[0.0], np.cumsum(self._probs, dtype=np.float64)])
        found: npt.NDArray[np.float64] = total[self._starts[1:]] - total[self._starts[:-1]]
        return found


Floats = npt.NDArray[np.float64]
QUEUE_COLUMNS = ("image", "class", "probability")
SAMPLED_WITH = "sampled_with"
"""A further column of random samples: the probability with which a pair was drawn."""
LABELLED = "labelled"
"""A further column of queues by image: whether the pair is a label now."""


@dataclass(frozen=True)
class Queue:
    """Pairs in the order in which to ask.

    Attributes:
        rows: Image numbers in the label table.
        columns: Class numbers.
        probabilities: Probability that the label is missing; for labels, that it is wrong.
        sampled_with: Of a random sample: with which probability each pair was drawn.
        labelled: Image by image: which pairs are labels now; an answer "no" strikes them.
    """

    rows: Ints
    columns: Ints
    probabilities: npt.NDArray[np.float32]
    sampled_with: Floats | None = None
    labelled: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.rows)


def write_queue(queue: Queue, labels: LabelTable, path: Path, *, drawn: str | None = None) -> None:
    """Write a queue as CSV, completely or not at all.

    Args:
        queue: The pairs.
        labels: The labels that they belong to.
        path: The file.
        drawn: When a sample was drawn; a further column, for the copy that the audit keeps.
    """
    further: dict[str, list[str]] = {}
    if queue.sampled_with is not None:
        further[SAMPLED_WITH] = [f"{share:.6g}" for share in queue.sampled_with]
    if queue.labelled is not None:
        further[LABELLED] = ["yes" if one else "no" for one in queue.labelled]
    if drawn:
        further["drawn"] = [drawn] * len(queue)
    rows = []
    names = labels.images.take(pa.array(queue.rows)).to_pylist()
    for at, (name, column, prob) in enumerate(
        zip(names, queue.columns.tolist(), queue.probabilities.tolist(), strict=True)
    ):
        more = [cells[at] for cells in further.values()]
        rows.append([name, labels.classes[column], f"{prob:.6g}", *more])
    atomic_write(path, format_rows([*QUEUE_COLUMNS, *further], rows))


Purpose = Literal["model", "labels", "wrong", "measure", "images"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
EVENLY = 0.25
"""Share of a random sample that is drawn with the same probability from all pairs, so that none is
too improbable to be drawn; the rest goes where answers differ most."""


def build_queue(
    folder: AuditFolder,
    purpose: Purpose,
    number: int,
    *,
    classes: Sequence[str] = (),
    seed: int = 0,
) -> Queue:
    """Return the pairs to ask about, without those that were answered already.

    Args:
        folder: The audit.
        purpose: What the answers are for.
        number: How many pairs at most; of images, the last one is asked about in full.
        classes: Ask about these alone, each in turn; about all without any.
        seed: Of random samples; the same seed gives the same sample.
    """
    check_choice("for", purpose, PURPOSES)
    check_whole("number", number, low=1)
    pairs = AuditPairs.read(folder)
    labels, index = pairs.labels, pairs.candidates
    if purpose == "wrong":
        if pairs.suspects is None:
            raise data_error(
                folder.suspects,
                "this audit has no list of labels that may be wrong. Run `hilltop audit` again.",
            )
        index = pairs.suspects
    answers = read_answers(folder)
    for name in classes:
        check_choice("classes", name, labels.classes)
    if purpose == "images":
        return _by_image(pairs, number, answers, frozenset(classes or labels.classes))
    asked = np.array([sum(1 for _ in answers.pairs(name)) for name in labels.classes])
    known = asked + labels.counts_by_class(State.PRESENT)
    columns = index.columns().astype(np.int64)
    places = np.flatnonzero(answers.unanswered(pairs, index))
    if classes:
        places = places[np.isin(labels.classes, list(classes))[columns[places]]]
        if purpose in ("labels", "wrong"):
            places = np.sort(_by_turns(index.probabilities, columns, places)[:number])
    probs, sampled_with = index.probabilities[places].astype(np.float64), None
    if purpose == "measure":
        drawn, sampled_with = sample_pairs(probs, number, np.random.default_rng(seed))
        sampled_with = sampled_with[drawn]
    else:
        value = model_values(probs, columns[places], known) if purpose == "model" else probs
        drawn = np.argsort(-value, kind="stable")[:number]
    places = places[drawn]
    rows = index.rows[places].astype(np.int64)
    return Queue(rows, columns[places], index.probabilities[places], sampled_with)


def _by_turns(probs: npt.NDArray[np.float32], columns: Ints, places: Ints) -> Ints:
    """Places with the most probable pairs of each class in turn: one does not take all questions.

    Who names classes wants to be asked about each; those with few candidates leave their places.
    """
    order = places[np.lexsort((-probs[places], columns[places]))]
    turn = np.arange(len(order)) - np.searchsorted(columns[order], columns[order])
    return order[np.lexsort((-probs[order], turn))]


def _by_image(pairs: AuditPairs, number: int, answers: Answers, classes: frozenset[str]) -> Queue:
    """Candidates and labels of one image after another, without what was answered."""
    labels, whole = pairs.labels, WholeImages(pairs)
    asked: list[tuple[int, int, float, bool]] = []
    for row in whole.order.tolist():
        if len(asked) >= number:
            break
        image = labels.images[row].as_py()
        found = [(one, False) for one in whole.candidates(row)]
        found = [*found, *((one, True) for one in whole.labels(row))] if found else []
        for one, is_label in found:
            name = labels.classes[one.column]
            if name in classes and not answers.votes(name, image):
                asked.append((row, one.column, one.probability or 0.0, is_label))
    rows, columns, probs, labelled = zip(*asked, strict=True) if asked else ((), (), (), ())
    return Queue(
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        np.array(probs, dtype=np.float32),
        labelled=np.array(labelled, dtype=bool),
    )


def model_values(probs: Floats, columns: Ints, known: npt.NDArray[np.int64]) -> Floats:
    r"""How much each answer would help the model: only the order of these numbers counts.

    .. math:: \frac{\sqrt{p}}{n_c + k + 1}

    for the pair of class c that k others of its class are more probable than, in a class of which n
    labels and answers are known. In mAP every class counts the same, and a further label is worth
    the less the more there are. Within a class it is the pairs that look most like labels that
    teach a model most. The root is there because probabilities of different classes are less
    certain than their order within one: where an audit sees no sign of missing labels, all of them
    are small. Chosen on training rows held out for it; see reproduction/answers.md.

    Args:
        probs: Probability of each pair that its label is missing.
        columns: Its class.
        known: Labels and answers of each class so far.

    Example:
        >>> probs, columns = np.array([0.9, 0.8, 0.3]), np.array([0, 0, 1])
        >>> np.argsort(-model_values(probs, columns, np.array([3, 3]))).tolist()
        [0, 1, 2]
        >>> np.argsort(-model_values(probs, columns, np.array([30, 3]))).tolist()
        [2, 0, 1]
    """
    order = np.lexsort((-probs, columns))
    first = np.searchsorted(columns[order], np.arange(len(known)))
    values = np.empty_like(probs)
    rank = np.arange(len(probs)) - first[columns[order]]
    values[order] = np.sqrt(probs[order]) / (known[columns[order]] + rank + 1)
    return values


def worth_of_answer(prob: float, known: int) -> float:
    """What the next answer is worth to the model, in a class with so many labels and answers."""
    return math.sqrt(prob) / (known + 1)


def sample_pairs(probs: Floats, number: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Draw pairs at random, more of those whose answer is uncertain.

    Systematic sampling in random order: as many as were asked for, each pair with exactly the
    probability that is returned. The sample itself is in random order, too.

    Args:
        probs: Probability of each pair that its label is missing.
        number: How many to draw.
        rng: Source of randomness.

    Returns:
        Places of the pairs that were drawn, and the probability of every pair to be among them.
    """
    size = np.sqrt(probs * (1 - probs))
    even = np.full(len(probs), 1 / max(1, len(probs)))
    share = EVENLY * even + (1 - EVENLY) * (size / size.sum() if size.any() else even)
    inclusion = inclusion_probabilities(share, number)
    return systematic_sample(inclusion, rng), inclusion


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
    text, pairs = csv_text(path), AuditPairs.read(folder)
    lines, column_of = _lines(path, text), pairs.column_of
    rows = pairs.rows_of(one["image"] for one in lines)
    for line, (one, row) in enumerate(zip(lines, rows, strict=True), start=2):
        if row < 0:
            problem = f"image {one['image']!r} is not in this audit. Audit the labels you test on."
            raise data_error(path, problem, line=line)
        if one["class"] not in column_of:
            raise data_error(path, unknown_class(one["class"], column_of), line=line)
        if pairs.candidates.place(column_of[one["class"]], row) is None:
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


def planned_places(folder: AuditFolder, pairs: AuditPairs) -> list[Ints]:
    """Places of planned pairs among the candidates of each class, in the order of the plans."""
    lines = [one for plan in folder.plans for one in _lines(plan, csv_text(plan))]
    by_class: dict[str, list[int]] = {}
    for one, row in zip(lines, pairs.rows_of(one["image"] for one in lines), strict=True):
        by_class.setdefault(one["class"], []).append(row)
    places = []
    for column, name in enumerate(pairs.labels.classes):
        found = [pairs.candidates.place(column, row) for row in by_class.get(name, [])]
        places.append(np.array([at for at in found if at is not None], dtype=np.int64))
    return places


def answered_plans(folder: AuditFolder) -> list[tuple[Path, str]]:
    """Every plan with a column ``answer``, from what reviewers said of its pairs by now."""
    answers = read_answers(folder)
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
