"""What reviewed samples add to the estimates of an audit.

A random sample of a class gives an exact interval. The sample of ``hilltop queue --for measure``
asks more about pairs whose answer is uncertain; divided by the probability of being drawn, its
answers are a fair sample of all classes together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import (
    Estimate,
    read_estimates,
    sample_estimate,
    total_of_samples,
    write_estimates,
)
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.checks import pluralize
from hilltop.data import LabelTable, State
from hilltop.data.data_errors import data_error
from hilltop.data.small_files import read_rows
from hilltop.missing.answers import weighted_total
from hilltop.missing.interval import Interval

_SAMPLE_COLUMNS = ("image", "class", "probability", "sampled_with", "drawn")


@dataclass(frozen=True)
class Sampled:
    """What random samples say of the classes that have one.

    Attributes:
        estimates: For each of these classes.
        labelled: Labels of these classes.
        total: Missing labels of all of them together.
        model: What the model says of the same classes together.
        answered: Number of pairs in the samples.
    """

    estimates: list[Estimate]
    labelled: int
    total: Interval
    model: float
    answered: int

    @property
    def sentence(self) -> str:
        """Say whether model and samples agree."""
        agrees = self.total.low <= self.model <= self.total.high
        verdict = "agree" if agrees else "do not agree: trust the samples"
        pairs = pluralize(self.answered, "pair", "pairs")
        classes = pluralize(len(self.estimates), "class", "classes")
        return (
            f"random samples ({pairs}, {classes}): {self.total.count()} missing labels,"
            f" the model says {self.model:,.0f}; they {verdict}."
        )


@dataclass(frozen=True)
class Measured:
    """What a weighted sample says of all classes together.

    Attributes:
        missing: Number of missing labels.
        answers: Number of answers it rests on.
    """

    missing: Interval
    answers: int

    @property
    def sentence(self) -> str:
        """Say what was found."""
        pairs = pluralize(self.answers, "pair", "pairs")
        return f"weighted sample ({pairs}, all classes): {self.missing.count()} missing labels."


def add_samples(folder: AuditFolder) -> tuple[list[Estimate], Sampled | None]:
    """Read the reviewed samples of an audit and write them beside the model's estimates.

    Returns:
        What the model says of each class, and what the samples say; None if none was reviewed.
    """
    path = folder.path / "estimates.csv"
    model = [one for one in read_estimates(path) if one.source == "model"]
    sampled = None
    if folder.decisions.is_file():
        sampled = _sampled(folder, model, read_answers(folder))
    write_estimates([*model, *(sampled.estimates if sampled else [])], path)
    return model, sampled


def _sampled(folder: AuditFolder, model: list[Estimate], answers: Answers) -> Sampled | None:
    table = folder.table()
    index = CandidateIndex.read(folder, table)
    labelled = table.counts_by_class(State.PRESENT)
    by_model = {one.class_name: one.missing.value for one in model}
    found: list[tuple[int, Estimate]] = []
    for column, name in enumerate(table.classes):
        sample = answers.sample(name)
        made = sample_estimate(name, int(labelled[column]), index.count(column), sample)
        if made is not None:
            found.append((column, made))
    if not found:
        return None
    columns = np.array([column for column, _ in found])
    samples = [answers.sample(table.classes[column]) for column in columns]
    return Sampled(
        estimates=[made for _, made in found],
        labelled=int(labelled[columns].sum()),
        total=total_of_samples([index.count(column) for column in columns], samples),
        model=sum(by_model.get(made.class_name, 0.0) for _, made in found),
        answered=sum(one.present + one.absent + one.open for one in samples),
    )


def measured(folder: AuditFolder, table: LabelTable, answers: Answers) -> Measured | None:
    """Return what the last sample of the queue for measuring says; None without answers to it."""
    if not folder.sample.is_file():
        return None
    drawn_at, drawn = _read_sample(folder.sample)
    told = {
        pair: outcome == "present"
        for pair in drawn
        if (outcome := resolve(answers.votes(pair[1], pair[0]).values())) in ("present", "absent")
    }
    if not told:
        return None
    expected, found = _population(CandidateIndex.read(folder, table), table, answers, drawn_at)
    probs = np.array([drawn[pair][0] for pair in told])
    # The sample is in random order: of those answered, any could have been any other.
    sampled_with = np.array([drawn[pair][1] for pair in told]) * len(told) / len(drawn)
    present = np.array(list(told.values()), dtype=np.float64)
    value, error = weighted_total(expected, probs, present, sampled_with)
    ends = Interval.of_normal(value, error)
    least = float(present.sum())
    numbers = (max(least, one) + found for one in (ends.value, ends.low, ends.high))
    return Measured(Interval(*numbers), len(told))


def _population(
    index: CandidateIndex, table: LabelTable, answers: Answers, drawn_at: str
) -> tuple[float, int]:
    """Sum of probabilities of the pairs that were open then, and labels found among the others."""
    pairs = AuditPairs(table, index)
    pairs.rows_of(image for image, _, _ in answers.all())  # all at once, which is faster
    expected, found = 0.0, 0
    for column, name in enumerate(table.classes):
        expected += index.expected(column)
        for image, votes in answers.pairs(name):
            row = pairs.row_of(image)
            place = None if row is None else index.place(column, row)
            if place is not None and min(vote.time for vote in votes.values()) < drawn_at:
                expected -= float(index.class_probabilities(column)[place])
                found += resolve(votes.values()) == "present"
    return expected, found


def _read_sample(path: Path) -> tuple[str, dict[tuple[str, str], tuple[float, float]]]:
    """When the sample was drawn, and by image and class the probability and that of being drawn."""
    try:
        rows = [cells for _, cells in read_rows(path, _SAMPLE_COLUMNS)]
        found = {
            (row["image"], row["class"]): (float(row["probability"]), float(row["sampled_with"]))
            for row in rows
        }
        return rows[0]["drawn"], found
    except (ValueError, IndexError):
        raise data_error(path, "this file is damaged. Draw the sample again.") from None
