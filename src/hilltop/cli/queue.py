"""``queue``: the pairs to ask people about, for scripts and other tools."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hilltop.checks import pluralize
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, Out
from hilltop.data.files import check_folder, check_outputs

if TYPE_CHECKING:
    from hilltop.audit.review.queues import Purpose

For = Annotated[Literal["model", "labels", "wrong", "measure", "images"], Parameter(name="--for")]


@dataclass(frozen=True)
class Queue:
    """Write the pairs that people should be asked about, in the order in which to ask.

    model: answers that help training most. labels: the most probable missing labels. wrong: labels
    that are most probably wrong. images: image by image, what it may lack and its labels. measure:
    a random sample, with the probability with which each pair was drawn. Add a column `answer`
    (yes, no or unsure) and take it in with review --import.

    Example: hilltop queue audit --for model --number 1000 --out queue.csv
    """

    folder: Path
    """The folder that `hilltop audit` wrote."""
    _: KW_ONLY
    out: Out
    """The CSV file to write, with the columns image, class and probability."""
    for_: For = "model"
    """What the answers are for: model, labels, wrong, measure or images."""
    number: int = 1000
    """How many pairs."""
    classes: tuple[str, ...] = ()
    """Ask about these classes alone."""
    seed: int = 0
    """The same seed draws the same random sample."""
    force: Force = False

    def run(self) -> dict[str, Any]:
        """Choose and write."""
        from hilltop.audit.decisions.store import now
        from hilltop.audit.folder import AuditFolder
        from hilltop.audit.review.queue_table import write_queue
        from hilltop.audit.review.queues import build_queue

        check_folder(self.out)
        folder = AuditFolder.read(self.folder)
        check_written(self, self.out, inputs=folder.inputs)
        if self.for_ == "measure":  # the audit keeps a copy
            check_outputs([folder.sample], (), force=True)
        purpose: Purpose = self.for_
        queue = build_queue(folder, purpose, self.number, classes=self.classes, seed=self.seed)
        write_queue(queue, folder.table(), self.out)
        if queue.sampled_with is not None:  # `hilltop estimate` needs to know how it was drawn
            write_queue(queue, folder.table(), folder.sample, drawn=now())
        print(f"{self.out}: {pluralize(len(queue), 'pair', 'pairs')} to ask about")
        print(f"next: hilltop review {self.folder} --import {self.out}, with a column `answer`")
        return {"out": self.out, "pairs": len(queue)}
