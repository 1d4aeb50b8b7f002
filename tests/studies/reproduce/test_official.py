"""Every headline command on fakes of the official data sets, with nothing but --root."""

from __future__ import annotations

import csv
import dataclasses
import html
import json
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.data import read_labels
from hilltop.studies.reproduce import dataset_files, given_source
from hilltop.studies.reproduce.recipe import Setting
from hilltop.training import ModelConfig, TrainConfig
from tests.forked import run_forked
from tests.studies.reproduce import official_fakes as fakes

COCO_MAP = "40% labels left: mAP"
# What makes a run small; everything else is the paper's.
TINY = [
    "--model", "test_resnet", "--weights", "none", "--image-size", "32", "--epochs", "1",
    "--batch-size", "3", "--workers", "0", "--seeds", "0",
]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """All four data sets in one folder."""
    folder = tmp_path / "data"
    for make in (fakes.coco, fakes.voc, fakes.nus):
        make(folder)
    fakes.openimages(folder / "openimages")
    return folder


def measured(out: Path, table: str) -> dict[tuple[str, str], str]:
    with (out / "tables" / f"{table}.csv").open(newline="") as file:
        return {(row["row"], row["column"]): row["best"] for row in csv.DictReader(file)}


def run(names: str, root: Path, out: Path, *more: str) -> int:
    return main(["reproduce", *names.split(), "--root", str(root), "--out", str(out), *TINY, *more])


def test_open_images_is_made_from_its_files_to_its_table(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("openimages statistics", root, out) == 0
    cells = measured(out, "openimages")
    assert len(cells) == 5
    assert all(cells.values())
    text = (out / "tables" / "openimages.md").read_text()
    assert "|  |  | BCE | Focal | ASL | Hill | SPLC |" in text
    assert "| Open Images | paper | 60.83 | 62.14 | 61.95 | 62.71 | 62.86 |" in text
    page = (out / "report.html").read_text()
    assert "5 training and 3 test images, 3 classes (the paper has 1,742,125" in page
    assert "Data sets are the paper's as far as" in html.unescape(page)
    assert "oidv6-train-annotations-bbox.csv, judged by" in page
    assert "inferred from the paper's number of test images" in html.unescape(page)
    counted = (out / "tables" / "statistics.md").read_text()
    assert "| COCO: complete labels | 6 | 3 | 10 | 1.67 |" in counted
    assert "| VOC: complete labels | 5 | 2 | 7 | 1.40 |" in counted


def test_open_images_has_a_second_reading_that_is_one_option_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, out = fakes.openimages_labels(tmp_path / "data"), tmp_path / "out"
    assert run("openimages", root, out) == 1
    said = capsys.readouterr().err
    assert "train-annotations-bbox.csv" in said
    assert "--open-images labels" in said
    assert run("openimages", root, out, "--open-images", "labels") == 0
    assert "--open-images boxes takes what the paper most" in capsys.readouterr().out
    assert all(measured(out, "openimages").values())
    page = (out / "report.html").read_text()
    assert "oidv6-train-annotations-human-imagelabels.csv, judged by" in page
    assert "5 training and 3 test images, 3 classes" in page


def test_all_is_made_of_the_data_sets_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.coco(tmp_path / "data")
    arguments = ["reproduce", "--all", "--root", str(tmp_path / "data"), "--dry-run", *TINY]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "COCO, test_resnet" in said
    assert said.count("The paper has 82,081") == 1, "though several networks are trained on it"
    assert "Not there, so left out: NUS-WIDE, VOC and Open Images." in said


def test_a_single_run_of_a_table_is_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Released lists for training, the official file for the test images."""
    root, out = fakes.coco(tmp_path / "data", train_json=False, lists=True), tmp_path / "out"
    assert run("coco", root, out, "--methods", "hill", "--keep", "0.4") == 0
    folder = out / "coco" / "runs" / "runs" / "0.4" / "hill" / "0"
    assert f"0.4 hill seed 0: {folder}" in capsys.readouterr().out
    assert [path.parent for path in (out / "coco" / "runs").rglob("last.safetensors")] == [folder]
    assert len(read_labels(folder / "val_labels.parquet")) == 4, "one has no annotation"
    cells = measured(out, "coco")
    assert {key for key, value in cells.items() if value} == {
        ("Hill", f"40% labels left: {metric}") for metric in ("mAP", "CF1", "OF1")
    }
    assert run("coco", root, out, "--methods", "bce", "--keep", "0.4") == 0
    assert measured(out, "coco")["Hill", "40% labels left: mAP"], "what was made before stays"
    capsys.readouterr()
    assert run("coco", root, out, "--methods", "hill", "--keep", "0.4", "--json") == 0
    (made,) = json.loads(capsys.readouterr().out)["runs"]
    assert (made["method"], made["level"], made["folder"]) == ("hill", "0.4", str(folder))
    assert made["last"]["mAP"] == pytest.approx(float(cells["Hill", COCO_MAP]) / 100, abs=1e-6)
    assert run("coco", root, out, "--keep", "0.5") == 2
    assert "there is 0.4, 0.75, complete, single here" in capsys.readouterr().err
    assert run("coco", root, out, "--keep", "") == 2
    assert "keep must name at least one level" in capsys.readouterr().err
    assert run("coco", root, out, "--methods", "hill", "--keep", "0.4, single", "--dry-run") == 0
    assert "2 runs, 1 finished" in capsys.readouterr().out


def test_a_method_that_the_paper_has_not_gets_a_row_of_its_own(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, words = tmp_path / "out", ["--methods", "gr,bce", "--keep", "0.4,complete"]
    assert run("coco", root, out, *words) == 0
    cells = measured(out, "coco")
    assert {row for (row, _), value in cells.items() if value} == {"BCE", "BCE (full labels)", "gr"}
    assert "| gr | paper |  |" in (out / "tables" / "coco.md").read_text()
    capsys.readouterr()
    assert run("stages", root, out, "--methods", "gr") == 2
    assert "--methods gr: no run of these figures has it; there are bce," in capsys.readouterr().err


def test_labels_that_a_plan_left_serve_a_comparison(tmp_path: Path) -> None:
    """As the header of ``recipes/single_positive.yaml`` has it."""
    root, out = fakes.coco(tmp_path / "data"), tmp_path / "out"
    assert run("coco", root, out, "--dry-run") == 0
    parts = [str(out / "coco" / "official" / f"{part}.parquet") for part in ("train", "val")]
    words = ["compare", "--labels", parts[0], "--val-labels", parts[1], "--images", str(root)]
    words += ["--methods", "ll_r", "--keep", "single", "--out", str(out / "compared"), *TINY]
    assert main(words) == 0
    assert "| ll_r | 1 |" in (out / "compared" / "table.md").read_text()


def test_several_processes_print_every_line_once(tmp_path: Path) -> None:
    root, out = fakes.coco(tmp_path / "data"), tmp_path / "out"
    tiny = ["6" if before == "--batch-size" else word
            for before, word in zip(["", *TINY], TINY, strict=False)]  # fmt: skip
    words = ["reproduce", "coco", "--root", root, "--out", out, *tiny, "--methods", "bce,hill"]
    said = run_forked("-m", "hilltop", *words, "--keep", "single", processes=2)
    for line in ("COCO, test_resnet", "All of it", "single bce seed 0: ", "tables and figures"):
        assert said.count(line) == 1, said
    assert measured(out, "coco")["Hill", "single label: mAP"]


def test_weights_of_several_backbones_come_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "weights" / "b").mkdir(parents=True)
    (tmp_path / "weights" / "a.safetensors").touch()
    model = ModelConfig(model="a", weights=str(tmp_path / "weights"))
    base = TrainConfig(val_labels=tmp_path, images=tmp_path, model=model)
    source = given_source(base, name="mine")

    def weights_of(name: str | None) -> str:
        config = source.settings(Setting(model=name))
        assert config is not None
        return str(Path(config.model.weights).relative_to(tmp_path / "weights"))

    assert weights_of(None) == "a.safetensors"
    assert weights_of("b") == "b", "the folder of a model"
    assert weights_of("c") == "c.pth", "which a check before training says is missing"


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        "coco appendix-coco-75 appendix-coco-40 appendix-coco-single",
        "voc-nus appendix-voc appendix-nus",
        "openimages appendix-openimages",
        "hill-ablation splc-losses hyperparameters",
    ],
)
def test_every_table_is_filled(names: str, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(names, root, out) == 0
    for name in names.split():
        cells = measured(out, name)
        assert cells
        assert all(cells.values()), name


@pytest.mark.slow
def test_every_figure_is_drawn(root: Path, tmp_path: Path) -> None:
    figures = "stages test-distributions missing-by-epoch examples"
    assert run(figures, root, tmp_path / "out") == 0
    drawn = {path.stem for path in (tmp_path / "out" / "figures").glob("*.png")}
    assert drawn == set(figures.split())
    assert (tmp_path / "out" / "coco" / "epochs" / "1").is_dir()


@pytest.mark.slow
def test_one_table_is_filled_as_each_of_its_data_sets_is_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fakes.voc(tmp_path / "first")
    assert run("voc-nus", tmp_path / "first", out) == 0
    cells = measured(out, "voc-nus")
    assert cells["Hill", "VOC-single"]
    assert not cells["Hill", "NUS-single"]
    fakes.nus(tmp_path / "second")
    fakes.voc(tmp_path / "second")  # not looked at: what was measured of it stays
    assert run("nus", tmp_path / "second", out) == 0
    assert measured(out, "voc-nus")["Hill", "VOC-single"] == cells["Hill", "VOC-single"]
    assert all(measured(out, "voc-nus").values())


def test_a_data_set_of_a_shared_table_is_run_alone_if_it_is_named(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("voc", root, tmp_path / "out", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "VOC, test_resnet" in said
    assert "NUS-WIDE" not in said
    assert run("nus voc", root, tmp_path / "out", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "VOC, test_resnet" in said
    assert "NUS-WIDE, test_resnet" in said
    assert run("voc", tmp_path / "out", tmp_path / "none", "--dry-run") == 1
    said = capsys.readouterr().err
    assert "VOC: there is no" in said
    assert "NUS-WIDE" not in said


def test_a_dry_run_states_runs_images_steps_and_time_and_trains_nothing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run("coco voc-nus", root, out, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "COCO, test_resnet: 6 training and 4 test images, 3 classes; 28 runs, 0 finished; 1 epoch"
        " of 2 steps each, 56 steps to go."
    )
    assert "instances_train2014.json, judged by" in lines[1]
    assert lines[2] == "  The paper has 82,081 and 40,137 images, 80 classes."
    assert "when judged on this device, " in lines[3]
    assert [line.partition(",")[0] for line in lines[4:12:4]] == ["VOC", "NUS-WIDE"]
    assert "with 0 processes to decode images (--workers)" in lines[3]
    total, one_seed, three_seeds = lines[-3:]
    assert total == "All of it, one run after another: about 1 min."
    assert one_seed == "  With --seeds 0: 48 runs, about 1 min."
    assert three_seeds == "  With --seeds 0,1,2: 144 runs, about 1 min."
    assert not list(out.rglob("runs"))


def test_sizes_of_the_paper_are_said_only_where_they_differ(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    voc = dataclasses.replace(dataset_files.DATA_SETS["voc"], sizes=(5, 3, 2))
    monkeypatch.setitem(dataset_files.DATA_SETS, "voc", voc)
    assert run("voc-nus", root, tmp_path / "out", "--dry-run") == 0
    said = capsys.readouterr().out
    assert said.count("The paper has") == 1
    assert "The paper has 119,103 and 50,720 images, 81 classes." in said


def test_what_is_missing_is_said_before_anything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "val2014").mkdir(parents=True)
    assert run("coco", tmp_path / "data", tmp_path / "out") == 1
    said = capsys.readouterr().err
    for name in ("train2014", "instances_train2014.json", "instances_val2014.json"):
        assert name in said
    assert not (tmp_path / "out").exists()


def test_what_is_missing_of_coco_is_not_expected_in_the_folders_of_voc(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both have a folder of annotations."""
    fakes.voc(tmp_path / "data")
    assert run("coco", tmp_path / "data", tmp_path / "out") == 1
    assert f"no folder {str(tmp_path / 'data' / 'train2014')!r}" in capsys.readouterr().err


def test_an_archive_that_is_not_unpacked_and_another_edition_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "train2017").mkdir(parents=True)
    (tmp_path / "data" / "val2014.zip").write_bytes(b"PK")
    assert run("coco", tmp_path / "data", tmp_path / "out") == 1
    said = capsys.readouterr().err
    assert f"unpack {str(tmp_path / 'data' / 'val2014.zip')!r}." in said
    assert "the edition of 2014; that of 2017, which is there, divides" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--labels", "x.txt"], "--root finds labels and images by itself; drop --labels."),
        (["--difficult", "present"], "--root knows how its label files are read"),
    ],
)
def test_root_finds_and_reads_labels_by_itself(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("coco", tmp_path, tmp_path / "out", *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--root", "data", "--source", "embedded"]])
def test_one_source_is_needed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "coco", *words]) == 2
    said = capsys.readouterr().err
    assert "Give one source: --root DIR" in said
    assert "--source embedded, or --labels and --val-labels" in said


@pytest.mark.parametrize("name", ["COCO", "Table 3", "table3"])
def test_a_table_has_the_number_of_the_paper_too(
    name: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", name, "--root", str(root), "--out", str(tmp_path / "out"), *TINY]
    assert main([*words, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "COCO, test_resnet: 6 training and 4 test images, 3 classes; 28 runs" in said
    assert "VOC" not in said
    assert main(["reproduce", "--list"]) == 0
    assert "coco                    Table 3    mAP, CF1 and OF1 on COCO" in capsys.readouterr().out


def test_figures_of_formulas_have_no_runs_to_choose_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "asl-gradients", "--methods", "hill", "--out", str(tmp_path)]) == 2
    assert "drop --methods and --keep" in capsys.readouterr().err


def test_other_settings_than_those_of_earlier_runs_are_told_before_the_plan(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ["--methods", "hill", "--keep", "0.4"]
    assert run("coco", root, tmp_path / "out", *one) == 0
    capsys.readouterr()
    assert run("coco", root, tmp_path / "out", *one, "--epochs", "2", "--dry-run") == 2
    said = capsys.readouterr()
    assert "epochs was 1 and is now 2" in said.err
    assert not said.out


def test_figures_of_formulas_need_no_data(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "negative-gradients", "--out", str(out)]) == 0
    assert (out / "figures" / "negative-gradients.png").is_file()
    assert {path.name for path in out.iterdir()} == {"figures", "report.html", "report.json"}


def test_embedded_pictures_are_not_drawn_for_figures_of_formulas(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "asl-gradients", "--source", "embedded", "--out", str(out)]) == 0
    assert not (out / "embedded").exists()


def test_weights_that_are_missing_are_told_after_the_plan_and_before_the_first_run(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = ["--weights", str(tmp_path / "lost.safetensors")]
    assert run("openimages", root, tmp_path / "out", *weights, "--dry-run") == 1
    said = capsys.readouterr()
    assert "Open Images, test_resnet: 5 training and 3 test images" in said.out
    assert "Before anything can be trained, this is missing:\n" in said.err
    assert "lost.safetensors" in said.err
    assert not list((tmp_path / "out").rglob("runs"))
