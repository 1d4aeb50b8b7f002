"""Checkpoints that survive a kill at any moment, in files that hold numbers only.

Everything is safetensors with a JSON note: nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing

Tensors = dict[str, Tensor]
_CHECKSUM = "sha256"


@dataclass(frozen=True)
class Progress:
    """How far a run has come: what is done of which epoch, and the best so far."""

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    pseudo_counts: tuple[float, ...] = ()
    best_map: float = -1.0
    best_epoch: int = -1


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> None:
    """Write a file completely or not at all: beside it first, then moved over it."""
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    # One entry: the order of several is drawn anew for each file, and equal runs would differ.
    text = json.dumps({**note, _CHECKSUM: _checksum(own, note)})
    with replacing(path) as temporary:
        try:
            save_file(own, temporary, metadata={"hilltop": text})
        except SafetensorError as error:  # a full disk, by another name
            raise OSError(str(error)) from None


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """Read what :func:`save_tensors` wrote.

    Raises:
        DataError: The file is cut, damaged or of another kind.
    """
    if not path.is_file():
        raise data_error(path, "there is no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            note = json.loads(about.get("hilltop", "{}"))
    except (SafetensorError, ValueError, OSError, RecursionError) as error:
        raise data_error(path, f"this is not a whole safetensors file: {error}.") from None
    if not isinstance(note, dict):
        raise data_error(path, "this file was not written by Hilltop.")
    checksum = note.pop(_CHECKSUM, None)  # older files have none
    if checksum is not None and checksum != _checksum(tensors, note):
        raise data_error(
            path, "this file is damaged: its checksum is wrong. Take it from a backup."
        )
    return tensors, note


def check_weights_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raise if there is a weight that is not a finite number."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise data_error(
                path,
                f"the weights {name!r} hold numbers that are not finite, as a run that diverged"
                " leaves them. Train again with a lower --learning-rate.",
            )


def save_state(
    path: Path,
    modules: Mapping[str, nn.Module],
    optimizer: torch.optim.Optimizer | None,
    others: Mapping[str, Any],
    progress: Progress,
    rng_states: Tensors,
) -> None:
    """Write everything that a resumed run needs to go on as if it had never stopped.

    A head that was solved has no optimizer. ``others`` have a ``state_dict`` of plain numbers:
    schedule, gradient scaler. ``rng_states`` has those of the random generators, a row for each
    rank.
    """
    tensors = {f"random.{name}": states for name, states in rng_states.items()}
    for name, module in modules.items():
        tensors |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
    state = _optimizer_state(optimizer)
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
    optimizer: torch.optim.Optimizer | None,
    others: Mapping[str, Any],
    rank: int = 0,
) -> Progress:
    """Put everything back as :func:`save_state` found it on this rank."""
    tensors, note = load_tensors(path)
    try:
        for name, module in modules.items():
            saved = _under(tensors, f"{name}.")
            if name != "loss":  # whose thresholds may be infinite
                check_weights_finite(path, saved)
            module.load_state_dict(saved)
        _load_optimizer(optimizer, _under(tensors, "optimizer."), note["groups"])
        for name, other in others.items():
            if name in note["others"]:  # a run of another precision has no scaler
                own = _plain_state(other)
                check_alike(name, note["others"][name], own)
                _check_length(note["others"][name], own)
                other.load_state_dict(note["others"][name])
        set_rng_state(_under(tensors, "random."), rank)
        made = note["progress"]
        check_alike("progress", made, {**vars(Progress()), "pseudo_counts": []})
        if min(made["epoch"], made["step"], made["loss_count"]) < 0:
            raise ValueError("progress must not be negative")
        return Progress(**{**made, "pseudo_counts": tuple(made["pseudo_counts"])})
    except (KeyError, RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = str(error).rstrip(".")
        raise data_error(path, f"this state does not fit the run: {reason}.") from None


def _optimizer_state(optimizer: torch.optim.Optimizer | None) -> dict[str, Any]:
    return {"state": {}, "param_groups": []} if optimizer is None else optimizer.state_dict()


def _load_optimizer(optimizer: torch.optim.Optimizer | None, tensors: Tensors, groups: Any) -> None:
    """Put the state of an optimiser back, once every part of it was seen to fit.

    Optimisers do not look: a state of another size makes a fused one write beyond its memory.
    """
    now = _optimizer_state(optimizer)["param_groups"]
    check_alike("groups", groups, now)
    if optimizer is None:
        if groups:
            raise ValueError(
                "an earlier release wrote it. Remove the file, and the head is solved anew"
            )
        return
    sizes = dict[int, torch.Size]()
    for group, own in zip(now, optimizer.param_groups, strict=True):
        sizes |= dict(zip(group["params"], (one.shape for one in own["params"]), strict=True))
    state: dict[int, Tensors] = {}
    for key, value in tensors.items():
        number, _, field = key.partition(".")
        size = sizes[int(number)]
        by_row = torch.Size((size[0], 1)) if len(size) == 2 else size
        fits = {torch.Size()} if field == "step" else {size, by_row}
        if value.shape not in fits or not value.is_floating_point():
            raise ValueError(f"optimizer.{key} has the shape {tuple(value.shape)}")
        if not bool(value.isfinite().all()):
            raise ValueError(f"optimizer.{key} holds numbers that are not finite")
        state.setdefault(int(number), {})[field] = value
    fields = {frozenset(values) for values in state.values()}
    if len(fields) > 1:
        raise ValueError("some parameters have less of a state than others")
    own_numbers = [
        {**group, "params": own["params"]} for group, own in zip(groups, now, strict=True)
    ]
    optimizer.load_state_dict({"state": state, "param_groups": own_numbers})
    _match_memory_format(optimizer)


def _check_length(given: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise ValueError if a schedule was made for another number of steps, and would end early."""
    before, now = given.get("total_steps"), own.get("total_steps")
    if before != now:
        raise ValueError(
            f"its learning rates are planned for {before} steps, but the run now has {now}. Put"
            " epochs, batch size and labels back as they were, or train anew with another --out"
        )


def check_alike(name: str, given: Any, like: Any) -> None:
    """Raise ValueError unless a value from a file has names and kinds of the value it replaces."""
    if isinstance(like, dict):
        if not isinstance(given, dict) or given.keys() != like.keys():
            raise ValueError(f"{name} must have the names {', '.join(like)}")
        for key, value in like.items():
            check_alike(f"{name}.{key}", given[key], value)
    elif isinstance(like, list | tuple):
        if not isinstance(given, list | tuple) or (like and len(given) != len(like)):
            raise ValueError(f"{name} must be a list of {len(like)}")
        for at, value in enumerate(like):
            check_alike(f"{name}.{at}", given[at], value)
    elif isinstance(like, float):
        if not isinstance(given, int | float) or not math.isfinite(given):
            raise ValueError(f"{name} must be a finite number, but is {given!r}")
    elif type(given) is not type(like):
        raise ValueError(f"{name} must be like {like!r}, but is {given!r}")


def _match_memory_format(optimizer: torch.optim.Optimizer) -> None:
    """Lay out what an optimiser remembers of a parameter in memory as the parameter is.

    Fused Adam goes through both by address: with a filter that is channels-last and moments that
    are not, it would move every weight by the moments of another.
    """
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if value.shape == parameter.shape and value.stride() != parameter.stride():
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


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


def _checksum(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> str:
    """A number that changes with any bit of tensors, names or note."""
    found = hashlib.sha256(json.dumps(note).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


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
