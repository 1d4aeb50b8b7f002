"""The accumulator on one process and on two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from hilltop.errors import ArgumentError
from hilltop.metrics import ReportAccumulator, classification_report
from tests.forked import run_forked
from tests.metrics.accumulate_worker import data


def test_batches_give_the_report_of_the_whole() -> None:
    scores, targets = data()
    accumulator = ReportAccumulator()
    for part in torch.arange(len(scores)).split(4):
        accumulator.update(scores[part], targets[part])
    whole = classification_report(scores, targets)
    assert accumulator.compute().as_dict() == whole.as_dict()
    assert accumulator.compute().as_dict() == whole.as_dict(), "computing changes nothing"


def test_reset_forgets() -> None:
    scores, targets = data()
    accumulator = ReportAccumulator()
    accumulator.update(1 - scores, targets)
    accumulator.reset()
    with pytest.raises(ArgumentError, match="Nothing to report on"):
        accumulator.compute()
    accumulator.update(scores, targets)
    assert accumulator.compute().mAP == classification_report(scores, targets).mAP


def test_a_row_seen_twice_counts_once() -> None:
    scores, targets = data()
    accumulator = ReportAccumulator()
    for rows in (torch.arange(9), torch.arange(5, len(scores))):
        accumulator.update(scores[rows], targets[rows], index=rows)
    assert accumulator.compute().as_dict() == classification_report(scores, targets).as_dict()


def test_unknown_entries_are_left_out() -> None:
    scores, targets = data()
    known = torch.rand_like(scores) < 0.7
    accumulator = ReportAccumulator()
    accumulator.update(scores, torch.where(known, targets, float("nan")))
    masked = ReportAccumulator()
    masked.update(scores, 1 - targets, known=~known)
    expected = classification_report(scores, targets, known=known)
    assert accumulator.compute().as_dict() == expected.as_dict()
    inverse = classification_report(scores, 1 - targets, known=~known)
    assert masked.compute().as_dict() == inverse.as_dict()


def test_faults() -> None:
    scores, targets = data()
    accumulator = ReportAccumulator()
    with pytest.raises(ArgumentError, match="but got -1"):
        accumulator.update(scores, targets - 1)
    with pytest.raises(ArgumentError, match="shape of scores"):
        accumulator.update(scores, targets[:3])
    accumulator.update(scores, targets)
    with pytest.raises(ArgumentError, match="index must be given in every update, or in none"):
        accumulator.update(scores, targets, index=torch.arange(len(scores)))


@pytest.mark.distributed
@pytest.mark.parametrize("mode", ["sampler", "one_rank_empty"])
def test_two_processes_and_an_odd_number_of_images(tmp_path: Path, mode: str) -> None:
    worker = Path(__file__).with_name("accumulate_worker.py")
    run_forked(worker, tmp_path, mode, processes=2)
    expected = classification_report(*data()).as_dict()
    for rank in (0, 1):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == expected


def test_a_buffer_that_is_reused_does_not_rewrite_the_past() -> None:
    scores, targets = data()
    buffer, accumulator = torch.empty(1, 4, dtype=torch.float64), ReportAccumulator()
    for row in range(len(scores)):
        buffer.copy_(scores[row])
        accumulator.update(buffer, targets[row : row + 1])
    assert accumulator.compute().mAP == classification_report(scores, targets).mAP


def test_masks_of_any_dtype_mean_the_same() -> None:
    scores, targets = data()
    mask = torch.rand_like(scores) < 0.8
    for dtype in (torch.bool, torch.uint8, torch.int64):
        accumulator = ReportAccumulator()
        accumulator.update(scores, targets, known=mask.to(dtype))
        expected = classification_report(scores, targets, known=mask)
        assert accumulator.compute().as_dict() == expected.as_dict()


def test_options_reach_the_report_and_are_checked_at_once() -> None:
    scores, targets = data()
    targets[:, 3] = 0
    options = {
        "threshold": [0.2, 0.9, 0.4, 0.5],
        "cf1": "harmonic",
        "empty": "zero",
        "class_names": ["a", "b", "c", "d"],
    }
    accumulator = ReportAccumulator(**options)
    accumulator.update(scores, targets)
    expected = classification_report(scores, targets, **options)
    assert accumulator.compute().as_dict() == expected.as_dict()
    assert accumulator.compute().empty_classes == ("d",)
    with pytest.raises(ArgumentError, match="cf1 must be one of"):
        ReportAccumulator(cf1="median")
    with pytest.raises(ArgumentError, match="scores have 2 classes, but had 4 before"):
        accumulator.update(scores[:, :2], targets[:, :2])
    with pytest.raises(ArgumentError, match="scores must be floating-point with two dimensions"):
        accumulator.update(scores.long(), targets)
