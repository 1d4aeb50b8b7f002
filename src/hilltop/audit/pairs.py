"""The pairs of an audit, in memory: its labels, what may be missing, and what may be wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable


@dataclass(frozen=True)
class AuditPairs:
    """What an audit lists, found by the names of images and classes.

    Attributes:
        labels: The labels that were audited.
        candidates: Pairs whose label may be missing.
        suspects: Labels that may be wrong; None in audits that do not list them.
    """

    labels: LabelTable
    candidates: CandidateIndex
    suspects: CandidateIndex | None = None
    _rows: dict[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, folder: AuditFolder) -> AuditPairs:
        """Read the files of an audit."""
        labels = folder.table()
        suspects = None
        if folder.suspects.is_file():
            suspects = CandidateIndex.read_file(folder.suspects, labels)
        return cls(labels, CandidateIndex.read(folder, labels), suspects)

    @cached_property
    def column_of(self) -> dict[str, int]:
        """Number of each class."""
        return {name: column for column, name in enumerate(self.labels.classes)}

    def rows_of(self, images: Iterable[str]) -> list[int]:
        """Numbers of images; -1 for those of another audit."""
        images = list(images)
        unknown = sorted({image for image in images if image not in self._rows})
        if unknown:
            found = pc.index_in(pa.array(unknown, pa.string()), value_set=self.labels.images)
            self._rows.update(zip(unknown, found.fill_null(-1).to_pylist(), strict=True))
        return [self._rows[image] for image in images]

    def row_of(self, image: Any, *, said: Any = None) -> int | None:
        """Number of an image; None if there is none, or if it was said to be another one."""
        if said is None:
            row = self.rows_of([image])[0] if isinstance(image, str) else -1
            return None if row < 0 else row
        if not isinstance(said, int) or isinstance(said, bool) or not 0 <= said < len(self.labels):
            return None
        if self.labels.images[said].as_py() != image:
            return None
        self._rows[image] = said  # much faster than a search in all names
        return said

    def probability(self, column: int, row: int) -> float | None:
        """What the audit thinks of a pair; None if it does not list it."""
        for index in (self.candidates, self.suspects):
            place = None if index is None else index.place(column, row)
            if index is not None and place is not None:
                return float(index.class_probabilities(column)[place])
        return None
