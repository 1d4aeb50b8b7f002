"""How long does it take to train a head on features, until it is as good as scikit-learn's?

One-vs-rest logistic regression is fitted once; its mAP on held-out images is the mark. A plain
PyTorch loop and ``hilltop train`` are timed until the epoch that reaches it; ours includes reading
and writing the run folder. Generated features by default: 40% of the training labels are left, the
held-out images have all of theirs. Run it with: python benchmarks/training.py [--quick] [--save]
    [--features FILE --labels FILE --val-labels FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from hilltop.data import LabelTable, State, drop_positives, read_labels, write_labels
from hilltop.inputs.features import read_features
from hilltop.metrics import average_precision
from hilltop.training import TrainConfig, train
from results import finish, parser
from timing import Row

QUESTION = "training to one mAP"
BASELINE = "scikit-learn one-vs-rest"
PENALTY = 0.01  # of scikit-learn; its own 1 gives 41.4 instead of 51.6 mAP on features of COCO
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """Files for us, arrays for the others; all with the same images and classes."""

    features: Path
    labels: Path
    val_labels: Path
    inputs: Floats
    targets: Flags
    val_inputs: Floats
    val_targets: Flags

    @property
    def size(self) -> str:
        """Images, features and classes."""
        return "x".join(map(str, (*self.inputs.shape, self.targets.shape[1])))

    def mean_precision(self, scores: Floats) -> float:
        """Mean average precision on the held-out images, over classes with labels there."""
        some = self.val_targets.any(axis=0)
        found = average_precision(scores[:, some], self.val_targets[:, some].astype(np.uint8))
        return float(np.mean(found))


def generate(folder: Path, images: int, inputs: int, classes: int) -> Problem:
    """Features in which every class has a direction of its own, under noise."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0.1, 0.01, classes)
    true = rng.random((images, classes)) < shares
    directions = rng.standard_normal((classes, inputs)) / np.sqrt(inputs)
    noise = rng.standard_normal((images, inputs))
    values = (3.0 * true @ directions + 0.8 * noise).astype(np.float32)
    ids = np.array([f"{number:06}" for number in range(images)])
    np.savez(folder / "features.npz", ids=ids, X=values)
    edge = images * 3 // 4
    labels = {"train": table_of(ids[:edge], true[:edge]), "val": table_of(ids[edge:], true[edge:])}
    labels["train"] = drop_positives(labels["train"], "0.8", seed=0).table
    for name, table in labels.items():
        write_labels(table, folder / f"{name}.parquet")
    return problem(*(folder / name for name in ("features.npz", "train.parquet", "val.parquet")))


def table_of(ids: npt.NDArray[np.str_], true: Flags) -> LabelTable:
    """Labels as a table in which all else is unknown."""
    rows, columns = np.nonzero(true)
    names = [f"c{column:03}" for column in range(true.shape[1])]
    return LabelTable.from_coo(
        pa.array(ids), names, rows, columns, State.PRESENT, unlisted=State.UNKNOWN
    )


def problem(features: Path, labels: Path, val_labels: Path) -> Problem:
    """Read the files as everybody but us needs them."""
    known, train_table = read_features(features), read_labels(labels)
    val_table = read_labels(val_labels).with_classes(train_table.classes)
    arrays = []
    for table in (train_table, val_table):
        arrays.append(known.values[known.rows_of(table.images)].astype(np.float32))
        arrays.append(table.dense() == State.PRESENT)
    return Problem(features, labels, val_labels, *arrays)


def with_sklearn(task: Problem) -> tuple[float, float]:
    """Seconds, and mAP."""
    start = time.perf_counter()
    single = LogisticRegression(C=PENALTY, max_iter=200)
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(single))
    model.fit(task.inputs, task.targets)
    seconds = time.perf_counter() - start
    return seconds, task.mean_precision(model.predict_proba(task.val_inputs).astype(np.float32))


def with_torch(task: Problem, mark: float, epochs: int = 60) -> tuple[float, float]:
    """Seconds of training until the mark, and the best mAP up to there."""
    torch.manual_seed(0)
    mean, spread = task.inputs.mean(axis=0), task.inputs.std(axis=0) + 1e-6
    inputs, held_out = (
        torch.from_numpy((part - mean) / spread) for part in (task.inputs, task.val_inputs)
    )
    targets = torch.from_numpy(task.targets).float()
    head, criterion = nn.Linear(inputs.shape[1], targets.shape[1]), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    seconds = best = 0.0
    for _ in range(epochs):
        start = time.perf_counter()
        for rows in torch.randperm(len(inputs)).split(128):
            optimizer.zero_grad()
            criterion(head(inputs[rows]), targets[rows]).backward()
            optimizer.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            best = max(best, task.mean_precision(head(held_out).numpy()))
        if best >= mark:
            break
    return seconds, best


def with_hilltop(task: Problem, mark: float, loss: str) -> tuple[float, float]:
    """Seconds from the call to the epoch that reaches the mark, and the best mAP of the run."""
    config = TrainConfig(
        labels=task.labels,
        val_labels=task.val_labels,
        features=task.features,
        loss=loss,
        report=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        with contextlib.redirect_stdout(io.StringIO()):
            out = train(config, Path(folder, "run"))
        lines = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    epochs = [line for line in lines if line["event"] == "epoch"]
    reached = [line for line in epochs if line["mAP"] >= mark] or epochs[-1:]
    return reached[0]["time"] - start, max(line["mAP"] for line in epochs)


def measure(task: Problem) -> list[Row]:
    """Time all of them once; a run takes long enough to be told apart."""
    base, mark = with_sklearn(task)
    found = {BASELINE: (base, mark), "PyTorch loop, BCE": with_torch(task, mark)}
    for loss in ("hill", "auto"):
        found[f"hilltop train, {loss}"] = with_hilltop(task, mark, loss)
    rows = []
    for name, (seconds, best) in found.items():
        note = f"mAP {100 * best:.2f}" if best >= mark else f"not reached: mAP {100 * best:.2f}"
        ratio = round(seconds / base, 4)
        times = round(1e3 * seconds, 1), round(1e3 * base, 1)
        rows.append(Row(QUESTION, task.size, name, BASELINE, *times, *[ratio] * 3, note=note))
    return rows


def main() -> None:
    """Measure on generated features, or on those of a file."""
    made = parser(__doc__)
    for name in ("--features", "--labels", "--val-labels"):
        made.add_argument(name, type=Path, help="all three, or none of them")
    options: argparse.Namespace = made.parse_args()
    given = [options.features, options.labels, options.val_labels]
    if any(given) and not all(given):
        made.error("give --features, --labels and --val-labels together.")
    with tempfile.TemporaryDirectory() as folder:
        if all(given):
            task = problem(*given)
        else:
            task = generate(Path(folder), *((800, 32, 10) if options.quick else (8_000, 512, 80)))
        rows = measure(task)
    finish(rows, options, ["torch", "scikit-learn"])


if __name__ == "__main__":
    main()
