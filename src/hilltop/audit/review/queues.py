"""Queues: which pairs a person is asked about first, by what the answers are for.

- ``labels`` cleans the labels: the most probable missing label first;
- ``model`` helps the model most: labels that are probable but not certain, of classes with few;
- ``wrong`` asks for labels that should go, the most probable mistake first;
- ``measure`` is a random sample with known sampling probabilities, from which rates follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.decisions.verdicts import verdicts
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.folder import AuditFolder
from hilltop.calibration.sampling import inclusion_probabilities, systematic_sample
from hilltop.checks import check_choice, check_whole
from hilltop.data import LabelTable, State
from hilltop.data.csv_rows import format_rows
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write

Floats = npt.NDArray[np.float64]
Purpose = Literal["model", "labels", "wrong", "measure"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
QUEUE_COLUMNS = ("image", "class", "probability")
SAMPLED_WITH = "sampled_with"
"""A further column of random samples: the probability with which a pair was drawn."""
SCARCITY = 1.5
"""How much less a label is worth in a class that has many: their number to this power."""
EVENLY = 0.25
"""Share of a random sample that is drawn with the same probability from all pairs, so that none is
too improbable to be drawn; the rest goes where answers differ most."""


@dataclass(frozen=True)
class Queue:
    """Pairs in the order in which to ask.

    Attributes:
        rows: Image numbers in the label table.
        columns: Class numbers.
        probabilities: Probability that the label is missing; for labels, that it is wrong.
        sampled_with: Of a random sample: with which probability each pair was drawn.
    """

    rows: Ints
    columns: Ints
    probabilities: npt.NDArray[np.float32]
    sampled_with: Floats | None = None

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.rows)


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
        number: How many pairs at most.
        classes: Ask about these alone; about all without any.
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
    counts = labels.counts_by_class(State.PRESENT) + _changed(labels, answers)
    still = _open(labels, index, answers)
    if classes:
        wanted = np.isin(labels.classes, list(classes))
        still &= np.repeat(wanted, np.diff(index.starts))
    return choose_pairs(index, still, counts, purpose=purpose, number=number, seed=seed)


def choose_pairs(
    index: CandidateIndex,
    open_pairs: npt.NDArray[np.bool_],
    counts: npt.NDArray[np.int64],
    *,
    purpose: Purpose,
    number: int,
    seed: int = 0,
) -> Queue:
    """Choose among candidates; for who has arrays, see :func:`build_queue`.

    Args:
        index: The candidates, class by class.
        open_pairs: Which of them nobody has answered.
        counts: Labels of each class, confirmed ones among them.
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
        value = model_values(probs, columns[chosen], counts) if purpose == "model" else probs
        drawn = np.argsort(-value, kind="stable")[:number]
    places = chosen[drawn]
    return Queue(
        index.rows[places].astype(np.int64),
        columns[places],
        index.probabilities[places],
        sampled_with,
    )


def model_values(probs: Floats, columns: Ints, counts: npt.NDArray[np.int64]) -> Floats:
    r"""How much each answer would help the model.

    .. math:: \frac{p \sqrt{1 - p}}{(n + \sum_{\text{before}} p)^{3/2}}

    A class gains by a label that will probably be found and that the model does not know already,
    the more, the fewer labels n it has. Pairs of a class that are asked before count with the
    labels they will probably bring, so that no class is asked for too long. The powers were chosen
    by simulated answers, on training rows held out for it.

    Args:
        probs: Probability of each pair that its label is missing.
        columns: Its class.
        counts: Labels of each class.
    """
    gain = _gain(probs)
    order = np.lexsort((-gain, columns))
    sums = np.cumsum(probs[order])
    first = np.searchsorted(columns[order], np.arange(len(counts)))
    start = np.concatenate([[0.0], sums])[first]
    before = sums - probs[order] - start[columns[order]]
    values = np.empty_like(gain)
    values[order] = gain[order] / (np.maximum(counts[columns[order]], 1) + before) ** SCARCITY
    return values


def worth_of_label(prob: float, count: int) -> float:
    """How much one answer would help the model, in a class with so many labels."""
    return float(_gain(np.array(prob)) / max(1, count) ** SCARCITY)


def _gain(probs: Floats) -> Floats:
    gain: Floats = probs * np.sqrt(1 - probs)
    return gain


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


def write_queue(queue: Queue, labels: LabelTable, path: Path, *, drawn: str | None = None) -> None:
    """Write a queue as CSV, completely or not at all.

    Args:
        queue: The pairs.
        labels: The labels that they belong to.
        path: The file.
        drawn: When a sample was drawn; a further column, for the copy that the audit keeps.
    """
    sampled = queue.sampled_with
    further = [] if sampled is None else [SAMPLED_WITH]
    columns = [*QUEUE_COLUMNS, *further, *(["drawn"] if drawn else [])]
    rows = []
    names = labels.images.take(pa.array(queue.rows)).to_pylist()
    for at, (name, column, prob) in enumerate(
        zip(names, queue.columns.tolist(), queue.probabilities.tolist(), strict=True)
    ):
        more = [] if sampled is None else [f"{sampled[at]:.6g}"]
        more += [drawn] if drawn else []
        rows.append([name, labels.classes[column], f"{prob:.6g}", *more])
    atomic_write(path, format_rows(columns, rows))


def _changed(labels: LabelTable, answers: Answers) -> npt.NDArray[np.int64]:
    """Labels of each class that were found, less those that were struck."""
    found = np.zeros(len(labels.classes), dtype=np.int64)
    settled = verdicts(labels, answers)
    for change in settled.changes:
        found[change.column] += change.state == State.PRESENT
        found[change.column] -= settled.is_struck(change)
    return found


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
