"""Out-of-fold scores over several processes: every process trains some of the heads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hilltop.data.array_files import read_npy
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.inputs.ranks import Ranks
from hilltop.losses import Loss
from hilltop.training.folds import out_of_fold_logits

_ROWS = 1 << 14


@dataclass(frozen=True)
class HeadShards:
    """Where processes keep what their heads said, in a folder that all machines see.

    Attributes:
        parts: The folder.
        ranks: The processes.
    """

    parts: Path
    ranks: Ranks

    def units(self, heads: int) -> list[list[int]]:
        """Return numbers of heads that are trained together, one unit for each process.

        Example:
            >>> HeadShards(Path("parts"), Ranks(0, 3)).units(8)
            [[0, 1, 2], [3, 4, 5], [6, 7]]
        """
        parts = np.array_split(np.arange(heads), min(self.ranks.world, heads))
        return [part.tolist() for part in parts]


def shared_out_of_fold_logits(
    features: Tensor,
    targets: Tensor,
    loss: Loss,
    *,
    shards: HeadShards,
    observed: Tensor | None,
    folds: int,
    repeats: int,
    seed: int,
    say: Callable[[str], None],
) -> Tensor:
    """Return what :func:`out_of_fold_logits` does, in every process.

    What a process has finished stays in the folder, and is not done again after a kill. A loss that
    learns, or looks at whole batches, ties heads together: then every process trains all of them.
    """
    options: dict[str, Any] = {"folds": folds, "repeats": repeats, "seed": seed}
    tied = not loss.independent_rows or any(True for _ in loss.parameters())
    if shards.ranks.world == 1 or tied:
        return out_of_fold_logits(features, targets, loss, observed=observed, **options)
    units = shards.units(folds * repeats)
    key = _key([features, targets, observed], f"{loss} {options} {units}")
    files = [shards.parts / f"heads-{key}-{number}.npy" for number in range(len(units))]
    shards.parts.mkdir(parents=True, exist_ok=True)
    for number in shards.ranks.share(range(len(units))):
        if files[number].is_file():
            say("the heads of this process were trained before")
            continue
        logits = out_of_fold_logits(
            features, targets, loss, observed=observed, heads=units[number], **options
        )
        _save(files[number], logits)
    shards.ranks.wait()
    whole = shards.parts / f"heads-{key}.npy"
    if shards.ranks.first and not whole.is_file():
        _add(files, whole)
    shards.ranks.wait()
    return torch.from_numpy(np.load(whole, mmap_mode="c"))  # read where it is used, then let go


def _key(tensors: Sequence[Tensor | None], text: str) -> str:
    """A name for everything that the logits depend on."""
    digest = hashlib.blake2b(text.encode(), digest_size=8)
    for tensor in tensors:
        if tensor is not None:
            digest.update(tensor.contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _save(path: Path, logits: Tensor) -> None:
    with replacing(path) as temporary:
        np.save(temporary, logits.numpy())


def _add(files: Sequence[Path], whole: Path) -> None:
    """Write the sum over files, some rows at a time and always in the same order."""
    for file in files:
        if not file.is_file():
            raise data_error(file, "heads of another process are not here. Run the command again.")
    parts = [read_npy(file, mapped=True) for file in files]
    first = parts[0]
    with replacing(whole) as temporary:
        total = np.lib.format.open_memmap(
            temporary, mode="w+", dtype=first.dtype, shape=first.shape
        )
        for start in range(0, len(total), _ROWS):
            rows = slice(start, start + _ROWS)
            total[rows] = first[rows]
            for part in parts[1:]:
                total[rows] += part[rows]
        total.flush()
