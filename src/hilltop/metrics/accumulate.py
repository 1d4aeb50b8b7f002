"""Metrics batch by batch, on one process or many."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.metrics.functional import Empty
from hilltop.metrics.report import CF1Kind, ClassificationReport, classification_report

_UNKNOWN = -1
# A rank that saw nothing has no dtype of its own: the last of these that any rank has is taken.
_DTYPES = (torch.int8, torch.long, torch.float16, torch.bfloat16, torch.float32, torch.float64)


class ReportAccumulator:
    """Collects scores and targets, then reports on all of them, over every rank.

    Args:
        threshold: As for :func:`classification_report`.
        cf1: As for :func:`classification_report`.
        empty: As for :func:`classification_report`.
        class_names: As for :func:`classification_report`.

    Example:
        >>> accumulator = ReportAccumulator()
        >>> accumulator.update(torch.tensor([[0.9, 0.2]]), torch.tensor([[1, 0]]))
        >>> accumulator.update(torch.tensor([[0.1, 0.7]]), torch.tensor([[0, 1]]))
        >>> accumulator.compute().mAP
        1.0
    """

    def __init__(
        self,
        *,
        threshold: float | Sequence[float] = 0.5,
        cf1: CF1Kind = "mean",
        empty: Empty = "skip",
        class_names: Sequence[str] | None = None,
    ) -> None:
        """Keep the options of the report."""
        self.threshold, self.cf1, self.empty = threshold, cf1, empty
        self.class_names = class_names
        self.reset()

    def reset(self) -> None:
        """Forget everything collected."""
        self._scores: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._index: list[Tensor] = []

    def update(
        self,
        scores: Tensor,
        targets: Tensor,
        *,
        known: Tensor | None = None,
        index: Tensor | None = None,
    ) -> None:
        """Add a batch.

        Args:
            scores: ``(B, C)``.
            targets: ``(B, C)``, 1 for present, 0 for absent, NaN for unknown.
            known: ``(B, C)`` of bool; False leaves an entry out, like a NaN target.
            index: ``(B,)`` row numbers in the data set. A row seen again, as samplers repeat some
                to give every rank the same number, is not counted again. Needed on more than one
                process.
        """
        check_same_shape("targets", targets.shape, "scores", scores.shape)
        if index is not None:
            check_same_shape(
                "index", index.shape, "the first dimension of scores", scores.shape[:1]
            )
        if self._scores and bool(self._index) != (index is not None):
            raise ArgumentError("index must be given in every update, or in none.")
        self._scores.append(scores.detach().cpu())
        self._targets.append(_as_states(targets, known).cpu())
        if index is not None:
            self._index.append(index.detach().cpu().long())

    def compute(self) -> ClassificationReport:
        """Report on everything collected, on all ranks; every rank gets the same report."""
        if not self._scores and not _many():
            raise ArgumentError("Nothing to report on: call update() before compute().")
        scores, targets, index = self._collected()
        if _many():
            scores, targets, index = (_gathered(part) for part in (scores, targets, index))
        if index.numel():
            rows = _first_of_each(index)
            scores, targets = scores[rows], targets[rows]
        return classification_report(
            scores,
            targets.clamp(min=0),
            self.threshold,
            known=targets != _UNKNOWN,
            cf1=self.cf1,
            empty=self.empty,
            class_names=self.class_names,
        )

    def _collected(self) -> tuple[Tensor, Tensor, Tensor]:
        if _many() and self._scores and not self._index:
            raise ArgumentError(
                "On more than one process update() needs index=, the row numbers of the batch:"
                " without them, samples that a sampler repeats would count twice."
            )
        index = torch.cat(self._index) if self._index else torch.zeros(0, dtype=torch.long)
        if not self._scores:
            states = torch.zeros(0, 0, dtype=torch.int8)
            return torch.zeros(0, 0, dtype=torch.float16), states, index
        return torch.cat(self._scores), torch.cat(self._targets), index


def _as_states(targets: Tensor, known: Tensor | None) -> Tensor:
    """Targets in one byte each: 1, 0 or unknown."""
    unknown = targets != targets
    if known is not None:
        check_same_shape("known", known.shape, "targets", targets.shape)
        unknown = unknown | ~known
    wrong = ~unknown & (targets != 0) & (targets != 1)
    if bool(wrong.any()):
        value = float(targets[wrong][0])
        raise ArgumentError(f"metrics need targets of 0, 1 or NaN, but got {value:g}.")
    return torch.where(unknown, _UNKNOWN, torch.nan_to_num(targets.float()).to(torch.int8))


def _first_of_each(index: Tensor) -> Tensor:
    """Positions at which each row number appears for the first time, in order of row number."""
    ordered, positions = torch.sort(index, stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return positions[first]


def _many() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _gathered(part: Tensor) -> Tensor:
    """Join the rows of all ranks, which may have different numbers of them, or none."""
    device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
    header = torch.tensor([_DTYPES.index(part.dtype), *part.shape], device=device)
    headers = [torch.zeros_like(header) for _ in range(dist.get_world_size())]
    dist.all_gather(headers, header)
    dtype, *longest = torch.stack(headers).amax(dim=0).tolist()
    padded = torch.zeros(longest, dtype=_DTYPES[dtype], device=device)
    padded[tuple(slice(size) for size in part.shape)] = part.to(padded)
    parts = [torch.empty_like(padded) for _ in headers]
    dist.all_gather(parts, padded)
    lengths = [int(header[1]) for header in headers]
    return torch.cat([rows[:length] for rows, length in zip(parts, lengths, strict=True)]).cpu()
