"""Loss: called like ``BCEWithLogitsLoss``, told of epochs and of the labels as a whole.

:class:`PairBatch` is the one value that flows through a loss; :class:`LabelStats` is what a loss
may know of the training set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from hilltop.checks import check_choice, check_same_shape, check_whole, invalid_targets_message
from hilltop.deprecation import renamed_arguments, warn_renamed
from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses.safe_start import CollapseWatch, SafeStart
from hilltop.losses.tracing import has_values

Reduction = Literal["mean", "sum", "batchmean", "none"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
ParameterGroups = list[tuple[list[nn.Parameter], float]]


@dataclass(frozen=True)
class Evidence:
    """What out-of-fold scores say about missing labels.

    Attributes:
        weight: How much each unlabelled entry counts ``(N, C)``: 0 for a probable missing label and
            1 for all others; None if no labels seem to be missing.
        sentence: The finding in words.
    """

    weight: Tensor | None
    sentence: str


@dataclass(frozen=True)
class LabelStats:
    """What a loss may know of a run before it starts.

    Attributes:
        images: Number of training images; ``index`` counts from 0 to one less.
        positives: For each class, the number of images labelled with it.
        labels_per_image: Entry s is the number of images with s labels.
        epochs: How often training goes through the images.
        before_review: As ``labels_per_image``, before a review put labels back; None without one.
        evidence: Of missing labels, for losses that use it; None if none was gathered.
    """

    images: int
    positives: Tensor
    labels_per_image: Tensor
    epochs: int
    before_review: Tensor | None = None
    evidence: Evidence | None = None

    @classmethod
    def of(cls, targets: Tensor, epochs: int = 1) -> LabelStats:
        """Count the labels in the training targets ``(N, C)``: 1 for labelled.

        Example:
            >>> LabelStats.of(torch.tensor([[1, 0], [1, 1]])).labels_per_image
            tensor([0, 1, 1])
        """
        labelled = targets == 1
        return cls(
            images=len(labelled),
            positives=labelled.sum(dim=0),
            labels_per_image=torch.bincount(labelled.sum(dim=1)),
            epochs=epochs,
        )


class PairBatch(NamedTuple):
    """A batch of (image, class) pairs.

    Attributes:
        logits: Raw model output, in float64 if it came in float64 and in float32 otherwise.
        targets: 1 for labelled, 0 for not labelled, NaN for "leave out"; soft values too.
        verified: True where a person verified the target; None where nobody did.
        index: Row numbers of the images in the data set, if they were given.
        epoch: The epoch, counting from 0; a tensor, so that it can change in compiled code.
        complete: Whether it is known that no target is NaN, so that nothing needs a mask.
    """

    logits: Tensor
    targets: Tensor
    verified: Tensor | None = None
    index: Tensor | None = None  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    epoch: Tensor | int = 0
    complete: bool = False

    def with_logits(self, logits: Tensor) -> PairBatch:
        """Return the same pairs with other logits."""
        return PairBatch(logits, *self[1:])

    def candidates(self) -> Tensor:
        """Return True for pairs that may be missing labels: known, below 1, not verified."""
        below = self.targets < 1  # False for NaN
        return below if self.verified is None else below & ~self.verified

    def at(self, rows: Tensor) -> PairBatch:
        """Return the pairs of some images."""
        verified, index = (
            None if part is None else part[rows] for part in (self.verified, self.index)
        )
        return PairBatch(self.logits[rows], self.targets[rows], verified, index, self.epoch)


class Loss(nn.Module):
    """A loss for multi-label learning, called as ``loss(logits, targets)``.

    Subclasses write :meth:`entries`. Checks, the safe start, the watch and reduction are here. The
    other methods are there for losses that change over time, learn from the labels as a whole, or
    turn unlabelled entries into labels.

    Args:
        reduction: ``"mean"`` over entries, ``"sum"``, ``"batchmean"`` (sum over classes, mean over
            images) or ``"none"``.
        watch: Whether to warn when training saturates, for losses that can.
        check: Whether to check the values of the targets of every batch on an accelerator, which
            waits for it. On the CPU every batch is checked; on other devices the first one is, and
            the first one after :meth:`set_epoch`.
        safe_start: Whether training begins with :class:`SafeStart`, for losses that can saturate.
    """

    can_saturate: bool = False
    """Whether the gradient of unlabelled entries vanishes near probability 1."""
    self_labelling: bool = False
    """Whether labels are inferred from the model's output from the first step on. The constant that
    minimises such a loss says nothing: it agrees with its own guesses."""
    independent_rows: bool = True
    """Whether the loss of an image depends on that image alone: on no other image of its batch and
    on no batch before."""
    label_smoothing: float = 0.0
    takes_soft_targets: bool = True
    """Whether targets between 0 and 1 have a meaning for this loss."""
    wants_evidence: bool = False
    """Whether the loss uses :attr:`LabelStats.evidence`."""
    epoch: Tensor

    def __init__(
        self,
        *,
        reduction: Reduction = "mean",
        watch: bool = True,
        check: bool = False,
        safe_start: bool = True,
    ) -> None:
        """Check and store the options; the epoch is 0."""
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        self.reduction: Reduction = reduction
        self.check = check
        self._checked_devices: set[torch.device] = set()
        self._options = watch, safe_start
        self.watch: CollapseWatch | None = None
        self.safe_start: SafeStart | None = None
        self.register_buffer("epoch", torch.zeros((), dtype=torch.long))
        self.register_load_state_dict_pre_hook(_keep_own_state)  # type: ignore[no-untyped-call]
        self.guard_saturation()

    def guard_saturation(self) -> None:
        """Add the safe start and the watch if they are wanted and this loss can saturate."""
        watch, safe_start = self._options
        guarded = self.can_saturate and (watch or safe_start)
        self.watch = CollapseWatch(warn=watch) if guarded else None
        self.safe_start = SafeStart() if self.can_saturate and safe_start else None

    def forgives_from_epoch(self) -> int | None:
        """Return the epoch from which on confident unlabelled entries weigh less than in BCE.

        None for a loss in which they weigh more: the safe start never hands over to it.
        """
        return 0

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        verified: Tensor | None = None,
        index: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch.

        Args:
            logits: Raw model output.
            targets: 1 for labelled, 0 for not labelled, NaN for "leave out"; soft values too.
            verified: True where a person verified the target; such entries are not corrected.
            index: Row numbers of the batch in the data set, for losses that remember.
            observed: Deprecated name of ``verified``.
        """
        if observed is not None:
            warn_renamed("observed", "verified")
            verified = observed
        batch = self.batch(logits, targets, verified, index)
        start = self.safe_start
        if self.watch is not None and self.training:
            self.watch.step(logits, targets, start)
        if start is None or start.over:
            return self.evaluate(batch)
        return start(self, batch)  # type: ignore[no-any-return]

    def batch(
        self,
        logits: Tensor,
        targets: Tensor,
        verified: Tensor | None = None,
        index: Tensor | None = None,
    ) -> PairBatch:
        """Return the pairs as one value, if their types, shapes and devices agree."""
        _check_inputs(logits, targets, verified)
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()
        epoch = self._buffers["epoch"]  # for a small batch, attribute look-ups count
        assert epoch is not None
        return PairBatch(logits, targets, verified, index, epoch)

    def evaluate(self, batch: PairBatch) -> Tensor:
        """Return the reduced loss by its equation, without safe start and watch."""
        batch = batch._replace(complete=self.check_targets(batch.targets))
        return self.reduce(self.entries(batch), batch).to(batch.logits.dtype)

    def entries(self, batch: PairBatch) -> Tensor:
        """Return the loss of every entry, differentiable; 0 where the target is NaN.

        This is what a subclass writes.
        """
        raise NotImplementedError

    def reduce(self, entries: Tensor, batch: PairBatch) -> Tensor:
        """Reduce the losses of all entries, of which those with a NaN target are 0."""
        if self.reduction == "none":
            return entries
        if self.reduction != "mean" or not entries.numel():
            return entries.sum() / self.divisor(batch, 1)
        if batch.complete or not batch.targets.dtype.is_floating_point:
            return entries.mean()
        return entries.sum() / (batch.targets == batch.targets).sum().clamp(min=1)

    def divisor(self, batch: PairBatch, known: int) -> int:
        """Return what the sum over a batch is divided by, given how many entries are known."""
        if self.reduction == "mean":
            return known
        return max(1, batch.targets.shape[:-1].numel()) if self.reduction == "batchmean" else 1

    def check_targets(self, targets: Tensor) -> bool:
        """Raise unless the loss can take these targets; return whether none of them is NaN.

        Where values cannot be looked at without waiting, or at all, the answer is False.
        """
        if targets.dtype == torch.bool or not targets.numel():
            return True
        if torch.compiler.is_compiling():
            if self.check:
                torch._assert_async(self.are_valid(targets).all(), "A target is out of range.")
            return False
        if not targets.is_cpu or type(targets) is not Tensor:
            if not has_values(targets):
                return False
            if not targets.is_cpu and not self.check:
                if targets.device in self._checked_devices:
                    return False
                self._checked_devices.add(targets.device)
        values = _unwrapped(targets).detach()
        if not values.dtype.is_floating_point:
            values = values.long()  # torch cannot compare some unsigned types
        low, high = values.aminmax()
        if low.item() >= 0 and high.item() <= 1 and self.takes_soft_targets:
            return True  # NaN would have shown in both
        valid = self.are_valid(values)
        if not bool(valid.all()):
            example = float(values[~valid][0])
            raise ArgumentError(invalid_targets_message(example, soft=self.takes_soft_targets))
        return bool((values == values).all())

    def are_valid(self, targets: Tensor) -> Tensor:
        """Return True where a target is one that this loss can take."""
        inside = (targets >= 0) & (targets <= 1)
        if not self.takes_soft_targets:
            inside = (targets == 0) | (targets == 1)
        return inside | (targets != targets)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins, counting from 0. Some corrections wait for it.

        An earlier epoch than before begins another training, and with it another safe start.
        """
        check_whole("epoch", epoch, low=0)
        self._checked_devices.clear()
        if self.watch is not None and epoch < int(self.epoch):
            self.watch.steps = 0
            if self.safe_start is not None:
                self.safe_start.restart()
        elif self.safe_start is not None:
            self.safe_start.read_stage()
        self.epoch.fill_(epoch)

    def class_weights(self, logits: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return factors for each class on both terms and on the positive term, or None."""
        return None, None

    def init_loss(self) -> Loss:
        """Return the loss whose best constant a head should start at."""
        return self

    def prepare(self, stats: LabelStats) -> None:
        """Take what is known of a run that begins; the trainer calls this before the first step."""
        if self.safe_start is not None:
            self.safe_start.restart()

    def parameter_groups(self) -> ParameterGroups:
        """Return what this loss learns itself, each with a factor on the learning rate."""
        learned = list(self.parameters())
        return [(learned, 1.0)] if learned else []

    def describe(self) -> str | None:
        """Return a sentence on what was chosen or what memory it takes, or None.

        It is known after :meth:`prepare`; the trainer prints it before the run.
        """
        return None

    def decision_threshold(self, scores: Tensor) -> float:
        """Return the probability above which a pair counts as present, for scores of a model.

        It is one half, except where a loss is known to push all scores up.
        """
        return 0.5

    @renamed_arguments(observed="verified")
    @torch.no_grad()
    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        verified: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that this loss takes for labels at present."""
        return self.find_pseudo_labels(self.batch(logits, targets, verified, index))

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return what :meth:`pseudo_labels` does; losses that correct labels write it."""
        return torch.zeros_like(batch.targets, dtype=torch.bool)


def check_device(name: str, tensor: Tensor, logits: Tensor) -> None:
    """Raise unless ``tensor`` is on the device of the logits."""
    if tensor.device != logits.device:
        raise ArgumentError(
            f"{name} must be on the device of logits, {logits.device}, but is on {tensor.device}."
        )


def check_one_for_each_class(name: str, numbers: Tensor, logits: Tensor) -> None:
    """Raise unless there is one number, or one for each class, on the device of the logits."""
    classes = logits.shape[-1] if logits.ndim else 1
    if numbers.shape not in ((), (1,), (classes,)):
        raise ArgumentError(
            f"{name} must be one number or one for each of the {classes} classes in"
            f" the last dimension of logits, but has the shape {tuple(numbers.shape)}."
        )
    check_device(name, numbers, logits)


def _check_inputs(logits: Tensor, targets: Tensor, verified: Tensor | None) -> None:
    """Raise unless logits, targets and verified fit together in type, shape and device."""
    if not isinstance(logits, Tensor) or not logits.dtype.is_floating_point:
        raise ArgumentTypeError(f"logits must be a floating-point tensor, but got {_kind(logits)}.")
    if not isinstance(targets, Tensor) or targets.dtype.is_complex:
        raise ArgumentTypeError(f"targets must be a real tensor, but got {_kind(targets)}.")
    if targets.shape != logits.shape:
        check_same_shape("targets", targets.shape, "logits", logits.shape)
    if targets.device != logits.device:
        check_device("targets", targets, logits)
    if verified is None:
        return
    if not isinstance(verified, Tensor) or verified.dtype != torch.bool:
        raise ArgumentTypeError(f"verified must be a tensor of bool, but got {_kind(verified)}.")
    check_same_shape("verified", verified.shape, "logits", logits.shape)
    check_device("verified", verified, logits)


def _unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor behind the wrappers of ``torch.func``, whose values may be read."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _kind(value: object) -> str:
    return f"one of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__


def _keep_own_state(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Let a model that holds this loss load a state that was saved with another loss."""
    state.setdefault(f"{prefix}epoch", module.get_buffer("epoch"))
    if getattr(module, "safe_start", None) is None:
        for name in ("stage", "sums"):
            state.pop(f"{prefix}safe_start.{name}", None)
