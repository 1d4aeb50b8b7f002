"""GR loss: soft pseudo labels and a weight, both functions of the probability and the epoch."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from hilltop.checks import check_number, check_whole
from hilltop.errors import ArgumentError
from hilltop.losses import functional
from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.catalogue import LOSSES, Common
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import Correction
from hilltop.losses.terms import LogNegative, LogPositive, NegativeTerm, PositiveTerm


class GeneralisedPositive(PositiveTerm):
    r"""Generalised cross-entropy for a label: between -log p (q to 0) and 1 - p (q = 1).

    .. math:: \ell^+(p) = \frac{1 - p^q}{q}, \qquad p = \sigma(x)

    Args:
        q: The larger, the more forgiving; greater than 0 and at most 1.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> GeneralisedPositive(q=0.5)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([1.3095, 0.5858, 0.0181])
    """

    def __init__(self, *, q: float = 0.01) -> None:
        """Check and store the constant."""
        super().__init__()
        self.q = check_number("q", q, low=1e-4, high=1)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.generalised_positive(logits, self.q)


class GeneralisedNegative(NegativeTerm):
    r"""Generalised cross-entropy for an absent label: between -log(1-p) (q to 0) and p (q = 1).

    .. math:: \ell^-(p) = \frac{1 - (1 - p)^q}{q}, \qquad p = \sigma(x)

    Args:
        q: The larger, the more forgiving; greater than 0 and at most 1.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> GeneralisedNegative(q=1.0)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.1192, 0.5000, 0.9820])
    """

    can_saturate = True

    def __init__(self, *, q: float = 1.0) -> None:
        """Check and store the constant."""
        super().__init__()
        self.q = check_number("q", q, low=1e-4, high=1)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.generalised_positive(-logits, self.q)


class GradualCorrection(Correction):
    r"""Soft pseudo labels that set in gradually, and a weight against the easy and the doubtful.

    .. math::
        pseudo = v\,k, \qquad keep = v\,(1 - k), \qquad
        k = \sigma(w\,p + b), \qquad v = \exp\!\left(-\frac{(p - \mu)^2}{2\sigma^2}\right)

    p is held constant; w, b, mu and sigma move linearly with the epoch, from their first value to
    their last.

    Args:
        epochs: Length of the run; None takes it from :meth:`prepare`.
        w: First and last slope of k.
        b: First and last offset of k.
        mu: First and last centre of v.
        sigma: First and last width of v.

    Raises:
        ArgumentError: The length of the run is not known.
    """

    self_labelling = independent_rows = True

    def __init__(
        self,
        *,
        epochs: int | None = None,
        w: tuple[float, float] = (0.0, 2.0),
        b: tuple[float, float] = (-2.0, -2.0),
        mu: tuple[float, float] = (0.5, 0.8),
        sigma: tuple[float, float] = (2.0, 0.5),
    ) -> None:
        """Check and store the constants."""
        super().__init__()
        self.epochs = None if epochs is None else check_whole("epochs", epochs, low=1)
        self.w, self.b, self.mu = _ends("w", w), _ends("b", b), _ends("mu", mu)
        self.sigma = _ends("sigma", sigma, low=1e-3)

    def prepare(self, stats: LabelStats) -> None:
        """Take the length of the run, unless it was given."""
        if self.epochs is None:
            self.epochs = max(1, stats.epochs)

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``."""
        if self.epochs is None:
            raise ArgumentError(
                "gr moves with the epochs of a run: pass epochs=, or call"
                " prepare(LabelStats.of(targets, epochs)) before training."
            )
        logits = batch.logits.detach()
        done = (torch.as_tensor(batch.epoch).to(logits.dtype) / self.epochs).clamp(max=1)
        w, b, mu, sigma = (
            first + (last - first) * done for first, last in (self.w, self.b, self.mu, self.sigma)
        )
        probs = torch.sigmoid(logits)
        label = torch.sigmoid(w * probs + b)
        weight = torch.exp(-((probs - mu) ** 2) / (2 * sigma**2))
        keep, pseudo = weight * (1 - label), weight * label
        if batch.verified is None:
            return keep, pseudo
        return torch.where(batch.verified, 1.0, keep), torch.where(batch.verified, 0.0, pseudo)


@LOSSES.register("gr")
def gr(
    *,
    q_pos: float = 0.01,
    q_neg: float = 1.0,
    epochs: int | None = None,
    w: tuple[float, float] = (0.0, 2.0),
    b: tuple[float, float] = (-2.0, -2.0),
    mu: tuple[float, float] = (0.5, 0.8),
    sigma: tuple[float, float] = (2.0, 0.5),
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""GR loss: unlabelled entries get a soft pseudo label, robust terms and a weight.

    .. math::
        \ell^+ = -\log p, \qquad
        \ell^- = v(p) \left[ k(p)\,\frac{1 - p^{q_+}}{q_+}
                 + (1 - k(p))\,\frac{1 - (1-p)^{q_-}}{q_-} \right]

    with k and v of :class:`GradualCorrection`. Entries that a person verified to be absent cost
    :math:`-\log(1 - p)`. Call ``set_epoch(epoch)`` at the start of every epoch.

    Assumption:
        Unlabelled entries are soft pseudo labels, more so with every epoch.

    When to use:
        When there is one label for each image and training is long enough for its schedule.

    Args:
        q_pos: Robustness of the term for pseudo labels.
        q_neg: Robustness of the term for the rest.
        epochs: Length of the run; None takes it from ``prepare(stats)``.
        w: First and last slope of k; the defaults are those released.
        b: First and last offset of k.
        mu: First and last centre of v.
        sigma: First and last width of v.
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> gr(epochs=10)(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.2584)

    Reference:
        Chen et al., Boosting single positive multi-label classification with generalized robust
        loss, IJCAI 2024.

    Note:
        On features it wants a low penalty: trained on 9,000 rows of COCO with 40% of their labels
        and judged by 3,000 other training rows, mAP is 56.6 with a ``--weight-decay`` of 14, 57.8
        with 4.7 and 57.9 with 1.4, while Hill has 58.0 with 14 and 57.5 with 4.7. Cross-validation
        chooses the penalty by cross-entropy, for every loss.

        Both k and v stand at their first value in the first epoch; released code has moved v on by
        one epoch then.
    """
    return MultiLabelLoss(
        positive=LogPositive(),
        negative=GeneralisedNegative(q=q_neg),
        pseudo_positive=GeneralisedPositive(q=q_pos),
        verified_negative=LogNegative(),
        correction=GradualCorrection(epochs=epochs, w=w, b=b, mu=mu, sigma=sigma),
        **common,
    )


def _ends(name: str, ends: tuple[float, float], *, low: float = -1e4) -> tuple[float, float]:
    """Check a first and a last value; a list from a configuration file is fine."""
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise ArgumentError(f"{name} must be a first and a last value, but got {ends!r}.")
    first, last = (check_number(name, end, low=low, high=1e4) for end in ends)
    return first, last
