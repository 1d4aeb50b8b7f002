"""``advise``: which loss suits a set of labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hilltop.cli.labels import ReadFormat
from hilltop.cli.parser import Reading
from hilltop.data import ReadOptions, read_labels
from hilltop.progress import say


@dataclass(frozen=True)
class Advise:
    """Recommend a loss for a set of labels, with the evidence and the line to change.

    With features, it first finds out how labels were probably lost. Then it draws complete labels
    that fit the given ones, loses labels in the same way, trains quick heads with several losses,
    and judges them by the complete labels of held-out images; of 4,000 images at most.

    Example: hilltop advise labels.csv --unlisted unknown --features features.npz
    """

    labels: Path
    """The labels, in any format."""
    _: KW_ONLY
    features: Path | None = None
    """Features to try losses on: .npz with ids and X, .npy with ids beside it, or Parquet."""
    draws: int = 3
    """How often labels are drawn and lost, and images held out, anew."""
    seed: int = 0
    """The same seed gives the same advice."""
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Read, try, print."""
        from hilltop.inputs.features import FeatureInputs, read_features
        from hilltop.studies.advise import advise

        table = read_labels(self.labels, format=self.format, options=self.reading)
        features = None
        if self.features is not None:
            features = FeatureInputs(read_features(self.features), table.images).values
        found = advise(table, features, draws=self.draws, seed=self.seed, say=say)
        print(found.facts)
        sheet = found.sheet()
        if sheet is not None:
            sheet.print()
        print(found.sentence)
        if features is None and found.facts.unknown:
            print("With --features FILE, losses are tried on your own images.")
        print("", *found.lines, f"hilltop train ... {found.option}", sep="\n    ")
        return found.as_dict()
