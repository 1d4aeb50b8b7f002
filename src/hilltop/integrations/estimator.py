"""HilltopClassifier: a head on features behind the interface of scikit-learn."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
)
from torch import Tensor

from hilltop.checks import check_choice, check_number, check_whole
from hilltop.errors import ArgumentError
from hilltop.integrations.feature_rows import checked_features, logits_in_parts
from hilltop.integrations.held_out import known_map, map_scorer, set_aside
from hilltop.integrations.target_kinds import Labels, read_labels, read_truth
from hilltop.losses import Loss
from hilltop.missing import Decision, MissingLabelModel
from hilltop.models import Features, take_rows
from hilltop.training.heads import EarlyStopping, fit_head, truth_of_head
from hilltop.training.learner import head_loss
from hilltop.training.recipe import HEADS, Recipe

Array = npt.NDArray[Any]
UNLISTED = ("unknown", "absent")
BASELINE = "bce"  # where nothing can be missing
_MOST_ENTRIES = 2_000_000


class HilltopClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Linear or one-hidden-layer classifier on features, for labels of which some are missing.

    ``Y`` is a matrix of labels, an array or a scipy sparse matrix: 1 is present; 0 is not labelled,
    and ``unlisted`` says what that means; NaN is unknown and left out. A ``y`` of one column names
    a single class for each row; nothing is missing there.

    Args:
        loss: Name of a loss, a loss, or ``"auto"``: cross-entropy without the pairs that,
            by scores that never saw their labels, are probably missing labels.
        loss_options: Options of a loss that is given by name.
        unlisted: What 0 in a matrix means: ``"unknown"``, nobody said anything, or ``"absent"``, a
            person said it is not there.
        hidden: Width of a hidden layer; None for a linear classifier.
        epochs: How often to go through the rows (small data: through 50 steps).
        batch_size: Most rows in a step. Up to it, a weight of 2 is exactly the same as two rows.
        learning_rate: Peak of the one-cycle schedule; None fits it to the number of features.
        weight_decay: Penalty on weights, as in AdamW; None chooses it by cross-validation.
        early_stopping: Whether to keep the epoch that is best on rows set aside, by mAP, and to
            stop when none gets better.
        validation_fraction: Share of the rows set aside for it.
        n_iter_no_change: Epochs without a better one after which to stop.
        random_state: A number makes runs repeatable.

    Attributes:
        classes_: Class names, or column numbers of a matrix.
        loss_: The loss that was used.
        head_: The trained :class:`hilltop.models.FeatureHead`.
        missing_: The :class:`hilltop.missing.MissingLabelModel` of a matrix of labels: what is
            missing, and what scores mean; None for fewer than 20 rows.
        decision_: Thresholds for the best expected F1, a :class:`hilltop.missing.Decision`,
            with what may be expected of them; None without ``missing_``.
        threshold_: Probability above which ``predict`` says 1: one, or one for each class.
        n_iter_: Epochs that were trained.
        loss_curve_: Mean loss of a row in each epoch.
        validation_scores_: mAP on the rows set aside, after each epoch.

    Example:
        >>> import numpy as np
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
        >>> Y = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]] * 10)
        >>> model = HilltopClassifier(loss="bce", random_state=0).fit(X, Y)
        >>> model.predict(X[:4])
        array([[0, 1, 0],
               [1, 0, 0],
               [1, 1, 0],
               [0, 0, 1]])
        >>> model.score(X, Y)  # mAP
        1.0

    Note:
        Features in float32 are computed with in float32, all others in float64. ``GridSearchCV``
        asks scikit-learn what kind of targets it gets, which fails for NaN unless it is given a
        splitter: ``cv=KFold(5)``.
    """

    def __init__(
        self,
        loss: str | Loss = "auto",
        *,
        loss_options: dict[str, Any] | None = None,
        unlisted: str = "unknown",
        hidden: int | None = None,
        epochs: int = HEADS.epochs,
        batch_size: int = HEADS.batch_size,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: Any = None,
    ) -> None:
        """Keep the parameters as they are; ``fit`` checks them."""
        self.loss = loss
        self.loss_options = loss_options
        self.unlisted = unlisted
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803 (theirs)
        """Train.

        Args:
            X: Features ``(n, features)``, an array or a scipy sparse matrix.
            y: Labels, see the class.
            sample_weight: How much each row counts ``(n,)``.
        """
        recipe = self._recipe()
        features = checked_features(self, X, reset=True)
        if y is None:
            raise ArgumentError(
                "HilltopClassifier requires y to be passed, but the target y is None."
            )
        check_consistent_length(X, y)
        if sample_weight is None:
            self._train(features, read_labels(y, np.arange(len(features))), None, recipe)
            return self
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        rows = np.flatnonzero(weight)
        if not len(rows):
            raise ArgumentError("sample_weight must hold at least one weight above zero.")
        labels = read_labels(y, rows)
        self._train(
            take_rows(features, torch.from_numpy(rows)),
            labels,
            torch.from_numpy(weight[rows]),
            recipe,
        )
        return self

    def decision_function(self, X: Any) -> Array:  # noqa: N803 (theirs)
        """Return logits, shifted so that ``predict`` says 1 above 0; a column for two classes."""
        logits = self._logits(X)
        if self._kind == "multilabel":
            logits = self._calibrated(logits) - torch.as_tensor(self._shift).to(logits.dtype)
        shifted: Array = logits.numpy()
        return shifted.ravel() if self._kind == "binary" else shifted

    def predict_proba(self, X: Any) -> Array:  # noqa: N803 (theirs)
        """Return the probability that each label is true, or of each class, which then add up to 1.

        That a label is true, not that it was written down: it may be far more.
        """
        logits = self._logits(X)
        if self._kind == "binary":
            return torch.sigmoid(torch.cat([-logits, logits], dim=1)).numpy()
        if self._kind == "multiclass":
            # Probabilities of each class by itself divided by their sum, which as logs does not
            # become 0 / 0 for a row that no class wants.
            return torch.softmax(torch.nn.functional.logsigmoid(logits), dim=1).numpy()
        return torch.sigmoid(self._calibrated(logits)).numpy()

    def predict(self, X: Any) -> Array:  # noqa: N803 (theirs)
        """Return a matrix of 1 and 0, or one class for each row."""
        decided = self.decision_function(X)
        if self._kind == "multilabel":
            return (decided > 0).astype(self._dtype)
        codes = (decided > 0).astype(int) if decided.ndim == 1 else decided.argmax(axis=1)
        predicted: Array = self.classes_[codes]
        return predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803 (theirs)
        """Return mAP on the known labels of a matrix, or accuracy for one column.

        Classes without a label in ``y`` are left out of the mean.
        """
        check_is_fitted(self)
        if self._kind != "multilabel":
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        return known_map(self.predict_proba(X), read_truth(y), sample_weight)

    def __sklearn_tags__(self) -> Any:
        """Say that matrices of labels and sparse features are welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags

    def _recipe(self) -> Recipe:
        """Check the parameters."""
        check_choice("unlisted", self.unlisted, UNLISTED)
        check_number("validation_fraction", self.validation_fraction, low=0, high=0.9)
        check_whole("n_iter_no_change", self.n_iter_no_change, low=1)
        if self.hidden is not None:
            check_whole("hidden", self.hidden, low=1)
        recipe = dataclasses.replace(
            HEADS,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
        )
        recipe.check()
        return recipe

    def _train(
        self, features: Features, labels: Labels, weight: Tensor | None, recipe: Recipe
    ) -> None:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        seed = int(seed)
        stopping = None
        if self.early_stopping:
            rows, aside = set_aside(len(labels), self.validation_fraction, seed)
            scorer = map_scorer(features[aside], labels.dense(aside))
            stopping = EarlyStopping(scorer, self.n_iter_no_change)
            features, labels = take_rows(features, rows), labels.select(rows)
            weight = None if weight is None else weight[rows]
        confirmed = labels.kind == "multilabel" and self.unlisted == "absent"

        def batch(chosen: Tensor) -> tuple[Tensor, Tensor | None]:
            targets = labels.dense(chosen)
            return targets, torch.ones_like(targets, dtype=torch.bool) if confirmed else None

        self.loss_ = self._build_loss(complete=confirmed or labels.kind != "multilabel")
        self.loss_.reduction = "sum" if weight is None else "none"
        fitted = fit_head(
            features,
            batch,
            self.loss_,
            classes=labels.outputs,
            stats=labels.label_stats(recipe.epochs, weight),
            seed=seed,
            recipe=recipe,
            hidden=self.hidden,
            row_weight=weight,
            stopping=stopping,
        )
        self._kind, self._dtype, self.classes_ = labels.kind, labels.dtype, labels.classes
        self.head_ = fitted.head.requires_grad_(False)
        self.n_iter_ = len(fitted.losses)
        self.loss_curve_, self.validation_scores_ = list(fitted.losses), list(fitted.scores)
        self.missing_: MissingLabelModel | None = None
        self.decision_: Decision | None = None
        if labels.kind == "multilabel":
            self.missing_ = truth_of_head(
                features,
                batch,
                fitted.initial_loss,
                seed=seed,
                recipe=fitted.recipe,
                hidden=self.hidden,
                evidence=fitted.evidence,
                row_weight=weight,
            )
        self._choose_thresholds(features, labels.outputs)

    def _choose_thresholds(self, features: Features, classes: int) -> None:
        if self.missing_ is not None:
            self.decision_ = self.missing_.thresholds()
            self.threshold_: Any = self.decision_.thresholds
            self._shift: Any = self.decision_.log_odds
            return
        some = features[:: -(-len(features) * classes // _MOST_ENTRIES)]
        self.threshold_ = self.loss_.decision_threshold(torch.sigmoid(self.head_(some)))
        self._shift = float(np.log(self.threshold_) - np.log1p(-self.threshold_))

    def _build_loss(self, *, complete: bool) -> Loss:
        options = self.loss_options or {}
        if isinstance(self.loss, Loss):
            if options:
                raise ArgumentError("loss_options belong to a loss that is given by name.")
            return copy.deepcopy(self.loss)
        name = BASELINE if self.loss == "auto" and complete else self.loss
        return head_loss(name, **options)

    def _calibrated(self, logits: Tensor) -> Tensor:
        """Logits of the probability of truth, where that was found out."""
        return logits if self.missing_ is None else self.missing_.calibration(logits)

    def _logits(self, X: Any) -> Tensor:  # noqa: N803 (theirs)
        check_is_fitted(self)
        return logits_in_parts(self.head_, checked_features(self, X, reset=False))
