"""Summarise ``promises.csv``: how often promises are broken, and what they cost."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

ALL_SETS, ALL_CELLS = 14, 156
"""Eleven ways of losing labels for each set, and two more for VOC."""
COST = (
    ("promised", "tags", "other", "broken"),
    ("same answers, no model", "flat_tags", "flat_other", "flat_broken"),
    ("RCPS, complete images", "rcps_tags", "rcps_other", "rcps_broken"),
    ("conformal risk control, complete images", "crc_tags", "crc_other", "crc_broken"),
)


def share(broken: int, times: int) -> str:
    """Share with its 95% interval."""
    ends = binomtest(broken, times).proportion_ci(0.95)
    return f"{broken / times:.1%} ({ends.low:.1%} to {ends.high:.1%})"


def _partial(cells: set[tuple[str, str]]) -> list[str]:
    """Ways that were not measured for all sets."""
    counts = Counter(way for _, way in cells)
    return [way for way in counts if way not in ("largest", "area") and counts[way] < ALL_SETS]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def summarise(path: Path) -> str:
    """Return the page."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    sets, ways = (list(dict.fromkeys(row[name] for row in rows)) for name in ("set", "way"))
    cells = {(row["set"], row["way"]) for row in rows}
    lines = [
        "# How often promises are broken, and what they cost",
        "",
        f"{3 * len(cells)} of {3 * ALL_CELLS} cells of set, way of losing labels and number of"
        f" answers are measured ({len(cells)} of {ALL_CELLS} pairs of set and way; {len(sets)} of"
        f" {ALL_SETS} sets, {len(ways)} of 13 ways), each 100 times."
        + (f" Not measured for all sets: {_listed(some)}." if (some := _partial(cells)) else "")
        + " Confidence 90%: at most 10% may be broken. `python reproduction/promises.py DATA"
        " promises.csv`, then `--summary`.",
        "",
        "| promise | answers | repetitions | broken (95% interval) | worst cell | cells above 10%"
        " | of these beyond chance | nothing promised |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    kinds = list(
        dict.fromkeys((row["metric"], row["wanted"], row["over"], row["answers"]) for row in rows)
    )
    for metric, wanted, over, answers in sorted(kinds, key=lambda k: (k[0], k[2], int(k[3]))):
        mine = [
            row
            for row in rows
            if (row["metric"], row["wanted"], row["over"], row["answers"])
            == (metric, wanted, over, answers)
        ]
        times, broken = (sum(int(row[name]) for row in mine) for name in ("times", "broken"))
        worst = max(mine, key=lambda row: int(row["broken"]))
        high = sum(
            binomtest(int(row["broken"]), int(row["times"]), 0.1, alternative="greater").pvalue
            < 0.05 / len(mine)
            for row in mine
        )
        above = sum(int(row["broken"]) > 0.1 * int(row["times"]) for row in mine)
        nothing = sum(int(row["none"]) for row in mine) / times
        lines.append(
            f"| {metric} {wanted}, {over} images | {answers} | {times:,} | {share(broken, times)} |"
            f" {worst['broken']} of {worst['times']} ({worst['set']}, {worst['way']}) |"
            f" {above} | {high} | {nothing:.0%} |"
        )
    lines += [
        "",
        "Beyond chance: a binomial test at 5%, divided by the number of cells of the line. Where"
        " nothing was promised, nothing was broken; it counts as a repetition.",
    ]
    lines += ["", "## By way of losing labels, and by set", ""]
    for name, values in (("way", ways), ("set", sets)):
        lines += [f"| {name} | repetitions | broken |", "|---|---:|---:|"]
        for value in values:
            mine = [row for row in rows if row[name] == value]
            times, broken = (sum(int(row[key]) for row in mine) for key in ("times", "broken"))
            lines.append(f"| {value} | {times:,} | {share(broken, times)} |")
        lines.append("")
    lines += [
        "## What a recall of 0.9 costs",
        "",
        "Tags as a multiple of the fewest that reach it where the truth is known (median of cells),"
        " precision at the threshold, and how often the recall over all pairs was below 0.9.",
        "",
        "| method | answers | tags | precision | at the true threshold | below 0.9 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    recall = [row for row in rows if (row["metric"], row["over"]) == ("recall", "new")]
    whole = [row for row in recall if row["flat_tags"]]
    for answers in sorted({row["answers"] for row in recall}, key=int):
        for title, tags, other, broken in COST:
            mine = [row for row in whole if row["answers"] == answers]
            ratio = np.median([float(row[tags]) / float(row["best_tags"]) for row in mine])
            precision, best = (
                np.median([float(row[name]) for row in mine]) for name in (other, "best_other")
            )
            times = (20 if tags == "flat_tags" else 100) * len(mine)
            below = sum(int(row[broken]) for row in mine) / times
            lines.append(
                f"| {title} | {answers} | {ratio:.2f} | {precision:.1%} | {best:.1%} |"
                f" {below:.1%} |"
            )
    lines += [
        "",
        f"The same {len({(r['set'], r['way']) for r in whole})} cells for all four. RCPS and"
        " conformal risk control promise the mean recall of an image, the second in expectation"
        " alone; with fewer images than they need they tag everything.",
        "",
        "| set (r0.8) | answers | best tags | promised | no model | RCPS | CRC | precision: best |"
        " promised |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in (row for row in whole if row["way"] == "r0.8" and row["answers"] != "200"):
        names = ("best_tags", "tags", "flat_tags", "rcps_tags", "crc_tags")
        numbers = " | ".join(f"{float(row[name]):,.0f}" for name in names)
        lines.append(
            f"| {row['set']} | {row['answers']} | {numbers} | {float(row['best_other']):.1%} |"
            f" {float(row['other']):.1%} |"
        )
    return "\n".join(lines) + "\n"
