"""Labels that a review has put back: an audit of the corrected file is not misled by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from hilltop.audit.api import find_missing_labels
from hilltop.audit.decisions.apply import apply_decisions
from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.find.estimate import read_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.review_record import (
    PROVENANCE_COLUMNS,
    Outcome,
    ReviewRecord,
    before_review,
    provenance_path,
    read_provenance,
    with_answers,
    write_provenance,
)
from hilltop.errors import AmbiguousInputError, DataError
from hilltop.training.run_folder import RunFolder
from tests.audit.simulated import Simulated, simulate


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    return simulate(800, 6)


def put_back(simulated: Simulated, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels after the first candidates were answered truthfully, and which those are."""
    found = find_missing_labels(simulated.targets, features=simulated.features, top=number)
    seen = np.zeros(simulated.targets.shape, dtype=bool)
    seen[found.candidates.rows(), found.candidates.columns()] = True
    return np.where(seen, simulated.true.numpy(), simulated.targets.numpy()), seen


def test_what_is_still_missing_after_a_review_is_found(simulated: Simulated) -> None:
    labels, seen = put_back(simulated, 350)
    missing = ((simulated.true.numpy() == 1) & (labels == 0)).sum()
    assert missing < 0.8 * simulated.missing.sum()
    found = find_missing_labels(labels, features=simulated.features, verified=seen)
    assert 0.6 * missing < found.missing.value < 1.6 * missing
    # What the review took is gone from where labels are expected: it seems that none was lost.
    misled = find_missing_labels(labels, features=simulated.features)
    assert misled.missing.value < 0.5 * missing


def row(image: str, name: str, outcome: Outcome) -> ReviewRecord:
    time = "2026-01-31T12:00:00+00:00"
    answer = "unsure" if outcome == "disputed" else outcome
    return ReviewRecord(image, name, answer, "Ann", time, 0.9, "ranked", outcome)


def test_what_a_review_settled_was_unknown_before() -> None:
    states = [State.PRESENT, State.PRESENT, State.ABSENT]
    table = LabelTable.from_coo(
        ["a", "b"], ["x", "y"], [0, 0, 1], [0, 1, 0], states, unlisted=State.UNKNOWN
    )
    rows = [row("a", "y", "present"), row("b", "x", "absent"), row("b", "y", "disputed")]
    before = before_review(table, [*rows, row("c", "x", "present"), row("b", "z", "absent")])
    assert before is not None
    assert before.dense().tolist() == [[State.PRESENT, State.UNKNOWN], [State.UNKNOWN] * 2]
    assert before_review(table, []) is None
    everything = [row("a", "x", "present"), row("a", "y", "present")]
    assert before_review(table, everything) is None


def test_what_a_review_rejected_is_absent_where_the_file_cannot_say_it() -> None:
    table = LabelTable.from_coo(
        ["a", "b"], ["x", "y"], [0, 1], [0, 1], State.PRESENT, unlisted=State.UNKNOWN
    )
    # Somebody has put b's y back since: the file holds.
    rows = [row("a", "y", "absent"), row("b", "y", "absent"), row("b", "x", "disputed")]
    after = with_answers(table, [*rows, row("c", "x", "absent"), row("b", "z", "absent")])
    assert after.dense().tolist() == [
        [State.PRESENT, State.ABSENT],
        [State.UNKNOWN, State.PRESENT],
    ]
    assert with_answers(table, rows[1:]) is table


def test_minus_one_is_absent_in_a_file_that_a_review_wrote(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("image,x,y\na,1,-1\nb,,1\n")
    with pytest.raises(AmbiguousInputError, match="--minus-one"):
        read_labels(labels, options=ReadOptions(unlisted="unknown"))
    provenance_path(labels).write_text(write_provenance([row("a", "y", "absent")]))
    table = read_labels(labels, options=ReadOptions(unlisted="unknown"))
    assert table.labels_of(0, State.ABSENT) == ("y",)
    told = ReadOptions(unlisted="unknown", minus_one="unknown")
    assert read_labels(labels, options=told).count(State.ABSENT) == 0


def test_answers_come_back_from_their_file_once(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    assert read_provenance(labels) == []
    rows = [row("b", "x", "present"), row("a, b", 'x"y', "absent")]
    provenance_path(labels).write_text(write_provenance([*rows, rows[0]]))
    assert read_provenance(labels) == [rows[1], rows[0]]


@pytest.mark.parametrize(
    "text", ["", "image,class\n", ",".join(PROVENANCE_COLUMNS) + "\na,b\n", "\0"]
)
def test_another_file_of_that_name_is_not_taken_for_answers(tmp_path: Path, text: str) -> None:
    labels = tmp_path / "labels.csv"
    provenance_path(labels).write_text(text)
    with pytest.raises(DataError, match=r"labels\.csv\.provenance\.csv.*: these are not the"):
        read_provenance(labels)


def review(simulated: Simulated, folder: AuditFolder, number: int) -> None:
    """Answer the first candidates truthfully."""
    first = pq.read_table(folder.candidates).slice(0, number).to_pylist()
    store = DecisionStore(folder.decisions)
    answers = []
    for at, one in enumerate(first):
        column = simulated.labels.classes.index(one["class"])
        there = simulated.true[simulated.labels.find([one["image"]])[0], column] == 1
        word = "present" if there else "absent"
        names = one["image"], one["class"]
        time = "2026-11-01T12:00:00+00:00"
        answers.append(Answer(f"e{at}", f"a{at}", "Ann", time, *names, word, "ranked", 0.5))
    store.add(answers)
    store.close()


def test_audit_review_apply_and_audit_again(
    simulated: Simulated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features = str(simulated.save_features(tmp_path / "features.npz"))
    write_labels(simulated.labels, tmp_path / "labels0.csv", format="list_column", lossy=True)
    for number in range(2):
        labels, out = tmp_path / f"labels{number}.csv", tmp_path / f"audit{number}"
        words = ["--unlisted", "unknown", "--features", features, "--out", str(out)]
        assert main(["audit", "--labels", str(labels), *words]) == 0
        said = capsys.readouterr().out
        assert ("judged without those that were put back" in said) == bool(number)
        folder = AuditFolder.read(out)
        review(simulated, folder, 175)
        apply_decisions(folder, tmp_path / f"labels{number + 1}.csv")
    assert len(read_provenance(tmp_path / "labels1.csv")) == 175
    assert len(read_provenance(tmp_path / "labels2.csv")) == 350  # those of both reviews
    estimates = read_estimates(tmp_path / "audit1" / "estimates.csv")
    labelled = sum(one.labelled for one in estimates)
    missing = float(simulated.true.sum()) - labelled
    assert 0.6 * missing < sum(one.missing.value for one in estimates) < 1.6 * missing


def test_training_asks_about_the_labels_that_were_there_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, features, run = (tmp_path / name for name in ("labels.csv", "features.npz", "run"))
    rng = np.random.default_rng(0)
    values = rng.standard_normal((400, 6))
    true = values @ rng.standard_normal((6, 3)) > 1
    names = [f"{number}.jpg" for number in range(400)]
    there = true & (rng.random(true.shape) < 0.4)
    again = np.argwhere(true & ~there)  # a review has put all of them back
    rows, columns = np.nonzero(true)
    table = LabelTable.from_coo(
        names, list("xyz"), rows, columns, State.PRESENT, unlisted=State.UNKNOWN
    )
    write_labels(table, labels, format="list_column", lossy=True)
    answers = [row(names[image], "xyz"[column], "present") for image, column in again]
    provenance_path(labels).write_text(write_provenance(answers))
    np.savez(features, ids=np.array(names), X=values)
    words = ["--labels", labels, "--val-labels", labels, "--allow-overlap"]
    words += ["--features", features, "--out", run]
    options = ["--unlisted", "unknown", "--epochs", "1"]
    assert main(["train", *map(str, words), *options]) == 0
    assert "of the true labels were recorded" in capsys.readouterr().out
    assert read_provenance(RunFolder(run).train_labels) == sorted(answers, key=ReviewRecord.format)
