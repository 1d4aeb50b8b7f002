"""Attack by names: every command that writes is asked to write where something is already."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.attack.outcome import Outcome
from tests.attack.places import fresh_places
from tests.attack.quiet import quietly

OUT = "{out}"
WRITERS = (
    ("convert", "train.csv", OUT, "--to", "long", "--unlisted", "unknown"),
    ("convert", "left.parquet", OUT, "--to", "paper_list", "--lossy"),
    ("convert", "yolo", OUT, "--to", "long", "--lossy"),
    ("simulate", "train.csv", "--single", "--to", "long", "--out", OUT),
    ("simulate", "train.parquet", "--keep", "keep.csv", "--to", "long", "--lossy", "--out", OUT),
    ("join", "left.parquet", "train.parquet", "--out", OUT),
    ("inspect", "train.csv", "--unlisted", "unknown", "--write-class-map", OUT),
    ("features", "features.npz", "--out", OUT),
    ("train", "--labels", "left.parquet", "--features", "features.npz", "--out", OUT),
    ("predict", "run", "--features", "features.npz", "--out", OUT),
    ("predict", "scores.npy", "--promise", "recall=0.9", "--answers", "ask.csv", "--out", OUT),
    ("evaluate", "scores.npy", "left.parquet", "--incomplete", "--plan", "3", "--out", OUT),
    ("queue", "scores.npy", "--for", "promise", "--number", "3", "--out", OUT),
    ("export", "run", "--to", "onnx", "--out", OUT),
    ("export", "run", "--to", "hub-folder", "--out", OUT),
    ("compare", "--labels", "left.parquet", "--val-labels", "val.parquet", "--features",
     "features.npz", "--keep", "0.4", "--methods", "bce", "--out", OUT),
    ("reproduce", "negative-gradients", "--out", OUT),
    ("audit", "--labels", "left.parquet", "--features", "features.npz", "--out", OUT),
    ("start", "photos", "left.parquet", "--out", OUT),
    ("demo", "--out", OUT),
    ("queue", "audit", "--out", OUT),
    ("review", "audit", "--static", OUT),
    ("apply", "audit", "--out", OUT),
    ("apply", "audit", "--candidates", "--format", "fiftyone", "--out", OUT),
)  # fmt: skip
"""All of them; a test sees that no command is forgotten. What they write to is a file here."""


def overwriting(folder: Path, tries: int) -> Outcome:
    """Aim commands at files by any name, with and without ``--force``, and see what is left."""
    found = Outcome("commands aimed at files that are there")
    chance = random.Random(0)
    for turn in fresh_places(folder, tries):
        _aim(found, WRITERS[turn % len(WRITERS)], chance)
    return found


def _aim(found: Outcome, writer: tuple[str, ...], chance: random.Random) -> None:
    """Run one command in the current folder, and look at what it left of all files."""
    contents = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    read = set(_read_by(writer))
    target = chance.choice(sorted(read if read and chance.random() < 0.5 else contents))
    name, force = _another_name(target, chance), chance.random() < 0.5
    words = [name if word == OUT else word for word in writer]
    code = quietly([*words, *(["--force"] if force else [])])
    lost = [path for path, content in contents.items() if _content(path) != content]
    allowed = [] if target in read or not force else [target]
    said = f"{' '.join(words)}{' --force' if force else ''}: code {code}, lost {lost}"
    found.expect(isinstance(code, int) and set(lost) <= set(allowed), said)


def _read_by(writer: tuple[str, ...]) -> Iterator[Path]:
    """The files that a command reads: those it names, and what lies in folders or belongs there."""
    for word in writer[1:]:
        path = Path(word)
        yield from [path] if path.is_file() else (one for one in path.rglob("*") if one.is_file())
        if word == "audit":
            yield Path("left.parquet")
        if word == "scores.npy":
            yield Path("scores.npy.names.parquet")


def _another_name(target: Path, chance: random.Random) -> str:
    """The file by its own name, by another spelling, or by a link."""
    kind = chance.choice(["own", "spelling", "whole", "symlink", "hardlink"])
    if kind == "spelling":
        return f"../{Path.cwd().name}/{target}"
    if kind == "whole":
        return str(target.resolve())
    if kind == "own":
        return str(target)
    link = Path(f"link{target.suffix}")
    link.symlink_to(target) if kind == "symlink" else link.hardlink_to(target)
    return str(link)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
