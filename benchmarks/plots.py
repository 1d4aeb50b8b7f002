"""Draws the figures of docs/benchmarks.md from results.csv.

Run it with: python benchmarks/plots.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from curves import Curve, curves, is_ours, latest

FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5)
MEMORY = Path(__file__).with_name("demo_memory.csv")
OURS, OTHERS = "#b5442c", ("#3b5b7a", "#7a8f3b", "#8a6fa8", "#777777")


def draw_growth(rows: list[dict[str, str]], path: Path) -> None:
    """One panel a question, both axes logarithmic, exponents in the legends."""
    found: dict[str, list[Curve]] = {}
    for curve in curves(rows):
        found.setdefault(curve.question, []).append(curve)
    high = max(1, -(-len(found) // 3))
    figure, axes = plt.subplots(high, 3, figsize=(11, 3.2 * high), squeeze=False)
    for panel, (question, lines) in zip(axes.flat, found.items(), strict=False):
        _draw_curves(panel, question, lines)
    for panel in axes.flat[len(found) :]:
        panel.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _draw_curves(panel: Axes, question: str, lines: list[Curve]) -> None:
    others, dashes = iter(OTHERS), iter(("o-", "o--"))
    for curve in sorted(lines, key=lambda curve: curve.times[-1]):
        mine = is_ours(curve.contender)
        colour, width, dash = (OURS, 2.0, next(dashes)) if mine else (next(others), 1.2, "o-")
        label = f"{curve.contender}: {curve.exponent:.2f}"
        panel.plot(curve.sizes, curve.times, dash, color=colour, lw=width, ms=3, label=label)
    panel.set(xscale="log", yscale="log", title=question, xlabel=lines[0].unit, ylabel="ms")
    panel.legend(fontsize=7, frameon=False, title="exponent", title_fontsize=7)


def draw_losses(rows: list[dict[str, str]], path: Path) -> None:
    """Time of every loss as a ratio to its released form, one panel a size, with quartiles."""
    mine = [row for row in rows if row["question"] == "loss and gradient"]
    sizes = list(dict.fromkeys(row["size"] for row in mine))
    figure, axes = plt.subplots(
        1, max(1, len(sizes)), figsize=(12, 4.5), sharey=True, squeeze=False
    )
    for panel, size in zip(axes.flat, sizes, strict=False):  # one panel at least
        bars = [row for row in mine if row["size"] == size and row["ratio"] != "1.0"]
        for place, row in enumerate(reversed(bars)):
            low, middle, high = (float(row[name]) for name in ("ratio_low", "ratio", "ratio_high"))
            colour = OURS if is_ours(row["contender"]) else OTHERS[0]
            spread = [[max(0.0, middle - low)], [max(0.0, high - middle)]]
            panel.barh(place, middle, xerr=spread, color=colour, ecolor="black", height=0.7)
        names = [f"{row['contender']} / {row['baseline']}" for row in reversed(bars)]
        panel.set_yticks(range(len(names)), names, fontsize=7)
        panel.axvline(1.0, color="black", lw=0.8)
        panel.set(title=size, xscale="log", xlabel="time as a ratio", xlim=(0.04, 6))
        panel.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        panel.xaxis.set_minor_locator(NullLocator())
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_memory(path: Path) -> None:
    """Memory of the demo over time, one line a way it was measured."""
    with MEMORY.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figure, panel = plt.subplots(figsize=(7, 3))
    ways = dict.fromkeys(row["way"] for row in rows)
    for way, colour in zip(ways, (OURS, *OTHERS), strict=False):
        points = [(float(row["seconds"]), float(row["mib"])) for row in rows if row["way"] == way]
        panel.plot(*zip(*points, strict=True), color=colour, lw=1.2, label=way)
    panel.set(xlabel="seconds", ylabel="MiB", ylim=(0, None))
    panel.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draw all figures."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "hilltop", "font.size": 8})
    FOLDER.mkdir(exist_ok=True)
    rows = latest()
    draw_growth(rows, FOLDER / "growth.svg")
    draw_losses(rows, FOLDER / "losses.svg")
    if MEMORY.is_file():
        draw_memory(FOLDER / "memory.svg")


if __name__ == "__main__":
    main()
