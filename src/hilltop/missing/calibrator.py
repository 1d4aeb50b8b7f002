"""Calibrator: probabilities of truth and decisions for anybody's scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.missing.decision import Goal
from hilltop.missing.interval import Z_90
from hilltop.missing.logistic import Floats
from hilltop.missing.model import MissingLabelModel

_SURE = 1e-6  # probabilities of 0 and 1 are taken as this far from it
_LOGIT_SPREAD, _LOGIT_DISTANCE = (0.2, 20.0), 40.0
"""Scores with a standard deviation and a distance from 0 like these are taken as they are."""


class Calibrator:
    """Calibrates anybody's scores to incomplete labels, in the manner of scikit-learn.

    Labels are known to be incomplete: a 0 may be a label that nobody recorded. ``fit`` finds out
    how labels were lost, ``transform`` gives the probability that a label is true, ``predict``
    decides. Scores must come from a model that did not learn from these labels, such as
    ``cross_val_predict``'s.

    Args:
        probabilities: Whether scores are probabilities; otherwise they are logits, or margins or
            similarities in any unit.
        goal: What thresholds are for: ``balanced_f1``, ``class_f1``, ``f1``, ``precision``,
            ``recall`` or ``tags``.
        wanted: The precision, recall or number of tags per image that is asked for.

    Attributes:
        model_: The :class:`MissingLabelModel`.
        decision_: The :class:`Decision`: thresholds, and what to expect of them.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(0, 6, (2000, 3))
        >>> true = rng.random((2000, 3)) < 1 / (1 + np.exp(-logits))
        >>> recorded = true & (rng.random((2000, 3)) < 0.4)
        >>> calibrator = Calibrator().fit(logits, recorded)
        >>> bool(abs(calibrator.transform(logits).mean() - true.mean()) < 0.05)
        True
        >>> bool((calibrator.predict(logits) == true).mean() > 0.9)
        True
    """

    def __init__(
        self,
        *,
        probabilities: bool = False,
        goal: Goal = "balanced_f1",
        wanted: float | None = None,
    ) -> None:
        """Keep the parameters as they are; ``fit`` checks them."""
        self.probabilities = probabilities
        self.goal: Goal = goal
        self.wanted = wanted

    def fit(self, scores: Any, labels: Any, *, verified: Any = None) -> Self:
        """Find out how labels were lost, calibrate and choose thresholds.

        Args:
            scores: ``(N, C)``; NaN where there is none.
            labels: ``(N, C)``: 1 labelled, 0 not labelled, NaN for unknown.
            verified: True where a person verified that an entry is absent.
        """
        logits, targets = self._logits(scores), _matrix("labels", labels)
        check_same_shape("labels", targets.shape, "scores", logits.shape)
        if not bool(((targets == 0) | (targets == 1) | np.isnan(targets)).all()):
            raise ArgumentError("labels must be 0, 1, or NaN for unknown.")
        absent = None if verified is None else _matrix("verified", verified) == 1
        if absent is not None:
            check_same_shape("verified", absent.shape, "scores", logits.shape)
        targets = np.where(np.isnan(logits), np.nan, targets)
        if not (targets == 1).any():
            raise ArgumentError(
                "labels have no 1 where there is a score, so that nothing can be learnt from them."
            )
        if not (targets == 0).any() and np.isnan(targets).any():
            raise ArgumentError(
                "labels are 1 wherever they are known, so that nothing tells what is absent; give"
                " 0, not NaN, where somebody looked and recorded no label."
            )
        self._scale, self._shift = _to_logits(logits, targets)
        self.model_ = MissingLabelModel.fit(self._scaled(logits), targets, verified=absent)
        self.decision_ = self.model_.thresholds(self.goal, wanted=self.wanted)
        return self

    def transform(self, scores: Any) -> Floats:
        """Return the probability that each label is true ``(N, C)``."""
        if not hasattr(self, "model_"):
            raise ArgumentError("This Calibrator is not fitted yet; call fit first.")
        logits, classes = self._logits(scores), len(self.decision_.log_odds)
        if logits.shape[1] != classes:
            raise ArgumentError(
                f"scores must have {classes} columns, as in fit, but got {logits.shape[1]}."
            )
        probs: Floats = self.model_.probs(self._scaled(logits))
        return probs

    def predict(self, scores: Any) -> npt.NDArray[np.int64]:
        """Return 1 for labels that are predicted, 0 for others ``(N, C)``."""
        return (self.transform(scores) > self.decision_.thresholds).astype(np.int64)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, as scikit-learn's ``clone`` wants them."""
        return {"probabilities": self.probabilities, "goal": self.goal, "wanted": self.wanted}

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters."""
        for name, value in params.items():
            if name not in self.get_params():
                known = ", ".join(self.get_params())
                raise ArgumentError(f"Calibrator has no parameter {name!r}; it has {known}.")
            setattr(self, name, value)
        return self

    def _scaled(self, logits: Floats) -> Floats:
        return logits * self._scale + self._shift

    def _logits(self, scores: Any) -> Floats:
        values = _matrix("scores", scores)
        if not self.probabilities:
            return values
        outside = values[(values < 0) | (values > 1)]
        if outside.size:
            raise ArgumentError(
                f"scores must lie between 0 and 1 with probabilities=True, but got {outside[0]:g}."
            )
        logits: Floats = logit(np.clip(values, _SURE, 1 - _SURE))
        return logits


def _to_logits(scores: Floats, targets: Floats) -> tuple[float, Floats]:
    """A factor, and an offset of each class, that turn scores of any unit into logits, about."""
    known = ~np.isnan(targets)
    number = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, scores, 0.0).sum(axis=0) / number
    centered = np.where(known, scores - mean, 0.0)
    spread = float(np.sqrt((centered**2).sum() / max(1, known.sum())))
    if spread <= 1e-9 * max(1e-9, float(np.abs(mean).max())):
        return 0.0, np.zeros_like(mean)
    away = centered[targets == 1] / spread
    if away.sum() < -3 * Z_90 * np.sqrt(len(away)) and len(away) > 3 * targets.shape[1]:
        raise ArgumentError(
            f"scores are lower where labels are, by {-float(away.mean()):.2f} standard"
            " deviations; higher scores must mean more probable labels: pass -scores."
        )
    low, high = _LOGIT_SPREAD
    if low <= spread <= high and float(np.abs(mean).max()) <= _LOGIT_DISTANCE:
        return 1.0, np.zeros_like(mean)
    share = ((targets == 1).sum(axis=0) + 0.5) / (number + 1.0)
    return 1 / spread, logit(share) - mean / spread


def _matrix(name: str, values: Any) -> Floats:
    """A matrix of floats from an array, a tensor, a frame, a sparse matrix or lists."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    dense = dense.detach().cpu() if hasattr(dense, "detach") else dense
    try:
        matrix = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be numbers, one row per image: {error}") from None
    if matrix.ndim != 2 or not matrix.size:
        raise ArgumentError(
            f"{name} must have one row per image and one column per class,"
            f" but got the shape {matrix.shape}."
        )
    if np.isinf(matrix).any():
        raise ArgumentError(f"{name} must be finite, or NaN where there is none.")
    return matrix
