"""ROLE: a classifier and a table of label estimates that learn from each other."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor, nn

from hilltop.checks import check_number, check_whole
from hilltop.errors import ArgumentError
from hilltop.losses.base import LabelStats, Loss, PairBatch, ParameterGroups, Reduction
from hilltop.losses.catalogue import LOSSES
from hilltop.losses.memory import batch_rows, describe_bytes

_SPREAD = math.log(0.6 / 0.4)  # estimates of unlabelled entries start between 0.4 and 0.6,
_SURE = math.log(0.995 / 0.005)  # those of labels at 0.995 and of verified absent entries at 0.005


class Role(Loss):
    r"""Regularised online label estimation: two models of the labels that teach each other.

    .. math::
        L = \tfrac12 [S(f) + S(g)] + \tfrac12 [C(f \mid g) + C(g \mid f)]
            + \tfrac12 [R(f) + R(g)], \qquad
        R(f) = \left( \overline{f} - \frac{k}{K} \right)^2

    f are the model's probabilities and g one free estimate for each pair of image and class. S is
    cross-entropy on labels (and verified absent entries), C cross-entropy against the other, taken
    as given, and R holds the mean number of labels per image at k of K classes.

    The estimates learn ten times faster than the model, see :meth:`parameter_groups`. Adam sees
    the whole table in each step, as in the publication: after a batch its rows go on moving for
    about ten steps, each by its own past gradient alone, and nobody reads a row before its image
    returns an epoch later. An optimiser that touched the rows of the batch only would move each of
    them about ten times less.

    Args:
        labels_per_image: The k of the equation (published: VOC 1.5, COCO 2.9, NUS 1.9); None
            takes the mean of what is labelled, which is too low where labels are missing.
        seed: Of the random start of the estimates.
        reduction: As in :class:`MultiLabelLoss`; R is part of every entry.
        safe_start: As in the other losses; this one cannot saturate, so it makes no difference.

    Shape:
        logits and targets ``(..., K)``, ``index`` the same without the last dimension.

    Raises:
        ArgumentError: It was not prepared, or a batch comes without its row numbers ``index``.

    Reference:
        Cole et al., Multi-label learning from single positive labels, CVPR 2021.
    """

    self_labelling = True
    independent_rows = False

    def __init__(
        self,
        *,
        labels_per_image: float | None = None,
        seed: int = 0,
        reduction: Reduction = "mean",
        safe_start: bool = True,
    ) -> None:
        """Check and store the constants; there are no estimates yet."""
        super().__init__(reduction=reduction, safe_start=safe_start)
        if labels_per_image is not None:
            check_number("labels_per_image", labels_per_image, low=0)
        self.labels_per_image, self.seed = labels_per_image, check_whole("seed", seed, low=0)
        self.expected = labels_per_image
        self.pairs: tuple[int, int] | None = None
        self.register_parameter("moved", None)  # by how much each estimate has left its start

    def prepare(self, stats: LabelStats) -> None:
        """Allocate the estimates."""
        self.pairs = stats.images, len(stats.positives)
        if self.labels_per_image is None:
            self.expected = float(stats.positives.sum()) / max(1, stats.images)
        self.moved = nn.Parameter(torch.zeros(self.pairs, device=self.epoch.device))

    def parameter_groups(self) -> ParameterGroups:
        """Return the estimates, which learn ten times faster than the model."""
        return [] if self.moved is None else [([self.moved], 10.0)]

    def decision_threshold(self, scores: Tensor) -> float:
        """Return the rule of the paper, see :func:`role_threshold`."""
        return role_threshold(scores)

    def describe(self) -> str | None:
        """Say how large the table is, and what training adds to it."""
        if self.pairs is None:
            return None
        images, classes = self.pairs
        size = 4 * images * classes
        return (
            f"role keeps an estimate for each of {images:,} images x {classes:,} classes:"
            f" {describe_bytes(size)}, and {describe_bytes(4 * size)} with its gradient and Adam's"
            " averages"
        )

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the loss of every entry, that of the model and that of its estimate."""
        table, share = self._guesses(batch), self.share(batch.logits)
        model = _taught_by(table.detach(), batch, share)
        return model + _taught_by(batch.logits.detach(), batch.with_logits(table), share)

    @torch.no_grad()
    def estimates(
        self, targets: Tensor, *, index: Tensor, verified: Tensor | None = None
    ) -> Tensor:
        """Return the probability that the table gives each entry of some images.

        Args:
            targets: Labels of the images, ``(N, K)``.
            index: Their row numbers.
            verified: True where a person verified the target.
        """
        return torch.sigmoid(self._guesses(PairBatch(targets.float(), targets, verified, index)))

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return True for unlabelled entries whose estimate is above 0.6, where none starts."""
        return (self._guesses(batch) > _SPREAD) & (batch.targets == 0)

    def share(self, logits: Tensor) -> float:
        """Return k / K, the expected share of labels."""
        return (self.expected or 0.0) / max(1, logits.shape[-1])

    def _guesses(self, batch: PairBatch) -> Tensor:
        """Logits of the estimates: their start, which is not stored, and how far they moved."""
        logits, targets = batch.logits, batch.targets
        rows = batch_rows("role", batch, self.pairs)
        assert self.moved is not None
        dtype, classes = logits.dtype, logits.shape[-1]
        column = torch.arange(classes, device=rows.device)
        start = _SPREAD * _uniform(rows.unsqueeze(1) * classes + column, self.seed).to(dtype)
        start = torch.where(targets == 1, _SURE, start.view(logits.shape))
        if batch.verified is not None:
            start = torch.where(batch.verified & (targets == 0), -_SURE, start)
        return start + self.moved[rows].view(logits.shape).to(dtype)

    def extra_repr(self) -> str:
        """Show the constants."""
        return f"labels_per_image={self.labels_per_image}, reduction={self.reduction!r}"


def _taught_by(teacher: Tensor, batch: PairBatch, share: float) -> Tensor:
    """Return what the learner's logits cost, entry by entry; unknown entries cost 0."""
    learner, labels = batch.logits, batch.targets.to(batch.logits.dtype)
    known = labels == labels  # NaN differs from itself
    learner, labels = torch.where(known, learner, 0.0), torch.where(known, labels, 0.0)
    present, absent = F.softplus(-learner), F.softplus(learner)
    taught = torch.sigmoid(teacher.to(learner.dtype))
    cost = labels * present + taught * present + (1 - taught) * absent
    if batch.verified is not None:
        cost = cost + torch.where(batch.verified, (1 - labels) * absent, 0.0)
    mean = torch.where(known, torch.sigmoid(learner), 0.0).sum() / known.sum().clamp(min=1)
    return torch.where(known, 0.5 * (cost + (mean - share) ** 2), 0.0)


def _uniform(pairs: Tensor, seed: int) -> Tensor:
    """Numbers between -1 and 1 that depend on pair and seed alone: the start needs no memory."""
    low = 0xFFFFFFFF  # products wrap around, and only their lower half is used
    mixed = (pairs ^ (pairs >> 32)) + seed * 0x3C6EF372
    for factor, shift in ((0x9E3779B1, 15), (0x85EBCA77, 13), (0xC2B2AE3D, 16)):
        mixed = (mixed * factor) & low
        mixed = mixed ^ (mixed >> shift)
    return (mixed.double() + 0.5) / 2**31 - 1


@LOSSES.register("role")
def role(
    *,
    labels_per_image: float | None = None,
    seed: int = 0,
    reduction: Reduction = "mean",
    safe_start: bool = True,
) -> Role:
    """Regularised online label estimation: the model and a table of estimates teach each other.

    Call ``prepare(stats)`` before training and pass ``index`` with every batch. Its parameters
    learn too: give :meth:`Role.parameter_groups` to your optimiser; ours gets them. Scores sit
    high: decide with :func:`role_threshold`. The table grows with images x classes, and
    :meth:`Role.describe` says how large it is.

    Assumption:
        Unlabelled entries are estimated, one free number for each pair.

    When to use:
        When there is one label for each image and you know about how many there should be. It keeps
        a number for every pair, so the data set must be small enough for that.

    Args:
        labels_per_image: Expected number of labels of an image; None takes what is labelled.
        seed: Of the random start of the estimates.
        reduction: As in :class:`MultiLabelLoss`.
        safe_start: As in the other losses; this one cannot saturate, so it makes no difference.

    Reference:
        Cole et al., Multi-label learning from single positive labels, CVPR 2021.
    """
    return Role(
        labels_per_image=labels_per_image, seed=seed, reduction=reduction, safe_start=safe_start
    )


def role_threshold(scores: Tensor) -> float:
    """Return the decision threshold for scores of a model trained with ROLE: (1 + lowest) / 2.

    Its scores of absent labels sit well above 0. The rule is that of the paper for its F1 values;
    it needs no labels.

    Args:
        scores: Probabilities of all images and classes; NaN ones are left out.

    Raises:
        ArgumentError: There is no score, or the lowest is no probability.

    Example:
        >>> round(role_threshold(torch.tensor([[0.9, 0.3], [0.4, 0.2]])), 3)
        0.6
    """
    known = torch.as_tensor(scores)
    known = known[known == known]
    if not known.numel():
        raise ArgumentError("scores must hold at least one number, but there is none.")
    lowest = check_number("the lowest score", float(known.min()), low=0, high=1)
    return (1 + lowest) / 2
