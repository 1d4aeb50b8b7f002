"""Attack by a disk on which files can no longer grow, whichever of them comes first."""

from __future__ import annotations

import random
from pathlib import Path

from tests.attack.options import SOUND
from tests.attack.outcome import Outcome
from tests.attack.places import fresh_places
from tests.forked import fork

WORKER = Path(__file__).with_name("small_disk_worker.py")
OUT = 5000
"""The least that a file may have; what commands print goes to files, too."""


def small_disks(folder: Path, tries: int) -> Outcome:
    """Run every command with too little room; a traceback is a fault, and so is a changed input."""
    found = Outcome("commands on a disk that is full end in a sentence")
    chance = random.Random(2)
    commands = [words for words in SOUND if "--weights" not in words]
    for turn in fresh_places(folder, tries):
        _try(found, commands[turn % len(commands)], round(OUT * 4 ** chance.uniform(0, 3)))
    return found


def _try(found: Outcome, words: tuple[str, ...], size: int) -> None:
    contents = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    (ended,) = fork(WORKER, size, *words)
    lost = [path for path, content in contents.items() if not _kept(path, content)]
    told = ended.code in (0, 1) and "Traceback" not in ended.errors
    said = f"{' '.join(words)} with {size} bytes: {ended.code} {ended.errors[-200:]}, lost {lost}"
    found.expect(told and not lost, said)


def _kept(path: Path, content: bytes) -> bool:
    """Whether a file is as it was; what a run goes on writing may grow."""
    return path.parts[0] == "run" or (path.is_file() and path.read_bytes() == content)
