"""Tables and the picture of what ``incomplete_tests.py`` measured."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from lost_labels import Array

Row = dict[str, str]
WAY_NAMES = {
    "r0.8": "40% left",
    "r1": "a single label",
    "class": "by class",
    "salient": "clear cases first",
    "clarity": "clear cases first",
}


def read_rows(path: Path) -> list[Row]:
    """What the file holds."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def print_table(rows: list[Row]) -> None:
    """Coverage, width and error by way and metric, and the order of pairs of models."""
    alone = [one for one in rows if " - " not in one["model"]]
    print(f"{'way':9}{'metric':15}{'sample':9}{'answers':>7}{'n':>5}{'covered':>9}{'width':>7}"
          f"{'error':>7}{'naive':>7}")  # fmt: skip
    for way in [*sorted({one["way"] for one in alone}), "all"]:
        for metric in ("mAP", "CF1", "OF1", "P@1", "P@3", "P@5", "AP of a class"):
            kinds = sorted({(one["sample"], int(one["answers"])) for one in alone}, reverse=True)
            for sample, answers in kinds:
                mine = [
                    one for one in alone
                    if way in ("all", one["way"]) and one["metric"] == metric
                    and one["sample"] == sample and int(one["answers"]) == answers
                ]  # fmt: skip
                if mine:
                    print(f"{way:9}{metric:15}{sample:9}{answers:7}{len(mine):5}{summary(mine)}")
    for answers in (0, 500):
        for least, most in ((0.0, 0.01), (0.01, 0.02), (0.01, 9.0)):
            mine = [
                one for one in rows
                if " - " in one["model"] and int(one["answers"]) == answers
                and least <= abs(float(one["true"])) < most
            ]  # fmt: skip
            if mine:
                print_order(mine, answers, least, most)


def write_page(rows: list[Row], path: Path) -> None:
    """Coverage, width and error of mAP by set and by way, as Markdown."""
    alone = [one for one in rows if " - " not in one["model"] and one["metric"] == "mAP"]
    lines = [PAGE_HEAD, _head("set")]
    lines += [_line(name, "set", alone) for name in sorted({one["set"] for one in alone})]
    lines += [_line("all", "set", alone), "", _head("how labels were lost")]
    ways = [way for way in WAY_NAMES if any(one["way"] == way for one in alone)]
    lines += [_line(way, "way", alone) for way in ways]
    pairs = [one for one in rows if " - " in one["model"] and int(one["answers"]) == 500]
    lines += [
        "",
        "| models that truly differ by | pairs | right order | naive |",
        "|---|---|---|---|",
    ]
    for title, least, most in (("less than 1 mAP", 0.0, 0.01), ("1 mAP or more", 0.01, 9.0)):
        mine = [one for one in pairs if least <= abs(float(one["true"])) < most]
        right = [sum(_sign(one, key) == _sign(one, "true") for one in mine) for key in ORDERS]
        lines.append(f"| {title} | {len(mine)} | {right[0]} | {right[1]} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


PAGE_HEAD = """\
# Scores from incomplete test labels: every set and way

Written by `python reproduction/incomplete_tests.py FOLDER --page reproduction/incomplete_tests.md`
from `incomplete_tests.csv`. mAP in %. A cell is: share of the 90% intervals that cover the true
value (goal 85 to 97), mean width, and number of tests behind it. Width beside that of evenly drawn
answers says what `--plan` is worth (goal 50%).
"""
ORDERS = ("estimate", "naive")
KINDS = (("none", 0), ("planned", 200), ("planned", 1000))


def _head(first: str) -> str:
    titles = ("0 answers", "200 answers", "1,000 answers", "width against even, 200", "1,000")
    return f"| {first} | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 1)}"


def _line(name: str, key: str, rows: list[Row]) -> str:
    mine = [one for one in rows if name in ("all", one[key])]
    cells = [_kind(mine, sample, answers) for sample, answers in KINDS]
    shown = [f"{covered:.0%}, {width:.1f} ({tests})" for covered, width, tests in cells]
    for answers in (200, 1000):
        width, even = (_kind(mine, sample, answers)[1] for sample in ("planned", "even"))
        shown.append(f"{width / even:.0%}")
    return f"| {WAY_NAMES.get(name, name)} | {' | '.join(shown)} |"


def _kind(rows: list[Row], sample: str, answers: int) -> tuple[float, float, int]:
    mine = [one for one in rows if one["sample"] == sample and int(one["answers"]) == answers]
    covered, width = (float(np.mean([float(one[k]) for one in mine])) for k in ("covered", "width"))
    return covered, 100 * width, len(mine)


def _sign(row: Row, key: str) -> float:
    return float(np.sign(float(row[key])))


def print_order(rows: list[Row], answers: int, least: float, most: float) -> None:
    """Share of pairs of models in the right order."""
    signs = {
        key: np.sign([float(one[key]) for one in rows]) for key in ("true", "estimate", "naive")
    }
    ours, naive = ((signs[key] == signs["true"]).mean() for key in ("estimate", "naive"))
    covered = np.mean([float(one["covered"]) for one in rows])
    print(
        f"models that differ by {100 * least:.0f} to {100 * most:.0f} mAP, {answers} answers:"
        f" {len(rows)} pairs, right order {ours:.1%}, naive {naive:.1%}, covered {covered:.1%}"
    )


def summary(rows: list[Row]) -> str:
    """Share covered, mean width, and root mean square errors in per cent."""

    def column(name: str) -> Array:
        return np.array([float(one[name]) for one in rows])

    true = column("true")
    errors = [100 * np.sqrt(np.mean((column(name) - true) ** 2)) for name in ("estimate", "naive")]
    covered, width = column("covered").mean(), 100 * column("width").mean()
    return f"{covered:9.1%}{width:7.1f}{errors[0]:7.1f}{errors[1]:7.1f}"


def draw_figure(rows: list[Row], path: Path) -> None:
    """True mAP, mAP by labels as they are, and estimates, one panel for each way."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mine = [
        one for one in rows
        if one["metric"] == "mAP" and one["model"] == "bce" and one["sample"] != "even"
        and one["draw"] == "0" and one["seed"] == "0"
    ]  # fmt: skip
    # One set alone says nothing of a way.
    sets = {way: {one["set"] for one in mine if one["way"] == way} for way in WAY_NAMES}
    ways = [way for way, names in sets.items() if len(names) > 1]
    figure, panels = plt.subplots(1, len(ways), figsize=(3.1 * len(ways), 3.4), sharey=True)
    for way, panel in zip(ways, np.atleast_1d(panels), strict=True):
        _draw_panel([one for one in mine if one["way"] == way], panel)
        panel.set_title(WAY_NAMES[way], fontsize=10)
    first = np.atleast_1d(panels)[0]
    first.set_ylabel("mAP (%)")
    handles, names = first.get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=5, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    figure.savefig(path, dpi=150)


def _draw_panel(rows: list[Row], panel: Array) -> None:
    sets = sorted({one["set"] for one in rows})
    for answers, shift, colour in (
        (0, -0.22, "0.6"),
        (200, 0.0, "tab:blue"),
        (1000, 0.22, "tab:green"),
    ):
        mine = {one["set"]: one for one in rows if int(one["answers"]) == answers}
        there = [at for at, name in enumerate(sets) if name in mine]
        found = [mine[sets[at]] for at in there]
        keys = ("low", "estimate", "high")
        ends = np.array([[100 * float(one[key]) for key in keys] for one in found])
        reach = np.stack([ends[:, 1] - ends[:, 0], ends[:, 2] - ends[:, 1]])
        places = np.array(there) + shift
        label = f"{answers:,} answers"
        panel.errorbar(places, ends[:, 1], reach, fmt="o", ms=3, lw=1.6, color=colour, label=label)
    for key, colour, label in (
        ("true", "black", "truth"),
        ("naive", "tab:red", "labels as they are"),
    ):
        values = {one["set"]: 100 * float(one[key]) for one in rows}
        for at, name in enumerate(sets):
            shown = None if at else label
            panel.hlines(values[name], at - 0.4, at + 0.4, color=colour, lw=1.2, label=shown)
    panel.set_xticks(range(len(sets)), sets, rotation=60, ha="right", fontsize=8)
    panel.grid(axis="y", alpha=0.3)
