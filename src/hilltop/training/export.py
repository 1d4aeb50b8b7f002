"""A trained model for use elsewhere: ONNX, or safetensors with a model card."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch
from torch import nn

from hilltop.checks import pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.errors import MissingExtra
from hilltop.training.checkpoint import save_tensors
from hilltop.training.predict import TrainedModel
from hilltop.training.run_folder import RunFolder


def export_onnx(trained: TrainedModel, out: Path) -> None:
    """Write an ONNX file that takes inputs and gives probabilities, for batches of any size.

    The names of the classes are in its metadata, under ``classes``.
    """
    try:
        import onnx
        import onnxscript  # noqa: F401 (torch's exporter needs it)
    except ModuleNotFoundError as error:
        raise MissingExtra("Export to ONNX", error.name, "onnx") from None
    model = nn.Sequential(trained.model, nn.Sigmoid()).eval()
    example = torch.rand(2, *trained.input_shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        torch.onnx.export(
            model,
            (example,),
            out,
            input_names=["inputs"],
            output_names=["scores"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    written = onnx.load(out)
    onnx.helper.set_model_props(written, {"classes": json.dumps(trained.classes)})
    onnx.save(written, out)


def export_folder(trained: TrainedModel, run: Path, out: Path) -> None:
    """Write a folder with model.safetensors, config.json and a model card, README.md."""
    if out.exists() and not out.is_dir():
        raise data_error(out, "there is a file here, but a folder is to be written.")
    out.mkdir(parents=True, exist_ok=True)
    save_tensors(
        out / "model.safetensors", trained.model.state_dict(), {"classes": trained.classes}
    )
    config = {
        "model": trained.config.model.model,
        "input_shape": trained.input_shape,
        "classes": trained.classes,
        "output": "logits; apply a sigmoid for probabilities",
    }
    atomic_write(out / "config.json", json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    atomic_write(out / "README.md", _card(trained, RunFolder(run)))


def _card(trained: TrainedModel, folder: RunFolder) -> str:
    config = trained.config
    rows = {row["epoch"]: row for row in folder.recorded()}
    row = rows.get(trained.epoch, {})
    best = max(rows, key=lambda epoch: rows[epoch]["mAP"], default=None)
    which = "the best on the validation images" if trained.epoch == best else "the last"
    lines = [
        f"# {config.model.model}, trained with {config.loss}",
        "",
        f"A multi-label classifier for {pluralize(len(trained.classes), 'class', 'classes')},"
        f" trained by Hilltop on {config.kind}.",
        "",
        f"- Input: {' x '.join(map(str, trained.input_shape))}; output: one logit for each class.",
        f"- Loss: {config.loss}; {pluralize(config.epochs, 'epoch', 'epochs')},"
        f" batch {config.batch_size}, learning rate {trained.learning_rate:g},"
        f" seed {config.seed}.",
        f"- Weights of epoch {trained.epoch}, {which}.",
        "",
        "| metric on the validation images | % |",
        "|---|---|",
        *(f"| {name} | {100 * row[name]:.2f} |" for name in ("mAP", "CF1", "OF1") if name in row),
        "",
        "Classes: " + ", ".join(trained.classes),
        "",
    ]
    return "\n".join(lines)
