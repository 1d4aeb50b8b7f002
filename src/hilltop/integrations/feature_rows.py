"""Features as scikit-learn's users have them, dense or sparse, and logits of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor

from hilltop.models import FeatureHead, Features, SparseRows

_SPARSE_ROWS = 1024  # that are dense at a time


def checked_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> Features:  # noqa: N803
    """Check features as scikit-learn does.

    Args:
        estimator: Who asks, and remembers number and names of the features.
        X: An array or a scipy sparse matrix ``(n, features)``.
        reset: Whether these are the features it learns from.
    """
    if getattr(X, "dtype", None) == np.float16:
        X = X.astype(np.float32)  # noqa: N806 (theirs); float64 would take four times the memory
    values = validate_data(
        estimator, X, reset=reset, dtype=[np.float64, np.float32], accept_sparse="csr"
    )
    if issparse(values):
        return SparseRows(values)
    # torch warns of arrays that cannot be written to, though nobody writes to this one.
    return torch.from_numpy(values if values.flags.writeable else values.copy())


@torch.no_grad()
def logits_in_parts(head: FeatureHead, features: Features) -> Tensor:
    """Return logits of all rows; of sparse ones, some are dense at a time."""
    step = len(features) if isinstance(features, Tensor) else _SPARSE_ROWS
    starts, dtype = range(0, len(features), step), head.mean.dtype
    return torch.cat([head(features[at : at + step].to(dtype)) for at in starts])
