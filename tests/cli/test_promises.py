"""``queue --for promise`` and ``predict --promise``: from questions to tags with a guarantee."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hilltop.cli.main import main
from hilltop.cli.promises import Asked, Scored
from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError

Array = npt.NDArray[Any]
CLASSES = tuple("abcdef")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array, set[Any]]:
    """Scores and true labels of 300 images, 40% of which were recorded in labels.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = 1 / (1 + np.exp(-rng.normal(-2, 2, (300, 6))))
    true = rng.random(scores.shape) < scores
    labels = true & (rng.random(true.shape) < 0.4)
    names = [f"{row}.jpg" for row in range(300)]
    ScoreTable(pa.array(names), CLASSES, scores).save("scores.npy")
    lines = ["image,label", *(f"{names[i]},{CLASSES[j]}" for i, j in np.argwhere(labels))]
    lines += [f"{name}," for name, one in zip(names, labels, strict=True) if not one.any()]
    Path("labels.csv").write_text("\n".join(lines) + "\n")
    read = ["--image-column", "image", "--unlisted", "unknown"]
    assert main(["convert", "labels.csv", "labels.parquet", *read]) == 0
    return scores, true, {(names[i], CLASSES[j]) for i, j in np.argwhere(true)}


def answer(path: str, truth: set[Any], *, first: int | None = None) -> None:
    """Write answers into the lines of a plan, all or the first."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    with Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "answer"])
        writer.writeheader()
        for at, row in enumerate(rows):
            said = "yes" if (row["image"], row["class"]) in truth else "no"
            writer.writerow(row | {"answer": said if first is None or at < first else ""})


def recall_of(path: str, true: Array) -> float:
    with Path(path).open(newline="") as file:
        tags = {row["file"]: row["tags"].split(";") for row in csv.DictReader(file)}
    hits = sum(
        true[int(name[:-4]), CLASSES.index(tag)] for name in tags for tag in tags[name] if tag
    )
    return float(hits / true.sum())


def test_without_answers_no_tags_are_written(made: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["predict", "scores.npy", "--promise", "recall=0.8", "--out", "tags.csv"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert "No promise is possible without answers" in said.out
    assert "The model expects a recall of 0.8" in said.out
    assert "more answers would" in said.out
    assert "hilltop queue scores.npy --for promise" in said.err
    assert not Path("tags.csv").exists()


@pytest.mark.parametrize("labels", [[], ["--labels", "labels.parquet"]])
def test_from_questions_to_tags_and_on_to_other_images(
    made: Any, labels: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scores, true, truth = made
    goal = ["--promise", "recall=0.8", *labels]
    ask = ["queue", "scores.npy", "--for", "promise", *goal, "--number"]
    assert main([*ask, "150", "--out", "one.csv"]) == 0
    answer("one.csv", truth)
    assert main([*ask, "150", "--answers", "one.csv", "--out", "two.csv"]) == 0
    answer("two.csv", truth)
    first, second = (
        {tuple(line.split(",")[:2]) for line in Path(name).read_text().splitlines()[1:]}
        for name in ("one.csv", "two.csv")
    )
    assert not first & second
    capsys.readouterr()
    words = ["predict", "scores.npy", *goal, "--confidence", "0.9", "--answers", "one.csv"]
    words += ["two.csv", "--out", "tags.csv", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["promise"]
    assert found["answers"] == 300
    assert found["exact"]
    assert recall_of("tags.csv", true) >= 0.8
    kept = json.loads(Path("tags.csv.promise.json").read_text())
    assert kept["threshold"] == found["threshold"]
    assert set(kept["by_class"]) <= set(CLASSES)
    if labels:
        return
    names = pa.array([f"new{row}.jpg" for row in range(200)])
    ScoreTable(names, CLASSES, scores[:200] ** 0.2).save("new.npy")
    words = ["predict", "new.npy", "--promise", "tags.csv.promise.json", "--out", "new.csv"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "not like those that were asked about" in said.out + said.err
    assert Path("new.csv").is_file()


def test_whole_images_precision_and_false_discovery(
    made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _, true, truth = made
    each = ["--per", "image", "--promise", "recall=0.8"]
    assert main(["queue", "scores.npy", "--for", "promise", *each, "--out", "i.csv"]) == 0
    answer("i.csv", truth)
    assert main(["predict", "scores.npy", *each, "--answers", "i.csv", "--out", "i_tags.csv"]) == 0
    assert recall_of("i_tags.csv", true) > 0.7
    ask = ["queue", "scores.npy", "--for", "promise", "--promise", "precision=0.6"]
    assert main([*ask, "--number", "400", "--out", "p.csv"]) == 0
    answer("p.csv", truth)
    thresholds = []
    for goal in ("precision=0.6", "false-discovery=0.4"):
        out = f"{goal}.csv"
        words = ["predict", "scores.npy", "--promise", goal, "--answers", "p.csv", "--out", out]
        assert main(words) == 0
        thresholds.append(json.loads(Path(f"{out}.promise.json").read_text())["threshold"])
    assert thresholds[0] == thresholds[1]
    capsys.readouterr()


def test_half_a_plan_counts_and_wrong_words_are_told(
    made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, truth = made
    words = ["queue", "scores.npy", "--for", "promise", "--number", "400", "--out", "ask.csv"]
    assert main(words) == 0
    answer("ask.csv", truth, first=200)
    more = ["--answers", "ask.csv", "--promise", "recall=0.9", "--out", "tags.csv"]
    assert main(["predict", "scores.npy", *more]) == 0
    assert "200 answers" in capsys.readouterr().out
    for wrong in (
        ["--promise", "recall"],
        ["--promise", "f1=0.9"],
        ["--promise", "recall=1.5"],
        ["--promise", "recall=0.9", "--top", "3"],
        ["--promise", "recall=0.9", "--confidence", "0.2"],
        ["--answers", "ask.csv"],
    ):
        assert main(["predict", "scores.npy", *wrong, "--out", "x.csv"]) in (1, 2), wrong
        assert "Traceback" not in capsys.readouterr().err
        assert not Path("x.csv").exists()
    assert main(["predict", "scores.npy", *more, "--force", "--over", "these"]) == 0
    moved = ["--promise", "tags.csv.promise.json", "--out", "other.csv"]
    assert main(["predict", "scores.npy", *moved]) == 2
    assert "alone" in capsys.readouterr().err


def test_an_audit_and_the_answers_of_its_page(
    made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _, true, truth = made
    audit = ["audit", "--labels", "labels.csv", "--unlisted", "unknown", "--scores", "scores.npy"]
    assert main([*audit, "--image-column", "image", "--out", "audit"]) == 0
    goal = ["--promise", "recall=0.8"]
    assert main(["queue", "audit", "--for", "promise", *goal, "--out", "ask.csv"]) == 0
    from hilltop.audit.folder import AuditFolder
    from hilltop.audit.review.queues import keep_plan

    keep_plan(AuditFolder.read(Path("audit")), Path("ask.csv"))
    answer("ask.csv", truth)
    assert main(["review", "audit", "--import", "ask.csv"]) == 0
    words = ["predict", "audit", *goal, "--answers", "audit", "--out", "tags.csv"]
    assert main(words) == 0
    assert "for these 300 images" in capsys.readouterr().out
    assert recall_of("tags.csv", true) >= 0.8
    assert main([*words, "--force", "--over", "new"]) == 2


def test_images_that_the_run_learned_from_promise_nothing_of_new_ones() -> None:
    scores = ScoreTable(pa.array([f"{row}.jpg" for row in range(40)]), ("a",), np.ones((40, 1)))
    nothing = np.zeros((40, 1), dtype=bool)
    scored = Scored(scores, nothing, nothing, learned=2)
    asked = Asked("recall", 0.9, 0.9, "new", "pair", 0)
    with pytest.raises(ArgumentError, match=r"learned from 2 of these 40 images.*--over these"):
        asked.test(scored)
    assert replace(asked, over="these").test(scored).images == 40
