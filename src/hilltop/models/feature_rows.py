"""Rows of features: a tensor, or a sparse matrix of which a batch at a time becomes dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


class SparseRows:
    """A scipy sparse matrix that is indexed as a tensor is, and gives dense rows.

    A bag of words stays as small as it is; only the rows of a batch are ever written out.

    Args:
        matrix: Anything with ``tocsr``, of float32 or float64.

    Example:
        >>> from scipy.sparse import csr_array
        >>> rows = SparseRows(csr_array([[0.0, 2.0], [1.0, 0.0]]))
        >>> rows[torch.tensor([1])], rows.shape
        (tensor([[1., 0.]], dtype=torch.float64), (2, 2))
    """

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        """Keep the matrix by rows."""
        self.matrix = matrix.tocsr()
        self.shape: tuple[int, int] = self.matrix.shape
        self.dtype = torch.float64 if self.matrix.dtype == np.float64 else torch.float32

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        chosen = self.matrix[rows.numpy() if isinstance(rows, Tensor) else rows]
        return torch.from_numpy(chosen.toarray()).to(self.dtype)


Features = Tensor | SparseRows
"""What a head learns from, one row an image."""


def input_rows(features: Features, rows: Tensor) -> Tensor:
    """Return some rows to compute with: float64 stays as it is, all others become float32.

    Numbers such as times in seconds differ in digits that float32 does not have; a head takes their
    scale off before it rounds.
    """
    chosen = features[rows]
    return chosen if chosen.dtype == torch.float64 else chosen.float()


def take_rows(features: Features, rows: Tensor) -> Features:
    """Return some of the rows; sparse ones stay sparse.

    Example:
        >>> take_rows(torch.eye(2), torch.tensor([1]))
        tensor([[0., 1.]])
    """
    if isinstance(features, Tensor):
        return features[rows]
    return SparseRows(features.matrix[rows.numpy()])
