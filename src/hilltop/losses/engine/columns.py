"""Targets of very many classes, read a few classes at a time: dense, sparse or as indices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError, ArgumentTypeError

Targets = Tensor | tuple[Tensor, Tensor] | list[Tensor] | list[list[int]]
"""A dense or sparse tensor ``(N, C)``; a tuple of the row and the column of every label; or a list
with the classes of every row."""

_BLOCK = 1 << 20  # entries looked at in one go


@dataclass(frozen=True)
class DenseColumns:
    """Targets that are there for every pair."""

    dense: Tensor

    def part(self, here: slice) -> Tensor:
        """Return the targets of some classes."""
        return self.dense[:, here]

    def known(self) -> int:
        """Return the number of targets that are not NaN."""
        if not self.dense.dtype.is_floating_point:
            return self.dense.numel()
        blocks = torch.split(self.dense, max(1, _BLOCK // max(1, self.dense.shape[1])))
        return sum(int((block == block).sum()) for block in blocks)

    def by_class(self) -> Tensor:
        """Return targets that have the same best constant as these."""
        return self.dense


@dataclass(frozen=True)
class SparseColumns:
    """Targets that are 0 except for some pairs, which are sorted by class.

    ``on_host`` are the columns again, in plain numbers: where the classes of a part begin is then
    known without waiting for a device. ``ones`` says that no value is NaN.
    """

    rows: Tensor
    columns: Tensor
    values: Tensor
    shape: tuple[int, int]
    on_host: list[int]
    ones: bool

    def part(self, here: slice) -> Tensor:
        """Return the targets of some classes, dense."""
        first, last = (bisect_left(self.on_host, edge) for edge in (here.start, here.stop))
        rows, columns = self.rows[first:last], self.columns[first:last] - here.start
        dense = self.values.new_zeros(self.shape[0], here.stop - here.start)
        dense[rows, columns] = self.values[first:last]
        return dense

    def known(self) -> int:
        """Return the number of targets that are not NaN."""
        unknown = 0 if self.ones else int((self.values != self.values).sum())
        return self.shape[0] * self.shape[1] - unknown

    def by_class(self) -> Tensor:
        """Return one row, the mean target of every class: its best constant is the same."""
        unknown = self.values != self.values
        values = torch.where(unknown, 0.0, self.values)
        labelled, left_out = (
            torch.zeros(self.shape[1], device=values.device).index_add_(0, self.columns, numbers)
            for numbers in (values.float(), unknown.float())
        )
        return (labelled / (self.shape[0] - left_out).clamp(min=1)).unsqueeze(0)


Columns = DenseColumns | SparseColumns


def columns_of(
    name: str,
    given: Targets,
    shape: tuple[int, int],
    *,
    device: torch.device | None = None,
    flags: bool = False,
) -> Columns:
    """Return targets of any form so that a few classes can be read at a time.

    Args:
        name: Name of the argument, for messages.
        given: Targets ``(N, C)`` in one of the forms of :data:`Targets`.
        shape: Number of rows and classes that they must have.
        device: Where indices are brought.
        flags: Whether indices stand for True rather than for 1.
    """
    if isinstance(given, Tensor) and given.layout == torch.strided:
        check_same_shape(name, given.shape, "features and classes", shape)
        return DenseColumns(given)
    ones = not isinstance(given, Tensor)
    if isinstance(given, Tensor):
        check_same_shape(name, given.shape, "features and classes", shape)
        entries = given.to_sparse(layout=torch.sparse_coo).coalesce()
        (rows, columns), values = entries.indices(), entries.values()
    else:
        rows, columns = _indices(name, given, shape)
        values = torch.ones_like(rows, dtype=torch.bool if flags else torch.float32)
    _check_indices(name, rows, columns, shape)
    columns, order = columns.sort(stable=True)
    on_host: list[int] = columns.tolist()
    rows, columns, values = (one.to(device) for one in (rows[order], columns, values[order]))
    return SparseColumns(rows, columns, values, shape, on_host, ones)


def _indices(name: str, given: Targets, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The row and the column of every label."""
    if isinstance(given, tuple) and len(given) == 2:
        rows, columns = (_index(name, index) for index in given)
        check_same_shape(f"columns of {name}", columns.shape, "rows", rows.shape)
        return rows, columns
    if not isinstance(given, list):
        raise ArgumentTypeError(
            f"{name} must be a tensor, a pair (rows, columns) or a list with the classes of every"
            f" row, but got {type(given).__name__}."
        )
    if len(given) != shape[0]:
        raise ArgumentError(
            f"{name} must have one list of classes for each of {shape[0]} rows of features,"
            f" but got {len(given)}."
        )
    parts = [_index(name, classes) for classes in given]
    counts = torch.tensor([len(part) for part in parts], dtype=torch.long)
    rows = torch.repeat_interleave(torch.arange(len(parts)), counts)
    return rows, torch.cat(parts) if parts else rows


def _index(name: str, index: Tensor | Sequence[int]) -> Tensor:
    """Whole numbers in one row; an empty list is one too."""
    tensor = torch.as_tensor(index)
    if not tensor.numel():
        return tensor.new_empty(0, dtype=torch.long)
    if tensor.ndim != 1 or tensor.dtype.is_floating_point or tensor.dtype == torch.bool:
        raise ArgumentTypeError(
            f"{name} given as indices must be rows of whole numbers, but got"
            f" {tensor.dtype} of shape {tuple(tensor.shape)}."
        )
    return tensor.long()


def _check_indices(name: str, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
    """Raise unless every index is inside ``shape``."""
    for what, index, size in (("row", rows, shape[0]), ("class", columns, shape[1])):
        outside = (index < 0) | (index >= size)
        if bool(outside.any()):
            raise ArgumentError(
                f"{name} must name a {what} from 0 to {size - 1}, but got {int(index[outside][0])}."
            )
