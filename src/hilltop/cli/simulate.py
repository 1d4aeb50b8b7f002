"""``simulate``: labels lost on purpose, by a rule or as people lose them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_exact, pluralize
from hilltop.cli.labels import (
    ReadFormat,
    WriteFormat,
    count_states,
    describe_counts,
    positives_only,
)
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, Out, Reading
from hilltop.data import (
    LabelTable,
    ReadOptions,
    ScoreTable,
    State,
    Thinned,
    drop_positives,
    keep_each,
    lose_by_annotator,
    lose_by_batch,
    lose_by_clarity,
    lose_by_class,
    lose_by_size,
    read_labels,
    single_positive,
    write_labels,
)
from hilltop.data.annotations.coco import box_sizes
from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats import find_format
from hilltop.data.small_files import read_rows
from hilltop.errors import ArgumentError

By = Literal["class", "batch", "annotator", "clarity", "size"]
_BLIND: dict[str, Callable[..., Thinned]] = {
    "class": lose_by_class, "batch": lose_by_batch, "annotator": lose_by_annotator,
}  # fmt: skip
"""Ways in which people lose labels whatever the picture shows."""


@dataclass(frozen=True)
class Simulate:
    """Drop labels from a complete file, to see how methods cope; the dropped ones are kept aside.

    Give one of --missing-ratio (the paper's rule), --keep (each label by itself), --single and --by
    (as people lose labels). Beside OUT, a file such as reduced.dropped.parquet lists what was
    dropped, so that recovery can be scored.

    Example: hilltop simulate labels.csv --missing-ratio 0.8 --seed 0 --out reduced.parquet
    """

    labels: Path
    """The complete labels."""
    _: KW_ONLY
    out: Out
    """The file to write; with the ending of LABELS it has their format."""
    seed: int = 0
    """The same seed drops the same labels on every machine."""
    missing_ratio: str | None = None
    """Of n labels, floor(n (1 - r)) + 1 stay: 0.5, 0.8, 1 are "75% left", "40% left", "single"."""
    keep: str | None = None
    """Probability that a label stays: one number, or a CSV file with the columns class and keep."""
    single: bool = False
    """Keep one label of each image, as --missing-ratio 1 does."""
    by: By | None = None
    """A probability for each class; complete batches of images; a hasty and a careful annotator;
    clear cases first (with --scores); large objects first (boxes of a COCO file, or --scores)."""
    scores: Path | None = None
    """With --by clarity or size: how clear each pair is, or the share of the picture it fills."""
    format: ReadFormat = None
    to: WriteFormat = None
    lossy: bool = False
    """Leave out what the new format cannot express, instead of stopping."""
    force: Force = False
    reading: Reading = field(default_factory=ReadOptions)

    def run(self) -> dict[str, Any]:
        """Read, thin, write both files."""
        aside = self.out.parent / f"{self.out.stem}.dropped.parquet"
        read = [] if self.keep is None else [Path(self.keep)]
        check_written(self, self.out, aside, inputs=read)
        # In the result unlisted pairs are unknown, whatever they were: there is no need to ask.
        table = read_labels(self.labels, format=self.format, options=positives_only(self.reading))
        thinned = self._thin(table)
        write_labels(thinned.table, self.out, format=self._written_format(), lossy=self.lossy)
        write_labels(thinned.dropped, aside, format="hilltop")
        dropped = thinned.dropped.count(State.PRESENT)
        print(f"{self.labels}: {describe_counts(table)}")
        print(f"{self.out}: {describe_counts(thinned.table)}")
        print(f"{aside}: {pluralize(dropped, 'label', 'labels')} dropped")
        counts = count_states(thinned.table)
        return {"out": self.out, **counts, "dropped": dropped, "dropped_labels": aside}

    def _written_format(self) -> str | None:
        """The format that was read, where the ending of the file stays and none was named."""
        if self.to or self.out.suffix.lower() != self.labels.suffix.lower():
            return self.to
        return self.format or find_format(self.labels, positives_only(self.reading))

    def _thin(self, table: LabelTable) -> Thinned:
        named = (self.missing_ratio, self.keep, self.by)
        given = sum(one is not None for one in named) + self.single
        if given != 1:
            raise ArgumentError(
                f"Give one of --missing-ratio, --keep, --single and --by, but got {given} of them."
            )
        if self.scores is not None and self.by not in ("clarity", "size"):
            raise ArgumentError("--scores belongs to --by clarity and --by size.")
        if self.single:
            return single_positive(table, seed=self.seed)
        if self.missing_ratio is not None:
            ratio = check_exact("--missing-ratio", self.missing_ratio, low=0, high=1)
            return drop_positives(table, ratio, seed=self.seed)
        if self.keep is not None:
            return keep_each(table, _keep(self.keep), seed=self.seed)
        return self._as_people(table)

    def _as_people(self, table: LabelTable) -> Thinned:
        if self.by is not None and self.by in _BLIND:
            return _BLIND[self.by](table, seed=self.seed)
        if self.by == "size":
            return lose_by_size(table, self._sizes(table), seed=self.seed)
        if self.scores is None:
            raise ArgumentError(
                "--by clarity needs --scores, a file that `hilltop predict` wrote for these images."
            )
        return lose_by_clarity(table, _matrix(self.scores, table), seed=self.seed)

    def _sizes(self, table: LabelTable) -> npt.NDArray[np.float64]:
        if self.scores is not None:
            return _matrix(self.scores, table)
        sizes = box_sizes(Source(self.labels), table)
        if sizes is None:
            raise ArgumentError(
                f"{self.labels}: only COCO and LVIS files tell how large objects are; give the"
                " share of the picture that each fills with --scores."
            )
        return sizes


def _matrix(path: Path, table: LabelTable) -> npt.NDArray[np.float64]:
    """Scores of the pairs of a table."""
    scores = ScoreTable.load(path)
    rows, columns = scores.positions(table.images, table.classes)
    return np.asarray(scores.values[rows][:, columns], dtype=np.float64)


def _keep(text: str) -> float | dict[str, float]:
    """A probability, or the probabilities in a CSV file with the columns class and keep."""
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise ArgumentError(f"--keep must be a number or a CSV file, but got {text!r}.")
    errors = ErrorCollector(path)
    chances: dict[str, float] = {}
    for line, row in read_rows(path, ("class", "keep")):
        try:
            chances[row["class"]] = float(row["keep"])
        except ValueError:
            errors.add(f"expected a number in the column keep, but got {row['keep']!r}.", line=line)
    errors.check()
    return chances
