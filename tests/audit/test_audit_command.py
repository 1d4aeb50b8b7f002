from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.apply import apply_changes, verdicts
from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import read_estimates
from hilltop.audit.find.score_blocks import Scored
from hilltop.audit.folder import AuditFolder
from hilltop.audit.run import audit, fold_logits
from hilltop.cli.main import main
from hilltop.data import LabelTable, State, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.inputs.features import read_features
from hilltop.losses import build, init_head
from hilltop.models import FeatureHead
from hilltop.training.learner import build_optimizer
from hilltop.training.task import training_batch
from tests.audit.simulated import Simulated, average_precision, simulate


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    return simulate(images=400)


@pytest.fixture
def labels(simulated: Simulated, tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    write_labels(simulated.labels, path, format="list_column", lossy=True)
    return path


def run(labels: Path, out: Path, *words: str | Path) -> int:
    given = ["audit", "--labels", labels, "--unlisted", "unknown", "--out", out, *words]
    return main([str(word) for word in given])


def answer(folder: AuditFolder, simulated: Simulated, column: int, count: int) -> None:
    """Answer the first pairs of a class's random sample truthfully."""
    table = folder.table()
    index = CandidateIndex.read(folder, table)
    rows = index.class_rows(column)[index.sample_order(column)[:count]]
    store = DecisionStore(folder.decisions)
    truth = simulated.true[simulated.labels.find(table.images.take(rows)), :]
    original = simulated.labels.classes.index(table.classes[column])
    store.add(
        [
            Answer(
                f"e{column}-{row}",
                f"a{column}-{row}",
                "Ann",
                "2026-01-31T12:00:00+00:00",
                table.images[int(row)].as_py(),
                table.classes[column],
                "present" if present else "absent",
                "random",
                0.5,
            )
            for row, present in zip(rows, truth[:, original].tolist(), strict=True)
        ]
    )
    store.close()


def test_features_become_an_audit_that_can_be_reviewed(
    simulated: Simulated, labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features = simulated.save_features(tmp_path / "features.npz")
    assert run(labels, tmp_path / "audit", "--features", features) == 0
    said = capsys.readouterr().out
    assert "on 400 images, none on its own fold" in said
    assert "of the true labels were recorded" in said
    assert "Classes with most missing labels" in said
    assert f"next: hilltop review {tmp_path / 'audit'}" in said
    folder = AuditFolder.read(tmp_path / "audit")
    table = folder.table()
    index = CandidateIndex.read(folder, table)
    assert (folder.format, folder.images_total) == ("list_column", 400)
    assert len(index) == table.count(State.UNKNOWN)
    estimates = read_estimates(tmp_path / "audit" / "estimates.csv")
    assert [one.class_name for one in estimates] == list(table.classes)
    assert all(one.missing.low <= one.missing.value <= one.missing.high for one in estimates)
    about = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert 0 < about["missing"]["low"] < about["missing"]["value"] < about["missing"]["high"]


def test_scores_are_ranked_as_they_are(
    simulated: Simulated, labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.random.default_rng(0).random((400, 6)).astype(np.float32)
    ScoreTable(simulated.labels.images, simulated.labels.classes, values).save(tmp_path / "s.npy")
    words = ("--scores", tmp_path / "s.npy", "--top", "7", "--loss", "scar_likelihood")
    assert run(labels, tmp_path / "audit", *words, "--keep", "0.4") == 0
    said = capsys.readouterr().out
    assert "did not learn from these labels" in said
    assert "40% of the true labels were recorded" in said
    folder = AuditFolder.read(tmp_path / "audit")
    assert len(CandidateIndex.read(folder, folder.table())) == 7


def test_a_reviewed_sample_joins_the_estimates_and_survives_another_audit(
    simulated: Simulated, labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features = simulated.save_features(tmp_path / "features.npz")
    out = tmp_path / "audit"
    assert run(labels, out, "--features", features) == 0
    assert main(["estimate", str(out)]) == 0
    assert "no random sample was reviewed yet" in capsys.readouterr().out
    folder = AuditFolder.read(out)
    answer(folder, simulated, 0, 60)
    assert main(["estimate", str(out)]) == 0
    said = capsys.readouterr().out
    assert "random samples (60 pairs, 1 class):" in said
    assert "random samples (" in said
    before = out.joinpath("candidates.csv").read_bytes()
    assert run(labels, out, "--features", features) == 2
    refused = capsys.readouterr().err
    assert f"{out} holds 60 answers of people. Pass --update" in refused
    assert out.joinpath("candidates.csv").read_bytes() == before
    assert run(labels, out, "--features", features, "--update") == 0
    by_sample = [one for one in read_estimates(out / "estimates.csv") if one.source == "sample"]
    name = folder.table().classes[0]
    assert [one.class_name for one in by_sample] == [name]
    column = simulated.labels.classes.index(name)
    assert (
        by_sample[0].missing.low <= simulated.missing[:, column].sum() <= by_sample[0].missing.high
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give --features, --images or --scores"),
        (("--features", "f.npz", "--scores", "s.npy"), "Give one of --features and --scores"),
        (("--images", "."), "Pass --weights timm (fetched once from the hub) or --weights FILE"),
        (("--features", "f.npz", "--loss", "hil"), "--loss must be one of 'auto'"),
        (
            ("--features", "f.npz", "--missing-ratio", "0.5"),
            "--missing-ratio belongs to --loss count_likelihood",
        ),
        (("--features", "f.npz", "--top", "0"), "--top must be at least 1, but got 0"),
        (("--features", "f.npz", "--folds", "1"), "--folds must be at least 2, but got 1"),
    ],
)
def test_wrong_usage_is_told_in_words(
    labels: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(labels, tmp_path / "audit", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize("fault", ["complete", "extra scores", "memory"])
def test_faults_are_said_before_heads_are_trained(
    simulated: Simulated,
    labels: Path,
    tmp_path: Path,
    fault: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = np.array(simulated.labels.images.to_pylist())
    np.savez(tmp_path / "f.npz", ids=ids, X=simulated.features.numpy())
    words = ["--features", str(tmp_path / "f.npz")]
    words += ["--extra-scores", str(tmp_path / "other.npz")]
    message = "other.npz: there is no such file"
    if fault == "complete":
        words, message = words[:2], "No pair is unknown"
        shape = len(simulated.labels), len(simulated.labels.classes)
        names = simulated.labels.images, simulated.labels.classes
        every = LabelTable.from_coo(
            *names, *np.indices(shape).reshape(2, -1), State.PRESENT, unlisted=State.UNKNOWN
        )
        labels = tmp_path / "labels.parquet"
        write_labels(every, labels, format="hilltop")
    elif fault == "memory":
        monkeypatch.setattr("hilltop.cli.audit._COMBINED_BYTES", 1 << 50)
        message = "GiB of memory"
    assert run(labels, tmp_path / "audit", *words) == 1
    told = capsys.readouterr()
    assert message in told.err
    assert "training" not in told.out
    assert not (tmp_path / "audit").exists()


def test_a_folder_with_other_files_is_left_alone(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(labels, tmp_path, "--features", "f.npz") == 1
    assert "this folder holds other files, such as 'labels.csv'" in capsys.readouterr().err


@pytest.fixture
def by_backbone(tmp_path: Path) -> list[str]:
    """Options that name a small backbone."""
    timm = pytest.importorskip("timm")
    weights = tmp_path / "weights.pth"
    torch.manual_seed(0)
    torch.save(timm.create_model("test_resnet", num_classes=7).state_dict(), weights)
    named = ["--backbone", "test_resnet", "--weights", str(weights)]
    return [*named, "--image-size", "64", "--workers", "0", "--page", "5"]


def test_images_are_scored_by_a_backbone_whose_features_are_kept(
    drawn: Path, tmp_path: Path, by_backbone: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--images", drawn / "images", *by_backbone)
    out = tmp_path / "audit"
    assert run(drawn / "thinned.csv", out, *words) == 0
    first = capsys.readouterr().out
    assert len(read_features(out / "features.npz").images) == 60
    assert "review.html: 5 pairs" in first
    assert (out / "review.html").stat().st_size > 10_000
    before = (out / "candidates.csv").read_text()
    assert run(drawn / "thinned.csv", out, *words) == 0
    assert f"taken from {out / 'features.npz'}" in capsys.readouterr().out
    assert (out / "candidates.csv").read_text() == before


def test_a_broken_image_stops_the_audit_unless_it_is_left_out(
    drawn: Path, tmp_path: Path, by_backbone: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    images, out = tmp_path / "images", tmp_path / "audit"
    shutil.copytree(drawn / "images", images)
    names = sorted(file.name for file in images.iterdir())
    (images / names[3]).write_bytes(b"no picture")
    words = ("--images", images, *by_backbone)
    assert run(drawn / "thinned.csv", out, *words) == 1
    assert names[3] in capsys.readouterr().err
    assert not (out / "audit.json").exists()
    assert run(drawn / "thinned.csv", out, *words, "--skip-broken") == 0
    assert f"left out: {images / names[3]}: " in capsys.readouterr().out
    folder = AuditFolder.read(out)
    table = folder.table()
    assert table.images.to_pylist() == names, "its labels stay"
    ranked = {table.images[int(row)].as_py() for row in CandidateIndex.read(folder, table).images()}
    assert ranked == {*names} - {names[3]}
    assert run(drawn / "thinned.csv", out, *words, "--skip-broken") == 0
    assert "features: 59 images, taken from" in capsys.readouterr().out
    assert run(drawn / "thinned.csv", out, *words) == 1  # nobody said that it may be left out


def test_an_audit_without_a_readable_image_ends_in_words(
    drawn: Path, tmp_path: Path, by_backbone: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for file in (drawn / "images").iterdir():
        (images / file.name).write_bytes(b"no picture")
    words = ("--images", images, *by_backbone, "--skip-broken")
    assert run(drawn / "thinned.csv", tmp_path / "audit", *words) == 1
    assert f"{images}: no image here could be read" in capsys.readouterr().err


def train_again(simulated: Simulated, table: LabelTable, unseen: Simulated) -> float:
    """The mAP on unseen images of a head trained on a table with its confirmed pairs."""
    targets, observed = training_batch(table, np.arange(len(table)))
    loss = build("scar_likelihood", label_frequency=0.5, reduction="sum")
    head = FeatureHead(simulated.features.shape[1], targets.shape[1], hidden=None)
    head.fit_scale(simulated.features)
    init_head(head, loss, targets, verified=observed)
    optimizer = build_optimizer(head, loss, learning_rate=0.02, weight_decay=0.0)
    for _ in range(150):
        optimizer.zero_grad()
        loss(head(simulated.features), targets, verified=observed).backward()
        optimizer.step()
    with torch.no_grad():
        scores = head(unseen.features).numpy()
    columns = range(scores.shape[1])
    return float(
        np.mean([average_precision(scores[:, c], unseen.true[:, c] == 1) for c in columns])
    )


def reviewed(known: Simulated, rows: list[int], columns: list[int]) -> LabelTable:
    """The labels after somebody answered these pairs truthfully."""
    table, answers = known.labels, Answers()
    for number, (row, column) in enumerate(zip(rows, columns, strict=True)):
        word = "present" if known.true[row, column] else "absent"
        image, name = table.images[row].as_py(), table.classes[column]
        answers.take(
            Answer(f"e{number}", f"a{number}", "Ann", "", image, name, word, "ranked", 0.5)
        )
    return apply_changes(table, verdicts(table, answers).changes)


@pytest.mark.slow
def test_reviewing_the_first_candidates_raises_map_faster_than_reviewing_at_random() -> None:
    by_rank, at_random = [], []
    for seed in range(4):
        everything = simulate(images=2800, width=16, keep=0.3, shift=-7.0, seed=seed)
        known, unseen = everything.part(slice(800)), everything.part(slice(800, None))
        rows = np.arange(800)
        logits = fold_logits(
            known.labels, known.features, rows, folds=4, seed=0, say=lambda _: None
        )
        ranked = audit(known.labels, Scored(logits, rows))
        places = (ranked.candidates.rows(), ranked.candidates.columns())
        mixed = np.random.default_rng(seed).permutation(len(ranked.candidates))
        for order, found in ((np.arange(len(mixed)), by_rank), (mixed, at_random)):
            steps = [[place[order[:pairs]].tolist() for place in places] for pairs in (0, 100, 300)]
            tables = [reviewed(known, chosen, columns) for chosen, columns in steps]
            found.append([train_again(known, table, unseen) for table in tables])
    ranked_map, random_map = np.mean(by_rank, axis=0), np.mean(at_random, axis=0)
    print(ranked_map, random_map)
    assert ranked_map[0] < ranked_map[1] < ranked_map[2]
    assert (ranked_map[1:] > random_map[1:] + 0.01).all()
