"""``estimate``: how many labels are missing, by the model and by reviewed random samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from hilltop.audit.folder import AuditFolder


@dataclass(frozen=True)
class Estimate:
    """Say how many labels are missing, now that a random sample was reviewed.

    The review page has a mode that shows a random sample; from its answers the number of missing
    labels follows without any belief about how they were lost. Nothing is trained again.

    Example: hilltop estimate audit
    """

    folder: Path
    """The folder that `hilltop audit` wrote."""
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Read, write, print."""
        from hilltop.audit.folder import AuditFolder

        folder = AuditFolder.read(self.folder)
        found = tell_estimates(folder)
        if not found["sampled"] and found["weighted"] is None:
            print(
                f"no random sample was reviewed yet; it is a mode of hilltop review {self.folder}"
            )
        print(f"{self.folder / 'estimates.csv'}: all classes")
        return found


def tell_estimates(folder: AuditFolder) -> dict[str, Any]:
    """Add reviewed samples to the estimates, print all and return them.

    The total is that of a random sample of all classes, where one was answered: answers override
    what scores suggest. It is the model's otherwise.
    """
    from rich.console import Console

    from hilltop.audit.decisions.apply import read_answers
    from hilltop.audit.find.sampled import add_samples, measured
    from hilltop.audit.summary import print_summary
    from hilltop.missing.model import describe_total
    from hilltop.training.decisions import load_model

    estimates, sampled = add_samples(folder)
    weighted = None
    if folder.decisions.is_file():
        weighted = measured(folder, folder.table(), read_answers(folder))
    model = load_model(folder.model)
    missing, summary = folder.missing, folder.summary
    if model is not None:
        missing, summary = model.missing.total.as_dict(), model.describe()
    by_answers = None
    if weighted is not None:
        by_answers = weighted.missing, weighted.answers
    elif sampled is not None and len(sampled.estimates) == len(estimates):
        by_answers = sampled.total, sampled.answered
    if by_answers is not None:
        labelled = sum(one.labelled for one in estimates)
        missing, summary = by_answers[0].as_dict(), describe_total(labelled, *by_answers)
    print_summary(Console(), estimates, sampled, summary)
    if weighted is not None:
        print(weighted.sentence)
    by_sample = {one.class_name: one for one in sampled.estimates} if sampled else {}
    chosen = [by_sample.get(one.class_name, one) for one in estimates]
    return {
        "missing": missing,
        "summary": summary,
        "sampled": None if sampled is None else sampled.sentence,
        "weighted": None if weighted is None else weighted.sentence,
        "classes": {one.class_name: one.as_dict() for one in chosen},
    }
