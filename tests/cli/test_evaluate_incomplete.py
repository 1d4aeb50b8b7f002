"""``hilltop evaluate --incomplete``: plan, answer, estimate, compare."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.cli.main import main
from hilltop.data.scores import ScoreTable
from hilltop.metrics import mean_average_precision

IMAGES = [f"{row}.jpg" for row in range(300)]
CLASSES = ("bird", "cat", "dog", "eel", "fox")


@pytest.fixture
def true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.typing.NDArray[np.bool_]:
    """Write scores of two models and incomplete labels; return the truth."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    logits = rng.normal(-2, 3, (300, 5))
    present = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    kept = present & (rng.random(logits.shape) < 0.5)
    for name, values in (("one", logits), ("two", logits + rng.normal(0, 2, logits.shape))):
        probs = 1 / (1 + np.exp(-values))
        ScoreTable(pa.array(IMAGES), CLASSES, probs).save(f"{name}.npy")
    with Path("labels.csv").open("w") as file:
        file.write("image,labels\n")
        for image, row in zip(IMAGES, kept, strict=True):
            labels = ";".join(name for name, there in zip(CLASSES, row, strict=True) if there)
            file.write(f"{image},{labels}\n")
    return present


def evaluate(*words: str, scores: str = "one.npy", unlisted: str = "unknown") -> int:
    return main(["evaluate", scores, "labels.csv", "--unlisted", unlisted, *words])


@pytest.mark.parametrize("how", [[], ["--incomplete"]])
def test_labels_without_scores_are_left_out_where_it_is_said(
    how: list[str], true: np.typing.NDArray[np.bool_], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*how, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    labels = Path("labels.csv").read_text()
    Path("labels.csv").write_text(labels + "more.jpg,gnu;cat\n")
    assert evaluate(*how) == 1
    assert "1 image and 1 class (gnu). Pass --allow-missing" in capsys.readouterr().err
    assert evaluate(*how, "--allow-missing", "--json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == whole
    assert "labels.csv: left out, without scores: 1 image and 1 class (gnu)\n" in said.err


def answer_plan(true: np.typing.NDArray[np.bool_]) -> None:
    rows = list(csv.DictReader(Path("ask.csv").read_text().splitlines()))
    with Path("answers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "answer"])
        writer.writeheader()
        for row in rows:
            there = true[IMAGES.index(row["image"]), CLASSES.index(row["class"])]
            writer.writerow({**row, "answer": "yes" if there else "no"})


def test_answers_to_a_plan_narrow_the_interval_around_the_truth(
    true: np.typing.NDArray[np.bool_], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("--incomplete", "--json") == 0
    before = json.loads(capsys.readouterr().out)
    assert evaluate("--incomplete", "--plan", "100", "--out", "ask.csv") == 0
    assert "100 pairs to ask about" in capsys.readouterr().out
    answer_plan(true)
    assert evaluate("--incomplete", "--answers", "answers.csv", "--json") == 0
    after = json.loads(capsys.readouterr().out)
    exact = mean_average_precision(np.load("one.npy"), true)
    for found in (before["mAP"], after["mAP"]):
        assert found["low"] < found["value"] < found["high"]
        assert found["low"] < exact < found["high"]
    widths = [one["mAP"]["high"] - one["mAP"]["low"] for one in (before, after)]
    assert widths[1] < widths[0] / 2
    assert after["answers"] == 100
    assert set(after["classes"]) == set(CLASSES)


def test_labels_that_list_positives_alone_give_no_number_without_an_estimate(
    true: np.typing.NDArray[np.bool_], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("--json") == 0
    found = json.loads(capsys.readouterr().out)
    exact, beside = mean_average_precision(np.load("one.npy"), true), found["estimates"]["mAP"]
    assert found["mAP"] < beside["value"]
    assert beside["low"] < exact < beside["high"]
    assert evaluate() == 0
    assert "the true values are about: mAP " in capsys.readouterr().out
    assert evaluate("--json", unlisted="absent") == 0
    assert json.loads(capsys.readouterr().out)["estimates"] == {}


def test_two_files_are_compared(
    true: np.typing.NDArray[np.bool_], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("--incomplete", "--against", "two.npy") == 0
    out = capsys.readouterr().out
    assert "one.npy has the higher mAP" in out
    assert "difference" in out


def write_table(path: str, values: np.typing.NDArray[np.float64]) -> None:
    """Write scores as people have them, in another order of images and classes."""
    with Path(path).open("w") as file:
        file.write(",".join(["photo", *CLASSES[::-1]]) + "\n")
        for image, row in list(zip(IMAGES, values, strict=True))[::-1]:
            cells = ["" if np.isnan(cell) else repr(float(cell)) for cell in row[::-1]]
            file.write(",".join([image, *cells]) + "\n")


@pytest.mark.usefixtures("true")
def test_a_table_of_scores_says_the_same_and_unlisted_pairs_are_open_without_being_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_table("one.csv", np.load("one.npy"))
    assert evaluate("--incomplete", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "one.csv", "labels.csv", "--incomplete", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again.keys() == said.keys()
    assert all(again[name] == pytest.approx(said[name], abs=1e-6) for name in ("mAP", "OF1", "P@1"))


@pytest.mark.usefixtures("true")
def test_a_plan_names_the_images_it_means_where_some_have_no_scores(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = np.load("one.npy")
    values[:100] = np.nan
    write_table("some.csv", values)
    assert evaluate("--incomplete", "--plan", "150", "--json", scores="some.csv") == 0
    printed = capsys.readouterr()
    assert "100 images have no scores and take no part." in printed.err
    pairs = json.loads(printed.out)["pairs"]
    assert len(pairs) == 150
    assert all(IMAGES.index(pair["image"]) >= 100 for pair in pairs)
    assert all(0 < pair["sampled_with"] <= 1 for pair in pairs)


@pytest.mark.usefixtures("true")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bare.npy", None, "no names beside these scores, bare.npy.names.parquet. Give a table"),
        ("words.csv", "image,cat\n0.jpg,yes\n", "the column 'cat' is not of numbers"),
        ("t.csv", "file,tags,probabilities\n0.jpg,cat,0.9\n", "hilltop predict RUN --images DIR"),
        ("thin.csv", "image\n0.jpg\n", "a table of scores has a column of image ids"),
        ("twice.csv", "image,cat\na,0.5\na,0.5\n", "some image names stand more than once"),
        ("gone.csv", None, "gone.csv: there is no such file"),
        (
            "few.csv",
            "image,cat\n0.jpg,0.5\n",
            "there are no scores for 299 images and 4 classes (bird, dog, eel, fox).",
        ),
    ],
)
def test_files_that_are_no_scores_are_refused_in_words(
    name: str, text: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        Path(name).write_text(text)
    elif name.endswith(".npy"):
        np.save(name, np.zeros((300, 5)))
    assert evaluate("--incomplete", scores=name) == 1
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("true")
@pytest.mark.parametrize(
    ("words", "unlisted", "message"),
    [
        (["--incomplete"], "absent", "Say --unlisted unknown."),
        (["--incomplete", "--fit"], "unknown", "--fit needs complete labels"),
    ],
)
def test_what_does_not_go_together_is_said(
    words: list[str], unlisted: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*words, unlisted=unlisted) == 2
    assert message in capsys.readouterr().err
