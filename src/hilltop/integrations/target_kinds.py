"""What scikit-learn calls y: one column of class names, or a matrix of labels, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses import LabelStats

Kind = Literal["binary", "multiclass", "multilabel"]


@dataclass(frozen=True)
class Labels:
    """Labels of some rows, as a head learns them: a column for each of its outputs.

    Attributes:
        kind: What y was. Of two classes a head has one output.
        classes: Class names, or column numbers of a matrix.
        matrix: 1, 0 or NaN; a scipy CSR matrix where y was sparse.
        dtype: Type of what ``predict`` returns.
    """

    kind: Kind
    classes: npt.NDArray[Any]
    matrix: Any
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def outputs(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def select(self, rows: Tensor) -> Labels:
        """Return the labels of some rows."""
        return replace(self, matrix=self.matrix[rows.numpy()])

    def dense(self, rows: Tensor) -> Tensor:
        """Targets of some rows."""
        chosen = self.matrix[rows.numpy()]
        return torch.from_numpy(chosen.toarray() if sparse.issparse(chosen) else chosen)

    def label_stats(self, epochs: int, weight: Tensor | None) -> LabelStats:
        """What a loss may know of the labels before training starts; rows may have weights."""
        return LabelStats(
            images=len(self),
            positives=self._labels(axis=0),
            labels_per_image=torch.bincount(self._labels(axis=1), weights=weight),
            epochs=epochs,
        )

    def _labels(self, *, axis: int) -> Tensor:
        """Labels of each class (0) or of each row (1)."""
        count = np.asarray((self.matrix == 1).sum(axis=axis)).ravel()
        return torch.from_numpy(count.astype(np.int64))


def read_labels(y: Any, rows: npt.NDArray[np.intp]) -> Labels:
    """Read y as ``fit`` gets it.

    Args:
        y: One column, or a matrix of 1, 0 and NaN.
        rows: The rows that count.

    Raises:
        ArgumentError: A matrix holds something else, a column one class only, or rows are lists.
    """
    if sparse.issparse(y):
        return _matrix(sparse.csr_matrix(y)[rows], y.dtype)
    if _holds_lists_of_names(y):
        raise ArgumentError(
            "y holds a list of labels for each row; HilltopClassifier needs a matrix with a column"
            " for each class: sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )
    values = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    if values.ndim == 1 or values.shape[1] == 1:
        return _column(column_or_1d(values, warn=True)[rows])
    return _matrix(values[rows], values.dtype)


def read_truth(y: Any) -> npt.NDArray[np.float32]:
    """Read a matrix that scores are judged by."""
    matrix = y.toarray() if sparse.issparse(y) else np.asarray(y)
    return _checked(matrix).astype(np.float32)


def _holds_lists_of_names(y: Any) -> bool:
    if not isinstance(y, list | tuple) and getattr(y, "dtype", None) != np.dtype(object):
        return False
    nested = [one for one in y if isinstance(one, list | tuple | set | frozenset)]
    return any(isinstance(name, str) for one in nested for name in one)


def _column(values: npt.NDArray[Any]) -> Labels:
    check_classification_targets(values)
    if values.dtype.kind == "f":
        assert_all_finite(values, input_name="y")
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise ArgumentError(
            f"y must name at least two classes, but has one class only, {classes.tolist()[0]!r}."
        )
    if len(classes) == 2:
        return Labels("binary", classes, codes.reshape(-1, 1).astype(np.float32), classes.dtype)
    one_hot = np.zeros((len(codes), len(classes)), dtype=np.float32)
    one_hot[np.arange(len(codes)), codes] = 1
    return Labels("multiclass", classes, one_hot, classes.dtype)


def _matrix(values: Any, dtype: np.dtype[Any]) -> Labels:
    if not sparse.issparse(values):
        values = _checked(values)
        if not (values == 0).any() and (values != values).any():
            raise ArgumentError(
                "A matrix y with nothing but 1 and NaN says nothing of what is absent: give 0, not"
                " NaN, where no label was written down."
            )
    else:
        _checked(values.data)
    kept = dtype if dtype.kind in "iub" else np.dtype(np.int64)
    columns = np.arange(values.shape[1])
    return Labels("multilabel", columns, values.astype(np.float32), kept)


def _checked(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind == "O":
        values = values.astype(np.float64)
    if values.dtype.kind not in "biuf":
        raise ArgumentError(f"A matrix y must hold 1, 0 and NaN, but is one of {values.dtype}.")
    wrong = (values != 0) & (values != 1) & (values == values)
    if wrong.any():
        found = float(values[wrong].flat[0])
        raise ArgumentError(
            "A matrix y must hold 1 (present), 0 (not labelled, see `unlisted`) and NaN (unknown),"
            f" but got {found:g}."
        )
    return values
