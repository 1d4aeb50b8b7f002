"""SafeStart and CollapseWatch: what keeps a loss that can saturate from doing so."""

from __future__ import annotations

import logging
import math
import warnings
from collections import namedtuple
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor, nn

from hilltop.errors import HilltopWarning
from hilltop.losses import functional
from hilltop.losses.tracing import has_values, learns_from, summed

if TYPE_CHECKING:
    from hilltop.losses.base import Loss, PairBatch

# Chosen on splits of training rows (reproduction/safe_start.py --choose): first that no cell ends
# more than 0.5 mAP below cross-entropy, then the mean gain.
_PATIENCE = 50  # steps of plain cross-entropy; of 0, 20, 50, 100 and 200
_SLOW = 0.25  # unlabelled entries above one half after them, from which on the head is too slow
_LEARNED = 0.9  # labelled share of the top from which on the labels are learned as they are
_MISSING = 0.7  # labelled share of the top below which labels are missing
_LEAST_LIFT = 5.0  # the same share in label rates: below it the model knows too little to judge
_OVERCONFIDENT = 0.2  # probability of the top above its labelled share: the model cannot be trusted
_PUSH = 3.0  # bound of the push, in label rates; of 0.3, 1, 3, 6, 10 and 20
_TOP = 10  # the top: one most confident entry for so many images of a batch
_WINDOW = 100.0  # how many of them are remembered
_FOLLOW = 0.3  # how far a batch moves the shift towards its own
_CLOSE = 0.5  # shift at which the head counts as being at the label rate
_MOST_ABOVE_HALF = 2.0  # unlabelled entries above one half there, in label rates
_WAITING, _SHIFTED, _EQUATION, _CROSS_ENTROPY = range(4)
_LOG = logging.getLogger(__name__)

# What is remembered; `above` is the moving share of unlabelled entries above one half.
_Sums = namedtuple("_Sums", "labels known shift above top_labels top_probs top steps")
# What a batch adds to it: numbers of entries, and sums of logits and of shifted probabilities.
_Counts = namedtuple(
    "_Counts", "labels known unlabelled above logits probs top_labels top_probs top"
)


class SafeStart(nn.Module):
    r"""Cross-entropy to the bit, until something shows that the equation is better.

    A loss that forgives confident negatives (Hill, SPLC) helps where labels are missing, and hurts
    where they are complete or where the model is not yet right about what it is confident of. From
    torch's own start, every class begins at probability one half. There such a loss can leave
    unlabelled entries that overshoot. So training begins with ``BCEWithLogitsLoss``, and each of
    two things needs evidence. Both are judged by the *top*: the most confident entries, one for ten
    images of every batch, and how many of the last 100 of them are labelled.

    1. **The head is slow.** If, after 50 steps, a quarter of the unlabelled entries is still above
       one half, and less than 90% of the top is labelled, cross-entropy goes on with the common
       bias profiled out:

       .. math:: L = \mathrm{BCE}(x - \delta,\, y) + g\,(\bar x - b), \qquad
                 \overline{\sigma(x - \delta)} = \pi, \quad b = \log\frac{\pi}{1 - \pi}, \quad
                 g = \min(\sigma(b + \delta) - \pi,\; 3\,\pi)

       :math:`\pi` is the share of labels so far, :math:`\delta` the one shift of all logits at
       which the mean probability is that share, followed over batches. Entries are then ranked as
       if the head had started at the label rate, and a small push on the mean logit brings it
       there. A model that has learned the labels by then gains nothing and may lose 3 mAP.
    2. **Labels are missing.** Once the shift is below 0.5 and the unlabelled entries above one half
       are at most twice the labels, it is decided for good. Cross-entropy ranks labels first, so
       that an unlabelled entry of the top is probably a missing label. If less than 70% of the top
       is labelled, yet five times as many as of all entries, and its mean probability is at most
       0.2 above that share, then from this step on the loss is its own equation, to the bit.
       Otherwise, and for a loss that weighs confident negatives more than cross-entropy does (ASL),
       it is cross-entropy, which a record of Python's ``logging`` under ``hilltop`` says.

    A model that :func:`init_head` prepared for this loss needs no safe start and gets none. Should
    the equation saturate after a safe start, which :class:`CollapseWatch` notices, cross-entropy
    takes over for good. The state is in buffers: it is saved, resumed and compiled with the loss.
    On the CPU the host knows every decision at once. On other devices both losses are computed
    until the host learns of it, in steps in which the watch looks, or in :meth:`Loss.set_epoch`.
    With many processes all see the sums over their batches and decide alike, so each of them has to
    call the loss in every training step.
    """

    stage: Tensor
    sums: Tensor

    def __init__(self) -> None:
        """Begin with the first training step."""
        super().__init__()
        self.register_buffer("stage", torch.tensor(_WAITING))
        self.register_buffer("sums", torch.zeros(len(_Sums._fields)))
        self.known_stage = _WAITING  # as stage, without waiting for a device
        self.register_load_state_dict_pre_hook(_over_if_unknown)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_read_stage)  # type: ignore[no-untyped-call]

    @property
    def over(self) -> bool:
        """Whether the loss is its equation."""
        return self.known_stage == _EQUATION

    def restart(self) -> None:
        """Begin anew, for another run of training, unless it was left out."""
        if self.sums.any():
            self.sums.zero_()
            self._enter(_WAITING)

    def skip(self) -> None:
        """Leave the safe start out: the head was set to the label rate."""
        self.sums.zero_()
        self._enter(_EQUATION)

    def hand_back(self) -> None:
        """Go on with cross-entropy for good, unless it was left out: the equation saturated."""
        if self.sums.any():
            self._enter(_CROSS_ENTROPY)

    def _enter(self, stage: int) -> None:
        self.stage.fill_(stage)
        self.known_stage = stage

    def read_stage(self) -> None:
        """Note the stage, so that no step needs to ask for it, and log what was decided."""
        before, self.known_stage = self.known_stage, int(self.stage)
        if self.known_stage == _CROSS_ENTROPY != before:
            sums = _Sums(*self.sums.tolist())
            _LOG.warning(
                "Of the most confident predictions, whose mean probability is %.0f%%, %.0f%% are"
                " labelled: this loss stays with cross-entropy. safe_start=False is its equation.",
                100 * sums.top_probs / max(1, sums.top),
                100 * sums.top_labels / max(1, sums.top),
            )

    def forward(self, loss: Loss, batch: PairBatch) -> Tensor:
        """Return the loss of a batch, of the safe start or of the equation."""
        logits = batch.logits
        if not (self.training and learns_from(logits) and logits.numel()):
            return loss.evaluate(batch)
        if self.sums.device != logits.device:  # as BCEWithLogitsLoss, a loss need not be moved
            self.stage, self.sums = self.stage.to(logits.device), self.sums.to(logits.device)
        batch = batch._replace(complete=loss.check_targets(batch.targets))
        if self.known_stage == _CROSS_ENTROPY:
            return cross_entropy(loss, batch)
        rate, shift = self._advance(loss, batch)
        if logits.is_cpu and not torch.compiler.is_compiling():
            self.read_stage()
            if self.over:
                return loss.evaluate(batch)
            if self.known_stage == _SHIFTED:
                return _shifted(loss, batch, rate, shift)
            return cross_entropy(loss, batch)
        start = torch.where(
            self.stage == _SHIFTED,
            _shifted(loss, batch, rate, shift),
            cross_entropy(loss, batch),
        )
        return torch.where(self.stage == _EQUATION, loss.evaluate(batch), start)

    @torch.no_grad()
    def _advance(self, loss: Loss, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """Count a batch, move to the next stage if it is time; return label rate and shift."""
        before = _Sums(*self.sums.unbind())
        now = _Counts(*summed(_count(batch, before.shift)).unbind())
        first, entries = before.known == 0, now.known.clamp(min=1)
        labels, known = before.labels + now.labels, before.known + now.known
        rate = (labels / known.clamp(min=1)).clamp(1e-6, 1 - 1e-6)
        end = torch.logit(rate)
        # A fixed point whose steps never overshoot, from where all logits are the same.
        step = _FOLLOW * (torch.logit(now.probs / entries, eps=1e-6) - end)
        shift = torch.where(first, now.logits / entries - end, before.shift + step)
        shift = torch.where(now.known > 0, shift, before.shift)
        above = now.above / now.unlabelled.clamp(min=1)
        above = torch.where(first, above, before.above + 0.1 * (above - before.above))
        fade = torch.exp(-now.top / _WINDOW)
        top_labels = fade * before.top_labels + now.top_labels
        top_probs, top = fade * before.top_probs + now.top_probs, fade * before.top + now.top
        steps = before.steps + 1
        sums = _Sums(labels, known, shift, above, top_labels, top_probs, top, steps)
        self.sums.copy_(torch.stack(sums))

        share, confidence = top_labels / top, top_probs / top
        missing = (share < _MISSING) & (share > _LEAST_LIFT * rate)
        missing &= confidence < share + _OVERCONFIDENT
        down = (shift.abs() < _CLOSE) & (above <= _MOST_ABOVE_HALF * rate)
        from_epoch = loss.forgives_from_epoch()
        begun = torch.as_tensor(batch.epoch >= (from_epoch or 0), device=known.device)
        found = torch.where(missing & (from_epoch is not None), _EQUATION, _CROSS_ENTROPY)
        slow = (steps == _PATIENCE + 1) & (above >= _SLOW) & (share < _LEARNED)
        stage = torch.where(slow, _SHIFTED, self.stage)
        stage = torch.where((steps > _PATIENCE) & down & (begun | ~missing), found, stage)
        self.stage.copy_(torch.where(self.stage >= _EQUATION, self.stage, stage))
        return rate, shift


def _shifted(loss: Loss, batch: PairBatch, rate: Tensor, shift: Tensor) -> Tensor:
    """Return the equation of :class:`SafeStart`, reduced."""
    known, end = batch.targets == batch.targets, torch.logit(rate)  # NaN differs from itself
    mean_logit = torch.where(known, batch.logits, 0.0).sum() / known.sum().clamp(min=1)
    strength = torch.minimum(torch.sigmoid(end + shift) - rate, _PUSH * rate)
    return cross_entropy(loss, batch, shift=shift, push=strength * (mean_logit - end))


def cross_entropy(
    loss: Loss, batch: PairBatch, *, shift: Tensor | None = None, push: Tensor | None = None
) -> Tensor:
    """Return binary cross-entropy with the reduction, weights and smoothing of a loss.

    Args:
        loss: The loss.
        batch: The pairs.
        shift: Subtracted from all logits.
        push: Added to every entry.
    """
    logits = batch.logits
    targets = functional.smooth_targets(batch.targets.to(logits.dtype), loss.label_smoothing)
    weight, pos_weight = loss.class_weights(logits)
    if batch.complete and shift is None and loss.reduction == "mean":  # as in torch, to the bit
        return F.binary_cross_entropy_with_logits(logits, targets, weight, pos_weight=pos_weight)
    known = targets == targets  # NaN differs from itself
    logits = torch.where(known, logits if shift is None else logits - shift, 0.0)
    targets = torch.where(known, targets, 0.0)
    entries = F.binary_cross_entropy_with_logits(
        logits, targets, weight, pos_weight=pos_weight, reduction="none"
    )
    entries = entries if push is None else entries + push
    return loss.reduce(torch.where(known, entries, 0.0), batch)


def _count(batch: PairBatch, shift: Tensor) -> Tensor:
    """Return what :meth:`SafeStart._advance` adds up over processes and steps."""
    logits, targets = batch.logits.detach().float(), batch.targets
    known, unlabelled = targets == targets, targets == 0  # NaN differs from itself
    labels, lowest = torch.where(known, targets, 0).float(), torch.where(known, logits, -math.inf)
    most = max(1, logits.numel() // (max(1, logits.shape[-1] if logits.ndim else 1) * _TOP))
    top = lowest.flatten().topk(most)
    counts = _Counts(
        labels=labels.sum(),
        known=known.sum(),
        unlabelled=unlabelled.sum(),
        above=(unlabelled & (logits > 0)).sum(),
        logits=torch.where(known, logits, 0.0).sum(),
        probs=torch.sigmoid(lowest - shift).sum(),
        top_labels=labels.flatten()[top.indices].sum(),
        top_probs=torch.sigmoid(top.values).sum(),
        top=torch.full((), most, device=logits.device),
    )
    return torch.stack(counts)


def _over_if_unknown(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Take a safe start that a saved state does not know of for over: training was under way."""
    state.setdefault(f"{prefix}stage", torch.tensor(_EQUATION))
    state.setdefault(f"{prefix}sums", torch.zeros(len(_Sums._fields)))


def _read_stage(module: nn.Module, _: object) -> None:
    assert isinstance(module, SafeStart)
    module.read_stage()


_REMEDY = (
    " Start the head where this loss is least, hilltop.losses.init_head(model, criterion, targets),"
    " or lower the learning rate; watch=False silences this warning."
)
_ENOUGH_ENTRIES = 200  # fewer say little


class CollapseWatch:
    """Looks at a few batches of the first epochs and warns, once, if training saturates.

    The gradient of losses that forgive confident negatives vanishes near probability 1, so nothing
    brings an entry back that got there by mistake, and corrections confirm such entries. The watch
    counts training steps. At steps 10, 30, 100, 300, 1,000, 3,000 and 10,000 it looks at the
    unlabelled entries: how many are above 0.9, how many are still above 0.5, and whether every
    image gets the same numbers. These are the only steps that wait for an accelerator. A loss that
    had a safe start goes back to cross-entropy then. The watch keeps nothing that belongs into a
    checkpoint.

    Args:
        warn: Whether to warn; without it the watch only hands back.

    Attributes:
        local: Whether this process trains by itself, so that the others must not be waited for.
    """

    looks = frozenset((10, 30, 100, 300, 1000, 3000, 10000))

    def __init__(self, *, warn: bool = True) -> None:
        """Start counting."""
        self.steps = 0
        self.warn, self.warned, self.local = warn, False, False

    def step(self, logits: Tensor, targets: Tensor, start: SafeStart | None = None) -> None:
        """Count a training step and, at some of them, look. Under ``torch.compile`` do nothing.

        Args:
            logits: Raw model output.
            targets: As the loss gets them.
            start: The safe start of the loss. While it runs nothing can saturate, and the head
                should be at the label rate within 100 steps.
        """
        if torch.compiler.is_compiling() or not logits.requires_grad:
            return
        self.steps += 1
        if self.steps not in self.looks:
            return
        if torch._C._are_functorch_transforms_active() or not has_values(logits):
            return
        if start is not None:
            start.read_stage()
        starting = start is not None and not start.over
        if self.warned or (starting and self.steps < 100):
            return
        problem = _problem(self.steps, *_measure(logits.detach(), targets, self.local).tolist())
        if not problem:
            return
        if start is not None and start.over:
            start.hand_back()
        if self.warn:
            self.warned = True
            happens = "The head starts slowly" if starting else "Training saturates"
            message = f"{happens}: after {self.steps} steps {problem}.{_REMEDY}"
            warnings.warn(message, HilltopWarning, stacklevel=4)


def _measure(logits: Tensor, targets: Tensor, local: bool) -> Tensor:
    """Return the arguments of :func:`_problem` after the step."""
    unlabelled, labelled, known = targets == 0, targets > 0, targets == targets
    sure, likely = (((logits > limit) & unlabelled).sum() for limit in (2.2, 0.0))
    counts = torch.stack([unlabelled.sum(), labelled.sum(), known.sum(), sure, likely]).float()
    # Processes that train together decide alike.
    count, labels, entries, sure, likely = counts if local else summed(counts)
    shares = labels / entries, sure / count, likely / count
    return torch.stack([count, *shares, _spread(logits)])


def _spread(logits: Tensor) -> Tensor:
    """Return how far the numbers of different images lie apart; infinity if there are too few."""
    if logits.ndim < 2 or logits.shape[:-1].numel() < 8:
        return torch.full((), math.inf, device=logits.device)
    rows = logits.reshape(-1, logits.shape[-1]).float()
    return (rows.amax(dim=0) - rows.amin(dim=0)).max()


def _problem(
    step: int, count: float, rate: float, sure: float, likely: float, spread: float
) -> str:
    """Return what is wrong with a batch, or an empty string."""
    if count < _ENOUGH_ENTRIES:
        return ""
    compared = f"where {rate:.1%} of all entries are labelled"
    # Missing labels account for a few times the labelled share, not for more.
    if sure > 0.05 + 3 * rate:
        return f"{sure:.0%} of the unlabelled entries are above probability 0.9, {compared}"
    if step >= 30 and likely > 0.25 + 3 * rate:
        return f"{likely:.0%} of the unlabelled entries are above probability 0.5, {compared}"
    if step >= 100 and spread < 1e-3:
        return "every image gets the same probabilities"
    return ""
