"""The whole loop by command: audit, queue, answers in a table, apply, train with what was said."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hilltop.cli.main import main
from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.training.run_folder import RunFolder
from tests.audit.simulated import Simulated, simulate

NUMBER = 60
READ = ("--unlisted", "unknown")


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    return simulate(200, 4)


def write_file(table: LabelTable, path: Path, kind: str) -> None:
    """Write positives alone: with zeros elsewhere, or as a list of names."""
    if kind == "list_column":
        write_labels(table, path, format=kind, lossy=True)
        return
    present = (table.dense() == State.PRESENT).astype(int)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", *table.classes])
        for name, row in zip(table.images.to_pylist(), present, strict=True):
            writer.writerow([name, *row.tolist()])


def answer_truthfully(simulated: Simulated, queue: Path, out: Path) -> dict[tuple[str, str], bool]:
    """Add the column ``answer`` to a queue, and return what it says."""
    with queue.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table, said = simulated.labels, {}
    for row in rows:
        at = table.find([row["image"]])[0], table.classes.index(row["class"])
        said[row["image"], row["class"]] = bool(simulated.true[at] == 1)
        row["answer"] = "yes" if simulated.true[at] == 1 else "no"
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return said


@pytest.mark.parametrize("kind", ["zeros", "list_column"])
def test_training_on_what_apply_wrote_knows_every_answer_without_further_options(
    simulated: Simulated, tmp_path: Path, kind: str
) -> None:
    labels, queue, answers, corrected, audit, run = (
        tmp_path / name
        for name in ("labels.csv", "queue.csv", "answers.csv", "corrected.csv", "audit", "run")
    )
    write_file(simulated.labels, labels, kind)
    features = ("--features", str(simulated.save_features(tmp_path / "features.npz")))
    words = ["--labels", str(labels), *features, *READ, "--out", str(audit)]
    assert main(["audit", *words]) == 0
    asked = ["--for", "model", "--number", str(NUMBER), "--out", str(queue)]
    assert main(["queue", str(audit), *asked]) == 0
    said = answer_truthfully(simulated, queue, answers)
    assert len(said) == NUMBER
    assert set(said.values()) == {True, False}
    assert main(["review", str(audit), "--import", str(answers)]) == 0
    assert main(["apply", str(audit), "--out", str(corrected)]) == 0
    words = ["--labels", str(corrected), *features, *READ, "--out", str(run), "--epochs", "1"]
    assert main(["train", *words, "--val-share", "0.2"]) == 0
    learned = read_labels(RunFolder(run).train_labels)
    states = learned.dense()
    row_of = {name: row for row, name in enumerate(learned.images.to_pylist())}
    seen = [
        (states[row_of[image], learned.classes.index(name)], there)
        for (image, name), there in said.items()
        if image in row_of
    ]
    assert len(seen) > NUMBER / 2
    assert all(state == (State.PRESENT if there else State.ABSENT) for state, there in seen)
    before = simulated.labels.select(simulated.labels.find(learned.images)).dense()
    assert (states != np.where(before == State.PRESENT, State.PRESENT, State.UNKNOWN)).sum() == len(
        seen
    )
