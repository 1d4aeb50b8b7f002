"""``estimate``: how many labels are missing, by the model and by reviewed random samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import tyro

from hilltop.data.data_errors import data_error

if TYPE_CHECKING:
    from hilltop.audit.folder import AuditFolder


@dataclass(frozen=True)
class Estimate:
    """Say how many labels are missing, now that a random sample was reviewed.

    The review page has a mode that shows a random sample; from its answers the number of missing
    labels follows without any belief about how they were lost. Nothing is trained again.

    Example: hilltop estimate audit
    """

    folder: tyro.conf.Positional[Path]
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
    from hilltop.audit.find.measured import measured

    if not folder.decisions.is_file():
        return None
    found = measured(folder, folder.table(), read_answers(folder))
    return None if found is None else found.sentence


def tell_estimates(folder: AuditFolder) -> dict[str, Any]:
    """Add reviewed samples to the estimates, print all and return them."""
    from rich.console import Console

    from hilltop.audit.find.sampled import add_samples
    from hilltop.audit.summary import print_summary
    from hilltop.calibration.keep_rate import KeepEstimate

    estimates, sampled = add_samples(folder)
    source = "by the model"
    told = folder.keep_rate if isinstance(folder.keep_rate, dict) else None
    if told is not None and sorted(told) != ["high", "keep", "low"]:
        raise data_error(folder.about, f"'keep_rate' must hold keep, low and high, not {told!r}.")
    keep = None if told is None else KeepEstimate(**told)
    if sampled is not None:
        keep = sampled.keep
        source = "by random samples"
        replace(folder, keep_rate=asdict(keep)).write()
    print_summary(Console(), estimates, sampled, "unknown" if keep is None else f"{keep}, {source}")
    by_sample = {one.class_name: one for one in sampled.estimates} if sampled else {}
    chosen = [by_sample.get(one.class_name, one) for one in estimates]
    return {
        "sampled": None if sampled is None else sampled.sentence,
        "keep_rate": None if keep is None else asdict(keep),
        "classes": {one.class_name: asdict(one) for one in chosen},
    }
