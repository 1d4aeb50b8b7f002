"""What a confirmed label costs on the review page, in keys and in seconds of the page itself.

A real server and a real Chromium answer the first page of some classes, as a list of true labels
says, in several ways:

- ``one by one``: one large picture at a time;
- ``tiles``: the grid, a key for each picture (near-duplicates take one answer together);
- ``all but these``: arrows and a key for what differs from most, then one answer for all others.

The seconds are those in which the page takes the keys and has stored the answers; how long a person
looks at a picture is not in them. ``--source`` serves the page of another commit.

Run it with: python reproduction/page_keys.py AUDIT --images photos --truth truth.csv
    --classes person,chair [--source old/src] [--ways tiles]
The truth is a CSV of the columns image and class. playwright and chromium are needed.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

WAYS = ("one by one", "tiles", "all but these")
SIZE = {"width": 1400, "height": 900}
TILES = """[...document.querySelectorAll('.tile')].map((tile) => (
    {image: tile.getAttribute('aria-label'), answer: tile.dataset.answer}))"""
FOCUS = "[...document.querySelectorAll('.tile')].indexOf(document.activeElement)"
COLUMNS = "getComputedStyle(document.getElementById('grid')).gridTemplateColumns.split(' ').length"
QUESTION = "document.getElementById('zoom-name').textContent"
SAVED = "document.getElementById('saved').textContent === 'Saved'"


@dataclass
class Cost:
    """What answers have cost so far."""

    keys: int = 0
    seconds: float = 0.0
    answers: int = 0
    labels: int = 0


class Hands:
    """Presses keys in a page, and counts them."""

    def __init__(self, page: Any, true: set[str], cost: Cost) -> None:
        """Take the page of one class, and the images that it is in."""
        self.page, self.true, self.cost = page, true, cost

    def press(self, key: str, times: int = 1) -> None:
        """Press a key."""
        for _ in range(times):
            self.page.keyboard.press(key)
        self.cost.keys += times

    def words(self) -> list[str]:
        """The key that each tile needs, or nothing where it is answered."""
        tiles = self.page.evaluate(TILES)
        return ["" if one["answer"] else self.word(one["image"]) for one in tiles]

    def word(self, told: str) -> str:
        """The right key for a picture, by what the page says of it."""
        return "y" if told.partition(",")[0] in self.true else "n"

    def one_by_one(self) -> None:
        """Answer one large picture after another."""
        words = self.words()
        self.press("Space")
        while any(words):
            self.press(self.word(self.page.evaluate(QUESTION)))
            words = self.still(words)

    def tiles(self) -> None:
        """Answer where the focus is, until the page has nothing open."""
        words = self.words()
        while any(words):
            self.press(words[self.page.evaluate(FOCUS)])
            words = self.still(words)

    def all_but_these(self) -> None:
        """Answer what differs from most, then all others at once."""
        words = self.words()
        most = max("yn", key=words.count)
        while rare := [at for at, word in enumerate(words) if word and word != most]:
            self.walk(min(rare))
            self.press(words[min(rare)])
            words = self.still(words)
        self.press("i")  # all but the one that has the focus
        while any(words):  # what was not on the screen is shown first; the one left out comes last
            self.press(most)
            self.page.wait_for_timeout(50)
            words = self.still(words)

    def walk(self, to: int) -> None:
        """Go to a tile by arrow keys."""
        columns, at = self.page.evaluate(COLUMNS), self.page.evaluate(FOCUS)
        down, right = to // columns - at // columns, to % columns - at % columns
        self.press("ArrowDown" if down > 0 else "ArrowUp", abs(down))
        self.press("ArrowRight" if right > 0 else "ArrowLeft", abs(right))

    def still(self, before: list[str]) -> list[str]:
        """What is open now; nothing if the page has turned by itself."""
        now = self.words()
        return (
            now if any(one["answer"] for one in self.page.evaluate(TILES)) else [""] * len(before)
        )


@contextmanager
def serving(audit: Path, images: Path, source: Path | None) -> Iterator[str]:
    """A review server of a copy of an audit; its address."""
    env = {**os.environ, **({"PYTHONPATH": str(source)} if source else {})}
    command = [sys.executable, "-m", "hilltop", "review", str(audit), "--images", str(images)]
    server = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True, env=env)
    assert server.stdout is not None
    try:
        yield next(line.split()[2] for line in server.stdout if "http://" in line)
    finally:
        server.terminate()
        server.wait()


def answer_class(page: Any, address: str, name: str, way: str, hands: Hands) -> None:
    """Answer the first page of a class."""
    page.goto("about:blank")  # the same address with another fragment would not load anew
    page.goto(f"{address}#{urlencode({'class': name, 'view': 'ranked'})}")
    page.wait_for_selector("#who[open], .tile")
    if page.locator("#who[open]").count():
        page.fill("#name", "Ann")
        page.keyboard.press("Enter")
    page.wait_for_selector(".tile:focus")
    began = time.perf_counter()
    getattr(hands, way.replace(" ", "_"))()
    while not page.evaluate(SAVED):
        page.wait_for_timeout(5)
    hands.cost.seconds += time.perf_counter() - began


def counted(audit: Path, cost: Cost, truth: set[tuple[str, str]]) -> Cost:
    """Count what was stored, and make sure that it is right."""
    with sqlite3.connect(audit / "decisions.sqlite") as store:
        rows = set(store.execute("select class, image, answer from events where class is not null"))
    for name, image, answer in rows:
        assert (answer == "present") == ((image, name) in truth), (name, image, answer)
    cost.answers, cost.labels = len(rows), sum(answer == "present" for *_, answer in rows)
    return cost


def main() -> None:
    """Print a line of a table for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("audit", type=Path)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--truth", type=Path, required=True)
    parser.add_argument("--classes", required=True)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--source", type=Path)
    given = parser.parse_args()
    with given.truth.open(encoding="utf-8", newline="") as file:
        truth = {(line["image"], line["class"]) for line in csv.DictReader(file)}
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        for way in given.ways.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                audit = Path(shutil.copytree(given.audit, Path(scratch) / "audit"))
                cost = Cost()
                with serving(audit, given.images.resolve(), given.source) as address:
                    page = browser.new_context(viewport=SIZE).new_page()
                    for name in given.classes.split(","):
                        true = {image for image, label in truth if label == name}
                        answer_class(page, address, name, way, Hands(page, true, cost))
                    page.context.close()
                counted(audit, cost, truth)
            print(
                f"{way:<14} {cost.answers:5} answers {cost.labels:5} labels"
                f" {cost.keys:5} keys {cost.keys / cost.labels:6.2f} keys a label"
                f" {cost.seconds / cost.labels:6.3f} s a label",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main()
