"""How many labels a reviewer may expect to find: what the audit's estimates say, and answers since.

Probabilities of candidates give an order first of all: where the labels show no sign that any is
missing they are as if some were. What the page promises is what the audit said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import Estimate, read_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Expectations:
    """What an audit said of each class, by its number.

    Attributes:
        missing: Labels that are missing.
        most: The upper end of its 90% interval.
        wrong: Labels that are wrong.
        listed: What the probabilities of all candidates add up to.
    """

    missing: Numbers
    most: Numbers
    wrong: Numbers
    listed: Numbers

    @classmethod
    def read(cls, folder: AuditFolder, labels: LabelTable, index: CandidateIndex) -> Expectations:
        """Read the estimates of an audit; where there are samples of people, these count."""
        path = folder.path / "estimates.csv"
        known: dict[str, Estimate] = {}
        wrong: dict[str, float] = {}
        for one in read_estimates(path) if path.is_file() else ():
            known[one.class_name] = one  # samples stand behind what the model says
            wrong.setdefault(one.class_name, one.wrong)
        listed = np.array([index.expected(column) for column in range(len(labels.classes))])
        said = [
            (
                known[name].missing.value + known[name].beyond,
                known[name].missing.high + known[name].beyond,
            )
            if name in known
            else (total, total)
            for name, total in zip(labels.classes, listed.tolist(), strict=True)
        ]
        missing, most = np.array(said).reshape(-1, 2).T
        return cls(
            missing, most, np.array([wrong.get(name, 0.0) for name in labels.classes]), listed
        )

    def factor(self, column: int) -> float:
        """By what the probabilities of a class have to be multiplied to add up to the estimate."""
        return float(self.missing[column] / max(self.listed[column], 1e-9))
