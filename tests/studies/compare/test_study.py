"""Comparisons: what they leave behind, what they do not repeat, and what stops them."""

from __future__ import annotations

import csv
import dataclasses
import shutil
from pathlib import Path

import pytest

from hilltop.cli.main import main
from hilltop.data import LabelTable, State, drop_positives, keep_each, read_labels, write_labels
from hilltop.errors import ConfigError, DataError
from hilltop.studies.compare import (
    Cell,
    Method,
    Study,
    parse_level,
    parse_levels,
    parse_methods,
    plan_cells,
    run_study,
)
from hilltop.training import TrainConfig
from hilltop.training.pseudo_counts import read_histograms
from tests.processes import run, start, wait_until
from tests.studies.compare.conftest import words

LEFT = parse_level("0.4")


def quiet(line: str) -> None:
    pass


def rows_of(out: Path) -> list[dict[str, str]]:
    """Every run with its metrics; only how long it took may differ between calls."""
    with (out / "results.csv").open(newline="") as file:
        return [{**row, "seconds": ""} for row in csv.DictReader(file)]


def test_baselines_are_always_among_the_cells() -> None:
    cells = plan_cells(parse_levels("0.4,single"), parse_methods("hill"), [0, 1])
    assert [str(cell) for cell in cells[:5]] == [
        "complete bce seed 0",
        "0.4 bce seed 0",
        "0.4 hill seed 0",
        "single bce seed 0",
        "single hill seed 0",
    ]
    assert len(cells) == 10
    assert plan_cells([LEFT], parse_methods("bce,hill"), [0]) == plan_cells(
        [LEFT], parse_methods("hill"), [0]
    )


def test_a_comparison_trains_on_what_the_rule_leaves_and_knows_the_truth(
    base: TrainConfig, complete: Path, tmp_path: Path
) -> None:
    cells = plan_cells([LEFT], [Method("hill")], [3])
    study = Study(tmp_path, base)
    results = run_study(study, cells, say=quiet)
    assert all(result.finished for result in results)
    full = read_labels(complete / "train.parquet")
    seen = [read_labels(result.folder / "train_labels.parquet") for result in results]
    assert seen[0] == full
    assert seen[1] == seen[2] == drop_positives(full, "0.8", seed=3).table
    counts = read_histograms(results[2].folder / "histograms.npz").counts.sum(axis=2)
    left, total = (table.count(State.PRESENT) for table in (seen[1], full))
    expected = [left, total - left, 180 * 5 - total]
    assert counts.tolist() == [expected] * 2, "labels, missing and absent pairs of both epochs"
    assert not (results[0].folder / "report.html").exists()
    assert not (results[0].folder / "resume.safetensors").exists(), "of no use any more"


def test_finished_runs_are_not_repeated_and_new_ones_are_added(
    base: TrainConfig, tmp_path: Path
) -> None:
    lines: list[str] = []
    run_study(Study(tmp_path, base), plan_cells([LEFT], [Method("hill")], [0]), say=lines.append)
    assert [line[:5] for line in lines] == ["[1/3]", "[2/3]", "[3/3]"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.csv")}
    lines.clear()
    cells = plan_cells([LEFT], parse_methods("hill,wan"), [0])
    results = run_study(Study(tmp_path, base), cells, say=lines.append)
    assert lines[0] == "3 of 4 runs are finished already"
    assert "0.4 wan seed 0: mAP" in lines[1]
    assert len(lines) == 2
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [str(result.cell) for result in results] == [str(cell) for cell in cells]


def test_other_settings_stop_before_anything_is_trained(base: TrainConfig, tmp_path: Path) -> None:
    run_study(Study(tmp_path, base), [Cell(LEFT, Method("hill"), 0)], say=quiet)
    other = dataclasses.replace(base, epochs=3, workers=7)
    new = [Cell(LEFT, Method("wan"), 0), Cell(LEFT, Method("hill"), 0)]
    with pytest.raises(ConfigError) as caught:
        run_study(Study(tmp_path, other), new, say=quiet)
    message = str(caught.value)
    assert "hill/0: this run was made with other settings: epochs was 2 and is now 3." in message
    assert "Choose another --out" in message
    assert not (tmp_path / "runs" / "0.4" / "wan").exists()


def test_other_labels_and_features_are_noticed_whatever_their_name(
    base: TrainConfig, complete: Path, tmp_path: Path
) -> None:
    cells = [Cell(LEFT, Method("hill"), 0)]
    copied = shutil.copytree(complete, tmp_path / "copied")
    moved = dataclasses.replace(
        base,
        labels=copied / "train.parquet",
        val_labels=copied / "val.parquet",
        features=copied / "features.npz",
    )
    out = tmp_path / "out"
    run_study(Study(out, base), cells, say=quiet)
    lines: list[str] = []
    run_study(Study(out, moved), cells, say=lines.append)
    assert lines == ["1 of 1 run is finished already"], "the same data at another place"
    val = read_labels(copied / "val.parquet")
    write_labels(val.select(range(59)), copied / "val.parquet")
    with pytest.raises(DataError, match="made with other val labels than those given now"):
        run_study(Study(out, moved), cells, say=quiet)


def test_a_reduced_file_is_trained_on_for_every_seed(
    base: TrainConfig, complete: Path, tmp_path: Path
) -> None:
    table = drop_positives(read_labels(complete / "train.parquet"), "1", seed=99).table
    write_labels(table, tmp_path / "one.parquet")
    (level,) = parse_levels(None, [f"one={tmp_path / 'one.parquet'}"])
    cells = [Cell(level, Method("bce"), seed) for seed in (0, 1)]
    results = run_study(Study(tmp_path / "out", base), cells, say=quiet)
    for result in results:
        assert read_labels(result.folder / "train_labels.parquet") == table
    assert results[0].last["mAP"] != results[1].last["mAP"], "seeds still differ in training"


def test_pseudo_labels_are_a_second_stage_on_more_labels(base: TrainConfig, tmp_path: Path) -> None:
    once, twice = Method("bce"), Method.parse("bce+pseudo_label:0.3")
    longer = dataclasses.replace(base, epochs=5)
    cells = [Cell(LEFT, method, 0) for method in (once, twice)]
    results = run_study(Study(tmp_path, longer), cells, say=quiet)
    assert all(result.finished for result in results)
    seen = [read_labels(result.folder / "train_labels.parquet") for result in results]
    left, more = (table.count(State.PRESENT) for table in seen)
    assert more > left
    assert not list(tmp_path.rglob("resume.safetensors"))


def test_the_first_stage_of_pseudo_labels_is_the_run_that_is_there(
    base: TrainConfig, tmp_path: Path
) -> None:
    results = {}
    for name, methods in (("alone", ["bce+pseudo_label"]), ("both", ["bce+pseudo_label", "bce"])):
        study = Study(tmp_path / name, base)
        cells = [Cell(LEFT, Method.parse(method), 0) for method in methods]
        results[name] = run_study(study, cells, say=quiet)[0]
    events = [(results["both"].folder / "first" / "events.jsonl").read_text()]
    events.append((tmp_path / "both" / "runs" / "0.4" / "bce" / "0" / "events.jsonl").read_text())
    assert events[0] == events[1], "it was not trained again"
    for file in ("metrics.csv", "first/metrics.csv"):
        texts = [(result.folder / file).read_text() for result in results.values()]
        assert texts[0] == texts[1]


def test_what_a_reduced_file_does_not_list_is_unknown_even_if_it_says_absent(
    base: TrainConfig, complete: Path, tmp_path: Path
) -> None:
    (level,) = parse_levels(None, [f"all={complete / 'train.parquet'}"])
    (result,) = run_study(Study(tmp_path, base), [Cell(level, Method("bce"), 0)], say=quiet)
    assert read_labels(complete / "train.parquet").unlisted == State.ABSENT
    assert read_labels(result.folder / "train_labels.parquet").unlisted == State.UNKNOWN


def test_a_failed_run_is_recorded_the_others_go_on_and_it_is_tried_again(
    base: TrainConfig, tmp_path: Path
) -> None:
    study = Study(tmp_path, base)
    cells = [Cell(LEFT, Method(name), 0) for name in ("hill", "wan")]
    run_study(study, cells[:1], say=quiet)
    folder = study.run_folder(cells[0])
    (folder / "result.json").unlink()
    (folder / "resume.safetensors").write_bytes(b"\x08")
    lines: list[str] = []
    failed, other = run_study(study, cells, say=lines.append)
    assert not failed.finished
    assert "resume.safetensors: this is not a whole safetensors file" in failed.error
    assert "0.4 hill seed 0: failed: " in lines[0]
    assert other.finished
    (folder / "resume.safetensors").unlink()
    assert all(result.finished for result in run_study(study, cells, say=quiet))


def test_the_command_prints_and_writes_every_table(
    complete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    more = ("--methods", "hill,splc:tau=0.65", "--keep", "0.4", "--seeds", "0,1")
    assert main(words(complete, out, *more)) == 0
    printed = capsys.readouterr().out
    assert "40% labels left" in printed
    assert "splc:tau=0.65" in printed
    found = {row["method"] for row in rows_of(out) if row["level"] == "0.4"}
    assert found == {"bce", "hill", "splc:tau=0.65"}
    assert len(rows_of(out)) == 2 * 2 * 4, "two epoch rules, two seeds, four cells"
    text = (out / "table.md").read_text()
    assert "| splc:tau=0.65 | 2 |" in text
    assert "| bce, complete labels | 2 |" in text
    assert r"\begin{tabular}{lrrrrrr}" in (out / "table.tex").read_text()


def test_a_failed_run_makes_the_command_fail_after_its_tables(
    complete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    more = ("--methods", "hill", "--keep", "0.4", "--seeds", "0")
    assert main(words(complete, out, *more)) == 0
    run = out / "runs" / "0.4" / "hill" / "0"
    (run / "result.json").unlink()
    (run / "resume.safetensors").write_bytes(b"\x08")
    capsys.readouterr()
    assert main(words(complete, out, *more)) == 1
    assert "1 of 3 runs failed and is tried again the next time" in capsys.readouterr().err
    assert "| hill | 0 |  |  |  |  |  |" in (out / "table.md").read_text(), "blank, not copied"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--loss", "asl"), "compare sets --loss for each run by itself; name methods instead"),
        (("--seed", "4"), "compare sets --seed for each run by itself; use --seeds"),
        (("--seeds", "0,x"), "seeds must be whole numbers such as 0,1,2, but got '0,x'"),
        (("--methods", "hil"), "Did you mean 'hill'?"),
        (("--jobs", "0"), "jobs must be at least 1, but got 0"),
    ],
)
def test_wrong_options_are_told_in_words(
    complete: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    said: str,
) -> None:
    assert main(words(complete, tmp_path / "out", *more)) == 2
    assert said in capsys.readouterr().err


def test_a_class_that_only_reduced_labels_have_is_named(
    complete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = LabelTable.from_coo(["0.jpg"], ["fly"], [0], [0], State.PRESENT, unlisted=State.UNKNOWN)
    write_labels(table, tmp_path / "fly.parquet")
    more = ("--reduced", f"fly={tmp_path / 'fly.parquet'}")
    assert main(words(complete, tmp_path / "out", *more)) == 1
    assert "'fly'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_comparison_killed_at_any_moment_ends_like_an_unbroken_one(
    complete: Path, tmp_path: Path, jobs: int
) -> None:
    more = ("--methods", "hill,splc", "--keep", "0.4", "--seeds", "0", "--jobs", jobs)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run("-m", "hilltop", *words(complete, whole, *more))
    for wanted in (1, 3):
        process = start("-m", "hilltop", *words(complete, killed, *more))
        wait_until(lambda wanted=wanted: len(list(killed.rglob("metrics.csv"))) >= wanted, process)
        process.kill()
        process.communicate()
    run("-m", "hilltop", *words(complete, killed, *more))
    assert rows_of(whole) == rows_of(killed)


@pytest.mark.slow
def test_two_jobs_give_the_results_of_one(complete: Path, tmp_path: Path) -> None:
    more = ("--methods", "hill,splc", "--keep", "0.4,single", "--seeds", "0")
    for jobs in (1, 2):
        run("-m", "hilltop", *words(complete, tmp_path / str(jobs), *more, "--jobs", jobs))
    assert rows_of(tmp_path / "1") == rows_of(tmp_path / "2")


def test_without_complete_labels_every_cell_has_an_estimate_and_its_interval(
    complete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "val"):
        table = read_labels(complete / f"{name}.parquet")
        write_labels(keep_each(table, 0.6, seed=0).table, tmp_path / f"{name}.parquet")
    given = words(complete, tmp_path / "out", "--methods", "hill", "--seeds", "0")
    given += ["--unlisted", "unknown"]
    for name in ("train", "val"):
        given[given.index(str(complete / f"{name}.parquet"))] = str(tmp_path / f"{name}.parquet")
    assert main(given) == 0
    said = capsys.readouterr()
    assert "judged by estimates" in said.out + said.err
    text = (tmp_path / "out" / "table.md").read_text()
    assert "labels as they are" in text
    assert "complete labels |" not in text
    lines = [line.split("|") for line in text.splitlines() if line.startswith(("| bce", "| hill"))]
    assert len(lines) == 2
    for line in lines:
        assert line[3].count(" to ") == line[4].count(" to ") == line[6].count(" to ") == 1
    assert " to " in lines[1][5]
    assert "mAP_low" in (tmp_path / "out" / "results.csv").read_text()
