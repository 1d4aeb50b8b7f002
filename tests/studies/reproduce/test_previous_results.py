"""One page shows what several calls made in the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.errors import DataError
from hilltop.report.tables import Sheet
from hilltop.studies.reproduce import read_recipes
from hilltop.studies.reproduce.report import join_previous
from hilltop.studies.reproduce.run import Made

RECIPES = read_recipes()


def table(name: str, cell: str) -> Made:
    sheet = Sheet(f"Of {name}", ("", "mAP"), (("BCE", cell),), ("A note.",), {(0, 1)})
    return Made(RECIPES[name], (sheet,), missing="One cell is blank.")


def test_what_earlier_calls_made_stays_in_the_order_of_the_paper(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    join_previous(file, [table("openimages", "1")], {"Open Images": "Five images."}, RECIPES)
    shown = join_previous(file, [table("coco", "2")], {"COCO": "Six."}, RECIPES)
    assert [item.recipe.name for item in shown.items] == ["coco", "openimages"]
    assert shown.sources == {"Open Images": "Five images.", "COCO": "Six."}
    assert shown.items[1] == table("openimages", "1")


def test_what_is_made_again_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    join_previous(file, [table("coco", "1")], {}, RECIPES)
    shown = join_previous(file, [table("coco", "2")], {}, RECIPES)
    assert [item.sheets[0].rows for item in shown.items] == [(("BCE", "2"),)]


def test_what_has_no_recipe_any_more_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    join_previous(file, [table("coco", "1")], {}, RECIPES)
    others = {name: recipe for name, recipe in RECIPES.items() if name != "coco"}
    assert not join_previous(file, [], {}, others).items


def test_a_damaged_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text('{"items": ')
    with pytest.raises(DataError, match="Delete it"):
        join_previous(file, [], {}, RECIPES)


def test_figures_of_two_calls_are_on_one_page(tmp_path: Path) -> None:
    for name in ("negative-gradients", "asl-gradients"):
        assert main(["reproduce", name, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert page.index("(negative-gradients)") < page.index("(asl-gradients)")
    assert page.count("data:image/png") == 2
    assert len(json.loads((tmp_path / "report.json").read_text())["items"]) == 2
