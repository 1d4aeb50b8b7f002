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
        weighted = _weighted(folder)
        if weighted is not None:
            print(weighted)
        found = tell_estimates(folder)
        if not found["sampled"] and weighted is None:
            print(
                f"no random sample was reviewed yet; it is a mode of hilltop review {self.folder}"
            )
        print(f"{self.folder / 'estimates.csv'}: all classes")
        return {**found, "weighted": weighted}


def _weighted(folder: AuditFolder) -> str | None:
    """What a sample of `hilltop queue --for measure` says, if it was answered."""
    from hilltop.audit.decisions.apply import read_answers
    from hilltop.audit.find.sampled import measured

    if not folder.decisions.is_file():
        return None
    found = measured(folder, folder.table(), read_answers(folder))
    return None if found is None else found.sentence


def tell_estimates(folder: AuditFolder) -> dict[str, Any]:
    """Add reviewed samples to the estimates, print all and return them."""
    from rich.console import Console

    from hilltop.audit.find.estimate import frequency_of
    from hilltop.audit.find.sampled import add_samples
    from hilltop.audit.summary import print_summary
    from hilltop.missing.interval import Interval

    estimates, sampled = add_samples(folder)
    labelled = sum(one.labelled for one in estimates)
    missing = None
    if folder.missing is not None:
        missing = Interval(*(float(folder.missing[name]) for name in ("value", "low", "high")))
    source = "by the model"
    if sampled is not None and len(sampled.estimates) == len(estimates):
        missing, source = sampled.total, "by random samples"
    total = "How many labels are missing in all is not known."
    if missing is not None:
        frequency = frequency_of(labelled, missing)
        total = (
            f"missing labels in all classes: {missing.count()}, {source};"
            f" {frequency.share()} of the true labels are recorded"
        )
    print_summary(Console(), estimates, sampled, total)
    by_sample = {one.class_name: one for one in sampled.estimates} if sampled else {}
    chosen = [by_sample.get(one.class_name, one) for one in estimates]
    return {
        "missing": None if missing is None else missing.as_dict(),
        "summary": folder.summary,
        "sampled": None if sampled is None else sampled.sentence,
        "classes": {one.class_name: one.as_dict() for one in chosen},
    }
