"""Attack by options: every command with values that nobody means, in place of good ones."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from hilltop.cli.main import load_command
from hilltop.cli.parser import render_help
from tests.attack.outcome import Outcome
from tests.attack.places import fresh_places
from tests.attack.quiet import quietly

VALUES = {
    "INT": ("-1", "0", "1.5", "nan", "x", "", "99999999999999999999"),
    "FLOAT": ("-1", "0", "-0.0", "2", "nan", "inf", "-inf", "1e400", "1e-400", "x", ""),
    "STR": (
        "",
        " ",
        "nothing",
        "=cmd|'/C calc'!A0",
        "\u202e",
        "a" * 5000,
        "..",
        "{",
        "\n",
        "0,,1",
    ),
    "PATH": ("", ".", "/", "nowhere", "/dev/null", "photos", "thesis.txt", "a" * 300, "a\nb"),
}
"""By what the help calls a value."""
NEVER = ("--port", "--host", "--open", "--workers", "--root")
"""Options that would serve, or start many processes."""
SOUND = (
    ("inspect", "train.csv", "--unlisted", "unknown"),
    ("convert", "train.csv", "new.csv", "--to", "long", "--unlisted", "unknown"),
    ("join", "left.parquet", "train.parquet", "--out", "new.parquet"),
    ("simulate", "train.parquet", "--missing-ratio", "0.5", "--out", "new.parquet"),
    ("statistics", "train.parquet"),
    ("features", "features.npz", "--weights", "timm", "--out", "new.npz"),
    ("train", "--labels", "left.parquet", "--features", "features.npz", "--epochs", "1", "--loss",
     "bce", "--no-report", "--out", "new"),
    ("resume", "run"),
    ("predict", "run", "--features", "features.npz", "--out", "new.csv"),
    ("evaluate", "scores.npy", "train.parquet"),
    ("export", "run", "--to", "safetensors", "--out", "new"),
    ("advise", "left.parquet"),
    ("compare", "--labels", "train.parquet", "--val-labels", "val.parquet", "--features",
     "features.npz", "--keep", "0.4", "--methods", "bce", "--seeds", "0", "--epochs", "1", "--out",
     "new"),
    ("reproduce", "negative-gradients", "--out", "new"),
    ("audit", "--labels", "left.parquet", "--features", "features.npz", "--out", "new"),
    ("queue", "audit", "--out", "new.csv"),
    ("review", "audit", "--static", "new.html"),
    ("estimate", "audit"),
    ("apply", "audit", "--candidates", "--format", "fiftyone", "--out", "new.json"),
)  # fmt: skip
"""Commands that work on the files that are made."""


def odd_options(folder: Path, tries: int) -> Outcome:
    """Give one option an odd value; a traceback is a fault, and so is a lost file."""
    found = Outcome("odd values of options end in an answer or a sentence")
    chance = random.Random(1)
    for turn in fresh_places(folder, tries):
        _try(found, SOUND[turn % len(SOUND)], chance)
    return found


def _try(found: Outcome, sound: tuple[str, ...], chance: random.Random) -> None:
    contents = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    words = list(_changed(sound, chance))
    code = quietly(words)
    lost = [
        path
        for path, content in contents.items()
        if path.parts[0] != "run" and (not path.is_file() or path.read_bytes() != content)
    ]
    said = f"{' '.join(words)[:300]}: code {code}, lost {lost}"
    found.expect(isinstance(code, int) and not lost, said)


def _changed(sound: tuple[str, ...], chance: random.Random) -> Iterator[str]:
    """The words with an odd value of an option behind them, or a file that is none before."""
    command = load_command(sound[0])
    text = "".join(render_help(command, sound[0], labels=labels) for labels in (False, True))
    options = re.findall(rf"(--[a-z-]+) ({'|'.join(VALUES)})\b", text)
    options = [(name, kind) for name, kind in options if name not in NEVER]
    if not options or (not sound[1].startswith("--") and chance.random() < 0.2):
        yield from (sound[0], chance.choice(VALUES["PATH"]), *sound[2:])
        return
    name, kind = chance.choice(options)
    yield from (*sound, f"{name}={chance.choice(VALUES[kind])}")
