"""A head on features, in memory: evidence of missing labels, training, and what its scores mean.

Needs torch alone. The numbers are those of ``hilltop train --features``; the estimator, the audit
and the studies call the same functions.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hilltop.checks import check_whole, pluralize
from hilltop.deprecation import warn_renamed
from hilltop.errors import DataError
from hilltop.losses import LabelStats, Loss, MultiLabelLoss
from hilltop.losses.base import Evidence, Reduction
from hilltop.losses.row_weights import RowWeighted
from hilltop.missing.extra_scores import combine_scores, describe_weights
from hilltop.missing.model import MissingLabelModel
from hilltop.missing.priors import MIN_LOGLIK_GAIN
from hilltop.models import FeatureHead, Features, input_rows, take_rows
from hilltop.progress import ProgressLog, say
from hilltop.training.folds import CrossValidation, assign_folds, head_solver, solve_folds
from hilltop.training.learner import Learner, head_loss, start_head, step_threads
from hilltop.training.logistic import entry_weights, is_cross_entropy
from hilltop.training.recipe import HEADS, LabelBatch, Recipe

REPEATS = 2
"""How often images are dealt into folds; scores are means over the deals."""
LEAST_EVIDENCE_ROWS = 100
"""With fewer rows than this nothing can be told of missing labels."""
LEAST_CALIBRATED_ROWS = 20
"""With fewer rows than this, scores are not calibrated and tags are cut at one half."""
FOLDS = 4
LEAST_ABSENT = 0.3
"""An unlabelled entry that is less probably absent than this is masked out of the loss. One that is
doubtful stays whole: a head that learns from fewer entries is less certain, which costs more."""
NETWORK_LEAST_ABSENT = 0.7
"""The same for a network that learns from images. It has weights enough
to memorise missing labels as absent, so that a doubtful entry costs more than it teaches."""
SCRATCH_LEAST_ABSENT = 0.9
"""The same for a network without pretrained weights, which memorises even more. Of 0.5, 0.7, 0.9
and 0.95 on three draws of pictures other than those that judge the demo."""


class KnownLabels(NamedTuple):
    """What is known of the labels of all rows.

    Attributes:
        targets: 1 for labelled, 0 for not labelled, NaN for unknown ``(N, C)``.
        absent: True where a person verified that an entry is absent; None if nobody did.
        restored: True for labels that a review put back: they are evidence of missing ones, and do
            not count as recorded. None if there was no review.
    """

    targets: Tensor
    absent: Tensor | None = None
    restored: Tensor | None = None

    @classmethod
    def of(
        cls, labels: LabelBatch, images: int, *, before: LabelBatch | None = None
    ) -> KnownLabels:
        """Ask for the labels of all images, and for those before a review if there was one."""
        rows = torch.arange(images)
        targets, observed = labels(rows)
        restored = None if before is None else (targets == 1) & (before(rows)[0] != 1)
        return cls(targets, confirmed_absent(targets, observed), restored)

    @property
    def nothing_to_ask(self) -> str:
        """Why evidence of missing labels cannot be had or is not needed; empty if it can and is."""
        if self.absent is not None and bool((self.absent == (self.targets == 0)).all()):
            return "every pair is known to be present or absent: cross-entropy"
        if len(self.targets) < LEAST_EVIDENCE_ROWS or not bool((self.targets == 1).any()):
            return f"{len(self.targets)} rows are too few to tell what is missing"
        return ""

    @property
    def can_calibrate(self) -> bool:
        """Whether there are enough rows to calibrate by, and any label."""
        return len(self.targets) >= LEAST_CALIBRATED_ROWS and bool((self.targets == 1).any())


def confirmed_absent(targets: Tensor, observed: Tensor | None) -> Tensor | None:
    """The pairs that a person said are absent."""
    return None if observed is None else observed & (targets == 0)


def cross_validate_heads(
    features: Features, known: KnownLabels, *, seed: int, recipe: Recipe = HEADS
) -> CrossValidation:
    """Score rows by heads of cross-entropy that never saw their labels.

    Args:
        features: One row an image ``(N, F)``.
        known: Their labels.
        seed: The same seed gives the same scores.
        recipe: How heads are trained, where that was chosen already.
    """
    return cross_validate(
        features,
        known.targets,
        head_loss("bce", reduction="sum"),
        observed=known.absent,
        repeats=REPEATS,
        seed=seed,
        recipe=recipe,
    )


@dataclass(frozen=True)
class FoldEvidence:
    """Out-of-fold scores of heads of cross-entropy, and the missing-label model fitted to them.

    Attributes:
        logits: The scores ``(N, C)``, with those of another model combined if there are any.
        model: How labels were lost.
        heads: The heads that gave the scores.
    """

    logits: Tensor
    model: MissingLabelModel
    heads: CrossValidation | None = None

    @classmethod
    def fit(
        cls, heads: CrossValidation, known: KnownLabels, *, extra_scores: Tensor | None = None
    ) -> FoldEvidence:
        """Fit the missing-label model to cross-validated scores.

        Args:
            heads: What :func:`cross_validate_heads` returned.
            known: The labels.
            extra_scores: Logits of another model ``(N, C)``, NaN where it has none.
        """
        logits = with_extra_scores(heads.logits, extra_scores, known.targets)
        model = MissingLabelModel.fit(
            logits, known.targets, verified=known.absent, restored=known.restored
        )
        return cls(logits, model, heads)

    def start_of(self, loss: Loss) -> CrossValidation | None:
        """Heads that the final one starts from; None where the loss masks nothing.

        ``auto`` without evidence of missing labels is then cross-entropy to the bit.
        """
        return None if getattr(loss, "correction", None) is None else self.heads


def with_extra_scores(logits: Tensor, extra_scores: Tensor | None, targets: Tensor) -> Tensor:
    """Out-of-fold logits, combined with those of another model if there are any."""
    if extra_scores is None:
        return logits
    combined, weights = combine_scores([logits, extra_scores], targets, primary=True)
    say(describe_weights(weights))
    return torch.from_numpy(combined).to(logits)


def tell_loss(
    loss: Loss,
    stats: LabelStats,
    asked: FoldEvidence | None,
    known: KnownLabels,
    *,
    least_absent: float = LEAST_ABSENT,
) -> None:
    """Tell the loss what is known of the labels, with evidence of missing ones if it wants any.

    Args:
        loss: The loss to be told.
        stats: What is known of the labels in numbers.
        asked: The missing-label model and its scores, if heads could be cross-validated.
        known: The labels.
        least_absent: Unlabelled entries that are less probably absent than this are masked.
    """
    if loss.wants_evidence:
        evidence = Evidence(None, known.nothing_to_ask)
        if asked is not None and not evidence.sentence:
            evidence = mask_evidence(asked, known, least_absent)
        stats = dataclasses.replace(stats, evidence=evidence)
    loss.prepare(stats)


def mask_evidence(
    asked: FoldEvidence, known: KnownLabels, least_absent: float = LEAST_ABSENT
) -> Evidence:
    """Return which entries count in the loss of ``auto``, and why; see :func:`tell_loss`."""
    model, (targets, absent, restored) = asked.model, known
    if model.kind not in ("scar", "count"):
        return Evidence(None, f"{model.describe()} The loss is cross-entropy")
    if model.loglik_gain <= MIN_LOGLIK_GAIN:  # the number of labels alone is no evidence of which
        return Evidence(
            None, f"{model.describe()} Scores do not show which; the loss is cross-entropy"
        )
    # An entry is masked only if the count rule and SCAR agree that it is probably present.
    recorded = targets if restored is None else targets.masked_fill(restored, 0.0)
    present = np.minimum(
        model.prob_present(asked.logits, recorded, verified=absent),
        model.prob_present(asked.logits, recorded, verified=absent, by_rule=False),
    )
    open_entries = targets == 0 if absent is None else (targets == 0) & ~absent
    masked = torch.from_numpy(1 - present < least_absent) & open_entries
    left_out = pluralize(int(masked.sum()), "unlabelled entry", "unlabelled entries")
    how = "probably" if least_absent < 0.5 else "possibly"
    told = f"The loss is cross-entropy without {left_out} that are {how} missing labels"
    return Evidence((~masked).float(), f"{model.describe()} {told}")


@dataclass(frozen=True)
class FittedHead:
    """A trained head and how training went.

    Attributes:
        head: The head of the last epoch; with a scorer, of the best one.
        losses: Mean loss of a row in each epoch.
        scores: What the scorer said after each epoch.
        evidence: What the loss was told of missing labels, if anybody was asked.
        initial_loss: The loss as it was before the first step.
        recipe: How it was trained, with the rate and the penalty that were chosen.
    """

    head: FeatureHead
    losses: tuple[float, ...]
    scores: tuple[float, ...]
    evidence: FoldEvidence | None
    initial_loss: Loss
    recipe: Recipe


@dataclass(frozen=True)
class EarlyStopping:
    """Keeps the best epoch.

    Attributes:
        scorer: Says how good a head is.
        patience: Epochs without a better one after which training stops.
    """

    scorer: Callable[[FeatureHead], float]
    patience: int = 5


def fit_head(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    *,
    classes: int,
    stats: LabelStats | None = None,
    seed: int = 0,
    recipe: Recipe = HEADS,
    hidden: int | None = None,
    row_weight: Tensor | None = None,
    stopping: EarlyStopping | None = None,
    learn_from: Tensor | None = None,
) -> FittedHead:
    """Train a head that starts where the loss is least on these labels.

    Args:
        features: One row an image ``(N, F)``, dense or sparse; float64 is computed with as it is,
            others in float32.
        labels: Targets by row.
        loss: With reduction ``"sum"``; ``"none"`` where rows have weights.
        classes: Number of classes.
        stats: What the loss is told of the labels; None if it has been told already.
        seed: The same seed gives the same head.
        recipe: How to train.
        hidden: Width of a hidden layer; None for a linear head.
        row_weight: How much each row counts ``(N,)``.
        stopping: Which epoch to keep; the last one without it.
        learn_from: The rows to learn from; all without it.

    Example:
        >>> from hilltop.losses import bce
        >>> X = torch.eye(2).repeat(20, 1)
        >>> fitted = fit_head(X, lambda rows: (X[rows], None), bce(reduction="sum"), classes=2,
        ...                   recipe=Recipe(epochs=5))
        >>> (fitted.head(torch.eye(2)) > 0).int()
        tensor([[1, 0],
                [0, 1]], dtype=torch.int32)
    """
    recipe.check()
    chosen = torch.arange(len(features)) if learn_from is None else learn_from
    rows, evidence = len(chosen), None
    learned = features if learn_from is None else take_rows(features, chosen)
    dtype = torch.float64 if features.dtype == torch.float64 else torch.float32
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = FeatureHead(features.shape[1], classes, hidden=hidden).to(dtype)
        weight = None if row_weight is None else row_weight[chosen]

    def batch_labels(batch: Tensor) -> tuple[Tensor, Tensor | None]:
        return labels(chosen[batch])

    with step_threads(recipe.batch_size, features.shape[1], classes):
        recipe = recipe.for_head(head, learned, batch_labels, seed=seed, row_weight=weight)
        if stats is not None:
            evidence = prepare_loss(loss, stats, features, labels, seed=seed, recipe=recipe)
        initial_loss = copy.deepcopy(loss)
        plain = loss
        if row_weight is not None:
            loss = RowWeighted(loss, row_weight)
        best = _Best(head, stopping)
        losses = []
        entries = None if hidden is not None else entry_weights(loss, *labels(chosen), chosen)
        if entries is not None and recipe.uses_newton:
            asked = None if evidence is None else evidence.start_of(plain)
            solver = head_solver(head, learned, entries, recipe=recipe, heads=asked)
            for value in solver.passes(recipe.epochs):
                losses.append(value)
                if best.is_over():
                    break
        else:
            start_head(head, plain, batch_labels, rows, row_weight=weight)
            if plain.watch is not None:
                plain.watch.local = True  # a process may train a head while the others wait
            learner = Learner.build(head, loss, recipe, rows=rows)
            for epoch in range(recipe.epochs):
                loss.set_epoch(epoch)
                plan = recipe.epoch_plan(rows, seed, epoch)
                total = 0.0
                for batch in (chosen[part] for part in plan):
                    targets, observed = labels(batch)
                    logits = head(features[batch].to(dtype))
                    total += learner.step(logits, targets, observed=observed, index=batch)
                losses.append(total / sum(map(len, plan)))
                if best.is_over():
                    break
    best.restore()
    return FittedHead(head, tuple(losses), tuple(best.scores), evidence, initial_loss, recipe)


def prepare_loss(
    loss: Loss,
    stats: LabelStats,
    features: Features,
    labels: LabelBatch,
    *,
    seed: int,
    recipe: Recipe = HEADS,
) -> FoldEvidence | None:
    """Tell the loss of the labels, and cross-validate heads if it wants evidence of missing ones.

    Returns:
        The evidence, for calibration; None if there was nothing to ask.
    """
    if not loss.wants_evidence:
        loss.prepare(stats)
        return None
    known, asked = KnownLabels.of(labels, stats.images), None
    if not known.nothing_to_ask:
        heads = cross_validate_heads(features, known, seed=seed, recipe=recipe.for_evidence)
        asked = FoldEvidence.fit(heads, known)
    tell_loss(loss, stats, asked, known)
    return asked


class _Best:
    """Remembers the best epoch, as a scorer sees it, and says when to stop."""

    def __init__(self, head: FeatureHead, stopping: EarlyStopping | None) -> None:
        if stopping is not None:
            check_whole("n_iter_no_change", stopping.patience, low=1)
        self.head, self.stopping = head, stopping
        self.scores: list[float] = []
        self.state: dict[str, Tensor] | None = None

    @torch.no_grad()
    def is_over(self) -> bool:
        if self.stopping is None:
            return False
        self.scores.append(self.stopping.scorer(self.head))
        best = max(range(len(self.scores)), key=self.scores.__getitem__)  # the first of equals
        if best == len(self.scores) - 1:
            self.state = copy.deepcopy(self.head.state_dict())
        return len(self.scores) - 1 - best >= self.stopping.patience

    def restore(self) -> None:
        if self.state is not None:
            self.head.load_state_dict(self.state)


def truth_of_head(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    *,
    seed: int,
    recipe: Recipe,
    hidden: int | None = None,
    evidence: FoldEvidence | None = None,
    row_weight: Tensor | None = None,
) -> MissingLabelModel | None:
    """Calibrate the scores of a head that was trained on these rows.

    By out-of-fold scores of heads like it. Missing labels are judged by scores of cross-entropy,
    for any loss.

    Args:
        features: One row an image ``(N, F)``.
        labels: Targets by row.
        loss: What the head was trained with, as it was before the first step.
        seed: The same seed gives the same calibration.
        recipe: How the head was trained, with the penalty that was chosen.
        hidden: Width of its hidden layer.
        evidence: What heads of cross-entropy said about these rows already.
        row_weight: How much each row counted ``(N,)``.

    Returns:
        None where there are too few rows or no label at all.
    """
    known = KnownLabels.of(labels, len(features))
    if not known.can_calibrate:
        return None
    targets, absent, _ = known
    asked = evidence or FoldEvidence.fit(
        cross_validate_heads(features, known, seed=seed, recipe=recipe.for_evidence), known
    )
    heads = asked.heads
    same_scaling = heads is not None and heads.recipe.scaling == recipe.scaling
    same_penalty = heads is not None and (heads.recipe.weight_decay, heads.recipe.slope) == (
        recipe.weight_decay,
        recipe.slope,
    )
    alike = recipe.uses_newton and same_scaling and same_penalty
    plain = isinstance(loss, MultiLabelLoss) and loss.correction is None and is_cross_entropy(loss)
    if alike and plain and hidden is None and row_weight is None:
        if heads is None or asked.logits is heads.logits:
            return asked.model
        return asked.model.for_scores(heads.logits, asked.logits, targets, verified=absent)
    logits = cross_validate(
        features,
        targets,
        _reduced(loss, "sum" if row_weight is None else "none"),
        observed=labels(torch.arange(len(features)))[1],
        recipe=recipe,
        seed=seed,
        start=heads if same_scaling else None,
        hidden=hidden,
        row_weight=row_weight,
    ).logits
    return asked.model.for_scores(logits, asked.logits, targets, verified=absent)


def _reduced(loss: Loss, reduction: Reduction) -> Loss:
    """A copy that sums over pairs, or leaves it to the weights of rows."""
    copied = copy.deepcopy(loss)
    copied.reduction = reduction
    return copied


def cross_validate(
    features: Features,
    targets: Tensor,
    loss: Loss,
    *,
    observed: Tensor | None = None,
    folds: int = FOLDS,
    repeats: int = 1,
    recipe: Recipe = HEADS,
    seed: int = 0,
    start: CrossValidation | None = None,
    hidden: int | None = None,
    row_weight: Tensor | None = None,
) -> CrossValidation:
    """Train heads on all folds but one: each image is scored by heads that never saw its labels.

    Linear heads of cross-entropy are solved side by side, all others are trained by steps, one
    after another. All labels together decide one number, how firmly heads are held back.

    Args:
        features: One row an image ``(N, F)``.
        targets: 1 for labelled, 0 for not labelled ``(N, C)``.
        loss: What the heads are trained with; reduction ``"none"`` where rows have weights.
        observed: True where a person confirmed the target.
        folds: Into how many parts the images are dealt; each is scored by the head of the others.
        repeats: How often they are dealt anew; logits are averaged over the deals.
        recipe: How the heads are trained.
        seed: The same seed gives the same logits.
        start: Heads on the same folds of the same rows.
        hidden: Width of a hidden layer; None for linear heads.
        row_weight: How much each row counts ``(N,)``.

    Raises:
        DataError: There are fewer images than folds.

    Example:
        >>> from hilltop.losses import bce
        >>> features = torch.eye(2).repeat(20, 1)
        >>> logits = cross_validate(features, features.clone(), bce(reduction="sum")).logits
        >>> bool((logits[::2, 0] > logits[1::2, 0]).all())
        True
    """
    check_whole("folds", folds, low=2)
    check_whole("repeats", repeats, low=1)
    if len(features) < folds:
        images = pluralize(len(features), "image", "images")
        raise DataError(f"{images} cannot be dealt into {folds} folds; use fewer.")
    generator = torch.Generator().manual_seed(seed)
    deals = [assign_folds(len(features), folds, generator) for _ in range(repeats)]

    def labels(rows: Tensor) -> tuple[Tensor, Tensor | None]:
        return targets[rows], None if observed is None else observed[rows]

    weighted = loss if row_weight is None else RowWeighted(loss, row_weight)
    every, entries = torch.arange(len(features)), None
    if hidden is None and recipe.uses_newton:
        entries = entry_weights(weighted, targets, observed, every)
    dtype = torch.float64 if features.dtype == torch.float64 else torch.float32
    single = FeatureHead(features.shape[1], 1, hidden=None).to(dtype)
    if recipe.weight_decay is None or (
        entries is not None and (start is None or start.inputs is None)
    ):
        recipe = recipe.for_head(single, features, labels, seed=seed, row_weight=row_weight)
    if entries is not None:
        fold_of = torch.stack(deals, dim=1)
        return solve_folds(features, single, entries, recipe, fold_of, folds=folds, start=start)
    logits = torch.zeros(len(features), targets.shape[1])
    with ProgressLog("cross-validation", folds * repeats, "heads") as said:
        for number, (deal, fold) in enumerate(itertools.product(deals, range(folds)), start=1):
            head = fit_head(
                features,
                labels,
                copy.deepcopy(loss),
                classes=targets.shape[1],
                seed=seed,
                recipe=recipe,
                hidden=hidden,
                row_weight=row_weight,
                learn_from=torch.nonzero(deal != fold).squeeze(1),
            ).head
            for rows in torch.split(torch.nonzero(deal == fold).squeeze(1), 4096):
                logits[rows] += head(input_rows(features, rows)).detach().float() / repeats
            said.update(number)
    return CrossValidation(logits, recipe)


def out_of_fold_logits(features: Features, targets: Tensor, loss: Loss, **options: Any) -> Tensor:
    """Return the logits of :func:`cross_validate`, whose deprecated form this is."""
    warn_renamed("out_of_fold_logits", "cross_validate(...).logits")
    return cross_validate(features, targets, loss, **options).logits
