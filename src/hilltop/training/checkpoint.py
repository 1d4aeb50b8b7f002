"""Checkpoints that survive a kill at any moment, in files that hold numbers only.

Everything is safetensors with a JSON note: nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from hilltop.data.data_errors import data_error

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Progress:
    """How far a run has come: what is done of which epoch, and the best so far."""

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    recovered: tuple[float, ...] = ()
    best_map: float = -1.0
    best_epoch: int = -1


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> None:
    """Write a file completely or not at all: beside it first, then moved over it."""
    temporary = path.with_name(f".{path.name}.writing")
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(own, temporary, metadata={"hilltop": json.dumps(note)})
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """Read what :func:`save_tensors` wrote."""
    if not path.is_file():
        raise data_error(path, "there is no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            note = json.loads((file.metadata() or {}).get("hilltop", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, note  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise data_error(path, f"this is not a whole safetensors file: {error}.") from None


def save_state(
    path: Path,
    modules: Mapping[str, nn.Module],
    optimizer: torch.optim.Optimizer,
    others: Mapping[str, Any],
    progress: Progress,
    rng_states: Tensors,
) -> None:
    """Write everything that a resumed run needs to go on as if it had never stopped.

    ``others`` have a ``state_dict`` of plain numbers: schedule, gradient scaler. ``rng_states``
    has those of the random generators, a row for each rank.
    """
    tensors = {f"random.{name}": states for name, states in rng_states.items()}
    for name, module in modules.items():
        tensors |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
    state = optimizer.state_dict()
    for number, values in state["state"].items():
        for key, value in values.items():
            tensors[f"optimizer.{number}.{key}"] = torch.as_tensor(value)
    note = {
        "progress": vars(progress),
        "groups": state["param_groups"],
        "others": {name: _plain_state(other) for name, other in others.items()},
    }
    save_tensors(path, tensors, note)


def load_state(
    path: Path,
    modules: Mapping[str, nn.Module],
    optimizer: torch.optim.Optimizer,
    others: Mapping[str, Any],
    rank: int = 0,
) -> Progress:
    """Put everything back as :func:`save_state` found it on this rank."""
    tensors, note = load_tensors(path)
    try:
        for name, module in modules.items():
            module.load_state_dict(_under(tensors, f"{name}."))
        state: dict[int, Tensors] = {}
        for key, value in _under(tensors, "optimizer.").items():
            number, _, field = key.partition(".")
            state.setdefault(int(number), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": note["groups"]})
        for name, other in others.items():
            other.load_state_dict(note["others"][name])
        set_rng_state(_under(tensors, "random."), rank)
        made = note["progress"]
        return Progress(**{**made, "recovered": tuple(made["recovered"])})
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise data_error(path, f"this state does not fit the run: {error}.") from None


def rng_state() -> Tensors:
    """States of the random generators of this process."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def set_rng_state(states: Tensors, rank: int) -> None:
    """Put the generators where a rank left them; a rank that was not there starts as the first."""
    for name, rows in states.items():
        state = rows[rank if rank < len(rows) else 0].clone()
        if name == "cpu":
            torch.set_rng_state(state)
        elif torch.cuda.is_available():
            torch.cuda.set_rng_state(state)


def _under(tensors: Tensors, prefix: str) -> Tensors:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _plain_state(other: Any) -> dict[str, Any]:
    """The numbers and words in a state; functions are made anew by the owner."""
    plain = (int, float, str, bool, list, type(None))
    return {key: value for key, value in other.state_dict().items() if isinstance(value, plain)}


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
