"""The folder that attacks on commands work in: made once, and the same again for every try."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.attack.quiet import quietly
from tests.feature_problem import write_problem


def fresh_places(folder: Path, tries: int) -> Iterator[int]:
    """Stand in a folder with all that a user has, whatever the try before did to it.

    It has one name in all tries: an audit knows its labels by their whole path, and would read
    those of another folder.
    """
    place, kept, before = folder / "place", folder / "kept", os.getcwd()
    make_files(place)
    shutil.copytree(place, kept)
    try:
        for turn in range(tries):
            shutil.rmtree(place)
            shutil.copytree(kept, place)
            os.chdir(place)
            yield turn
            os.chdir(before)
    finally:
        os.chdir(before)


def make_files(folder: Path) -> None:
    """What a user has: labels in several formats, features, a run, an audit, scores, notes."""
    folder.mkdir()
    write_problem(folder, "abcd", train=120, val=40, features=8, above=1, seed=0)
    before = os.getcwd()
    os.chdir(folder)
    try:
        for words in (
            "convert train.parquet train.csv --to long --lossy",
            "convert train.parquet yolo --to yolo --lossy",
            "simulate train.parquet --r 0.5 --out left.parquet",
            "train --labels left.parquet --val-labels val.parquet --features features.npz"
            " --epochs 1 --loss bce --no-report --out run",
            "predict run --features features.npz --out scores.npy",
            "audit --labels left.parquet --features features.npz --out audit",
            "queue scores.npy --for promise --number 100 --out ask.csv",
        ):
            assert quietly(words.split()) == 0, words
        head, *asked = Path("ask.csv").read_text().splitlines()
        answered = [f"{head},answer", *(f"{line},yes" for line in asked)]
        Path("ask.csv").write_text("\n".join(answered))
        Path("keep.csv").write_text("class,keep\na,0.5\nb,0.5\nc,0.5\nd,0.5\n")
        Path("photos").mkdir()
        Path("thesis.txt").write_text("precious")
    finally:
        os.chdir(before)
