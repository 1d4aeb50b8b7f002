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
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queue_table import Queue
from hilltop.audit.review.whole_images import WholeImages
from hilltop.checks import check_choice, check_whole
from hilltop.data import LabelTable, State
from hilltop.data.data_errors import data_error
from hilltop.missing.answers import inclusion_probabilities, systematic_sample

Floats = npt.NDArray[np.float64]
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
    labels = folder.table()
    answers = read_answers(folder) if folder.decisions.is_file() else Answers()
    path = folder.suspects if purpose == "wrong" else folder.candidates
    if not path.is_file():
        raise data_error(
            path, "this audit has no list of labels that may be wrong. Run `hilltop audit` again."
        )
    index = CandidateIndex.read_file(path, labels)
    for name in classes:
        check_choice("classes", name, labels.classes)
    if purpose == "images":
        suspects = None
        if folder.suspects.is_file():
            suspects = CandidateIndex.read_file(folder.suspects, labels)
        whole = WholeImages(labels, index, suspects)
        return _by_image(labels, whole, number, answers, frozenset(classes or labels.classes))
    asked = np.array([sum(1 for _ in answers.pairs(name)) for name in labels.classes])
    known = asked + labels.counts_by_class(State.PRESENT)
    still = _open(labels, index, answers)
    if classes:
        wanted = np.isin(labels.classes, list(classes))
        still &= np.repeat(wanted, np.diff(index.starts))
        if purpose in ("labels", "wrong"):
            still = _by_turns(index, still, number)
    return choose_pairs(index, still, known, purpose=purpose, number=number, seed=seed)


def _by_turns(
    index: CandidateIndex, open_pairs: npt.NDArray[np.bool_], number: int
) -> npt.NDArray[np.bool_]:
    """The most probable open pairs of each class in turn, so that one does not take all places.

    Who names classes wants to be asked about each; those with few candidates leave their places.
    """
    columns = np.repeat(np.arange(len(index.starts) - 1), np.diff(index.starts))
    places = np.flatnonzero(open_pairs)
    probs, mine = index.probabilities[places], columns[places]
    order = np.lexsort((-probs, mine))
    first = np.searchsorted(mine[order], mine[order])
    turn = np.arange(len(places)) - first
    taken = places[order[np.lexsort((-probs[order], turn))[:number]]]
    chosen = np.zeros_like(open_pairs)
    chosen[taken] = True
    return chosen


def choose_pairs(
    index: CandidateIndex,
    open_pairs: npt.NDArray[np.bool_],
    known: npt.NDArray[np.int64],
    *,
    purpose: Purpose,
    number: int,
    seed: int = 0,
) -> Queue:
    """Choose among candidates; for who has arrays, see :func:`build_queue`.

    Args:
        index: The candidates, class by class.
        open_pairs: Which of them nobody has answered.
        known: Labels and answers of each class so far.
        purpose: What the answers are for.
        number: How many pairs at most.
        seed: Of random samples.
    """
    columns = np.repeat(np.arange(len(index.starts) - 1), np.diff(index.starts))
    chosen = np.flatnonzero(open_pairs)
    probs, sampled_with = index.probabilities[chosen].astype(np.float64), None
    if purpose == "measure":
        drawn, sampled_with = sample_pairs(probs, number, np.random.default_rng(seed))
        sampled_with = sampled_with[drawn]
    else:
        value = model_values(probs, columns[chosen], known) if purpose == "model" else probs
        drawn = np.argsort(-value, kind="stable")[:number]
    places = chosen[drawn]
    return Queue(
        index.rows[places].astype(np.int64),
        columns[places],
        index.probabilities[places],
        sampled_with,
    )


def _by_image(
    labels: LabelTable, whole: WholeImages, number: int, answers: Answers, classes: frozenset[str]
) -> Queue:
    """Candidates and labels of one image after another, without what was answered."""
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


def _open(labels: LabelTable, index: CandidateIndex, answers: Answers) -> npt.NDArray[np.bool_]:
    """Which candidates nobody has answered."""
    still = np.ones(len(index), dtype=bool)
    for column, name in enumerate(labels.classes):
        answered = [image for image, _ in answers.pairs(name)]
        if answered:
            rows = pc.index_in(pa.array(answered), value_set=labels.images).drop_null().to_numpy()
            mine = slice(index.starts[column], index.starts[column + 1])
            still[mine] = ~np.isin(index.rows[mine], rows)
    return still
