"""Outputs of frozen blocks in place of images, served to the loop from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data.label_table import Ints


@dataclass(frozen=True)
class Window:
    """The part of an image's outputs that a model sees.

    Attributes:
        axes: Which two axes of a batch are height and width.
        sides: How many outputs it sees along each.
    """

    axes: tuple[int, int]
    sides: tuple[int, int]

    def cut(self, outputs: Tensor, generator: np.random.Generator | None) -> Tensor:
        """Cut it out of the outputs of one image: anywhere and mirrored, or in the middle."""
        for axis, side in zip(self.axes, self.sides, strict=True):
            room = outputs.shape[axis - 1] - side
            first = room // 2 if generator is None else int(generator.integers(room + 1))
            outputs = outputs.narrow(axis - 1, first, side)
        if generator is not None and generator.integers(2):
            outputs = outputs.flip(self.axes[1] - 1)
        return outputs


class OutputInputs:
    """Outputs of frozen blocks, one row an image, read where they lie.

    Args:
        values: Their numbers ``(images, ...)``, usually mapped from a file.
        broken: Row and name of every image that could not be read, and why.
        window: What is cut at random from the outputs while training, and from the middle
            otherwise; None serves them whole.
        seed: Seed of that.
    """

    def __init__(
        self,
        values: npt.NDArray[Any],
        broken: Sequence[tuple[int, str, str]],
        *,
        window: Window | None,
        seed: int,
    ) -> None:
        """Keep what was computed."""
        self.values, self.window, self.seed = values, window, seed
        self._broken = list(broken)
        self._rows = {row for row, _, _ in broken}

    @property
    def broken(self) -> list[tuple[str, str]]:
        """Id and reason of every image that was left out, ordered by id."""
        return sorted((name, reason) for _, name, reason in self._broken)

    def loader(
        self, plan: Sequence[Sequence[int]], epoch: int | None
    ) -> Iterator[tuple[Ints, Tensor]]:
        """Yield, for each batch of the plan, the rows that could be read and their outputs."""
        for rows in plan:
            chosen = np.array([row for row in rows if row not in self._rows], dtype=np.int64)
            outputs = torch.from_numpy(self.values[chosen]).float()
            if self.window is not None:
                parts = [
                    self.window.cut(one, self._generator(epoch, int(row)))
                    for row, one in zip(chosen, outputs, strict=True)
                ]
                outputs = torch.stack(parts) if parts else outputs
            yield chosen, outputs

    def _generator(self, epoch: int | None, row: int) -> np.random.Generator | None:
        return None if epoch is None else np.random.default_rng([self.seed, epoch, row])
