"""What a loss, or a part of one, can do and needs: declared on its class, asked by everybody."""

from __future__ import annotations

from collections.abc import Iterable


class Capabilities:
    """Flags that a class sets where they hold for it, or an object for its settings."""

    self_labelling: bool = False
    """Labels are guessed from the model's output from the first step on. The constant that
    minimises such a loss says nothing: it agrees with its own guesses."""
    can_go_flat: bool = False
    """Pairs that got near probability 1 by mistake can stay there, or are confirmed in it;
    :class:`CollapseWatch` looks out for it."""
    sees_whole_batch: bool = False
    """The loss of a pair depends on pairs of other images in its batch."""
    counts_labels: bool = False
    """The labels of an image are counted: targets are 0, 1 or NaN, its pairs belong together."""
    remembers: bool = False
    """The loss of a pair depends on batches seen before."""
    remembers_rows: bool = False
    """What is remembered belongs to single images: every batch must come with ``index``."""
    needs_prepare: bool = False
    """``prepare`` must be called before the first batch."""
    wants_evidence: bool = False
    """Evidence of missing labels is put to use, see :class:`LabelStats`."""
    stops_gradient: bool = False
    """A part of the equation is held constant in the gradient (stop-gradient)."""

    def take_over(self, parts: Iterable[Capabilities]) -> None:
        """Declare what the own class and any of the parts declare."""
        parts = list(parts)
        for name in Capabilities.__annotations__:
            own = getattr(type(self), name)
            setattr(self, name, own or any(getattr(part, name) for part in parts))
