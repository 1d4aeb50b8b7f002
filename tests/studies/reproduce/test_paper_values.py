"""The numbers of the paper: how many there are, how they agree, and that all are used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hilltop.errors import DataError
from hilltop.studies.reproduce import PaperValues, read_paper_values, read_recipes

COUNTS = {
    "statistics": 10 * 4,
    "coco": 9 * 9 + 3,
    "voc-nus": 10 * 2,
    "openimages": 5,
    "hill-ablation": 9 * 3,
    "splc-losses": 12 * 3,
    "hyperparameters": 15,
    "backbones": 8 * 3,
    "appendix-coco-40": 10 * 7,
    "appendix-coco-75": 10 * 7,
    "appendix-coco-single": 10 * 7,
    "appendix-voc": 10 * 7,
    "appendix-nus": 10 * 7,
    "appendix-openimages": 5 * 7,
}
LEVELS = {"75": "75% labels left", "40": "40% labels left", "single": "single label"}


@pytest.fixture(scope="module")
def paper() -> PaperValues:
    return read_paper_values()


def test_every_table_has_all_its_numbers(paper: PaperValues) -> None:
    assert Counter(table for table, _, _ in paper.values) == COUNTS


@pytest.mark.parametrize(
    ("table", "column", "mean"),
    [
        ("coco", "40% labels left: mAP", 72.8888888889),
        ("voc-nus", "NUS-single", 53.781),
        ("backbones", "Swin-transformer", 78.095),
        ("appendix-voc", "OF1", 81.97),
        ("hyperparameters", "mAP", 73.6726666667),
    ],
)
def test_means_of_columns_are_those_of_the_printed_tables(
    paper: PaperValues, table: str, column: str, mean: float
) -> None:
    values = [
        float(value) for place, value in paper.values.items() if place[::2] == (table, column)
    ]
    assert sum(values) / len(values) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("level", list(LEVELS))
def test_the_appendix_rounds_the_main_table_except_where_a_note_says_so(
    paper: PaperValues, level: str
) -> None:
    compared = 0
    for row in paper.rows("coco"):
        short = "SPLC" if "SPLC" in row else row
        for metric in ("mAP", "CF1", "OF1"):
            exact = paper.get("coco", row, f"{LEVELS[level]}: {metric}")
            rounded = paper.get(f"appendix-coco-{level}", short, metric)
            assert rounded is not None
            if exact is None:
                continue
            compared += 1
            agrees = abs(float(exact) - float(rounded)) <= 0.0501
            assert agrees != bool(rounded.note), (row, metric, float(exact), float(rounded))
    assert compared >= 27


def test_of1_is_the_harmonic_mean_of_op_and_or_except_where_a_note_says_so(
    paper: PaperValues,
) -> None:
    checked = 0
    for table in COUNTS:
        for row in paper.rows(table) if table.startswith("appendix") else ():
            found = {name: paper.get(table, row, name) for name in ("OP", "OR", "OF1")}
            precision, recall, printed = (float(value or "nan") for value in found.values())
            harmonic = 2 * precision * recall / (precision + recall)
            noted = bool(found["OF1"] and found["OF1"].note)
            assert (abs(harmonic - printed) <= 0.1) != noted, (table, row)
            checked += 1
    assert checked == 55


def test_known_misprints_are_noted_and_not_mended(paper: PaperValues) -> None:
    focal = paper.get("appendix-coco-single", "Focal", "OF1")
    assert focal is not None
    assert (focal.text, "swapped" in focal.note) == ("26.6", True)
    swapped = paper.get("hill-ablation", "Hill", "OF1")
    right = paper.get("coco", "Hill", "40% labels left: CF1")
    assert swapped is not None
    assert right is not None
    assert swapped.text == right.text
    assert "the values are CF1" in swapped.note
    images = paper.get("statistics", "VOC-full labels", "samples")
    assert images is not None
    assert (images.text, "5717" in images.note) == ("5823", True)


def test_recipes_use_every_number_and_no_other_name(paper: PaperValues) -> None:
    used = {
        (recipe.name, row.paper, column.paper)
        for recipe in read_recipes().values()
        for row in recipe.rows
        for column in recipe.columns
    }
    printed = {place for place in paper.values if place[0] != "statistics"}
    assert printed <= used
    blank = used - printed
    assert blank == {
        ("coco", "BCE (full labels)", f"{level}: {metric}")
        for level in ("40% labels left", "single label")
        for metric in ("mAP", "CF1", "OF1")
    }, "the paper prints these once, for all levels"


def test_a_number_that_stands_twice_or_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("table,row,column,value,note\na,b,c,1,\na,b,c,x,\n")
    with pytest.raises(DataError, match="line 3: 'x' is not a number") as caught:
        read_paper_values(path)
    assert "a, b, c stands twice" in str(caught.value)
