"""A frozen backbone on the CPU by ONNX Runtime: exported once, cached, checked against torch."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hilltop.data.files import replacing
from hilltop.errors import install_command
from hilltop.machine import usable_cores

LEAST_IMAGES = 256
"""For fewer images torch has finished before the export has."""
TOLERANCE = 1e-3
"""Largest difference between features of the two, as a share of the largest feature."""

Run = Callable[[Tensor], Tensor]


def onnx_backbone(
    make: Callable[[], nn.Module], key: str, image_size: int, say: Callable[[str], None]
) -> Run:
    """Return a function that computes the features of pixels as a network does, if possible faster.

    Args:
        make: Builds the network, frozen and on the CPU: not called where its export is cached.
        key: Says which network and weights these are; empty where only the network itself tells.
        image_size: Side of its images, in pixels.
        say: Takes the sentence that says why torch computes them after all.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 (torch's exporter needs it)
    except ModuleNotFoundError:
        say(
            "features: torch computes them; ONNX Runtime is about three times as fast on a CPU:"
            f" {install_command('onnx')}"
        )
        return make()
    model = None if key else make()
    path = cache_folder() / f"{_digest(key, image_size, model)}.onnx"
    try:
        if not path.is_file():
            model = model or make()
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                _export(model, image_size, temporary)
                _check_alike(model, image_size, _session(onnxruntime, temporary))
        session = _session(onnxruntime, path)
    except Exception as error:  # exporter and runtime raise what they like for unusual networks
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        say(f"features: torch computes them, since ONNX Runtime cannot ({reason})")
        return model or make()
    return lambda pixels: torch.from_numpy(
        session.run(None, {"pixels": np.ascontiguousarray(pixels.numpy())})[0]
    )


def _session(onnxruntime: Any, path: Path) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = min(torch.get_num_threads(), usable_cores())
    settings.log_severity_level = 3
    # Threads that spin while they wait take the cores from the processes that decode images.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])


def _check_alike(model: nn.Module, image_size: int, session: Any) -> None:
    example = _example(image_size)
    found, expected = session.run(None, {"pixels": example.numpy()})[0], model(example).numpy()
    if np.abs(found - expected).max() > TOLERANCE * np.abs(expected).max():
        raise ValueError("its features differ from those of torch")


def _example(image_size: int) -> Tensor:
    return torch.rand(2, 3, image_size, image_size, generator=torch.Generator().manual_seed(0))


def cache_folder() -> Path:
    """Where exported networks are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hilltop" / "onnx"


def _digest(key: str, image_size: int, model: nn.Module | None) -> str:
    """A name that changes with everything the exported file depends on."""
    versions = f"{torch.__version__} {version('timm')} {image_size}"
    made = hashlib.sha256(f"{versions} {key} {model}".encode())
    for name, value in sorted(model.state_dict().items() if model is not None else ()):
        made.update(name.encode() + value.numpy().tobytes())
    return made.hexdigest()[:32]


def _export(model: nn.Module, image_size: int, path: Path) -> None:
    with (
        warnings.catch_warnings(),
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
    ):
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        torch.onnx.export(
            model,
            (_example(image_size),),
            path,
            input_names=["pixels"],
            output_names=["features"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
