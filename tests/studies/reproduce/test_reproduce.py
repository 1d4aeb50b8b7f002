"""Tables and figures from a tiny embedded data set, from labels and pictures to the page."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from hilltop.data import State, drop_positives, write_labels
from hilltop.errors import DataError
from hilltop.report.tables import Sheet
from hilltop.studies.compare import BASELINE, COMPLETE, Cell, Method, Result, Results, parse_level
from hilltop.studies.reproduce import (
    EVERY,
    EmbeddedSize,
    Reproduction,
    choose_recipes,
    embedded_source,
    given_source,
    read_paper_values,
    read_recipes,
    reproduce,
    write_reproduction_report,
)
from hilltop.studies.reproduce.figures import FIGURES, NUMBERS, Material
from hilltop.studies.reproduce.recipe import (
    LABELS_PER_IMAGE,
    USUAL,
    Column,
    PaperValue,
    PaperValues,
    Recipe,
    Row,
    Setting,
)
from hilltop.studies.reproduce.tables import Measured, csv_rows, paper_sheet, table_entries

SIZE = EmbeddedSize(
    train_images=60, val_images=30, image_size=32, filters=8, filter_side=5, epochs=2
)
TABLES = ["openimages", "appendix-openimages", "statistics"]
DRAWN = ["missing-by-epoch", "examples"]
METRICS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1")


def quiet(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    out = tmp_path_factory.mktemp("reproduced")
    source = embedded_source(out / "embedded", SIZE)
    recipes = choose_recipes(TABLES + DRAWN, read_recipes())
    done = reproduce(recipes, {EVERY: source}, out, seeds=[0], jobs=1, say=quiet)
    write_reproduction_report(out / "report.html", done)
    return out, done


def test_tables_and_figures_lie_beside_the_report(made: tuple[Path, Reproduction]) -> None:
    out, done = made
    assert not done.failed
    assert [item.recipe.name for item in done.items if item.missing] == []
    tables = {path.name for path in (out / "tables").iterdir()}
    assert tables == {f"{name}{ending}" for name in TABLES for ending in (".md", ".tex", ".csv")}
    figures = {path.name for path in (out / "figures").iterdir()}
    assert figures == {f"{name}{ending}" for name in DRAWN for ending in (".pdf", ".png")}


def test_a_run_that_several_tables_need_is_made_once(made: tuple[Path, Reproduction]) -> None:
    _, done = made
    cells = [result.cell for result in done.results]
    folders = [result.folder for result in done.results]
    assert len(folders) == len(set(folders)) == 5 + 4 + 2, "with two of SPLC that stop early"
    single = {str(cell.method) for cell in cells if cell.level.name == "single"}
    assert single == {"bce", "focal_released", "asl_released", "hill", "splc_released"}


def test_printed_numbers_stand_beside_measured_ones(made: tuple[Path, Reproduction]) -> None:
    out, done = made
    with (out / "tables" / "openimages.csv").open(newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert rows["Hill"]["paper"] == "62.71"
    hill = next(result for result in done.results if str(result.cell) == "single hill seed 0")
    assert float(rows["Hill"]["last"]) == pytest.approx(100 * hill.last["mAP"], abs=1e-3)
    assert float(rows["Hill"]["best"]) == pytest.approx(100 * hill.best["mAP"], abs=1e-3)
    text = (out / "tables" / "openimages.md").read_text()
    lines = [line.split(" | ") for line in text.replace("**", "").splitlines()]
    head, printed, best, *_ = (line for line in lines if len(line) == 7)
    at = head.index("Hill")
    assert (printed[at], best[at]) == ("62.71", f"{100 * hill.best['mAP']:.2f}")


def test_statistics_are_counted_from_the_labels(made: tuple[Path, Reproduction]) -> None:
    text = (made[0] / "tables" / "statistics.md").read_text()
    assert "| paper: COCO-40% labels left | 82,081 | 80 | 96,251 | 1.2 |" in text
    assert "| embedded pictures: single label | 60 | 42 | 60 | 1.00 |" in text


def test_the_report_is_one_file_with_every_item(made: tuple[Path, Reproduction]) -> None:
    page = (made[0] / "report.html").read_text()
    assert not re.search(r"https?://|<script|url\(", page)
    for item in made[1].items:
        assert item.recipe.title in page
    assert page.count("data:image/png;base64,") == 2
    assert page.count("<table>") == 3


def test_making_them_again_trains_nothing(made: tuple[Path, Reproduction]) -> None:
    out, done = made
    lines: list[str] = []
    recipes = choose_recipes(["openimages"], read_recipes())
    reproduce(recipes, done.sources, out, seeds=[0], jobs=1, say=lines.append)
    assert lines == ["5 of 5 runs are finished already"]


def test_an_embedded_set_of_another_size_is_not_mixed_up(made: tuple[Path, Reproduction]) -> None:
    with pytest.raises(DataError, match="pictures of another size here"):
        embedded_source(made[0] / "embedded")


@pytest.mark.slow
def test_every_other_figure_is_drawn_from_the_same_source(
    made: tuple[Path, Reproduction], tmp_path: Path
) -> None:
    figures = [recipe for recipe in read_recipes().values() if recipe.kind == "figure"]
    done = reproduce(figures, made[1].sources, tmp_path, seeds=[0], jobs=1, say=quiet)
    assert len(done.items) == 8
    assert all(item.png and not item.missing for item in done.items)


def test_features_have_no_backbones_and_no_pictures(
    made: tuple[Path, Reproduction], tmp_path: Path
) -> None:
    source = given_source(made[1].sources[EVERY].base, name="mine")
    recipes = choose_recipes(["backbones", "examples"], read_recipes())
    done = reproduce(recipes, {EVERY: source}, tmp_path, seeds=[0], jobs=1, say=quiet)
    backbones, examples = done.items
    assert "Not run on this source: mobilenetv3_large_100.ra_in1k" in backbones.missing
    assert examples.missing == "This source has no images to show."
    rows = backbones.sheets[0].rows
    assert all(row[1] and row[2:4] == ("", "") for row in rows), "printed, and not measured"
    assert not {str(result.cell) for result in done.results} & {"0.4 wan seed 0"}


def test_reduced_files_take_the_place_of_the_rule(
    made: tuple[Path, Reproduction], tmp_path: Path
) -> None:
    base = made[1].sources[EVERY].base
    table = drop_positives(made[1].sources[EVERY].complete_labels(), "0.1", seed=5).table
    write_labels(table, tmp_path / "left.parquet")
    source = given_source(base, name="mine", reduced=[f"0.4={tmp_path / 'left.parquet'}"])
    recipes = choose_recipes(["statistics"], read_recipes())
    reproduce(recipes, {EVERY: source}, tmp_path / "out", seeds=[0], jobs=1, say=quiet)
    text = (tmp_path / "out" / "tables" / "statistics.md").read_text()
    labels = table.count(State.PRESENT)
    assert f"| mine: 40% labels left | 60 | 42 | {labels} | {labels / 60:.2f} |" in text


def test_what_learned_from_complete_labels_does_not_compete() -> None:
    """The best of the others stands out, although complete labels give more; ties all do."""
    rows = (Row("BCE (full labels)", "bce", complete=True), Row("BCE", "bce"), Row("Hill", "hill"))
    recipe = Recipe("t", "table", 1, "A table", rows=rows, columns=(Column("mAP", "0.4", "mAP"),))
    paper = PaperValues({("t", row.paper, "mAP"): PaperValue("1.0") for row in rows})

    def made(**means: float) -> Sheet:
        measured = {EVERY: Measured({USUAL: results(**means)})}
        return paper_sheet(recipe, table_entries(recipe, paper, measured), name="ants")

    sheet = made(complete=0.8, bce=0.6, hill=0.7)
    assert sheet.head[2:4] == ("mAP, best", "mAP, last")
    assert sheet.strong == {(2, 2), (2, 3)}
    assert [row[-1] for row in sheet.rows] == ["100%", "0%", "50%"], "of the gap"
    tied = made(complete=0.8, bce=0.7, hill=0.7)
    assert tied.strong == {(1, 2), (1, 3), (2, 2), (2, 3)}


def results(**means: float) -> Results:
    """One finished run for each method at 40% left, and BCE on complete labels."""
    found = []
    for name, value in means.items():
        level = COMPLETE if name == "complete" else parse_level("0.4")
        method = BASELINE if name == "complete" else Method(name)
        row = {"epoch": 1.0, **dict.fromkeys(METRICS, value)}
        found.append(Result(Cell(level, method, 0), Path("x"), row, row))
    return Results(found)


def test_a_run_not_made_is_a_blank_cell() -> None:
    recipe = read_recipes()["hill-ablation"]
    measured = {EVERY: Measured({USUAL: results(complete=0.8, bce=0.6, hill=0.7)})}
    entries = table_entries(recipe, read_paper_values(), measured)
    sheet = paper_sheet(recipe, entries, name="ants")
    rows = {row[0]: row for row in sheet.rows}
    assert rows["WAN⁻"][1:4] == ("72.05", "", "")
    assert rows["WAN⁻"][-1] == ""
    assert rows["Hill"][1:4] == ("75.15", "70.00", "70.00")
    assert rows["Hill"][-1] == "50%"
    blank = next(row for row in csv_rows(recipe, entries) if row["row"] == "WAN⁻")
    assert (blank["paper"], blank["last"], blank["seeds"]) == ("72.05", None, None)


def test_misprints_carry_a_letter_and_a_sentence() -> None:
    recipe = read_recipes()["hill-ablation"]
    sheet = paper_sheet(recipe, table_entries(recipe, read_paper_values(), {}), name="ants")
    hill = next(row for row in sheet.rows if row[0] == "Hill")
    assert sheet.head[4:8] == ("OF1, paper", "CF1, best", "CF1, paper", "OF1, best")
    assert (hill[4], hill[6]) == ("68.56 [a]", "73.08 [b]")
    assert any(note.startswith("[a]") and "the values are CF1" in note for note in sheet.notes)


def with_labels_per_image(method: str) -> Method:
    return Method.parse(method.replace(LABELS_PER_IMAGE, "1.5"))


def test_the_main_table_is_one_sheet_in_the_groups_and_order_of_the_paper() -> None:
    found = results(complete=0.8, bce=0.6, hill=0.7)
    measured = {EVERY: Measured({USUAL: found}, with_labels_per_image)}
    recipe = read_recipes()["coco"]
    sheet = paper_sheet(recipe, table_entries(recipe, read_paper_values(), measured), name="ants")
    assert sheet.head[2:6] == (
        "75% labels left: mAP",
        "75% labels left: CF1",
        "75% labels left: OF1",
        "40% labels left: mAP",
    )
    names = [row[0] for row in sheet.rows if row[0]]
    assert names == [
        "BCE (full labels)", "BCE", "WAN", "BCE-LS", "Loss re-weighting:", "Focal", "ASL", "Hill",
        "Loss correction:", "BCE + pseudo label", "ROLE", "Focal margin + SPLC",
    ]  # fmt: skip
    at = next(at for at, row in enumerate(sheet.rows) if row[0] == "Hill")
    printed, best, last = sheet.rows[at : at + 3]
    assert (printed[1], printed[2], printed[5]) == ("paper", "78.84", "75.15")
    assert (best[1], best[2], best[5]) == ("best", "", "70.00"), "40% left alone was run"
    assert last[5] == "70.00"
    assert (at + 1, 5) in sheet.strong


def test_columns_of_two_data_sets_are_filled_each_from_its_own() -> None:
    single = parse_level("single")
    row = {"epoch": 1.0, **dict.fromkeys(METRICS, 0.5)}
    found = Results([Result(Cell(single, Method("hill"), 0), Path("x"), row, row)])
    measured = {"voc": Measured({USUAL: found}, with_labels_per_image)}
    recipe = read_recipes()["voc-nus"]
    entries = table_entries(recipe, read_paper_values(), measured)
    sheet = paper_sheet(recipe, entries, name="VOC")
    hill = dict(zip(sheet.head, next(row for row in sheet.rows if row[0] == "Hill"), strict=True))
    assert hill["VOC-single, best"] == "50.00"
    assert (hill["NUS-single, paper"], hill["NUS-single, best"]) == ("55.03", "")
    methods = {(row["row"], row["column"]): row["method"]
               for row in csv_rows(recipe, entries)}  # fmt: skip
    assert methods["ROLE", "VOC-single"] == "role:labels_per_image=1.5"


def test_examples_show_splc_after_its_first_and_third_epoch(
    made: tuple[Path, Reproduction],
) -> None:
    recipe = read_recipes()["examples"]
    settings = dict.fromkeys(str(spec.setting) for spec in recipe.specs())
    assert list(settings) == ["runs", "epochs/1", "epochs/3"]
    source = made[1].sources[EVERY]
    first, third = (source.settings(Setting(epochs=epochs)) for epochs in (1, 3))
    assert first is not None
    assert third is not None
    assert (first.epochs, first.schedule_epochs) == (1, source.base.epochs)
    assert third.epochs == source.base.epochs == 2, "a shorter run ends before its third epoch"


def test_a_run_stopped_early_is_the_whole_run_after_so_many_epochs(
    made: tuple[Path, Reproduction],
) -> None:
    out, _ = made
    folder = "runs/0.4/splc_released/0/metrics.csv"
    whole = (out / "runs" / folder).read_text().splitlines()
    stopped = (out / "epochs" / "1" / folder).read_text().splitlines()
    assert stopped == whole[:2], "heading and first epoch"


def test_early_is_the_first_epoch_and_numbers_of_the_text_stand_below(tmp_path: Path) -> None:
    counts = np.zeros((3, 3, 100))
    counts[:, 0, [10, 40, 80]] = [[2, 1, 1], [9, 9, 9], [0, 1, 3]]  # labelled
    counts[:, 1, [5, 35, 70]] = [[6, 2, 2], [9, 9, 9], [10, 0, 0]]  # missing
    counts[:, 2, [5, 35, 70]] = [[90, 2, 0], [9, 9, 9], [99, 1, 0]]  # absent
    np.savez(tmp_path / "histograms.npz", edges=np.linspace(0, 1, 101), counts=counts)
    result = Result(Cell(parse_level("0.4"), BASELINE, 0), tmp_path)
    material = Material({"BCE": result}, None)
    titles = [axes.get_title(loc="left") for axes in FIGURES["stages"](material).axes]
    assert titles == ["(a) BCE, epoch 1 of 3", "(b) BCE, epoch 3 of 3"]
    sheet = NUMBERS["stages"](material)
    rows = {row[0]: row[1:] for row in sheet.rows}
    assert rows["unlabelled pairs above 0.3 that are missing labels"][1:] == ("66.7", "0.0")
    assert rows["unlabelled pairs above 0.6 that are missing labels"] == ("above 95", "100.0", "")
    assert rows["unlabelled pairs above 0.6 of all missing labels"][1:] == ("20.0", "0.0")
    assert rows["labels between 0 and 0.2"][1:] == ("50.0", "0.0")
    assert rows["labels between 0.5 and 1"][1:] == ("25.0", "75.0")
