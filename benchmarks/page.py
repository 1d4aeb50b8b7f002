"""Writes the tables of docs/benchmarks.md from results.csv, between the marks that name them.

Run it with: python benchmarks/page.py
"""

from __future__ import annotations

import re
from pathlib import Path

from curves import curves, is_ours, latest

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
TABLES = {
    "losses": ("loss and gradient",),
    "likelihoods": ("likelihood fwd+bwd",),
    "metrics": ("average precision, distinct", "average precision, ties"),
    "labels": ("simulate labels", "write Parquet", "read Parquet", "read long CSV"),
    "audit": ("audit",),
    "images": ("images, training", "images, evaluation"),
    "training": ("training, processor time", "audit, processor time"),
    "at_once": ("runs at once",),
}
PEAKS = "peak memory"
MARK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Row = dict[str, str]


def table(rows: list[Row]) -> str:
    """A Markdown table; columns that nobody filled are left out."""
    if not rows:
        return "Not measured yet.\n"
    questions = len({row["question"] for row in rows}) > 1
    memory, passes = (any(row.get(name) for row in rows) for name in ("peak_mib", "passes"))
    heads = ["question"] * questions + ["size", "contender", "ms", "ratio", "to"]
    heads += ["passes"] * passes + ["peak MiB"] * memory + ["note"]
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        cells = [row["question"]] * questions + [row["size"], row["contender"]]
        cells += [f"{float(row['contender_ms']):.4g}", _ratio(row), row["baseline"]]
        cells += [row["passes"]] * passes + [row["peak_mib"]] * memory + [_note(row, rows)]
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _ratio(row: Row) -> str:
    low, middle, high = (float(row[name]) for name in ("ratio_low", "ratio", "ratio_high"))
    if row["contender"] == row["baseline"]:
        return "1"
    return f"{middle:.3g} ({low:.3g} to {high:.3g})" if low < high else f"{middle:.3g}"


def _note(row: Row, rows: list[Row]) -> str:
    """The note, and whether another library is faster than every contender of ours."""
    group = ("question", "size", "baseline")
    beside = [one for one in rows if all(one[name] == row[name] for name in group)]
    ours = [float(one["contender_ms"]) for one in beside if is_ours(one["contender"])]
    faster = not is_ours(row["contender"]) and ours and float(row["contender_ms"]) < min(ours)
    return ", ".join(part for part in (row["note"], "faster than ours" if faster else "") if part)


def exponents(rows: list[Row]) -> str:
    """One line a curve."""
    found = curves(rows)
    if not found:
        return "Not measured yet.\n"
    lines = ["| question | contender | sizes | exponent |\n| --- | --- | --- | --- |\n"]
    for curve in found:
        sizes = f"{curve.sizes[0]:,.0f} to {curve.sizes[-1]:,.0f} {curve.unit}"
        lines.append(f"| {curve.question} | {curve.contender} | {sizes} | {curve.exponent:.2f} |\n")
    return "".join(lines)


def peaks(rows: list[Row]) -> str:
    """Peak memory and time, one line for each command and way that it was measured."""
    mine = [row for row in rows if row["question"] == PEAKS]
    if not mine:
        return "Not measured yet.\n"
    lines = ["| command | machine | load before | peak MiB | seconds |\n|" + " --- |" * 5 + "\n"]
    for row in mine:
        peak, seconds = float(row["peak_mib"]), float(row["contender_ms"]) / 1e3
        first = f"| `hilltop {row['contender']}` | {row['size']} | {row['note']}"
        lines.append(f"{first} | {peak:,.0f} | {seconds:.0f} |\n")
    return "".join(lines)


def hardware(rows: list[Row]) -> str:
    """Where and with what it was measured."""
    if not rows:
        return "Not measured yet.\n"
    versions = sorted({part for row in rows for part in _pairs(row["versions"])})
    when = sorted({row["date"] for row in rows})
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows))
    return (
        f"{rows[-1]['hardware']}; {', '.join(versions)}; commit {commits};"
        f" {when[0] if len(when) == 1 else f'{when[0]} to {when[-1]}'}.\n"
    )


def _pairs(versions: str) -> list[str]:
    words = versions.split()
    return [f"{name} {number}" for name, number in zip(words[::2], words[1::2], strict=True)]


def filled(text: str, rows: list[Row]) -> str:
    """The page with all its tables written anew."""

    def fill(match: re.Match[str]) -> str:
        start, name, end = match.groups()
        if name == "hardware":
            return start + hardware(rows) + end
        if name == "exponents":
            return start + exponents(rows) + end
        if name == "peaks":
            return start + peaks(rows) + end
        mine = [row for row in rows if row["question"] in TABLES[name]]
        return start + table(mine) + end

    return MARK.sub(fill, text)


def main() -> None:
    """Write the page."""
    PAGE.write_text(filled(PAGE.read_text(), latest()))


if __name__ == "__main__":
    main()
