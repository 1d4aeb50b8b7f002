"""Tables of comparisons: means, deviations and gaps, worked out by hand."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from hilltop.report.tables import Sheet, escape_latex
from hilltop.studies.compare import (
    BASELINE,
    COMPLETE,
    Cell,
    Level,
    Method,
    Result,
    Results,
    Spread,
    level_sheet,
    parse_level,
    write_tables,
)

LEFT, HILL = parse_level("0.4"), Method("hill")
METRICS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1")


def result(level: Level, method: Method, seed: int, last: float, best: float) -> Result:
    rows = [{"epoch": 9.0, **dict.fromkeys(METRICS, value)} for value in (last, best)]
    return Result(Cell(level, method, seed), Path("x"), *rows)


@pytest.fixture
def results() -> Results:
    return Results(
        [
            result(COMPLETE, BASELINE, 0, 0.70, 0.72),
            result(COMPLETE, BASELINE, 1, 0.74, 0.74),
            result(LEFT, BASELINE, 0, 0.50, 0.55),
            result(LEFT, BASELINE, 1, 0.54, 0.55),
            result(LEFT, HILL, 0, 0.56, 0.58),
            result(LEFT, HILL, 1, 0.58, 0.60),
            Result(Cell(LEFT, Method("wan"), 0), Path("x"), error="It broke."),
        ]
    )


def test_the_share_of_the_gap_is_between_bce_on_reduced_and_on_complete_labels(
    results: Results,
) -> None:
    assert results.gap_closed("0.4", HILL) == pytest.approx((0.57 - 0.52) / (0.72 - 0.52))
    assert results.gap_closed("0.4", BASELINE) == 0
    assert results.gap_closed("0.4", Method("wan")) is None


@pytest.mark.parametrize("complete", [0.52, 0.5])
def test_where_complete_labels_win_nothing_there_is_no_gap_to_close(complete: float) -> None:
    """Equal means leave a gap of 0, which nothing can be a share of."""
    results = Results(
        [
            result(COMPLETE, BASELINE, 0, complete, 0.9),
            result(LEFT, BASELINE, 0, 0.52, 0.6),
            result(LEFT, HILL, 0, 0.57, 0.6),
        ]
    )
    assert results.gap_closed("0.4", HILL) is None
    assert level_sheet(results, LEFT).rows[1][3] == ""


def test_the_deviation_is_that_of_a_sample() -> None:
    spread = Spread.of([0.50, 0.54, 0.55])
    mean = (0.50 + 0.54 + 0.55) / 3
    variance = sum((value - mean) ** 2 for value in (0.50, 0.54, 0.55)) / 2
    assert spread.mean == pytest.approx(mean)
    assert spread.deviation == pytest.approx(variance**0.5)


def test_last_and_best_epoch_stand_side_by_side_and_a_failed_run_is_blank(results: Results) -> None:
    sheet = level_sheet(results, LEFT)
    assert sheet.head[2:5] == ("mAP, last", "gap closed", "mAP, best")
    assert sheet.rows == (
        ("bce", "2", "52.00 ± 2.83", "0%", "55.00 ± 0.00", "52.00 ± 2.83", "52.00 ± 2.83"),
        ("hill", "2", "57.00 ± 1.41", "25%", "59.00 ± 1.41", "57.00 ± 1.41", "57.00 ± 1.41"),
        ("wan", "0", "", "", "", "", ""),
        ("bce, complete labels", "2", "72.00 ± 2.83", "100%", "73.00 ± 1.41", "72.00 ± 2.83",
         "72.00 ± 2.83"),
    )  # fmt: skip
    assert sheet.strong == {(1, 2)}, "the highest among the methods on reduced labels"


def test_csv_files_hold_every_run_and_every_mean(results: Results, tmp_path: Path) -> None:
    write_tables(results, tmp_path)
    with (tmp_path / "results.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert [run["epoch_rule"] for run in runs[:2]] == ["last", "best"]
    assert [float(run["mAP"]) for run in runs[:2]] == [0.70, 0.72]
    assert runs[-1]["error"] == "It broke."
    assert runs[-1]["mAP"] == ""
    with (tmp_path / "summary.csv").open(newline="") as file:
        means = {
            (row["level"], row["method"], row["epoch_rule"]): row for row in csv.DictReader(file)
        }
    assert float(means["0.4", "hill", "best"]["OF1"]) == pytest.approx(0.59)
    assert float(means["0.4", "hill", "last"]["gap_closed"]) == pytest.approx(0.25)
    assert means["0.4", "wan", "last"]["mAP"] == ""
    assert means["0.4", "wan", "last"]["seeds"] == "0"


def test_a_table_is_escaped_in_every_form() -> None:
    sheet = Sheet("A & B", ("", "50%"), (("<b>|_x", "1 ± 2"),), ("Note < 5%.",))
    assert r"| <b>\|_x | 1 ± 2 |" in str(sheet)
    assert r"\caption{A \& B}" in sheet.latex("tab:a")
    assert r"<b>|\_x & 1 $\pm$ 2 \\" in sheet.latex("tab:a")
    assert escape_latex("\\{τ}") == r"\textbackslash{}\{$\tau$\}"


def wide_sheet() -> Sheet:
    numbers = tuple(f"{n}2.34 ± 0.05" for n in range(1, 7))
    head = ("method", *(f"metric {n}" for n in range(1, 7)))
    return Sheet("Wide", head, (("count_likelihood:r=0.9", *numbers), ("bce", *numbers)))


def test_a_table_in_a_log_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    wide_sheet().print()
    shown = capsys.readouterr().out
    for row in wide_sheet().rows:
        assert any(all(cell in line for cell in row) for line in shown.splitlines())


def test_a_table_in_a_narrow_terminal_keeps_its_names_and_numbers() -> None:
    console = Console(width=80, file=io.StringIO(), force_terminal=True)
    with console.capture() as caught:
        console.print(wide_sheet().rich())
    shown = caught.get()
    for word in ("count_likelihood:r=0.9", "12.34", "62.34", "0.05"):
        assert word in shown
    assert "…" not in shown
