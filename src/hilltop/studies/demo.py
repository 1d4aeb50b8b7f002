"""The demo: draws pictures, removes labels, trains with several losses, audits and reports."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hilltop.audit.find.score_blocks import Scored
from hilltop.audit.review.static_page import write_static_review
from hilltop.audit.run import audit, fold_logits, write_audit
from hilltop.data import LabelTable, ReadOptions, State, drop_positives, read_labels, write_labels
from hilltop.errors import DataError
from hilltop.inputs.descriptor import describe_files
from hilltop.inputs.synthetic import write_dataset
from hilltop.metrics import classification_report
from hilltop.progress import say
from hilltop.report import DemoMethod, DemoPairs, write_demo_report
from hilltop.report.demo_report import DemoAudit, gap_closed
from hilltop.report.page import percent
from hilltop.report.tables import Sheet
from hilltop.training import ModelConfig, TrainConfig, train
from hilltop.training.predict import load_run, predict_run, truth_probs

METHODS = {
    "bce": ("BCE", "takes every missing label for an absent one"),
    "hill": ("Hill", "reduces the gradient of pairs that the model is confident about"),
    "splc_released": (
        "SPLC, as released",
        "turns confident scores into labels once the model can be asked",
    ),
    "auto": (
        "auto (the default)",
        "leaves out of the loss what cross-validated heads, on a description of the pictures that"
        " never saw a label, find to be probably a missing label",
    ),
}
"""Losses trained on the labels that are left: name, and what it does where there is no label."""
_CEILING = ("BCE, complete labels", "knows that it is absent")

OPTIONS = {"splc_released": {"start_epoch": 4}}
"""SPLC corrects once the model can be asked; of 3, 4, 6 and 9 on other draws of pictures."""

_LEFT_40 = "0.8"  # the paper's r for "40% of the labels left"
_MARK = ".hilltop-demo"  # only a folder with this file in it is emptied


@dataclass(frozen=True)
class DemoSize:
    """How much is drawn and trained; the same for every method.

    Model, learning rate and how hard the pictures are were chosen with BCE on complete labels
    alone; epochs on other draws (seeds 100 to 102) of 5, 8 and 12, as a compromise between them.
    """

    train_images: int = 3000
    val_images: int = 800
    test_images: int = 800
    image_size: int = 64
    epochs: int = 10
    model: str = "test_resnet"
    batch_size: int = 32
    learning_rate: float = 1e-2
    filters: int = 256


def run_demo(out: Path, *, size: DemoSize | None = None, seed: int = 0) -> Path:
    """Run the whole demo in ``out``, print the table and return the page.

    Args:
        out: Folder for pictures, runs and ``report.html``; an older demo in it is replaced.
        size: How much to do; without it what two cores do in four minutes.
        seed: Seed of pictures, removed labels and training.
    """
    began, chosen = time.perf_counter(), size or DemoSize()
    _clear(out)
    print(f"drawing {_pictures(chosen):,} pictures", flush=True)
    complete, left = _make_labels(out, chosen, seed)
    ceiling = _train(out, "bce", "complete", _CEILING, chosen, seed, left)
    methods = [
        _train(out, loss, "left", told, chosen, seed, left) for loss, told in METHODS.items()
    ]
    pairs = _pairs(out, complete, left)
    audited = _audit(out, left, pairs, chosen, seed)
    seconds = time.perf_counter() - began
    page = write_demo_report(
        out / "report.html",
        ceiling=ceiling,
        methods=methods,
        pairs=pairs,
        audit=audited,
        test_images=chosen.test_images,
        seconds=seconds,
    )
    method_table(ceiling, methods).print()
    print_audit(audited)
    print(f"\n{seconds:.0f} s; the report with pictures is {page}", flush=True)
    return page


def method_table(ceiling: DemoMethod, methods: list[DemoMethod]) -> Sheet:
    """What the report shows of the methods."""
    rows = []
    for one in (*methods, ceiling):
        shares = [one.metrics["mAP"], one.metrics["OF1"], one.tags["OF1"]]
        shares += [one.metrics["CF1"], one.tags["CF1"]]
        closed = gap_closed(one, methods[0], ceiling)
        numbers = [f"{100 * share:.1f}" for share in shares]
        rows.append((one.name, *numbers, "" if closed is None else percent(closed)))
    head = ("method", "mAP", "OF1 at ½", "OF1 found", "CF1 at ½", "CF1 found", "gap closed")
    return Sheet("", head, tuple(rows))


def print_audit(audit: DemoAudit) -> None:
    """Print what the report shows of the audit."""
    print(f"labels missing: {audit.missing.count()} estimated, {audit.right.sum():,} in truth")
    for one in audit.looked():
        print(f"the first {one.number:,} candidates: {percent(one.precision)} right")
    print(f"next: hilltop review {audit.folder}")


def _clear(out: Path) -> None:
    """Make an empty folder; one that holds anything but an older demo is left alone."""
    if out.is_dir() and any(out.iterdir()):
        if not (out / _MARK).is_file():
            raise DataError(f"{out}: this folder holds other files; choose an empty one.")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()


def _pictures(size: DemoSize) -> int:
    return size.train_images + size.val_images + size.test_images


def _make_labels(out: Path, size: DemoSize, seed: int) -> tuple[LabelTable, LabelTable]:
    """Draw; write all labels, complete and as far as they are left; return those for training.

    Labels are removed from the validation images, too: nothing but the test images is complete.
    """
    table = write_dataset(out / "pictures", images=_pictures(size), size=size.image_size, seed=seed)
    left = drop_positives(table, _LEFT_40, seed=seed).table
    train, last = range(size.train_images), size.train_images + size.val_images
    for name, labels in (("complete", table), ("left", left)):
        write_labels(labels.select(train), out / f"{name}.parquet", format="hilltop")
        val = labels.select(range(size.train_images, last))
        write_labels(val, out / f"val-{name}.parquet", format="hilltop")
    test = table.select(range(last, _pictures(size)))
    write_labels(test, out / "test.parquet", format="hilltop")
    return table.select(train), left.select(train)


def _train(
    out: Path,
    loss: str,
    labels: str,
    told: tuple[str, str],
    size: DemoSize,
    seed: int,
    train_set: LabelTable,
) -> DemoMethod:
    """Train one method, judge its last epoch on the test images, and score the training images."""
    print(f"\n{told[0]}", flush=True)
    pictures = out / "pictures" / "images"
    config = TrainConfig(
        labels=out / f"{labels}.parquet",
        val_labels=out / f"val-{labels}.parquet",
        images=pictures,
        loss=loss,
        loss_options=OPTIONS.get(loss, {}),
        epochs=size.epochs,
        batch_size=size.batch_size,
        learning_rate=size.learning_rate,
        ema=0.0,  # 1,000 steps are too few for an average
        augment="none",
        seed=seed,
        workers=0,  # small pictures decode faster than another process could hand them over
        model=ModelConfig(model=size.model, image_size=size.image_size),
    )
    run = train(config, out / "runs" / f"{labels}-{loss}")
    trained = load_run(run, which="last")
    scores, _ = predict_run(trained, images=pictures)
    test = read_labels(out / "test.parquet")
    truth = test.dense() == State.PRESENT
    metrics = classification_report(scores.aligned(test.images, test.classes), truth).as_dict()
    tags: dict[str, float] = {}
    if trained.truth is not None:
        probs = truth_probs(trained, scores).aligned(test.images, test.classes)
        cuts = trained.truth.thresholds().thresholds
        tags = classification_report(probs, truth, threshold=cuts).as_dict()
    return DemoMethod(
        *told,
        metrics=metrics,
        tags=tags or metrics,
        train_probs=scores.aligned(train_set.images, train_set.classes),
    )


def _pairs(out: Path, complete: LabelTable, left: LabelTable) -> DemoPairs:
    known = left.dense() == State.PRESENT
    pictures = out / "pictures" / "images"
    return DemoPairs(
        images=[pictures / name for name in left.images.to_pylist()],
        classes=left.classes,
        known=known,
        missing=(complete.dense() == State.PRESENT) & ~known,
    )


def _audit(out: Path, left: LabelTable, pairs: DemoPairs, size: DemoSize, seed: int) -> DemoAudit:
    """Audit the labels that are left, as `hilltop audit --features` does, and write its folder."""
    pictures, folder = out / "pictures" / "images", out / "audit"
    print("\nAudit", flush=True)
    # Without pretrained weights at hand: a description that no label had a part in.
    features = describe_files(
        pictures, left.images.to_pylist(), filters=size.filters, side=9, seed=seed
    )
    rows = np.arange(len(left))
    logits = fold_logits(left, features, rows, folds=4, seed=seed, say=say)
    found = audit(left, Scored(logits, rows))
    written = write_audit(
        found,
        left,
        folder,
        labels=out / "left.parquet",
        format="hilltop",
        reading=ReadOptions(),
        images=pictures,
    )
    write_static_review(written, folder / "review.html")
    candidates = found.candidates
    rows, columns = candidates.rows(), candidates.columns()
    return DemoAudit(
        rows=rows,
        columns=columns,
        probs=candidates.probabilities(),
        right=pairs.missing[rows, columns],
        missing=found.missing,
        folder=folder,
    )
