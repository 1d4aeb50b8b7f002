"""Metrics batch by batch, on one process or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import torch
import torch.distributed as dist
from torch import Tensor

from hilltop.checks import check_choice, check_same_shape
from hilltop.errors import ArgumentError
from hilltop.metrics.arrays import wrong_target
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
        check_choice("cf1", cf1, get_args(CF1Kind))
        check_choice("empty", empty, get_args(Empty))
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
        if scores.ndim != 2 or not scores.dtype.is_floating_point:
            raise ArgumentError(
                "scores must be floating-point with two dimensions, images and classes,"
                f" but are {scores.dtype} of shape {tuple(scores.shape)}."
            )
        check_same_shape("targets", targets.shape, "scores", scores.shape)
        if self._scores and scores.shape[1] != self._scores[0].shape[1]:
            raise ArgumentError(
                f"scores have {scores.shape[1]} classes, but had {self._scores[0].shape[1]} before."
            )
        if index is not None:
            check_same_shape(
                "index", index.shape, "the first dimension of scores", scores.shape[:1]
            )
        if self._scores and bool(self._index) != (index is not None):
            raise ArgumentError("index must be given in every update, or in none.")
        # Copies: the caller may reuse its buffers for the next batch.
        self._scores.append(scores.detach().to("cpu", copy=True))
        self._targets.append(_as_states(targets, known).cpu())
        if index is not None:
            self._index.append(index.detach().to("cpu", torch.long, copy=True))

    def compute(self) -> ClassificationReport:
        """Report on everything collected, on all ranks; every rank gets the same report."""
        _check_all_ranks(self._scores, bool(self._index))
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
        unknown = unknown | ~known.bool()
    wrong = ~unknown & (targets != 0) & (targets != 1)
    if bool(wrong.any()):
        raise ArgumentError(wrong_target(float(targets[wrong][0])))
    return torch.where(unknown, _UNKNOWN, torch.nan_to_num(targets.float()).to(torch.int8))


def _first_of_each(index: Tensor) -> Tensor:
    """Positions at which each row number appears for the first time, in order of row number."""
    ordered, positions = torch.sort(index, stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return positions[first]


def _many() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _check_all_ranks(scores: list[Tensor], has_index: bool) -> None:
    """Raise on every rank alike if any of them cannot go on; one that waited would hang."""
    classes = scores[0].shape[1] if scores else 0
    status = torch.tensor([[len(scores), classes, int(has_index)]])
    if _many():
        mine = status.to(_device())
        everyone = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, mine)
        status = torch.cat(everyone).cpu()
    busy = status[status[:, 0] > 0]
    if not len(busy):
        raise ArgumentError("Nothing to report on: call update() before compute().")
    if len(set(busy[:, 1].tolist())) > 1:
        raise ArgumentError(f"The ranks have different numbers of classes: {busy[:, 1].tolist()}.")
    if _many() and not bool(busy[:, 2].all()):
        raise ArgumentError(
            "On more than one process update() needs index=, the row numbers of the batch:"
            " without them, samples that a sampler repeats would count twice."
        )


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def _gathered(part: Tensor) -> Tensor:
    """Join the rows of all ranks, which may have different numbers of them, or none."""
    device = _device()
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
