"""SafeStart and CollapseWatch: what keeps a loss that can saturate from doing so."""

from __future__ import annotations

import logging
import math
import warnings
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hilltop.errors import HilltopWarning

if TYPE_CHECKING:
    from hilltop.losses.base import Loss, PairBatch

# Chosen on splits of training rows (reproduction/safe_start.py --choose), by the cells of COCO and
# the sets that end below cross-entropy and by the mean gain.
_PUSH = 3.0  # bound of the push, in label rates; of 0.3, 1, 3, 6, 10 and 20
_PATIENCE = 50  # steps of plain cross-entropy before the shift; of 0, 50, 100, 200 and never
_ENOUGH_TOP = 75  # most confident entries to see before anything is decided; of 75 and 150
_MOST_LABELLED = (
    0.7  # labelled share of them below which labels are missing; of 0.7, 0.8, 0.85 and 0.9
)
_LEAST_LIFT = 5.0  # the same share in label rates: below it the model knows too little to judge
_TOP = 10  # one such entry for so many images of a batch
_WINDOW = 100.0  # how many of them are remembered
_FOLLOW = 0.3  # how far a batch moves the shift towards its own
_CLOSE = 0.5  # shift at which the head counts as being at the label rate
_MOST_ABOVE_HALF = 2.0  # unlabelled entries above one half at the end, in label rates
_READ_EVERY = 32  # steps, on devices for which the host would have to wait
_RUNNING, _OVER, _CROSS_ENTROPY = 1, 2, 3
_LOG = logging.getLogger(__name__)


class SafeStart(nn.Module):
    r"""Cross-entropy, until the head is at the label rate and labels turn out to be missing.

    The first 50 steps are cross-entropy to the bit. Most loops bring the predictions down to the
    label rate within them. In a slower one cross-entropy goes on with the common bias profiled out:

    .. math:: L = \mathrm{BCE}(x - \delta,\, y) + g\,(\bar x - b), \qquad
              \overline{\sigma(x - \delta)} = \pi, \quad b = \log\frac{\pi}{1 - \pi}, \quad
              g = \min(\sigma(b + \delta) - \pi,\; 3\,\pi)

    :math:`\pi` is the share of labels so far, :math:`\delta` the one shift of all logits at which
    the mean probability is that share, followed over batches. From torch's own start every class
    begins at probability one half. There a loss whose gradient vanishes near 1 can leave unlabelled
    entries that overshoot, and with a small learning rate cross-entropy spends all of training on
    bringing logits down. With the shift entries are ranked as if the head had started at the label
    rate, and a small push on the mean logit brings it there. From the first step on the shift costs
    up to 14 mAP in loops that do not need it.

    A loss that forgives confident negatives helps where labels are missing and hurts where they are
    complete. The labelled share of the most confident entries, one for ten images of every batch,
    tells which: cross-entropy ranks labels first, so that an unlabelled entry among them is
    probably a missing label. Once 75 of them were seen, the shift is below 0.5 and at most twice
    the label rate of the unlabelled entries are above one half, it is decided for good:

    - if less than 70% of the last 100 are labelled, yet five times as many as of all entries,
      labels are missing, and from this step on the loss is its own equation, to the bit;
    - otherwise, and for a loss that weighs confident negatives more than cross-entropy does (ASL),
      it is cross-entropy, which a record of Python's ``logging`` under ``hilltop`` says.

    A model that :func:`init_head` prepared for this loss needs no safe start and gets none. Should
    the equation saturate after a safe start, which :class:`CollapseWatch` notices, cross-entropy
    takes over for good. The state is in buffers: it is saved, resumed and compiled with the loss.
    With many processes all see the sums over their batches and decide alike, so each of them has to
    call the loss in every training step.
    """

    stage: Tensor
    sums: Tensor

    def __init__(self) -> None:
        """Begin with the first training step."""
        super().__init__()
        self.register_buffer("stage", torch.tensor(_RUNNING))
        # Labels, known entries, shift; labelled, all and ever seen top entries; moving share of
        # unlabelled entries above one half; steps.
        self.register_buffer("sums", torch.zeros(8))
        # As stage, and whether the loss is its equation: known without waiting for a device.
        self.known_stage, self.over = _RUNNING, False
        self._steps = 0
        self.register_load_state_dict_pre_hook(_over_if_unknown)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_read_stage)  # type: ignore[no-untyped-call]

    def restart(self) -> None:
        """Begin anew, for another run of training, unless it was left out."""
        if self.sums.any():
            self.sums.zero_()
            self._enter(_RUNNING)

    def skip(self) -> None:
        """Leave the safe start out: the head was set to the label rate."""
        self.sums.zero_()
        self._enter(_OVER)

    def hand_back(self) -> None:
        """Go on with cross-entropy for good: the equation saturated."""
        if self.sums.any():
            self._enter(_CROSS_ENTROPY)

    def _enter(self, stage: int) -> None:
        self.stage.fill_(stage)
        self.read_stage(quiet=True)

    def read_stage(self, *, quiet: bool = False) -> None:
        """Note the stage, so that no step needs to ask for it."""
        before, self.known_stage = self.known_stage, int(self.stage)
        self.over = self.known_stage == _OVER
        if self.known_stage == _CROSS_ENTROPY != before and not quiet:
            _LOG.warning(
                "Of the most confident predictions %.0f%% are labelled: this loss stays with"
                " cross-entropy, which ranks better then. safe_start=False is its equation.",
                100 * float(self.sums[3] / self.sums[4].clamp(min=1)),
            )

    def forward(self, loss: Loss, batch: PairBatch) -> Tensor:
        """Return the loss of a batch, of the safe start or of the equation."""
        logits = batch.logits
        learns = torch.is_grad_enabled() and logits.requires_grad and self.training
        if not learns or not logits.numel() or torch._C._are_functorch_transforms_active():
            return loss.evaluate(batch)
        batch = batch._replace(complete=loss.check_targets(batch.targets))
        if self.known_stage == _CROSS_ENTROPY:
            return loss.reduce(loss.cross_entropy(batch), batch)
        rate = self._advance(loss, batch)
        if torch.compiler.is_compiling():
            start = self._shifted_loss(loss, batch, rate)
            return torch.where(self.stage == _OVER, loss.evaluate(batch), start)
        self._steps += 1
        if logits.is_cpu or self._steps % _READ_EVERY == 0:
            self.read_stage()
        if self.over:
            return loss.evaluate(batch)
        start = self._shifted_loss(loss, batch, rate)
        if logits.is_cpu:
            return start
        return torch.where(self.stage == _OVER, loss.evaluate(batch), start)

    @torch.no_grad()
    def _advance(self, loss: Loss, batch: PairBatch) -> Tensor:
        """Count a batch, move to the next stage if it is time, and return the label rate."""
        labels, known, shift, hits, remembered, seen, above, steps = self.sums.unbind()
        first, counts = known == 0, _summed(_count(batch))
        labels, known = labels + counts[0], known + counts[1]
        rate = (labels / known.clamp(min=1)).clamp(1e-6, 1 - 1e-6)
        end, top, logits = torch.logit(rate), counts[5], batch.logits.detach().float()
        # A fixed point whose steps never overshoot. The first batch goes most of the way at once.
        shift = torch.where(first, counts[6] / counts[1].clamp(min=1) - end, shift)
        is_known = batch.targets == batch.targets  # NaN differs from itself
        probs = torch.sigmoid(torch.where(is_known, logits - shift, -math.inf)).sum()
        mean = _summed(probs) / counts[1].clamp(min=1)
        step = torch.where(first, 1.0, _FOLLOW) * (torch.logit(mean, eps=1e-6) - end)
        shift = torch.where(counts[1] > 0, shift + step, shift)

        share = counts[3] / counts[2].clamp(min=1)
        above = torch.where(first, share, above + 0.1 * (share - above))
        kept = torch.exp(-top / _WINDOW)
        hits, remembered, seen = kept * hits + counts[4], kept * remembered + top, seen + top
        now = labels, known, shift, hits, remembered, seen, above, steps + 1
        self.sums.copy_(torch.stack(now))

        missing = (hits < _MOST_LABELLED * remembered) & (hits > _LEAST_LIFT * rate * remembered)
        down = (shift.abs() < _CLOSE) & (above <= _MOST_ABOVE_HALF * rate)
        ready = loss.forgives_from_epoch()
        begun = torch.as_tensor(batch.epoch >= (ready or 0), device=known.device)
        stage = torch.where(missing & begun & (ready is not None), _OVER, _CROSS_ENTROPY)
        decided = (seen >= _ENOUGH_TOP) & down & (begun | ~missing)
        stage = torch.where(decided, stage, _RUNNING)
        self.stage.copy_(torch.where(self.stage >= _OVER, self.stage, stage))
        return rate

    def _shifted_loss(self, loss: Loss, batch: PairBatch, rate: Tensor) -> Tensor:
        """Return the equation of the class, reduced; unshifted at first and once it is decided."""
        end = torch.logit(rate)
        shifted = (self.stage == _RUNNING) & (self.sums[7] > _PATIENCE)
        shift = torch.where(shifted, self.sums[2], 0.0)
        strength = torch.minimum(torch.sigmoid(end + shift) - rate, _PUSH * rate)
        push = strength * (_mean_logit(batch) - end)
        entries = loss.cross_entropy(batch.with_logits(batch.logits - shift))
        if not batch.complete:
            push = torch.where(batch.targets == batch.targets, push, 0.0)
        return loss.reduce(entries + push, batch)


def _summed(counts: Tensor) -> Tensor:
    """Return the sum over all processes."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        dist.all_reduce(counts)
    return counts


def _count(batch: PairBatch) -> Tensor:
    """Return what :meth:`SafeStart._advance` adds up over processes and steps."""
    logits, targets = batch.logits.detach().float(), batch.targets
    known = targets == targets
    unlabelled = targets == 0
    top = max(1, logits.numel() // (max(1, logits.shape[-1] if logits.ndim else 1) * _TOP))
    ranked = torch.where(known, logits, -math.inf).flatten().topk(top).indices
    labelled = torch.where(known, targets, 0).float()
    return torch.stack([
        labelled.sum(),
        known.sum(),
        unlabelled.sum(),
        (unlabelled & (logits > 0)).sum(),
        labelled.flatten()[ranked].sum(),
        torch.full((), top, device=logits.device),
        torch.where(known, logits, 0.0).sum(),
    ])  # fmt: skip


def _mean_logit(batch: PairBatch) -> Tensor:
    """Return the mean logit of known entries, differentiable."""
    logits = batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()
    if batch.complete:
        return logits.mean()
    known = batch.targets == batch.targets
    return torch.where(known, logits, 0.0).sum() / known.sum().clamp(min=1)


def _over_if_unknown(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Take a safe start that a saved state does not know of for over: training was under way."""
    state.setdefault(f"{prefix}stage", torch.tensor(_OVER))
    state.setdefault(f"{prefix}sums", torch.zeros(8))


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
        starting = start is not None and not start.over
        if self.warned or (starting and self.steps < 100):
            return
        if torch._C._are_functorch_transforms_active() or _has_no_values(logits):
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


def _has_no_values(logits: Tensor) -> bool:
    if logits.is_cuda and torch.cuda.is_current_stream_capturing():
        return True
    return logits.is_meta or isinstance(logits, torch._subclasses.FakeTensor)


def _measure(logits: Tensor, targets: Tensor, local: bool) -> Tensor:
    """Return the arguments of :func:`_problem` after the step."""
    unlabelled, labelled, known = targets == 0, targets > 0, targets == targets
    sure, likely = (((logits > limit) & unlabelled).sum() for limit in (2.2, 0.0))
    counts = torch.stack([unlabelled.sum(), labelled.sum(), known.sum(), sure, likely]).float()
    # Processes that train together decide alike.
    count, labels, entries, sure, likely = counts if local else _summed(counts)
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
