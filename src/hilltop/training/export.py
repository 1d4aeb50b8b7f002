"""A trained model for use elsewhere: ONNX, or safetensors with a model card."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hilltop.checks import pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, replacing
from hilltop.errors import HilltopError, MissingExtra
from hilltop.metrics.epochs import best_epoch, in_per_cent, is_estimated
from hilltop.missing.model import MissingLabelModel
from hilltop.training.checkpoint import save_tensors
from hilltop.training.predict import TrainedModel
from hilltop.training.run_folder import RunFolder


def export_onnx(trained: TrainedModel, out: Path) -> None:
    """Write an ONNX file that takes inputs and gives probabilities, for batches of any size.

    Where the run knows what its scores mean, they are probabilities that labels are true. The
    names of the classes are in its metadata, under ``classes``, and the probability that each must
    exceed to be a tag under ``thresholds``; ``expected`` says what may be expected of these.
    """
    try:
        import onnx
        import onnxscript  # noqa: F401 (torch's exporter needs it)
    except ModuleNotFoundError as error:
        raise MissingExtra("Export to ONNX", error.name, "onnx") from None
    model = nn.Sequential(trained.model, _Calibrated(trained.truth), nn.Sigmoid()).eval()
    example = torch.rand(2, *trained.input_shape)
    with replacing(out) as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        try:
            torch.onnx.export(
                model,
                (example,),
                temporary,
                input_names=["inputs"],
                output_names=["scores"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:  # torch 2.6 beside a newer onnxscript
            reason = " ".join(str(error).split())[:200].rstrip(".")
            raise HilltopError(
                f"torch {torch.__version__} cannot write this model as ONNX: {reason}. Install a"
                " newer torch, or export with --to safetensors."
            ) from error
        written = onnx.load(temporary)
        onnx.helper.set_model_props(written, _properties(trained))
        onnx.save(written, temporary)


def folder_files(out: Path) -> tuple[Path, Path, Path]:
    """What :func:`export_folder` writes: weights, configuration and model card."""
    return out / "model.safetensors", out / "config.json", out / "README.md"


class _Calibrated(nn.Module):
    """Logits of probabilities of truth, where it is known what scores mean."""

    slope: Tensor
    shift: Tensor
    bend: Tensor
    knot: Tensor

    def __init__(self, truth: MissingLabelModel | None) -> None:
        super().__init__()
        usual = {"slope": 1.0, "shift": 0.0, "bend": 0.0, "knot": 0.0}
        numbers: dict[str, Any] = usual if truth is None else vars(truth.calibration)
        for name, value in numbers.items():
            self.register_buffer(name, torch.as_tensor(value, dtype=torch.float32))

    def forward(self, logits: Tensor) -> Tensor:
        above = torch.relu(logits - self.knot)
        return logits * self.slope + self.shift + self.bend * above


def _properties(trained: TrainedModel) -> dict[str, str]:
    """What stands in the metadata of an ONNX file."""
    known = {"classes": json.dumps(trained.classes), "input": describe_input(trained)}
    if trained.truth is None:
        return known
    decision = trained.truth.thresholds()
    thresholds = [round(number, 6) for number in decision.thresholds.tolist()]
    return {**known, "thresholds": json.dumps(thresholds), "expected": str(decision.expected)}


def describe_input(trained: TrainedModel) -> str:
    """Say what the exported model wants to be given."""
    shape = trained.input_shape
    if trained.config.kind == "images":
        side = f"{shape[1]} x {shape[2]}"
        return (
            f"RGB images squashed to {side} pixels, 8-bit values divided by 255 and not otherwise"
            f" normalised, batch x {' x '.join(map(str, shape))}"
        )
    backbone = trained.backbone
    made = "" if backbone is None else f" of {backbone.name} at {backbone.image_size} pixels"
    return f"features{made} as they are in the file, batch x {shape[0]}"


def _decisions(trained: TrainedModel) -> dict[str, Any]:
    """From logits to tags, for config.json."""
    if trained.truth is None:
        return {"output": "logits; apply a sigmoid for probabilities"}
    calibration = trained.truth.calibration
    return {
        "output": "logits; sigmoid(slope * logit + shift + bend * max(logit - knot, 0)) is the"
        " probability that a label is true, and a tag where it exceeds the threshold of its class",
        **{name: value.tolist() for name, value in vars(calibration).items()},
        "thresholds": trained.truth.thresholds().thresholds.tolist(),
    }


def export_folder(trained: TrainedModel, run: Path, out: Path) -> None:
    """Write a folder with model.safetensors, config.json and a model card, README.md."""
    if out.exists() and not out.is_dir():
        raise data_error(out, "there is a file here, but a folder is to be written.")
    out.mkdir(parents=True, exist_ok=True)
    model, about, card = folder_files(out)
    save_tensors(model, trained.model.state_dict(), {"classes": trained.classes})
    config = {
        "model": trained.config.model.model,
        "input_shape": trained.input_shape,
        "input": describe_input(trained),
        "boost": trained.config.model.boost,
        "classes": trained.classes,
        **_decisions(trained),
    }
    atomic_write(about, json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    atomic_write(card, _card(trained, RunFolder(run)))


def _card(trained: TrainedModel, folder: RunFolder) -> str:
    config = trained.config
    rows = {row["epoch"]: row for row in folder.recorded()}
    row = rows.get(trained.epoch, {})
    best = best_epoch(list(rows.values()))["epoch"] if rows else None
    which = "the best on the validation images" if trained.epoch == best else "the last"
    lines = [
        f"# {config.model.model}, trained with {config.loss}",
        "",
        f"A multi-label classifier for {pluralize(len(trained.classes), 'class', 'classes')},"
        f" trained by Hilltop on {config.kind}.",
        "",
        f"- Input: {describe_input(trained)}; output: one logit for each class.",
        f"- Loss: {config.loss}; {pluralize(config.epochs, 'epoch', 'epochs')},"
        f" batch {config.batch_size}, learning rate {trained.learning_rate:g},"
        f" seed {config.seed}.",
        f"- Weights of epoch {trained.epoch}, {which}.",
        "",
        *_metrics(row),
        *_tags(trained),
        "",
        "Classes: " + ", ".join(trained.classes),
        "",
    ]
    return "\n".join(lines)


def _metrics(row: Mapping[str, float]) -> list[str]:
    """The table of metrics; where validation labels are incomplete, estimates stand beside."""
    names = [name for name in ("mAP", "CF1", "OF1") if name in row or is_estimated(row, name)]
    if not any(is_estimated(row, name) for name in names):
        lines = [f"| {name} | {100 * row[name]:.2f} |" for name in names]
        return ["| metric on the validation images | % |", "|---|---|", *lines]
    return [
        "| metric on the validation images, whose labels are incomplete | estimate of the true"
        " value, 90% interval, % |",
        "|---|---|",
        *(f"| {name} | {in_per_cent(row, name)} |" for name in names),
    ]


def _tags(trained: TrainedModel) -> list[str]:
    """What the card says about decisions."""
    if trained.truth is None:
        return []
    return [
        "",
        trained.truth.describe(),
        f"config.json has {trained.truth.thresholds().describe()}.",
    ]
