"""Generated pictures with complete labels, for the demo, docs and tests: no download needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from hilltop.checks import check_number
from hilltop.data.files import naming
from hilltop.data.formats import write_labels
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.inputs.drawing import Glyphs, draw_picture

# Things that are seen together. Within a scene, and among scenes, the first are the most frequent.
SCENES: dict[str, dict[str, str]] = {
    "weather": {
        "sun": "☀", "cloud": "☁", "umbrella": "☂", "snowflake": "❄", "moon": "☾",
    },
    "desk": {
        "envelope": "✉", "telephone": "☎", "scissors": "✂", "pencil": "✎",
    },
    "cards": {"heart": "♥", "spade": "♠", "diamond": "♦", "club": "♣", "die": "⚅"},
    "shapes": {
        "disc": "●", "square": "■", "triangle": "▲", "hexagon": "⬢", "ring": "◎",
    },
    "music and coffee": {
        "smile": "☺", "quaver": "♪", "cup": "☕", "quaver pair": "♫", "frown": "☹",
    },
    "laboratory": {
        "gear": "⚙", "atom": "⚛", "radiation": "☢", "scales": "⚖",
        "recycling": "♻",
    },
    "harbour": {"anchor": "⚓", "flag": "⚑", "wheel": "☸", "plane": "✈"},
    "chess": {"knight": "♞", "king": "♚", "rook": "♜"},
    "garden": {"flower": "✿", "shamrock": "☘", "lily": "⚜"},
    "danger": {"skull": "☠", "lightning": "⚡", "warning": "⚠"},
}  # fmt: skip
SYMBOLS = {name: symbol for scene in SCENES.values() for name, symbol in scene.items()}
CLASSES = tuple(sorted(SYMBOLS))

_WITHIN_SCENE = 0.8  # chance that a thing belongs to the scene of its picture
_MOST_LABELS = 6


def write_dataset(folder: Path, *, images: int, size: int, seed: int) -> LabelTable:
    """Draw pictures into ``folder/images`` and write their labels to ``folder/labels.parquet``.

    Every picture shows one to six things of one scene, now and then one of another, in any colour,
    size and rotation, partly covered, among strokes and letters that mean nothing. The labels are
    complete: a class that is not listed is absent.

    Args:
        folder: Where to write; it is created.
        images: How many pictures.
        size: Pixels a side.
        seed: The same seed gives the same pictures and labels; more pictures begin with the same.

    Returns:
        The labels, with image ids such as ``000017.jpg``.
    """
    check_number("images", images, low=1)
    check_number("size", size, low=16)
    check_number("seed", seed, low=0)
    target = folder / "images"
    target.mkdir(parents=True, exist_ok=True)
    glyphs = Glyphs([SYMBOLS[name] for name in CLASSES])
    names = [f"{number:06d}.jpg" for number in range(images)]

    def write_one(number: int) -> list[int]:
        # Its own generator, so that a picture depends on nothing but the seed and its number.
        rng = np.random.default_rng([seed, number])
        classes = choose_classes(rng)
        picture = draw_picture(glyphs, classes, size=size, rng=rng)
        with naming(target / names[number]):
            picture.save(target / names[number], quality=90)
        return classes

    with ThreadPoolExecutor(2) as pool:
        chosen = list(pool.map(write_one, range(images)))
    rows = np.repeat(np.arange(images), [len(classes) for classes in chosen])
    columns = np.concatenate(chosen)
    step = Step("write_dataset", {"images": images, "size": size, "seed": seed})
    table = LabelTable.from_coo(
        names, CLASSES, rows, columns, State.PRESENT, unlisted=State.ABSENT, step=step
    )
    write_labels(table, folder / "labels.parquet", format="hilltop")
    return table


def choose_classes(rng: np.random.Generator) -> list[int]:
    """Draw the class numbers of one picture: mostly of one scene, frequent ones first."""
    scenes = [[CLASSES.index(name) for name in scene] for scene in SCENES.values()]
    scene = scenes[_draw_early(rng, len(scenes))]
    wanted = 1 + int(rng.binomial(_MOST_LABELS - 1, 0.4))
    chosen: list[int] = []
    while len(chosen) < wanted:
        inside = rng.random() < _WITHIN_SCENE and not set(scene) <= set(chosen)
        group = scene if inside else scenes[_draw_early(rng, len(scenes))]
        candidate = group[_draw_early(rng, len(group))]
        if candidate not in chosen:
            chosen.append(candidate)
    return chosen


def _draw_early(rng: np.random.Generator, count: int) -> int:
    """Draw a number below ``count``; the first is about three times as likely as the last."""
    weights = np.geomspace(3, 1, count)
    return int(rng.choice(count, p=weights / weights.sum()))
