"""One page shows what several calls made in the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.errors import DataError
from hilltop.report.tables import Sheet
from hilltop.studies.reproduce import (
    Reproduction,
    Source,
    read_recipes,
    write_reproduction_report,
)
from hilltop.studies.reproduce.run import Made
from hilltop.training import TrainConfig

RECIPES = read_recipes()


def written(out: Path, *cells: tuple[str, str], source: str = "") -> str:
    """The page after a call that made tables, each of one cell."""
    items = [
        Made(RECIPES[name], (Sheet(f"Of {name}", ("", "mAP"), (("BCE", cell),)),), missing="Blank.")
        for name, cell in cells
    ]
    sources = {"": Source(source, "Five images.", TrainConfig())} if source else {}
    made = Reproduction(sources, (0,), tuple(items), (), 0.0)
    return write_reproduction_report(out / "report.html", made).read_text()


def test_what_earlier_calls_made_stays_in_the_order_of_the_paper(tmp_path: Path) -> None:
    written(tmp_path, ("openimages", "12.3"), source="Open Images")
    page = written(tmp_path, ("coco", "45.6"), source="COCO")
    assert page.index("45.6") < page.index("12.3")
    assert page.count("Blank.") == 2
    assert "On Open Images. Five images. On COCO. Five images." in page


def test_what_is_made_again_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    written(tmp_path, ("coco", "12.3"))
    page = written(tmp_path, ("coco", "45.6"))
    assert "12.3" not in page
    assert "45.6" in page


def test_what_has_no_recipe_any_more_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, ("coco", "12.3"))
    file = tmp_path / "report.json"
    file.write_text(file.read_text().replace('"coco"', '"gone"'))
    assert "12.3" not in written(tmp_path)


def test_a_damaged_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"items": ')
    with pytest.raises(DataError, match="Delete it"):
        written(tmp_path)


def test_figures_of_two_calls_are_on_one_page(tmp_path: Path) -> None:
    for name in ("negative-gradients", "asl-gradients"):
        assert main(["reproduce", name, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert page.index("(negative-gradients)") < page.index("(asl-gradients)")
    assert page.count("data:image/png") == 2
    assert len(json.loads((tmp_path / "report.json").read_text())["items"]) == 2
