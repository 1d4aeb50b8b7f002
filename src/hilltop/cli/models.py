"""``predict``, ``evaluate`` and ``export``: a finished run put to use."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro

from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat
from hilltop.data import ReadOptions, read_labels
from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError
from hilltop.metrics import classification_report, fit_thresholds


@dataclass(frozen=True)
class Predict:
    """Score images of a folder, or a features file, with the model of a run.

    Example: hilltop predict runs/2026-01-31-labels-hill --images photos --out scores.npy
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder."""
    out: Path
    """The .npy file to write; names of images and classes go beside it."""
    images: Path | None = None
    """Folder with images, for a run that was trained on images."""
    features: Path | None = None
    """Features file, for a run that was trained on features."""
    labels: Path | None = None
    """Score the images in this label file alone."""
    allow_missing: bool = False
    """With --labels: go on without rows that have no image or features."""
    which: Literal["best", "last"] = "best"
    """Weights of the best epoch on the validation images, or of the last."""

    def run(self) -> None:
        """Predict and write."""
        from hilltop.inputs.matching import labelled_inputs
        from hilltop.training.predict import load_run, predict_run

        if self.out.suffix != ".npy":
            raise ArgumentError(f"--out must end in .npy, but got {self.out.name!r}.")
        trained = load_run(self.run_folder, which=self.which)
        chosen, source = None, self.images or self.features
        if self.labels is not None and source is not None:
            allowed = self.allow_missing
            chosen = labelled_inputs(self.labels, source, allow_missing=allowed, say=print)
        scores, broken = predict_run(
            trained, images=self.images, features=self.features, chosen=chosen
        )
        scores.save(self.out)
        images = pluralize(len(scores.images), "image", "images")
        print(f"{self.out}: {images}, {pluralize(len(scores.classes), 'class', 'classes')}")
        if broken:
            print(f"left out: {pluralize(len(broken), 'image', 'images')} that could not be read")


@dataclass(frozen=True)
class Evaluate:
    """Measure scores against labels: mAP, and precision, recall and F1 at a threshold.

    Example: hilltop evaluate scores.npy labels.csv --unlisted absent
    """

    scores: tyro.conf.Positional[Path]
    """Scores, as written by predict or train."""
    labels: tyro.conf.Positional[Path]
    """The labels to judge by."""
    threshold: float = 0.5
    """Scores above it are predictions."""
    fit: bool = False
    """Find the best threshold of each class on these labels instead (optimistic)."""
    cf1: Literal["mean", "harmonic"] = "mean"
    """CF1 as in the paper, or the harmonic mean of CP and CR."""
    json: bool = False
    """Print JSON instead of text."""
    format: ReadFormat = None
    reading: ReadOptions = field(default_factory=ReadOptions)

    def run(self) -> None:
        """Join by name, measure, print."""
        table = read_labels(self.labels, format=self.format, options=self.reading)
        scores = ScoreTable.load(self.scores)
        values = scores.aligned(table.images, table.classes)
        targets = table.eval_targets()
        threshold = fit_thresholds(values, targets) if self.fit else self.threshold
        report = classification_report(
            values, targets, threshold, cf1=self.cf1, class_names=table.classes
        )
        if self.json:
            empty = list(report.empty_classes)
            print(json.dumps({**report.as_dict(), "empty_classes": empty}, indent=2))
        else:
            print(report)


@dataclass(frozen=True)
class Export:
    """Write the model of a run for use elsewhere.

    Example: hilltop export runs/2026-01-31-labels-hill --to onnx --out model.onnx
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder."""
    out: Path
    """The file (onnx) or folder (safetensors with a model card) to write."""
    to: Literal["onnx", "safetensors"] = "onnx"
    """What to write."""
    which: Literal["best", "last"] = "best"
    """Weights of the best epoch on the validation images, or of the last."""

    def run(self) -> None:
        """Load and write."""
        from hilltop.training.export import export_folder, export_onnx
        from hilltop.training.predict import load_run

        trained = load_run(self.run_folder, which=self.which)
        if self.to == "onnx":
            export_onnx(trained, self.out)
        else:
            export_folder(trained, self.run_folder, self.out)
        classes = pluralize(len(trained.classes), "class", "classes")
        print(f"{self.out}: {trained.config.model.model}, {classes}")
