"""What a loss learns from values on a device, without making the device wait for it.

Reading a number of a tensor on a GPU stops the host until all work before it is done, in every
step. Here numbers stay on the device, or travel while the work goes on.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hilltop.checks import invalid_targets_message
from hilltop.errors import ArgumentError
from hilltop.losses.engine.device import is_fake
from hilltop.losses.engine.one_pass import traced
from hilltop.losses.targets import check_hard, check_values, soft_targets_message, unwrapped


class TargetChecks:
    """Checks the targets of every batch; on the CPU at once, elsewhere without waiting.

    On a device the wrong values are remembered there. They raise an error after the first batch,
    when an epoch begins, when :meth:`Loss.raise_deferred_errors` is called, or after every batch if
    that is wanted.

    Args:
        each_batch: Whether to wait for the device in every batch.
    """

    def __init__(self, each_batch: bool) -> None:
        """Start with nothing seen."""
        self.each_batch = each_batch
        self._seen: dict[torch.device, Tensor] = {}
        self._looked_at: set[torch.device] = set()

    def seen(self, device: torch.device) -> Tensor:
        """Return what is remembered on a device.

        It is how far targets went below 0, the highest target, and a soft one where a loss takes
        none.
        """
        if device not in self._seen:
            self._seen[device] = torch.zeros(3, device=device)
        return self._seen[device]

    def check(self, targets: Tensor, *, hard: bool) -> None:
        """Check the targets of a batch, or remember on their device what is wrong with them."""
        if targets.is_cpu or targets.is_meta or torch.compiler.is_compiling():
            (check_hard if hard else check_values)(targets)
        elif targets.dtype != torch.bool and targets.numel():
            values = unwrapped(targets).detach()
            values = torch.where(values == values, values, 0).float()
            soft = torch.where((values > 0) & (values < 1), values, 0.0).amax() * hard
            seen = self.seen(values.device)
            seen.copy_(torch.maximum(seen, torch.stack([-values.amin(), values.amax(), soft])))

    def after(self, logits: Tensor) -> None:
        """Wait for the first batch on a device, where a wrong encoding shows; or for every one."""
        if logits.is_cpu or traced() or (logits.is_cuda and _capturing()):
            return
        if self.each_batch or logits.device not in self._looked_at:
            self._looked_at.add(logits.device)
            self._raise_for(logits.device, "")

    def raise_errors(self) -> None:
        """Raise if anything wrong is remembered on any device."""
        for device in self._seen:
            self._raise_for(
                device,
                " It was in a batch since the last look; check=True finds the batch, by waiting for"
                " the device in every step.",
            )

    def _raise_for(self, device: torch.device, hint: str) -> None:
        seen = self.seen(device)
        if is_fake(seen):
            return  # it has no values
        below, highest, soft = seen.tolist()
        seen.zero_()
        if below > 0 or highest > 1:
            raise ArgumentError(invalid_targets_message(-below if below > 0 else highest) + hint)
        if soft > 0:
            raise ArgumentError(soft_targets_message(soft) + hint)


class Arriving:
    """A few numbers of a device, on their way to the host."""

    def __init__(self, numbers: Tensor) -> None:
        """Send them off."""
        self._numbers = numbers
        self._event: Any = None
        if numbers.is_cuda and not is_fake(numbers):
            self._numbers = torch.empty_like(numbers, device="cpu", pin_memory=True)
            self._numbers.copy_(numbers, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch gives no type
            self._event.record()

    def arrived(self) -> bool:
        """Whether they can be read without waiting."""
        return self._numbers.is_cpu if self._event is None else bool(self._event.query())

    def read(self) -> list[float]:
        """Return the numbers."""
        read: list[float] = self._numbers.tolist()
        return read


def _capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
