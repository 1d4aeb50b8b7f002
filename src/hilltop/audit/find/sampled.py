"""What reviewed random samples add to the estimates of an audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilltop.audit.decisions.answers import Answers
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
from hilltop.calibration.keep_rate import KeepEstimate
from hilltop.checks import pluralize
from hilltop.data import State


@dataclass(frozen=True)
class Sampled:
    """What random samples say of the classes that have one.

    Attributes:
        estimates: For each of these classes.
        total: For all of them together.
        keep: Share of their true labels that is there.
        model: What the model says of the same classes together.
        answered: Number of pairs in the samples.
    """

    estimates: list[Estimate]
    total: Estimate
    keep: KeepEstimate
    model: float
    answered: int

    @property
    def sentence(self) -> str:
        """Say whether model and samples agree."""
        total = self.total
        agrees = total.low <= self.model <= total.high
        verdict = "agree" if agrees else "do not agree: trust the samples"
        pairs = pluralize(self.answered, "pair", "pairs")
        classes = pluralize(len(self.estimates), "class", "classes")
        return (
            f"random samples ({pairs}, {classes}):"
            f" {total.missing:,.0f} missing labels ({total.low:,.0f} to {total.high:,.0f}),"
            f" the model says {self.model:,.0f}; they {verdict}."
        )


def add_samples(folder: AuditFolder) -> tuple[list[Estimate], Sampled | None]:
    """Read the reviewed samples of an audit and write them beside the model's estimates.

    Returns:
        The model's estimates, and what the samples say; None if no sample was reviewed.
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
    by_model = {one.class_name: one.missing for one in model}
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
    pairs = [index.count(column) for column in columns]
    total, keep = total_of_samples(labelled[columns].tolist(), pairs, samples)
    return Sampled(
        estimates=[made for _, made in found],
        total=total,
        keep=keep,
        model=sum(by_model.get(made.class_name, 0.0) for _, made in found),
        answered=sum(one.present + one.absent + one.open for one in samples),
    )
