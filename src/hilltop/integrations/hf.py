"""Hugging Face Trainer: a loss for ``compute_loss_func``, and the epochs that some losses need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hilltop.checks import check_choice, check_kind
from hilltop.errors import ArgumentError, MissingExtra
from hilltop.losses import Loss

if TYPE_CHECKING:
    from transformers import TrainerCallback

_UNKNOWN = -100  # what the Trainer does not count


def hf_loss(criterion: Loss) -> Callable[..., Tensor]:
    r"""Return a loss for the ``compute_loss_func`` of a Hugging Face Trainer.

    .. math:: L = \frac{\sum \text{entries of this micro-batch}}{\text{entries of the whole step}}

    The Trainer adds up the gradients of the micro-batches of a step and expects each loss to be
    divided by the entries of all of them. A mean over each micro-batch would be as many times too
    strong as there are micro-batches; this one gives the same gradient for every
    ``gradient_accumulation_steps``.

    Args:
        criterion: A loss with reduction ``"mean"`` or ``"sum"``. One that looks at its batch as a
            whole (``ll_r``, ``ll_ct``) still looks at each micro-batch; one that remembers rows
            (``role``, ``ll_cp``, ``em_apl``) cannot be used, since the Trainer does not say which
            they are; one that learns (``scar_likelihood(label_frequency=None)``) must be an
            attribute of the model, so that the optimiser finds its parameters.

    Returns:
        A function of the model's outputs, of labels ``(N, C)`` and of ``num_items_in_batch``.
        Labels are 1, 0, or -100 for unknown, which the Trainer does not count either; NaN works as
        well, but the mean then is over all entries.

    Example:
        >>> compute_loss = hf_loss(bce())
        >>> halves = [{"logits": torch.zeros(2, 3)}, {"logits": torch.zeros(2, 3)}]
        >>> sum(compute_loss(half, torch.ones(2, 3), num_items_in_batch=12) for half in halves)
        tensor(0.6931)
    """
    check_kind("criterion", criterion, Loss)
    check_choice("reduction of the criterion", criterion.reduction, ("mean", "sum"))

    def compute_loss(
        outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        if labels is None:
            raise ArgumentError("The batch has no labels: its collator must give 'labels' (N, C).")
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        targets = labels.to(torch.float32)
        targets = targets.masked_fill(targets == _UNKNOWN, torch.nan)
        loss: Tensor = criterion.to(logits.device)(logits, targets)
        if criterion.reduction == "sum" or num_items_in_batch is None:
            return loss
        return loss * ((~targets.isnan()).sum() / num_items_in_batch)

    return compute_loss


def hf_epochs(criterion: Loss) -> TrainerCallback:
    """Return a callback that tells the loss which epoch begins, which ``splc`` and others need.

    Args:
        criterion: The loss given to :func:`hf_loss`.
    """
    check_kind("criterion", criterion, Loss)
    try:
        from transformers import TrainerCallback
    except ModuleNotFoundError as error:
        raise MissingExtra("hf_epochs", error.name, "hf") from None

    class Epochs(TrainerCallback):
        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            criterion.set_epoch(int(state.epoch + 1e-6))  # a resumed run counts in fractions

    return Epochs()
