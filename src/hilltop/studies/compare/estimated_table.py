"""Tables of comparisons that no complete labels judge: estimates with their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from hilltop.data import read_labels
from hilltop.data.scores import ScoreTable
from hilltop.metrics.epochs import is_estimated, judged_value
from hilltop.missing import Evaluation, Interval
from hilltop.report.tables import Sheet
from hilltop.studies.compare.level import Level
from hilltop.studies.compare.runs import Result
from hilltop.studies.compare.study import BASELINE
from hilltop.training.run_folder import RunFolder

ESTIMATED_NOTE = (
    "No complete labels judge these methods. mAP, CF1 and OF1 are estimates, in %, of what complete"
    " validation labels would say, with 90% intervals; means over seeds. Last: of the last epoch."
    " Best: of the epoch that was chosen on the same images. Over BCE: mAP of the best epoch less"
    " that of BCE; most of what is uncertain is the same for both, so that a difference is better"
    " known than either value. As they are: by the labels as they are, which counts every label"
    " that was found and nobody wrote down as a mistake."
)
TOO_FEW_NOTE = (
    "The validation labels are too few to estimate what complete ones would say, or they list"
    " absent pairs, which judge alone. mAP, CF1 and OF1 in %, by pairs that are labelled."
)


def is_estimated_level(runs: Sequence[Result]) -> bool:
    """Whether runs were judged by estimates."""
    return any(is_estimated(run.last) for run in runs)


def estimated_sheet(level: Level, lines: Sequence[tuple[str, Sequence[Result]]]) -> Sheet:
    """The table of one level; the highest estimate stands out.

    Args:
        level: Its labels.
        lines: Each method by name with its finished runs.
    """
    baselines = {
        run.cell.seed: run for name, runs in lines if name == str(BASELINE) for run in runs
    }
    rows = []
    for name, runs in lines:
        last, best = [run.last for run in runs], [run.best for run in runs]
        over = [_difference(run, baselines[run.cell.seed]) for run in runs]
        over = [] if name == str(BASELINE) else over
        rows.append(
            (
                name,
                str(len(runs)),
                _mean([_found(row, "mAP") for row in last]),
                _mean([_found(row, "mAP") for row in best]),
                _mean(over, sign="+"),
                _mean([_found(row, "CF1") for row in last]),
                _mean([_found(row, "OF1") for row in last]),
                f"{100 * statistics.fmean(row['mAP'] for row in last):.1f}" if last else "",
            )
        )
    means = [
        statistics.fmean(judged_value(run.last) for run in runs) if runs else math.nan
        for _, runs in lines
    ]
    highest = max((mean for mean in means if not math.isnan(mean)), default=math.nan)
    head = ("method", "seeds", "mAP, last", "mAP, best", "over BCE", "CF1", "OF1", "as they are")
    estimated = is_estimated_level([run for _, runs in lines for run in runs])
    note = ESTIMATED_NOTE if estimated else TOO_FEW_NOTE
    strong = {(at, 2) for at, mean in enumerate(means) if mean == highest}
    return Sheet(level.title, head, tuple(rows), (note,), strong)


def _found(row: dict[str, float], metric: str) -> Interval:
    if not is_estimated(row, metric):
        return Interval(row.get(metric, math.nan), math.nan, math.nan)
    value = judged_value(row, metric)
    return Interval(value, row.get(f"{metric}_low", math.nan), row.get(f"{metric}_high", math.nan))


def _difference(run: Result, baseline: Result) -> Interval:
    """How much higher the mAP of a method is than that of BCE from the same seed."""
    labels = read_labels(RunFolder(run.folder).val_labels)
    probs = []
    for one in (run, baseline):
        scores = ScoreTable.load(RunFolder(one.folder).val_scores)
        probs.append(scores.aligned(labels.images, labels.classes))
    if not is_estimated(run.best):
        return Interval(run.best["mAP"] - baseline.best["mAP"], math.nan, math.nan)
    test = Evaluation(probs, labels.eval_targets())
    return test.compare().differences["mAP"]


def _mean(found: Sequence[Interval], *, sign: str = "") -> str:
    """Means of estimates and of the ends of their intervals, in per cent.

    Seeds judge by the same validation images, so that more of them make no interval narrower.
    """
    if not found:
        return ""
    ends = zip(*((one.value, one.low, one.high) for one in found), strict=True)
    middle, low, high = (100 * statistics.fmean(values) for values in ends)
    if math.isnan(low):
        return f"{middle:{sign}.1f}"
    return f"{middle:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"
