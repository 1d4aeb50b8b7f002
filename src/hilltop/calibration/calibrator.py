"""TruthCalibrator: probabilities of truth and decisions for anybody's scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.calibration.arrays import Floats
from hilltop.calibration.decision import Goal
from hilltop.calibration.score_scale import score_scale
from hilltop.calibration.truth import fit_truth
from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError

_SURE = 1e-6  # probabilities of 0 and 1 are taken as this far from it


class TruthCalibrator:
    """Calibrates anybody's scores to incomplete labels, in the manner of scikit-learn.

    Labels are known to be incomplete: a 0 may be a label that nobody wrote down. ``fit`` finds out
    how labels were lost, ``transform`` gives the probability that a label is true, ``predict``
    decides. Scores must come from a model that did not learn from these labels, such as
    ``cross_val_predict``'s.

    Args:
        probabilities: Whether scores are probabilities; otherwise they are logits, or margins or
            similarities in any unit.
        goal: What thresholds are for: ``balanced_f1``, ``class_f1``, ``f1``, ``precision``,
            ``recall`` or ``tags``.
        wanted: The precision, recall or number of tags an image that is asked for.

    Attributes:
        scale_: The factor, and the offset of each class, that turn scores into logits; 1 and 0 for
            scores that are logits.
        truth_: The :class:`TruthModel` of these logits.
        decision_: The :class:`Decision`: thresholds, and what may be expected of them.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(0, 6, (2000, 3))
        >>> true = rng.random((2000, 3)) < 1 / (1 + np.exp(-logits))
        >>> kept = true & (rng.random((2000, 3)) < 0.4)
        >>> calibrator = TruthCalibrator().fit(logits, kept)
        >>> print(f"{calibrator.transform(logits).mean():.2f}, truth {true.mean():.2f}")
        0.49, truth 0.50
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

    def fit(self, scores: Any, labels: Any, *, observed: Any = None) -> Self:
        """Find out how labels were lost, calibrate and choose thresholds.

        Args:
            scores: ``(N, C)``; NaN where there is none.
            labels: ``(N, C)``: 1 for labelled, 0 for not labelled, NaN for unknown.
            observed: True where a person confirmed that a pair is absent.
        """
        logits, targets = self._logits(scores), _matrix("labels", labels)
        check_same_shape("labels", targets.shape, "scores", logits.shape)
        if not bool(((targets == 0) | (targets == 1) | targets.isnan()).all()):
            raise ArgumentError("labels must be 0, 1, or NaN for unknown.")
        absent = None if observed is None else _matrix("observed", observed) == 1
        if absent is not None:
            check_same_shape("observed", absent.shape, "scores", logits.shape)
        targets = targets.masked_fill(logits.isnan(), torch.nan)
        if not bool((targets == 1).any()):
            raise ArgumentError(
                "labels have no 1 where there is a score, so that nothing can be learnt from them."
            )
        if not bool((targets == 0).any()) and bool(targets.isnan().any()):
            raise ArgumentError(
                "labels are 1 wherever they are known, so that nothing tells what is absent; give"
                " 0, not NaN, where somebody looked and wrote no label down."
            )
        self.scale_ = score_scale(logits, targets)
        self.truth_ = fit_truth(self.scale_(logits), targets, observed=absent)
        self.decision_ = self.truth_.decide(self.goal, wanted=self.wanted)
        return self

    def transform(self, scores: Any) -> Floats:
        """Return the probability that each label is true ``(N, C)``."""
        if not hasattr(self, "truth_"):
            raise ArgumentError("This TruthCalibrator is not fitted yet; call fit first.")
        logits, classes = self._logits(scores), len(self.decision_.logits)
        if logits.shape[1] != classes:
            raise ArgumentError(
                f"scores must have {classes} columns, as in fit, but got {logits.shape[1]}."
            )
        probs: Floats = self.truth_.probs(self.scale_(logits)).double().numpy()
        return probs

    def predict(self, scores: Any) -> npt.NDArray[np.int64]:
        """Return 1 for labels that are said, 0 for others ``(N, C)``."""
        return (self.transform(scores) > self.decision_.thresholds).astype(np.int64)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, as scikit-learn's ``clone`` wants them."""
        return {"probabilities": self.probabilities, "goal": self.goal, "wanted": self.wanted}

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters."""
        for name, value in params.items():
            if name not in self.get_params():
                known = ", ".join(self.get_params())
                raise ArgumentError(f"TruthCalibrator has no parameter {name!r}; it has {known}.")
            setattr(self, name, value)
        return self

    def _logits(self, scores: Any) -> Tensor:
        values = _matrix("scores", scores)
        if not self.probabilities:
            return values
        if bool(((values < 0) | (values > 1)).any()):
            outside = float(values[(values < 0) | (values > 1)][0])
            raise ArgumentError(
                f"scores must lie between 0 and 1 with probabilities=True, but got {outside:g}."
            )
        return torch.logit(values, eps=_SURE)


def _matrix(name: str, values: Any) -> Tensor:
    """A float tensor from an array, a tensor, a frame, a sparse matrix or lists."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    dense = dense.detach().cpu() if isinstance(dense, Tensor) else dense
    try:
        with np.errstate(over="ignore"):  # to infinity, which is refused below
            matrix = torch.as_tensor(np.asarray(dense, dtype=np.float32))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be numbers, one row an image: {error}") from None
    if matrix.ndim != 2 or not matrix.numel():
        raise ArgumentError(
            f"{name} must have one row an image and one column a class,"
            f" but got the shape {tuple(matrix.shape)}."
        )
    if bool(matrix.isinf().any()):
        raise ArgumentError(f"{name} must be finite, or NaN where there is none.")
    return matrix
