"""One process or many: launching Fabric, sharing out rows, bringing scores together, Ctrl-C."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hilltop.errors import MissingExtra

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LoggerName = Literal["csv", "tensorboard", "wandb", "mlflow"]
_LOGGERS = {
    "csv": ("lightning_fabric.loggers", "CSVLogger"),
    "tensorboard": ("lightning_fabric.loggers", "TensorBoardLogger"),
    "wandb": ("wandb.integration.lightning.fabric", "WandbLogger"),
    "mlflow": ("lightning.pytorch.loggers", "MLFlowLogger"),
}
_PROJECT = "hilltop"


def gradient_scaler(fabric: Fabric) -> dict[str, Any]:
    """The scaler of gradients by its name in a checkpoint, where the precision has one."""
    scaler = getattr(fabric.strategy.precision, "scaler", None)
    return {} if scaler is None else {"scaler": scaler}


class Interrupt:
    """While it is open, the first Ctrl-C sets ``asked``; a second one stops at once."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        """Start listening; only the main thread may."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


T = TypeVar("T")


def launch(precision: str, *, logger: LoggerName | None = None, folder: Path = Path()) -> Fabric:
    """Start Fabric on what there is; under torchrun, on all of its processes.

    Args:
        precision: ``auto``, or one of Fabric's.
        logger: Where metrics are logged beside the run folder.
        folder: The run folder.
    """
    if precision == "auto":
        precision = "16-mixed" if torch.cuda.is_available() else "32-true"
    if precision == "32":
        precision = "32-true"
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    accelerator = "cuda" if torch.cuda.is_available() else "cpu"
    fabric = _fabric_type()(
        accelerator=accelerator,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
        precision=precision,  # type: ignore[arg-type]
        loggers=[] if logger is None else build_logger(logger, folder),
    )
    fabric.launch()
    return fabric


def _fabric_type() -> type[Fabric]:
    """Import Fabric without torchmetrics, of which it wants to know the version.

    It would import the package for that; beside transformers and torchvision, which torchmetrics
    imports where they are installed, this takes three times as long as torch. Metadata say it, too.
    """
    try:
        from lightning_utilities.core import imports
    except ModuleNotFoundError as error:
        raise MissingExtra("Training", error.name, "train") from None
    compare = imports.compare_version

    def by_metadata(package: str, op: Any, version: str, use_base_version: bool = False) -> bool:
        if package == "torchmetrics":
            return bool(imports.RequirementCache(f"{package}>={version}"))
        return bool(compare(package, op, version, use_base_version))

    imports.compare_version = by_metadata
    try:
        from lightning_fabric import Fabric
    finally:
        imports.compare_version = compare
    return Fabric


def build_logger(name: LoggerName, folder: Path) -> Any:
    """Return one of the loggers that Fabric takes.

    CSV files and TensorBoard events are written into the run folder. Weights & Biases and MLflow
    are set up by their own environment variables (``WANDB_MODE=offline``,
    ``MLFLOW_TRACKING_URI``); what they write locally is in the run folder too.

    Raises:
        MissingExtra: The package is not installed.
    """
    module, kind = _LOGGERS[name]
    own = folder.resolve() / "mlflow.db"
    options: dict[str, Any] = {
        "csv": {"root_dir": folder, "name": "csv"},
        "tensorboard": {"root_dir": folder, "name": "tensorboard", "version": ""},
        "wandb": {"project": _PROJECT, "name": folder.name, "save_dir": folder},
        "mlflow": {
            "experiment_name": _PROJECT,
            "run_name": folder.name,
            "tracking_uri": os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{own}"),
        },
    }
    try:
        return getattr(importlib.import_module(module), kind)(**options[name])
    except ModuleNotFoundError as error:
        raise MissingExtra(f"--logger {name}", error.name or name, name) from None


def shard(rows: Sequence[int], rank: int, world: int) -> list[int]:
    """The rows of one rank; every row goes to one rank, none is padded."""
    return list(rows[rank::world])


def all_reduce_sum(part: Tensor) -> Tensor:
    """Add up what the ranks have, each with zeros in the rows of the others."""
    if _several():
        dist.all_reduce(part)
    return part


def average_gradients(module: nn.Module) -> None:
    """Have the gradients of a module averaged over ranks, as those of the model are.

    A loss that learns is not part of the model: left alone, every rank would learn its own.
    """
    if not _several():
        return

    for parameter in module.parameters():
        parameter.register_post_accumulate_grad_hook(_average)  # type: ignore[no-untyped-call]


def mean_over_ranks(parameters: Iterable[Tensor]) -> None:
    """Average the gradients of some parameters over ranks."""
    if _several():
        for parameter in parameters:
            _average(parameter)


def _average(parameter: Tensor) -> None:
    assert parameter.grad is not None
    dist.all_reduce(parameter.grad)
    parameter.grad /= dist.get_world_size()


def all_gather(part: Tensor, fabric: Fabric) -> Tensor:
    """What each rank has, a row each."""
    if fabric.world_size == 1:
        return part.unsqueeze(0)
    rows: Tensor = fabric.all_gather(part.to(fabric.device))  # type: ignore[assignment]
    return rows.cpu()


def all_gather_object(items: list[T]) -> list[T]:
    """The items of all ranks, one after another."""
    if not _several():
        return items
    lists: list[list[T]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(lists, items)
    return [item for part in lists for item in part]


def place_in_world() -> tuple[int, int]:
    """Number of this rank, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if _several() else (0, 1)


def any_rank(flag: bool, device: torch.device) -> bool:
    """Whether the flag is up on any rank."""
    return bool(all_reduce_sum(torch.tensor([int(flag)], device=device)).item())


def _several() -> bool:
    """Whether there are other ranks to talk to."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
