"""What does it cost to train a head on features, and to audit its labels, in time of the processor?

Each way is a process of its own, and everything that it does counts: importing, reading, writing.

- scikit-learn: one-vs-rest logistic regression on standardised features, with the penalty that is
  best, and with all penalties that it was chosen from.
- a PyTorch loop: AdamW and a one-cycle schedule, batches of 128. Learning rate, weight decay and
  epochs are the best of twelve on the last quarter of the training rows, whose time does not count.
- ``hilltop train --loss bce`` and ``--loss auto``.
- cleanlab: the same loop on three quarters of the rows, four times, and cleanlab's ranking of the
  probabilities; and ``hilltop audit``. Where cleanlab is in another environment, ``--cleanlab``
  names its Python.

Training labels are incomplete, those of the held-out rows complete. Generated features by default;
``--features FILE --labels FILE --val-labels FILE`` takes any. ``--results FILE`` keeps what is
measured there, and goes on where it was stopped.
Run it with: OMP_NUM_THREADS=1 python benchmarks/training.py [--quick] [--save]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from results import finish, parser
from timing import Row

if TYPE_CHECKING:
    from hilltop.data import LabelTable

TRAINING, AUDIT = "training, processor time", "audit, processor time"
LOOP = "PyTorch loop, tuned"
CLEANLAB = "cleanlab, out-of-fold heads of the loop"
FOLDS = 4
STRENGTHS = (0.001, 0.003, 0.01)  # C of scikit-learn; 1, its own, is far from the best here
SETTINGS = tuple(
    (rate, decay, epochs)
    for rate in (3e-4, 1e-3)
    for decay in (0.01, 3.0, 10.0)
    for epochs in (5, 10)
)
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
    from hilltop.data import drop_positives, write_labels  # other ways' processes do without

    labels = {"train": table_of(ids[:edge], true[:edge]), "val": table_of(ids[edge:], true[edge:])}
    labels["train"] = drop_positives(labels["train"], "0.8", seed=0).table
    for name, table in labels.items():
        write_labels(table, folder / f"{name}.parquet")
    return problem(*(folder / name for name in ("features.npz", "train.parquet", "val.parquet")))


def table_of(ids: npt.NDArray[np.str_], true: Flags) -> LabelTable:
    """Labels as a table in which all else is unknown."""
    import pyarrow as pa

    from hilltop.data import LabelTable, State

    rows, columns = np.nonzero(true)
    names = [f"c{column:03}" for column in range(true.shape[1])]
    return LabelTable.from_coo(
        pa.array(ids), names, rows, columns, State.PRESENT, unlisted=State.UNKNOWN
    )


def problem(features: Path, labels: Path, val_labels: Path) -> Problem:
    """Read the files as everybody but us needs them."""
    from hilltop.data import State, read_labels
    from hilltop.inputs.features import read_features

    known, train_table = read_features(features), read_labels(labels)
    val_table = read_labels(val_labels).with_classes(train_table.classes)
    arrays = []
    for table in (train_table, val_table):
        arrays.append(known.values[known.rows_of(table.images)].astype(np.float32))
        arrays.append(table.dense() == State.PRESENT)
    return Problem(features, labels, val_labels, *arrays)


def arrays_of(task: Problem) -> dict[str, npt.NDArray[np.generic]]:
    """What other ways learn from and are judged by."""
    names = ("inputs", "targets", "val_inputs", "val_targets")
    return {name: getattr(task, name) for name in names}


def sklearn_head(task: Problem, strengths: list[float]) -> Floats:
    """Scores of held-out rows by the best of some penalties, by labels as they are."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def fitted(strength: float, rows: slice) -> Any:
        single = LogisticRegression(C=strength, max_iter=200)
        model = make_pipeline(StandardScaler(), OneVsRestClassifier(single))
        return model.fit(task.inputs[rows], task.targets[rows])

    best, edge = strengths[0], len(task.inputs) * 3 // 4
    if len(strengths) > 1:
        reached = {}
        for strength in strengths:
            scores = fitted(strength, slice(0, edge)).predict_proba(task.inputs[edge:])
            reached[strength] = mean_precision(scores, task.targets[edge:])
        best = max(reached, key=reached.__getitem__)
        print(json.dumps({"strength": best}))
    return fitted(best, slice(None)).predict_proba(task.val_inputs)


def torch_head(
    inputs: Floats, targets: Flags, others: Floats, rate: float, decay: float, epochs: int
) -> Floats:
    """Train a linear head, and return its scores of other rows."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-6
    known, held = (torch.from_numpy((part - mean) / spread) for part in (inputs, others))
    wanted = torch.from_numpy(targets).float()
    head = nn.Linear(known.shape[1], wanted.shape[1])
    nn.init.zeros_(head.weight)
    head.bias.data = torch.logit(wanted.mean(dim=0).clamp(1e-4, 1 - 1e-4))
    batches = -(-len(known) // 128)
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=rate, total_steps=epochs * batches
    )
    criterion = nn.BCEWithLogitsLoss(reduction="sum")
    for _ in range(epochs):
        for rows in torch.randperm(len(known)).split(128):
            optimizer.zero_grad()
            criterion(head(known[rows]), wanted[rows]).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        return torch.sigmoid(head(held)).numpy()


def tuned(task: Problem) -> tuple[float, float, int]:
    """Rate, decay and epochs of the loop that are best on the last quarter of the rows."""
    edge = len(task.inputs) * 3 // 4
    reached = {}
    for setting in SETTINGS:
        scores = torch_head(task.inputs[:edge], task.targets[:edge], task.inputs[edge:], *setting)
        reached[setting] = mean_precision(scores, task.targets[edge:])
    print(json.dumps({str(setting): round(100 * value, 2) for setting, value in reached.items()}))
    return max(reached, key=reached.__getitem__)


def out_of_fold(task: Problem, setting: tuple[float, float, int]) -> Floats:
    """Scores of the training rows by heads of the loop that did not see them."""
    scores = np.zeros(task.targets.shape, dtype=np.float32)
    fold = np.random.default_rng(0).permutation(len(scores)) % FOLDS
    for one in range(FOLDS):
        learned = fold != one
        scores[~learned] = torch_head(
            task.inputs[learned], task.targets[learned], task.inputs[~learned], *setting
        )
    return scores


RANKING = """
import sys
import numpy as np
from cleanlab.multilabel_classification import get_label_quality_scores
from cleanlab.multilabel_classification.filter import find_label_issues

given = np.load(sys.argv[1])
labels = [np.flatnonzero(row).tolist() for row in given["targets"]]
find_label_issues(labels, given["scores"], return_indices_ranked_by="self_confidence")
get_label_quality_scores(labels, given["scores"])
"""


def mean_precision(scores: Floats, targets: Flags) -> float:
    """Mean average precision over classes with labels."""
    from sklearn.metrics import average_precision_score

    some = targets.any(axis=0)
    return float(average_precision_score(targets[:, some], scores[:, some], average="macro"))


def hilltop(*words: object) -> Callable[[], None]:
    """The command line, in this process."""

    def run() -> None:
        from hilltop.cli.main import main

        if main([str(word) for word in words]):
            sys.exit("hilltop failed")

    return run


def seconds() -> float:
    """Time of the processor of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Runner:
    """Runs each way in a process of its own, and keeps what it cost."""

    def __init__(self, given: list[Path], folder: Path, results: Path | None) -> None:
        """Take up what was measured before."""
        self.given, self.folder, self.results = given, folder, results
        self.known: dict[str, dict[str, Any]] = {}
        if results is not None and results.is_file():
            lines = results.read_text().splitlines()
            self.known = {(line := json.loads(text))["way"]: line for text in lines}

    def cost(
        self, name: str, command: list[str] | None = None, **options: object
    ) -> dict[str, Any]:
        """Seconds of a way, and what it printed in its last line."""
        if name not in self.known:
            words = ["--way", json.dumps([name, options]), "--folder", str(self.folder)]
            for option, path in zip(("features", "labels", "val-labels"), self.given, strict=True):
                words += [f"--{option}", str(path)]
            before = seconds()
            done = subprocess.run(
                command or [sys.executable, __file__, *words],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            spent = seconds() - before
            said = [line for line in done.stdout.splitlines() if line.startswith("{")]
            found = json.loads(said[-1]) if said else {}
            self.known[name] = {"way": name, "seconds": spent, **found}
            print(f"{name}: {spent:.1f} s {found}", flush=True)
            if self.results is not None:
                with self.results.open("a") as file:
                    file.write(json.dumps(self.known[name]) + "\n")
        return self.known[name]


def work(name: str, options: dict[str, Any], given: list[Path], folder: Path) -> None:
    """Do what one process is for; the last line that it prints is what came of it."""
    features, labels, val_labels = given
    if not name.startswith("hilltop"):
        with np.load(folder / "arrays.npz") as arrays:
            task = Problem(*given, **arrays)
    if name == "tuning":
        print(json.dumps({"setting": tuned(task)}))
    elif name.startswith("scikit-learn"):
        scores = sklearn_head(task, options["strengths"])
        np.save(folder / "scikit-learn.npy", scores)
    elif name == LOOP:
        scores = torch_head(task.inputs, task.targets, task.val_inputs, *options["setting"])
        np.save(folder / "loop.npy", scores)
    elif name == "out of fold":
        scores = out_of_fold(task, options["setting"])
        np.savez(folder / "out_of_fold.npz", scores=scores, targets=task.targets)
    elif name == "hilltop audit":
        hilltop("audit", "--labels", labels, "--features", features, "--out", folder / "audit")()
    else:
        loss = name.split()[-1]
        words = ("train", "--labels", labels, "--features", features, "--val-labels", val_labels)
        hilltop(*words, "--loss", loss, "--out", folder / loss)()


def scored(folder: Path, name: str, task: Problem) -> str:
    """The mAP of what a way left, in words."""
    if name.startswith("hilltop"):
        from hilltop.training import RunFolder

        last = RunFolder(folder / name.split()[-1]).recorded()[-1]
        return f"mAP {100 * last['mAP']:.2f}"
    file = "loop" if name == LOOP else "scikit-learn"
    return f"mAP {100 * mean_precision(np.load(folder / f'{file}.npy'), task.val_targets):.2f}"


def measure(given: list[Path], folder: Path, results: Path | None, cleanlab: str) -> list[Row]:
    """Run all ways, one after the other."""
    runner, task = Runner(given, folder, results), problem(*given)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "arrays.npz", **arrays_of(task))
    setting = runner.cost("tuning")["setting"]
    costs = {LOOP: runner.cost(LOOP, setting=setting)}
    for name in ("hilltop train, bce", "hilltop train, auto"):
        costs[name] = runner.cost(name)
    every = runner.cost("scikit-learn, best of three C", strengths=STRENGTHS)
    notes = {name: scored(folder, name, task) for name in costs}
    costs["scikit-learn, best of three C"] = every
    costs["scikit-learn, the best C alone"] = runner.cost(
        "scikit-learn, the best C alone", strengths=[every["strength"]]
    )
    notes |= {name: scored(folder, name, task) for name in costs if name.startswith("scikit")}
    rows = _rows(TRAINING, LOOP, {name: cost["seconds"] for name, cost in costs.items()}, task)
    rows = [Row(**{**vars(row), "note": notes[row.contender]}) for row in rows]
    if subprocess.run([cleanlab, "-c", "import cleanlab"], stderr=subprocess.DEVNULL).returncode:
        print("The audit is not compared: this Python has no cleanlab, see --cleanlab.")
        return rows
    scores = runner.cost("out of fold", setting=setting)["seconds"]
    command = [cleanlab, "-c", RANKING, str(folder / "out_of_fold.npz")]
    ranked = runner.cost("cleanlab", command)["seconds"]
    audit = runner.cost("hilltop audit")["seconds"]
    return rows + _rows(AUDIT, CLEANLAB, {CLEANLAB: scores + ranked, "hilltop audit": audit}, task)


def _rows(question: str, baseline: str, spent: dict[str, float], task: Problem) -> list[Row]:
    base = spent[baseline]
    return [
        Row(question, task.size, name, baseline, round(1e3 * one, 1), round(1e3 * base, 1),
            *[round(one / base, 4)] * 3)
        for name, one in spent.items()
    ]  # fmt: skip


def main() -> None:
    """Measure on generated features, or on those of a file."""
    made = parser(__doc__)
    for name in ("--features", "--labels", "--val-labels"):
        made.add_argument(name, type=Path, help="all three, or none of them")
    made.add_argument("--results", type=Path, help="where each cost is kept as it is measured")
    made.add_argument("--cleanlab", default=sys.executable, help="a Python that has cleanlab")
    made.add_argument("--way", help=argparse.SUPPRESS)
    made.add_argument("--folder", type=Path, help="where runs are kept; a temporary one without it")
    options: argparse.Namespace = made.parse_args()
    given = [options.features, options.labels, options.val_labels]
    if any(given) and not all(given):
        made.error("give --features, --labels and --val-labels together.")
    if options.way is not None:
        name, more = json.loads(options.way)
        work(name, more, given, options.folder)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        if not all(given):
            sizes = (800, 32, 10) if options.quick else (8_000, 512, 80)
            generate(Path(folder), *sizes)
            given = [
                Path(folder, name) for name in ("features.npz", "train.parquet", "val.parquet")
            ]
        kept = options.folder or Path(folder, "runs")
        rows = measure(given, kept, options.results, options.cleanlab)
    finish(rows, options, ["torch", "scikit-learn", "cleanlab"])


if __name__ == "__main__":
    main()
