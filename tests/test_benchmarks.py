"""The benchmarks run at small sizes, and the page shows what the file of results says."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hilltop.cli.main import COMMANDS
from tests.processes import run

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> object:
    """Import a script of the folder, as the scripts do among themselves."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def load_module(name: str) -> ModuleType:
        for own in ("curves", "page", "peaks", "results", "side_by_side", "timing"):
            monkeypatch.delitem(sys.modules, own, raising=False)
        return importlib.import_module(name)

    return load_module


def row(question: str, size: str, contender: str, time_ms: float) -> dict[str, str]:
    numbers = dict.fromkeys(("baseline_ms", "ratio", "ratio_low", "ratio_high"), "1.0")
    texts = {"baseline": "other", "hardware": "a machine", "note": "", "versions": "torch 2.15.0"}
    texts |= dict.fromkeys(("passes", "saved_mib", "peak_mib"), "")
    measured = {"question": question, "size": size, "contender": contender}
    return {**numbers, **texts, **measured, "contender_ms": str(time_ms), "date": "", "commit": "c"}


def test_the_exponent_of_a_power_is_found(load) -> None:  # type: ignore[no-untyped-def]
    rows = [row("audit", str(size), "hilltop", 2.0 * size**1.5) for size in (10, 100, 1000)]
    rows.append(row("audit", "10x80", "hilltop", 1.0))  # not a point of the curve
    (curve,) = load("curves").curves(rows)
    assert curve.sizes == (10, 100, 1000)
    assert curve.exponent == pytest.approx(1.5)


def test_a_row_replaces_an_older_one_of_the_same_question(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    results = load("results")
    path = tmp_path / "results.csv"
    first = results.Row("q", "1", "ours", "theirs", 2.0, 1.0, 2.0, 2.0, 2.0)
    other = results.Row("q", "10", "ours", "theirs", 3.0, 1.0, 3.0, 3.0, 3.0)
    again = results.Row("q", "1", "ours", "theirs", 1.0, 1.0, 1.0, 1.0, 1.0, note="new")
    results.save([first, other], ["pytest"], path)
    results.save([again], ["pytest", "no-such-package"], path)
    kept = results.load(path)
    assert [(one["size"], one["contender_ms"], one["note"]) for one in kept] == [
        ("10", "3.0", ""),
        ("1", "1.0", "new"),
    ]
    assert kept[1]["versions"] == f"pytest {pytest.__version__}"
    assert kept[1]["peak_mib"] == ""


def test_rounds_end_when_time_is_up_and_ratios_are_to_the_baseline(load) -> None:  # type: ignore[no-untyped-def]
    calls = {"slow": 0, "fast": 0}

    def work(name: str) -> None:
        calls[name] += 1

    works = {name: (lambda name=name: work(name)) for name in calls}
    rows = load("timing").compare("q", "1", works, "slow", rounds=1000, seconds=0.0)
    assert [one.contender for one in rows] == ["slow", "fast"]
    assert rows[0].ratio == rows[0].ratio_low == 1.0
    assert rows[1].ratio_low <= rows[1].ratio <= rows[1].ratio_high


def test_the_tables_of_the_page_are_those_of_the_results(load) -> None:  # type: ignore[no-untyped-def]
    page = load("page")
    text = page.PAGE.read_text()
    assert page.filled(text, page.latest()) == text
    named = {match.group(2) for match in page.MARK.finditer(text)}
    assert named == {*page.TABLES, "hardware", "exponents", "peaks"}


def test_a_table_says_where_another_library_is_faster(load) -> None:  # type: ignore[no-untyped-def]
    rows = [row("q", "1", "hilltop", 2.0), row("q", "1", "other", 1.0), row("q", "2", "other", 9.0)]
    lines = load("page").table([*rows, row("q", "2", "hilltop", 1.0)]).splitlines()
    assert [line.endswith("| faster than ours |") for line in lines[2:]] == [
        False,
        True,
        False,
        False,
    ]


def test_the_memory_of_a_command_is_one_line_a_way(load) -> None:  # type: ignore[no-untyped-def]
    page = load("page")
    rows = [row(page.PEAKS, way, "demo", 2000.0) | {"peak_mib": "1290"} for way in ("a", "b")]
    assert page.peaks([row("other", "1", "x", 1.0), *rows]).splitlines()[2:] == [
        "| `hilltop demo` | a |  | 1,290 | 2 |",
        "| `hilltop demo` | b |  | 1,290 | 2 |",
    ]


def test_every_command_that_computes_is_measured(load) -> None:  # type: ignore[no-untyped-def]
    measured = {words[0] for words in load("peaks").COMMANDS.values()}
    made_of_others = {"start", "resume", "reproduce", "estimate"}
    assert measured | made_of_others == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["losses", "observation", "metrics", "growth"])
def test_a_benchmark_runs_at_small_sizes(script: str) -> None:
    printed = run(FOLDER / f"{script}.py", "--quick")
    assert "ms" in printed
    assert "hilltop" in printed or "count_likelihood" in printed
