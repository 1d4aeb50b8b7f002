"""A trained model for use elsewhere: ONNX, or a folder as the Hugging Face Hub holds models."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from torch import Tensor, nn

from hilltop.checks import pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, replacing
from hilltop.errors import HilltopError, MissingExtra
from hilltop.metrics.epochs import best_epoch, in_per_cent, is_estimated, judged_value
from hilltop.missing.model import MissingLabelModel
from hilltop.missing.priors import LEVEL
from hilltop.models.images import NormalisedInput, backbone_of
from hilltop.training.checkpoint import save_tensors
from hilltop.training.predict import TrainedModel
from hilltop.training.run_folder import RunFolder

PROBLEM_TYPE = "multi_label_classification"
"""What transformers calls classes that do not exclude each other."""
_NUMBERS = ("slope", "shift", "bend", "knot")


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
                " newer torch, or export with --to hub-folder."
            ) from error
        written = onnx.load(temporary)
        onnx.helper.set_model_props(written, _properties(trained))
        onnx.save(written, temporary)


def folder_files(out: Path) -> tuple[Path, Path, Path, Path]:
    """What :func:`export_folder` writes: weights, configuration, model card and thresholds."""
    names = ("model.safetensors", "config.json", "README.md", "thresholds.json")
    return tuple(out / name for name in names)  # type: ignore[return-value]


class _Calibrated(nn.Module):
    """Logits of probabilities of truth, where it is known what scores mean."""

    slope: Tensor
    shift: Tensor
    bend: Tensor
    knot: Tensor

    def __init__(self, truth: MissingLabelModel | None) -> None:
        super().__init__()
        usual = dict(zip(_NUMBERS, (1.0, 0.0, 0.0, 0.0), strict=True))
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
    """From logits to tags, for thresholds.json."""
    classes = list(trained.classes)
    if trained.truth is None:
        return {
            "output": "sigmoid(logit) is the probability, and a tag where it exceeds the threshold",
            "classes": classes,
            "thresholds": [0.5] * len(classes),
            "logits": [0.0] * len(classes),
        }
    decision, calibration = trained.truth.thresholds(), trained.truth.calibration
    return {
        "output": "sigmoid(slope * logit + shift + bend * max(logit - knot, 0)) is the probability"
        " that a label is true, and a tag where it exceeds the threshold of its class; that is"
        " where the logit exceeds the number in logits",
        "classes": classes,
        "thresholds": decision.thresholds.tolist(),
        "logits": _raw_logits(torch.as_tensor(decision.log_odds), _Calibrated(trained.truth)),
        **{name: value.tolist() for name, value in vars(calibration).items()},
        "expected": str(decision.expected),
    }


def _raw_logits(log_odds: Tensor, calibrated: _Calibrated) -> list[float]:
    """Logits of the model at which the calibrated ones have these values.

    A calibration rises in two straight pieces that meet at the knot.
    """
    slope, shift, bend, knot = (getattr(calibrated, name).double() for name in _NUMBERS)
    below = (log_odds.double() - shift) / slope
    above = (log_odds.double() - shift + bend * knot) / (slope + bend)
    raw: list[float] = torch.where(below <= knot, below, above).tolist()
    return raw


def export_folder(trained: TrainedModel, run: Path, out: Path) -> None:
    """Write a folder as the Hugging Face Hub holds models.

    It has weights, config.json, thresholds.json and a model card, README.md. Image models load with
    timm and transformers, which need no Hilltop; the card shows how.
    """
    if out.exists() and not out.is_dir():
        raise data_error(out, "there is a file here, but a folder is to be written.")
    out.mkdir(parents=True, exist_ok=True)
    model, about, card, thresholds = folder_files(out)
    weights, config = trained.model.state_dict(), _feature_config(trained)
    if trained.config.kind == "images":
        weights = backbone_of(trained.model).state_dict()
        config = _timm_config(trained)
    save_tensors(model, weights, {"classes": trained.classes})
    atomic_write(about, _as_json(config))
    atomic_write(thresholds, _as_json(_decisions(trained)))
    atomic_write(card, _card(trained, RunFolder(run), out.name))


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _timm_config(trained: TrainedModel) -> dict[str, Any]:
    """The config.json that timm and the timm wrapper of transformers read."""
    backbone, size = backbone_of(trained.model), trained.input_shape
    known = {
        name: value
        for name, value in backbone.pretrained_cfg.items()  # type: ignore[union-attr, operator]
        if name in ("architecture", "classifier", "first_conv", "pool_size", "fixed_input_size")
    }
    mean, std = (0.0,) * 3, (1.0,) * 3
    if isinstance(trained.model, NormalisedInput):
        mean, std = (getattr(trained.model, of).flatten().tolist() for of in ("mean", "std"))
    settings = {
        **known,
        "input_size": size,
        "num_classes": len(trained.classes),
        "mean": mean,
        "std": std,
        "interpolation": "bilinear",
        "crop_pct": 1.0,
        "crop_mode": "squash",
    }
    fixed = {"model_args": {"img_size": size[-1]}} if known.get("fixed_input_size") else {}
    return {
        "architecture": known["architecture"],
        "num_classes": len(trained.classes),
        "num_features": backbone.num_features,
        "label_names": list(trained.classes),
        "problem_type": PROBLEM_TYPE,
        **fixed,
        "pretrained_cfg": settings,
        "input": describe_input(trained),
        "boost": trained.config.model.boost,
    }


def _feature_config(trained: TrainedModel) -> dict[str, Any]:
    """The config.json of a head on features, which no other library has a name for."""
    return {
        "model": trained.config.model.model,
        "problem_type": PROBLEM_TYPE,
        "num_features": trained.input_shape[0],
        "num_classes": len(trained.classes),
        "label_names": list(trained.classes),
        "input": describe_input(trained),
    }


def _card(trained: TrainedModel, folder: RunFolder, name: str) -> str:
    """The README.md of a folder, by the template ``model_card.jinja``."""
    rows = {row["epoch"]: row for row in folder.recorded()}
    row = rows.get(trained.epoch, {})
    best = best_epoch(list(rows.values()))["epoch"] if rows else None
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    return templates.get_template("model_card.jinja").render(
        metadata=_metadata(trained, row, name),
        config=trained.config,
        classes=pluralize(len(trained.classes), "class", "classes"),
        names=trained.classes,
        input=describe_input(trained),
        epochs=pluralize(trained.config.epochs, "epoch", "epochs"),
        learning_rate=f"{trained.learning_rate:g}",
        epoch=trained.epoch,
        which="the best on the validation images" if trained.epoch == best else "the last",
        estimated=any(is_estimated(row, metric) for metric in _reported(row)),
        metrics=[(metric, in_per_cent(row, metric)) for metric in _reported(row)],
        truth=trained.truth,
    )


def _metadata(trained: TrainedModel, row: Mapping[str, float], name: str) -> str:
    """The front matter by which the Hub finds and lists a model."""
    from huggingface_hub import EvalResult, ModelCardData  # timm depends on it

    images = trained.config.kind == "images"
    task = "image-classification"
    results = [
        EvalResult(
            task_type=task,
            dataset_type="validation",
            dataset_name="validation images" if images else "validation rows",
            metric_type=metric,
            metric_value=round(100 * judged_value(row, metric), 2),
            metric_name=f"{metric}, %",
            metric_args=_interval(row, metric),
        )
        for metric in _reported(row)
    ]
    data = ModelCardData(
        library_name="timm" if images else None,
        pipeline_tag=task if images else None,
        tags=["multi-label-classification", "missing-labels", "hilltop"],
        problem_type=PROBLEM_TYPE,
        model_name=name if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml())


def _interval(row: Mapping[str, float], metric: str) -> dict[str, float] | None:
    """Ends of the interval of an estimate, in %."""
    if not is_estimated(row, metric) or math.isnan(row.get(f"{metric}_low", math.nan)):
        return None
    low, high = (round(100 * row[f"{metric}_{end}"], 2) for end in ("low", "high"))
    return {"low": low, "high": high, "level": LEVEL}


def _reported(row: Mapping[str, float]) -> list[str]:
    return [name for name in ("mAP", "CF1", "OF1") if name in row or is_estimated(row, name)]
