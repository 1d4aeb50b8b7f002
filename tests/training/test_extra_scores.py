"""Training with scores of another model: they find missing labels, and shuffled ones do no harm."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from hilltop.cli.main import main
from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.losses import LabelStats
from hilltop.losses.methods.auto import auto
from hilltop.metrics import classification_report
from hilltop.training import RunFolder
from hilltop.training.calibration import load_truth, score_logits
from hilltop.training.folds import CrossValidation
from hilltop.training.heads import FoldEvidence, KnownLabels, tell_loss
from hilltop.training.recipe import HEADS

ROWS, CLASSES = 3000, ("ant", "bee", "cat")


@pytest.fixture(scope="module")
def parts() -> dict[str, Tensor]:
    """Two halves of what decides, each seen by one model; half of the labels are lost."""
    generator = torch.Generator().manual_seed(0)
    seen, other = 3 * torch.randn(2, ROWS, len(CLASSES), generator=generator)
    true = torch.rand(seen.shape, generator=generator) < torch.sigmoid(seen + other - 4)
    kept = true & (torch.rand(seen.shape, generator=generator) < 0.5)
    order = torch.randperm(ROWS, generator=generator)
    return {"seen": seen, "other": other, "true": true, "kept": kept, "shuffled": other[order]}


def masked(parts: dict[str, Tensor], extra: Tensor | None) -> Tensor:
    """The entries that auto leaves out, told of scores of its own and of another model."""
    loss, targets = auto(), parts["kept"].float()
    heads = CrossValidation(0.6 * parts["seen"] - 3, HEADS)
    stats = LabelStats.of(targets)
    known = KnownLabels(targets)
    tell_loss(loss, stats, FoldEvidence.fit(heads, known, extra_scores=extra), known)
    if loss.correction is None:
        return torch.zeros_like(parts["kept"])
    return next(iter(loss.correction.buffers())) == 0


def test_auto_leaves_out_more_missing_labels_and_as_few_absent_ones(
    parts: dict[str, Tensor],
) -> None:
    missing = parts["true"] & ~parts["kept"]
    alone, helped = masked(parts, None), masked(parts, parts["other"])
    assert helped[missing].float().mean() > 2 * alone[missing].float().mean() + 0.1
    assert missing[helped].float().mean() > 0.75
    shuffled = masked(parts, parts["shuffled"])
    assert (shuffled ^ alone).float().mean() < 0.005


@pytest.fixture(scope="module")
def folder(parts: dict[str, Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extra")
    ids = [f"{row:04}" for row in range(ROWS)]
    for name in ("true", "kept"):
        rows, columns = np.nonzero(parts[name].numpy())
        unlisted = State.ABSENT if name == "true" else State.UNKNOWN
        present = np.full(len(rows), State.PRESENT, dtype=np.int8)
        table = LabelTable.from_coo(ids, CLASSES, rows, columns, present, unlisted=unlisted)
        chosen = slice(2000) if name == "kept" else slice(2000, ROWS)
        write_labels(table.select(np.arange(ROWS)[chosen]), folder / f"{name}.parquet")
    np.savez(folder / "features.npz", ids=ids, X=parts["seen"].numpy())
    theirs = torch.sigmoid(parts["other"]).numpy()
    np.savez(folder / "extra.npz", ids=ids, classes=["Ameise", "bee", "cat"], scores=theirs)
    (folder / "names.csv").write_text("Ameise,ant\n")
    return folder


def train(folder: Path, out: Path, *more: object) -> str:
    words = ["train", folder / "kept.parquet", "--val-labels", folder / "true.parquet"]
    words += ["--features", folder / "features.npz", "--out", out, "--no-report", *more]
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        main([str(word) for word in words])
    return said.getvalue()


def test_a_run_takes_them_and_decides_by_its_own_scores(folder: Path, tmp_path: Path) -> None:
    more = ["--extra-scores", folder / "extra.npz", "--extra-names", folder / "names.csv"]
    said = train(folder, tmp_path / "run", *more)
    assert "count for 3 of 3 classes" in said
    run = RunFolder(tmp_path / "run")
    model = load_truth(run, "last")
    assert model is not None
    # It was fitted to scores of both models, and its probabilities are of the run's own alone.
    scores = ScoreTable.load(run.last_scores)
    probs = model.probs(score_logits(torch.from_numpy(np.array(scores.values)))).double()
    truth = read_labels(folder / "true.parquet").eval_targets()
    report = classification_report(probs, truth, model.thresholds().thresholds)
    assert 0.9 * _best_f1(probs.numpy(), truth) < report.OF1
    assert probs.sum().item() == pytest.approx((truth == 1).sum(), rel=0.3)


def test_faulty_files_are_told_before_training(folder: Path, tmp_path: Path) -> None:
    for more, word in (
        (["--extra-names", folder / "names.csv"], "extra_names belongs to extra_scores"),
        (["--extra-scores", folder / "none.npz"], "there is no file"),
        (["--extra-scores", folder / "features.npz"], "classes"),
    ):
        assert word in train(folder, tmp_path / "none", *more)
        assert not (tmp_path / "none").exists()


def _best_f1(probs: npt.NDArray[np.float64], truth: npt.NDArray[np.float32]) -> float:
    cuts = np.quantile(probs, np.linspace(0.5, 0.99, 50))
    return max(classification_report(probs, truth, float(cut)).OF1 for cut in cuts)
