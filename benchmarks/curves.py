"""The curves of growth in results.csv: which questions have one, their points and exponents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from results import load

# Question, what its size counts, and the end of the sizes that belong to the curve.
CURVES = {
    "loss by pairs": ("pairs of image and class", ""),
    "average precision, ties": ("images, 100 classes", "x100"),
    "simulate labels": ("images", ""),
    "write Parquet": ("images", ""),
    "read Parquet": ("images", ""),
    "read long CSV": ("images", ""),
    "audit": ("images", ""),
    "two epochs by images": ("images", ""),
    "promise by pairs": ("pairs of image and class", ""),
    "images by pixels": ("pixels of a file, to 448 x 448", ""),
}


OURS = ("hilltop", "scar_likelihood", "count_likelihood", "the same, by class")


def is_ours(contender: str) -> bool:
    """Whether a contender is this library's."""
    return contender.startswith(OURS)


@dataclass(frozen=True)
class Curve:
    """Times of one contender over sizes, in milliseconds."""

    question: str
    unit: str
    contender: str
    sizes: tuple[float, ...]
    times: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The b of time = a * size^b that fits best, on the scale of logarithms."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.times), 1)[0])


def latest(rows: list[dict[str, str]] | None = None) -> list[dict[str, str]]:
    """Rows of the hardware that was measured last: times of two machines do not compare."""
    rows = load() if rows is None else rows
    return [row for row in rows if row["hardware"] == rows[-1]["hardware"]]


def curves(rows: list[dict[str, str]]) -> list[Curve]:
    """All curves that have at least two points."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        _, end = CURVES.get(row["question"], ("", None))
        size = row["size"]
        if end is not None and size.endswith(end) and size.removesuffix(end).isdigit():
            key = row["question"], row["contender"]
            point = float(size.removesuffix(end)), float(row["contender_ms"])
            found.setdefault(key, []).append(point)
    made = []
    for (question, contender), points in found.items():
        if len(points) > 1:
            sizes, times = zip(*sorted(points), strict=True)
            made.append(Curve(question, CURVES[question][0], contender, sizes, times))
    return made
