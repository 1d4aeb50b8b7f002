"""Where a classification head starts: at the best constant of the loss, or at the label prior."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from hilltop.checks import check_kind
from hilltop.deprecation import renamed_arguments
from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses.base import Loss

_LOG = logging.getLogger(__name__)
_MOST_ENTRIES = 2_000_000
_RAREST = 1 / (1 + math.exp(10.0))  # share of labels that a class has at the least


@torch.no_grad()
def best_constant(loss: Loss, targets: Tensor, *, verified: Tensor | None = None) -> float:
    r"""Return the logit that, given to every entry, makes the loss on these labels least.

    .. math:: b = \arg\min_x \sum_{i,c} L(x, y_{ic})

    For cross-entropy it is the log odds of a label. Losses that assume missing labels put it
    higher: at the share of labels they expect to be true. See :meth:`Loss.init_loss` for the one
    that would put it too high.

    Args:
        loss: Any loss of this library.
        targets: The training targets ``(N, C)``, or as many of their rows as are convenient.
        verified: True where a person verified the target.

    Example:
        >>> from hilltop.losses import bce, hill
        >>> targets = torch.eye(20)
        >>> round(best_constant(bce(), targets), 2), round(best_constant(hill(), targets), 2)
        (-2.94, -1.6)
    """
    loss = loss.init_loss()
    rows = max(1, _MOST_ENTRIES // max(1, targets.shape[-1]))
    step = -(-len(targets) // rows)  # evenly over the data set, which may be sorted
    targets = targets[::step]
    verified = None if verified is None else verified[::step]
    index = torch.arange(len(targets), device=targets.device) * step

    def value(logit: float) -> float:
        logits = torch.full(targets.shape, logit, device=targets.device)
        return float(loss(logits, targets, verified=verified, index=index).sum())

    coarse = min((0.25 * number for number in range(-40, 17)), key=value)
    return min((coarse + 0.02 * number for number in range(-12, 13)), key=value)


def label_shares(targets: Tensor, *, weight: Tensor | None = None) -> Tensor:
    """Return the share of rows labelled with each class; of all classes where nothing is known."""
    if weight is None:
        weight = torch.ones(len(targets), device=targets.device)
    weight = weight.to(torch.float64)
    labelled, known = (
        weight @ part.to(weight) for part in (targets.nan_to_num(), ~targets.isnan())
    )
    overall = labelled.sum() / known.sum().clamp(min=1e-9)
    return torch.where(known > 0, labelled / known.clamp(min=1e-9), overall)


def log_odds(targets: Tensor, *, weight: Tensor | None = None) -> Tensor:
    """Return the log odds of a label of each class.

    A class that was never, or always, labelled still gets a finite number, about 1 in 22,000; one
    of which nothing is known that of all classes together.

    Args:
        targets: 1 for labelled, 0 for not labelled, NaN for unknown ``(N, C)``.
        weight: How much each row counts ``(N,)``; all count alike without it.

    Example:
        >>> log_odds(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
        tensor([  0., -10.])
    """
    return torch.logit(label_shares(targets, weight=weight), eps=_RAREST).to(torch.float32)


def head_start(
    loss: Loss, targets: Tensor, *, verified: Tensor | None = None, weight: Tensor | None = None
) -> Tensor:
    r"""Return for each class the bias at which a head should start.

    .. math:: b_c = \arg\min_x \sum_{i,k} L(x, y_{ik})
        + \log\frac{\pi_c}{1 - \pi_c} - \log\frac{\bar\pi}{1 - \bar\pi}

    The best constant of the loss for all classes, moved for each class by how much commoner or
    rarer it is than the average; for cross-entropy this is the log odds of each class. A loss that
    guesses labels from the model's own output (ROLE, GR) starts at the log odds: its best constant
    would only agree with its own guesses.

    Args:
        loss: The loss that the head will be trained with.
        targets: The training targets ``(N, C)``.
        verified: True where a person verified the target.
        weight: How much each row counts ``(N,)``; the loss has to know it, too.
    """
    targets = targets.float()
    start = log_odds(targets, weight=weight)
    if loss.self_labelling:
        return start
    every = None if weight is None else weight.repeat_interleave(targets.shape[1])
    usual = log_odds(targets.reshape(-1, 1), weight=every)
    return start + best_constant(loss, targets, verified=verified) - usual


@renamed_arguments(observed="verified")
def init_head(
    model: nn.Module,
    loss: Loss,
    targets: Tensor,
    *,
    verified: Tensor | None = None,
) -> nn.Module:
    """Set the bias of the classification head to where the loss is least, and return the model.

    See :func:`head_start` for where that is. From torch's own start every class begins at
    probability one half, and much of the first epochs is spent on leaving it; losses that forgive
    confident negatives (Hill, SPLC) can get stuck there. The same line helps cross-entropy. Which
    layer was set, and to what, is a record of Python's ``logging`` under ``hilltop``.

    Args:
        model: A module with a linear or convolution layer that gives the logits. The classifier of
            timm models is asked for; in torchvision, Hugging Face and other models it is the last
            layer with one output for each class, others like it right before, and auxiliary heads.
        loss: The loss it will be trained with.
        targets: The training targets ``(N, C)``, or as many of their rows as are convenient.
        verified: True where a person verified the target.

    Raises:
        ArgumentError: There is no such layer, it has no bias, or the targets are no such matrix.

    Example:
        >>> from hilltop.losses import bce
        >>> targets = torch.tensor([[1, 0], [1, 1], [1, 0], [0, 0]])
        >>> init_head(torch.nn.Linear(4, 2), bce(), targets).bias
        Parameter containing:
        tensor([ 1.0986, -1.0986], requires_grad=True)
    """
    check_kind("model", model, nn.Module)
    targets = _as_matrix(targets)
    heads = find_heads(model, targets.shape[1])
    start = head_start(loss, targets, verified=verified)
    for head in heads.values():
        assert head.bias is not None
        with torch.no_grad():
            head.bias.copy_(start.to(head.bias))
    if loss.safe_start is not None:
        loss.safe_start.skip()
    _LOG.info(
        "init_head: the bias of %s (%d classes) now starts at %.2f on average (%.2f to %.2f).",
        " and ".join(repr(name) if name else "the model" for name in heads),
        targets.shape[1],
        *(float(number) for number in (start.mean(), start.min(), start.max())),
    )
    return model


def _as_matrix(targets: Any) -> Tensor:
    """Return training targets as a dense tensor ``(N, C)`` in which at least one is known."""
    if hasattr(targets, "toarray"):  # a sparse matrix of scipy
        targets = targets.toarray()
    try:
        dense = torch.as_tensor(targets)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentTypeError(
            "targets must be a tensor or an array of numbers, (images, classes), but got"
            f" {type(targets).__name__}."
        ) from None
    dense = dense.to_dense() if dense.layout != torch.strided else dense
    if dense.ndim != 2 or not dense.numel():
        raise ArgumentError(
            f"targets must have the shape (images, classes), but got {tuple(dense.shape)}."
        )
    if not bool((dense == dense).any()):
        raise ArgumentError("targets are all NaN, so that nothing says where to start.")
    return dense


Head = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def find_heads(model: nn.Module, classes: int) -> dict[str, Head]:
    """Return the layers that give the logits, by name; more than one in distilled models.

    Raises:
        ArgumentError: No layer has one output for each class, or it has no bias.
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, Head)}
    for name, layer in layers.items():
        if isinstance(layer.weight, nn.parameter.UninitializedParameter):
            raise ArgumentError(
                f"The layer {name!r} does not know its inputs yet. Call the model once, on any"
                " batch, before init_head."
            )
    fitting = {name: layer for name, layer in layers.items() if _outputs(layer) == classes}
    if not fitting:
        last = next(reversed(layers), None)
        found = "it has none" if last is None else f"{last!r} has {_outputs(layers[last])}"
        raise ArgumentError(
            f"The model needs a linear or convolution layer with {classes} outputs, one for each"
            f" class, but {found}. Replace the classification head first."
        )
    auxiliary = {name: layer for name, layer in fitting.items() if "aux" in name.lower()}
    main = {name: layer for name, layer in fitting.items() if name not in auxiliary} or auxiliary
    heads = _named_heads(model, main) or _last_heads(layers, main)
    heads |= auxiliary
    for name, head in heads.items():
        if head.bias is None:
            raise ArgumentError(
                f"The classification head {name!r} has no bias to start from. Give it one before"
                f" the optimizer is made, model.get_submodule({name!r}).bias ="
                f" torch.nn.Parameter(torch.zeros({classes})), or leave init_head out: the loss"
                " then begins with its safe start."
            )
    return heads


def _named_heads(model: nn.Module, fitting: dict[str, Head]) -> dict[str, Head]:
    """Return the layers that a timm model says are its classifier."""
    ask = getattr(model, "get_classifier", None)
    answer = ask() if callable(ask) else ()
    parts = answer if isinstance(answer, tuple | list) else [answer]
    known = {id(m) for part in parts if isinstance(part, nn.Module) for m in part.modules()}
    return {name: layer for name, layer in fitting.items() if id(layer) in known}


def _last_heads(layers: dict[str, Head], fitting: dict[str, Head]) -> dict[str, Head]:
    """Return the last fitting layer, and those like it right before, whose logits are averaged."""
    *_, name = fitting
    shape = layers[name].weight.shape
    heads = {name: layers[name]}
    if shape[0] == shape[1]:
        return heads  # one like it may feed it
    for before in reversed(list(layers)[: list(layers).index(name)]):
        if layers[before].weight.shape != shape:
            break
        heads = {before: layers[before], **heads}
    return heads


def _outputs(layer: Head) -> int:
    return layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels


@runtime_checkable
class HasLabelShares(Protocol):
    """Anything that knows how often each class is labelled, such as a ``LabelTable``."""

    def label_shares(self) -> Any:
        """Return the share of images labelled with each class, as an array."""
        ...


Labels = float | Sequence[float] | Tensor | HasLabelShares


@renamed_arguments(keep="label_frequency")
def init_head_prior(
    model: nn.Module, labels: Labels, *, label_frequency: float | Sequence[float] | Tensor = 1.0
) -> nn.Module:
    r"""Set the bias of the last layer to the log odds of the label prior, and return the model.

    .. math:: b_c = \log \frac{\pi_c}{1 - \pi_c}

    It needs the share of labels alone; :func:`init_head` also asks the loss.

    Args:
        model: Any module whose last linear or convolution layer with a bias gives the logits.
        labels: The training targets ``(N, C)``, 1 for labelled, NaN for unknown; a ``LabelTable``;
            or the share of images labelled with a class, one number or one for each class.
        label_frequency: The share of true labels that were recorded, where that is known, as for
            :func:`scar_likelihood`: :math:`\pi` is then the share divided by it, but at most one
            half unless the labels themselves say more.

    Raises:
        ArgumentError: There is no such layer, or the labels do not fit it.

    Example:
        >>> head = init_head_prior(torch.nn.Linear(4, 2), [0.5, 0.01])
        >>> head.bias
        Parameter containing:
        tensor([ 0.0000, -4.5951], requires_grad=True)
        >>> targets = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
        >>> init_head_prior(torch.nn.Linear(4, 2), targets).bias.detach().sigmoid()
        tensor([0.7500, 0.2500])
    """
    bias = last_bias(model)
    shares = _shares(labels)
    if shares.ndim and shares.shape != bias.shape:
        raise ArgumentError(
            f"labels must have one class for each of {bias.numel()} outputs of the last layer,"
            f" but got {shares.numel()}."
        )
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise ArgumentError("The share of labelled images must lie between 0 and 1.")
    frequency = torch.as_tensor(label_frequency, dtype=torch.float64).cpu()
    if not bool(((frequency > 0) & (frequency <= 1)).all()):
        raise ArgumentError(
            f"label_frequency must be greater than 0 and at most 1, but got {label_frequency!r}."
        )
    if frequency.ndim and frequency.shape != bias.shape:
        raise ArgumentError(
            f"label_frequency must be one number or one for each of {bias.numel()} classes,"
            f" but got {frequency.numel()}."
        )
    true_shares = torch.minimum(shares / frequency, shares.clamp(min=0.5))
    odds = torch.logit(true_shares, eps=_RAREST)
    with torch.no_grad():
        bias.copy_(odds.to(bias).expand_as(bias))
    return model


def last_bias(model: nn.Module) -> Tensor:
    """Return the bias of the last linear or convolution layer that has one."""
    layers = [
        layer for layer in model.modules() if isinstance(layer, Head) and layer.bias is not None
    ]
    if not layers:
        raise ArgumentError("The model has no linear or convolution layer with a bias.")
    bias = layers[-1].bias
    assert bias is not None
    return bias


def _shares(labels: Labels) -> Tensor:
    """The share of images labelled with each class, or with any."""
    numbers = labels.label_shares() if isinstance(labels, HasLabelShares) else labels
    shares = torch.as_tensor(numbers, dtype=torch.float64).detach().cpu()
    if shares.ndim < 2:
        return shares
    if shares.ndim > 2 or not len(shares):
        raise ArgumentError(
            f"labels must have the shape (images, classes), but got {tuple(shares.shape)}."
        )
    if bool(((shares < 0) | (shares > 1)).any()):
        raise ArgumentError("labels must lie between 0 and 1, or be NaN for unknown.")
    return label_shares(shares)
