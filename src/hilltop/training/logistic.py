"""Linear heads of cross-entropy by preconditioned conjugate gradients, many side by side.

Cross-entropy of a linear head with an L2 penalty is convex, and every class of every head is a
problem of its own. Heads of several penalties and folds are columns of one matrix product. About
six passes through the rows replace the twenty epochs of stochastic gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from hilltop.errors import DivergenceError
from hilltop.losses import LogNegative, LogPositive, Loss, MultiLabelLoss
from hilltop.losses.methods.auto import AbsentWeights, Auto
from hilltop.losses.row_weights import RowWeighted
from hilltop.models import FeatureHead, Features, input_rows

PENALTY_BATCH = 128
"""Decoupled penalties are those of steps on this many rows, see :func:`l2_penalty`."""
BIAS_ABOVE = 0.7
"""By how much the bias of a class is above its log odds."""
TOLERANCE = 1e-3
"""A class is done when a step would lower its mean loss by less than this share of the variance of
its labels."""
_CACHED_ENTRIES = 1 << 27  # features that are kept scaled, instead of being scaled in every pass
_BLOCK_ENTRIES = 1 << 22
_CACHE_ENTRIES = 1 << 17
_SAMPLE_ROWS, _SAMPLE_WIDTH = 4096, 2048
_MOST_PASSES, _MOST_TRIALS, _MOST_BIAS_TRIALS = 20, 8, 12
_RAREST = 4.5e-5  # share of labels that a class has at the least


class Entries(NamedTuple):
    """Weights of a weighted cross-entropy.

    Attributes:
        positive: Weight of the positive term, a ``(N, C)``.
        total: Weight of both terms, w ``(N, C)``.
        rows: Weight of each row ``(N,)``.
    """

    positive: Tensor
    total: Tensor
    rows: Tensor

    def to(self, like: Tensor) -> Entries:
        """Return the same in the type of another tensor, and where it is."""
        return Entries(*(part.to(like) for part in self))


class ScaledRows:
    """Features as a head sees them; few are kept in memory, many are scaled a block at a time."""

    def __init__(
        self, features: Features, head: FeatureHead | None, *, weight: Tensor | None = None
    ) -> None:
        """Take features, the head whose scale they get (None if they have it), and row weights."""
        self._features, self._head, self.weight = features, head, weight
        self.shape = (len(features), features.shape[1])
        self._kept: Tensor | None = None
        if head is None:
            assert isinstance(features, Tensor)
            self._kept = features
        elif len(features) * features.shape[1] <= _CACHED_ENTRIES:
            self._kept = torch.cat([block for _, block in self.blocks()])

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows in order."""
        if self._kept is not None:
            yield slice(0, self.shape[0]), self._kept
            return
        rows = max(1, _BLOCK_ENTRIES // self.shape[1])
        for first in range(0, self.shape[0], rows):
            here = torch.arange(first, min(first + rows, self.shape[0]))
            yield slice(first, first + len(here)), self.take(here)

    def take(self, rows: Tensor) -> Tensor:
        """Return some rows."""
        if self._kept is not None:
            return self._kept[rows]
        assert self._head is not None
        return self._head.scaled(input_rows(self._features, rows).to(self._head.mean.device))

    def rotated(self) -> ScaledRows:
        """Return the same rows along their principal directions, for many fits of few rows."""
        spectrum = self.spectrum
        if self._kept is None or not spectrum.lossless:
            return self
        rows = ScaledRows(self._kept @ spectrum.vectors, None)
        spectrum.rotated, rows.spectrum = True, spectrum
        return rows

    def project(self, weight: Tensor) -> Tensor:
        """Return the products of all rows with the rows of a matrix ``(N, columns)``."""
        found = [block @ weight.T for _, block in self.blocks()]
        return found[0] if len(found) == 1 else torch.cat(found)

    @functools.cached_property
    def spectrum(self) -> Spectrum:
        """Principal directions of the rows."""
        return Spectrum(self)

    def gather(self, errors: Tensor) -> Tensor:
        """Return the sums over rows of errors times features ``(columns, F)``."""
        parts = [errors[here].T @ block for here, block in self.blocks()]
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum(dim=0)


class Spectrum:
    r"""Principal directions of the rows, by which gradients are preconditioned.

    .. math:: M = (\kappa\,\tfrac1n X^T X + \lambda I)^{-1}

    with the mean curvature kappa of a class, which is the Hessian where all logits are alike.
    """

    def __init__(self, inputs: ScaledRows) -> None:
        """Find them by some rows from all over the data."""
        rows, width = inputs.shape
        most = _SAMPLE_ROWS if width <= _SAMPLE_WIDTH else _SAMPLE_WIDTH
        chosen = torch.linspace(0, rows - 1, min(rows, most)).long()
        some = inputs.take(chosen)
        if inputs.weight is not None:
            weight = inputs.weight[chosen].to(some)
            some = some * (weight / weight.mean()).sqrt().unsqueeze(1)
        self.lossless = len(some) == rows or len(some) >= width
        if len(some) >= width:
            values, vectors = torch.linalg.eigh(some.T @ some / len(some))
        else:
            values, vectors = torch.linalg.eigh(some @ some.T / len(some))
            kept = values > 1e-5 * values[-1:].clamp(min=1e-30)
            values = values[kept]
            vectors = some.T @ (vectors[:, kept] / (values * len(some)).sqrt())
        self.values, self.vectors = values.clamp(min=0), vectors
        self.rotated = False

    def precondition(self, gradient: Tensor, curvature: Tensor, penalty: Tensor) -> Tensor:
        """Return M times gradients; curvature and penalty are columns, one number a row."""
        scale: Tensor = 1 / (curvature * self.values + penalty)
        if self.rotated:
            return gradient * scale
        beyond: Tensor | float = 0.0
        if self.vectors.shape[1] < self.vectors.shape[0]:  # other directions have a penalty alone
            scale, beyond = scale - 1 / penalty, gradient / penalty
        found: Tensor = ((gradient @ self.vectors) * scale) @ self.vectors.T + beyond
        return found


class LogisticSolver:
    r"""Fits linear heads to cross-entropy with a penalty, many side by side.

    .. math:: \sum_i w_{ic} \log(1 + e^{x_{ic}}) - a_{ic} x_{ic} + \tfrac{n\lambda_c}{2} |W_c|^2,
        \qquad x_{ic} = W_c z_i + b_c

    While weights are fitted, each bias stays a little above the log odds of its class. Were it
    fitted with them, it would fall as weights grow, and a head would learn less from the labels
    that are hard to find: that costs 0.3 to 0.6 mAP on COCO, with 40% of its labels as with all.
    The bias that is kept makes the mean probability of a class the share of its labels.

    The penalty that ranks best makes logits too small for probabilities. So weights are fitted
    divided by a slope, and are that many times as large as the solution of the equation.

    Each step is a direction of preconditioned conjugate gradients for every class and head, and a
    line search along it by Newton's method; a class that is done stays as it is.

    Args:
        weight: Weights of all heads, one after the other ``(heads * C, F)``.
        bias: Their biases ``(heads * C,)``, which are set.
        inputs: The rows ``(N, F)``.
        entries: The labels, as weights.
        penalty: L2 penalty on the mean loss of each class ``(C,)``.
        learns: Which rows each head learns from ``(N, heads)``; None for one head of all.
        slope: How many times as large as the solution weights are.
        tolerance: See :data:`TOLERANCE`.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor,
        inputs: ScaledRows,
        entries: Entries,
        penalty: Tensor,
        *,
        learns: Tensor | None = None,
        slope: float = 1.0,
        tolerance: float = TOLERANCE,
    ) -> None:
        """Look at the labels; the weights may be of another solution already."""
        self.weight, self.bias, self.inputs, self._slope = weight, bias, inputs, slope
        entries = entries.to(weight)
        counts = entries.rows.unsqueeze(1)
        counts = counts if learns is None else counts * learns.to(weight)
        learns = counts.unsqueeze(2)
        self._positive = (entries.positive.unsqueeze(1) * learns).flatten(1)
        self._total = (entries.total.unsqueeze(1) * learns).flatten(1)
        rows = learns.sum(dim=0).clamp(min=1e-9)
        self._rows = rows.expand(-1, len(penalty)).reshape(-1)
        known, labelled = self._total.sum(dim=0), self._positive.sum(dim=0)
        self.log_odds = label_log_odds(labelled, known)
        self.fit_bias, share = self.log_odds + BIAS_ABOVE, self.log_odds.sigmoid()
        self._variance = (known / self._rows * share * (1 - share)).clamp(min=1e-12)
        self._penalty = penalty.to(weight).repeat(learns.shape[1])
        self._tolerance = tolerance
        self._tilt, self._surplus = torch.zeros_like(weight), torch.zeros_like(self._rows)
        self._begin()
        self._logits: Tensor | None = None

    def _begin(self) -> None:
        """Begin at the first direction, from where the weights are."""
        self.done = torch.zeros_like(self._rows, dtype=torch.bool)
        self._last: _Direction | None = None

    @property
    def _fit_logits(self) -> Tensor:
        """Logits of all rows by the solution, with the biases that it is fitted with."""
        if self._logits is None:
            weight = self.weight.detach() / self._slope
            if bool(weight.any()):
                self._logits = self.inputs.project(weight) + self.fit_bias
            else:  # the usual start
                self._logits = self.fit_bias.repeat(self.inputs.shape[0], 1)
        return self._logits

    @property
    def logits(self) -> Tensor:
        """Logits of all rows by all heads ``(N, heads * C)``."""
        return self._slope * self._fit_logits + (self.bias.detach() - self._slope * self.fit_bias)

    def set_penalty(self, penalty: Tensor) -> None:
        """Go on to another penalty from the solution of this one."""
        self._penalty = penalty.to(self._penalty).repeat(len(self._rows) // len(penalty))
        self._begin()

    def tilt(self, gradient: Tensor, surplus: Tensor) -> None:
        """Go on from this solution with what its rows, a sample of more, miss of them.

        Args:
            gradient: By how much the gradient of the mean loss of more rows is larger than that of
                these ones, by weights ``(heads * C, F)``.
            surplus: By how much the mean probability minus the share of labels is ``(heads * C,)``.
        """
        self._tilt, self._surplus = gradient, surplus
        self._begin()

    @torch.no_grad()
    def set_bias(self) -> None:
        """Set biases at which mean probabilities are the shares of labels."""
        labelled, shift = self._positive.sum(dim=0), -self._slope * self.fit_bias + self.log_odds
        logits = self._fit_logits
        for _ in range(_MOST_BIAS_TRIALS):
            surplus, slope = self._rows * self._surplus - labelled, torch.zeros_like(labelled)
            for rows in _row_blocks(logits):
                probs = torch.add(shift, logits[rows], alpha=self._slope).sigmoid_()
                mass = probs * self._total[rows]
                surplus += mass.sum(dim=0)
                slope += mass.addcmul_(mass, probs, value=-1).sum(dim=0)
            move = (surplus / slope.clamp(min=1e-12)).clamp(-1, 1)
            shift -= torch.where(labelled > 0, move, 0.0)
            if bool((move.abs() < 1e-3).all()):
                break
        self.bias.copy_(self._slope * self.fit_bias + shift)

    @torch.no_grad()
    def step(self) -> float:
        """Make a step, and return the mean loss of a row before it."""
        last = self._last
        value, errors = self._errors()
        going = _Columns(torch.nonzero(~self.done).flatten(), len(self.done))
        if not len(going.numbers):
            return value
        rows, penalty = going.of(self._rows), going.of(self._penalty)
        variance, weight = going.of(self._variance), going.of(self.weight) / self._slope
        tilt = going.of(self._tilt)
        gradient = self.inputs.gather(going.of(errors, dim=1))
        gradient += (rows * penalty).unsqueeze(1) * weight + rows.unsqueeze(1) * tilt
        descent = self.inputs.spectrum.precondition(
            gradient, variance.unsqueeze(1), penalty.unsqueeze(1)
        )
        descent /= rows.unsqueeze(1)
        gain = (gradient * descent).sum(dim=1)
        direction = descent.neg()
        if last is not None:
            before, reached = going.of(last.gradient), going.of(last.gain)
            fresh = (gain - (before * descent).sum(dim=1)) / reached
            direction += fresh.clamp(min=0).unsqueeze(1) * going.of(last.direction)
            uphill = (gradient * direction).sum(dim=1) >= 0
            direction[uphill] = -descent[uphill]
        finished = gain <= self._tolerance * rows * variance
        direction[finished] = 0
        self.done = going.put(self.done, finished)
        moving = _Columns(torch.nonzero(~finished).flatten(), len(finished))
        if len(moving.numbers):
            self._move(
                _Columns(going.numbers[moving.numbers], len(self.done)),
                moving.of(weight),
                moving.of(gradient),
                moving.of(direction),
                moving.of(rows * penalty),
                moving.of(rows.unsqueeze(1) * tilt),
            )
        made = _Direction(gradient, direction, gain.clamp(min=1e-30))
        if last is not None:
            made = _Direction(*map(going.put, last, made))
        self._last = made
        return value

    def _errors(self) -> tuple[float, Tensor]:
        """The mean loss of a row, and probabilities minus labels, times weights."""
        logits, value = self._fit_logits, 0.0
        errors = torch.empty_like(logits)
        for here in _row_blocks(logits):
            total, positive = self._total[here], self._positive[here]
            losses = torch.nn.functional.softplus(logits[here]).mul_(total)
            value += float(losses.addcmul_(positive, logits[here], value=-1).sum())
            torch.sub(logits[here].sigmoid().mul_(total), positive, out=errors[here])
        value /= float(self._rows.max())
        if not value < float("inf"):
            raise DivergenceError(f"Training diverged: the loss became {value}.")
        return value, errors

    def _move(
        self,
        moving: _Columns,
        weight: Tensor,
        gradient: Tensor,
        direction: Tensor,
        penalty: Tensor,
        tilt: Tensor,
    ) -> None:
        """Go along a direction to where the slope is a tenth of what it was."""
        along = self.inputs.project(direction)
        parts = (self._fit_logits, self._positive, self._total)
        logits, positive, total = (moving.of(part, dim=1) for part in parts)
        start = (gradient * direction).sum(dim=1)
        pull = penalty * (weight * direction).sum(dim=1) + (tilt * direction).sum(dim=1)
        bend = penalty * direction.square().sum(dim=1)
        slope, length = start, torch.zeros_like(start)
        _, curvature = _derivatives(logits, positive, total, along, length)
        low, high = torch.zeros_like(start), torch.full_like(start, torch.inf)
        wanted = start.abs() * 0.1
        for _ in range(_MOST_TRIALS):
            going = slope.abs() > wanted
            if not bool(going.any()):
                break
            step = length - slope / (curvature + bend).clamp(min=1e-30)
            middle = torch.where(high.isinf(), 2 * low.clamp(min=0.5), (low + high) / 2)
            step = torch.where((step <= low) | (step >= high), middle, step)
            length = torch.where(going, step, length)
            slope, curvature = _derivatives(logits, positive, total, along, length)
            slope += pull + length * bend
            low = torch.where(slope < 0, length, low)
            high = torch.where(slope > 0, length, high)
        moved = (weight + length.unsqueeze(1) * direction) * self._slope
        self.weight.copy_(moving.put(self.weight, moved))
        self._logits = moving.put(self._fit_logits, logits.addcmul_(along, length), dim=1)

    def solve(self, passes: int = _MOST_PASSES) -> None:
        """Make steps until all classes are done, then set the biases."""
        for _ in range(passes):
            self.step()
            if bool(self.done.all()):
                break
        self.set_bias()

    def passes(self, most: int) -> Iterator[float]:
        """Make steps until all classes are done, set the biases after each, and yield its loss."""
        for _ in range(most):
            value = self.step()
            self.set_bias()
            yield value
            if bool(self.done.all()):
                return


class _Direction(NamedTuple):
    """What the next direction of every class is made conjugate to.

    Attributes:
        gradient: Gradient before the last step ``(heads * C, F)``.
        direction: Where that step went.
        gain: What a step along the preconditioned gradient promised ``(heads * C,)``.
    """

    gradient: Tensor
    direction: Tensor
    gain: Tensor


class _Columns(NamedTuple):
    """Classes that take part in a step, by number; all that are done cost nothing.

    Attributes:
        numbers: Their numbers in order.
        every: Number of all classes.
    """

    numbers: Tensor
    every: int

    def of(self, values: Tensor, *, dim: int = 0) -> Tensor:
        """Their part of the values of all classes, or all if they are all."""
        whole = len(self.numbers) == self.every
        return values if whole else values.index_select(dim, self.numbers)

    def put(self, values: Tensor, some: Tensor, *, dim: int = 0) -> Tensor:
        """The values of all classes with these in the place of theirs."""
        whole = len(self.numbers) == self.every
        return some if whole else values.index_copy_(dim, self.numbers, some)


def _row_blocks(entries: Tensor) -> Iterator[slice]:
    """Rows whose entries fit into the cache together: most passes are bound by memory."""
    rows, columns = entries.shape
    size = max(1, _CACHE_ENTRIES // columns)
    yield from (slice(first, first + size) for first in range(0, rows, size))


def _derivatives(
    logits: Tensor, positive: Tensor, total: Tensor, along: Tensor, length: Tensor
) -> tuple[Tensor, Tensor]:
    """First and second derivative of the loss of each class, so far along a direction."""
    slope, curvature = torch.zeros_like(length), torch.zeros_like(length)
    for here in _row_blocks(logits):
        step = along[here]
        probs = torch.addcmul(logits[here], step, length).sigmoid_()
        mass = probs * total[here]
        slope += (mass - positive[here]).mul_(step).sum(dim=0)
        mass.addcmul_(mass, probs, value=-1)
        curvature += mass.mul_(step).mul_(step).sum(dim=0)
    return slope, curvature


def label_log_odds(labelled: Tensor, known: Tensor) -> Tensor:
    """Log odds of the labels of each class, those of all classes where none of its own is known.

    Args:
        labelled: Labels of each class.
        known: Entries of each class that count.
    """
    overall = labelled.sum() / known.sum().clamp(min=1e-9)
    share = torch.where(known > 0, labelled / known.clamp(min=1e-9), overall)
    return share.clamp(_RAREST, 1 - _RAREST).logit()


def l2_penalty(decay: float, entries: Entries) -> Tensor:
    r"""The L2 penalty of each class that a decoupled one of :class:`RowAdamW` amounts to ``(C,)``.

    .. math:: \lambda_c = d \sqrt{v_c / 128}

    RowAdamW divides the gradient of a class by its size, which for 128 rows is about
    :math:`\sqrt{128 v_c}` with the variance v of its labels, and the penalty with it.
    """
    rows = entries.rows
    count = (rows @ entries.total).clamp(min=1e-9)
    share = (rows @ entries.positive / count).clamp(_RAREST, 1 - _RAREST)
    variance = rows @ entries.total.square() / rows.sum() * share * (1 - share)
    found: Tensor = decay * (variance / PENALTY_BATCH).sqrt().clamp(min=1e-6)
    return found


def entry_weights(
    loss: Loss, targets: Tensor, observed: Tensor | None, rows: Tensor
) -> Entries | None:
    """Return the weights of entries and rows, if a loss is cross-entropy with weights.

    Args:
        loss: The loss.
        targets: Labels of some rows ``(N, C)``.
        observed: True where a person verified the target.
        rows: Their numbers, by which the loss finds weights of its own.

    Returns:
        None for any other loss.
    """
    inner: Loss = loss.inner if isinstance(loss, RowWeighted) else loss
    if not is_cross_entropy(inner):
        return None
    assert isinstance(inner, MultiLabelLoss)
    targets = targets if targets.dtype == torch.float64 else targets.float()
    known, labels = ~targets.isnan(), targets.nan_to_num()
    absent = 1 - labels
    if isinstance(inner.correction, AbsentWeights):
        keep = inner.correction.weight[rows].to(absent)
        absent = absent * (keep if observed is None else keep.masked_fill(observed, 1.0))
    weight = targets.new_ones(len(targets))
    if isinstance(loss, RowWeighted):
        weight = loss.weight[rows]
    return Entries(labels * known, (labels + absent) * known, weight)


def is_cross_entropy(loss: Loss) -> bool:
    """Whether a loss is cross-entropy, with nothing but masked entries beside."""
    return (
        type(loss) in (MultiLabelLoss, Auto)
        and isinstance(loss, MultiLabelLoss)
        and type(loss.positive) is LogPositive
        and type(loss.negative) is LogNegative
        and (loss.correction is None or type(loss.correction) is AbsentWeights)
        and loss.verified_negative is None
        and loss.class_weight is None
        and loss.pos_weight is None
        and not loss.label_smoothing
    )


def chunks(heads: int, entries: int, most: int = 1 << 24) -> Sequence[slice]:
    """Heads that are trained side by side, so that what is computed with stays in memory."""
    size = max(1, most // max(1, entries))
    return [slice(first, first + size) for first in range(0, heads, size)]
