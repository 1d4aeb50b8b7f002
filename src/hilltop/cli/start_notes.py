"""What the steps of ``start`` were made from: a second call makes only what has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.small_files import read_json
from hilltop.inputs.image_files import MADE_BY_START, list_images


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
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = self._read() | {words[0]: self.digest(words)}
        atomic_write(self.path, json.dumps(notes, indent=1) + "\n")

    def written(self, result: Path) -> None:
        """Note a file as it is now."""
        notes = self._read() | {result.name: _digest_of(result)}
        atomic_write(self.path, json.dumps(notes, indent=1) + "\n")

    def wrote(self, result: Path) -> bool:
        """Whether a file is as it was noted: what somebody else made or changed is not."""
        return result.is_file() and self._read().get(result.name) == _digest_of(result)

    def set_aside(self, result: Path) -> Path:
        """Give what an earlier call made the first free name with a number; return that name."""
        names = (result.with_name(f"{result.stem}-{n}{result.suffix}") for n in count(1))
        return result.rename(next(name for name in names if not name.exists()))

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
