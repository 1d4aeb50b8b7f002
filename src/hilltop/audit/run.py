"""An audit from beginning to end: scores no label had a part in, ranked candidates, estimates."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.audit.find.candidates import (
    Candidates,
    candidate_rows,
    rank_candidates,
    write_candidates,
)
from hilltop.audit.find.estimate import (
    Estimate,
    Sums,
    Tally,
    keep_of,
    model_estimates,
    total_of_model,
    write_estimates,
)
from hilltop.audit.find.score_blocks import LogitBlocks, label_block
from hilltop.audit.folder import AuditFolder
from hilltop.calibration.keep_rate import Fitted, KeepEstimate
from hilltop.calibration.observation import ModelSelection, select_model
from hilltop.calibration.posterior import present_probability
from hilltop.checks import pluralize
from hilltop.data import FORMATS, LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.formats import LabelSource, recognise
from hilltop.data.scores import Places
from hilltop.errors import ArgumentError, DataError, MissingExtra
from hilltop.losses import Loss
from hilltop.losses.likelihood.choose import Likelihood
from hilltop.training.folds import out_of_fold_logits
from hilltop.training.learner import head_loss

REPEATS = 2
_SAMPLE_ENTRIES = 2_000_000
_SAMPLE_RUN = 8  # rows in a run: a file of scores is read in pieces, not in single rows


@dataclass(frozen=True)
class Scored:
    """Images with logits that never saw their labels.

    Attributes:
        logits: The logits, in the order of ``rows``.
        rows: Image numbers in the label table.
    """

    logits: LogitBlocks
    rows: Places


@dataclass(frozen=True)
class Audited:
    """What an audit found.

    Attributes:
        candidates: Unlabelled pairs, the most probable missing label first.
        estimates: How many labels are missing, for each class.
        total: The same for all classes together.
        keep: Share of the true labels that is there.
        reading: The observation models that were tried.
        labels: The labels that were audited.
    """

    candidates: Candidates
    estimates: list[Estimate]
    total: Estimate
    keep: KeepEstimate
    reading: ModelSelection
    labels: LabelTable

    def to_pandas(self) -> Any:
        """The candidates as a DataFrame: image, class, probability and rank.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("Audited.to_pandas", error.name, "pandas") from None
        content = candidate_rows(self.candidates, self.labels)
        return pandas.DataFrame({name: content[name].to_numpy() for name in content.column_names})


def read_audited(path: Path, *, format: str | None, options: ReadOptions) -> tuple[LabelTable, str]:
    """Read the labels, and return them with the name of their format."""
    if str(path) == "-":
        raise ArgumentError("An audit needs a label file to come back to, not standard input.")
    table = read_labels(path, format=format, options=options)
    if not table.count(State.PRESENT):
        raise data_error(path, "there is no label at all; nothing can be learned from it.")
    name = format or recognise(LabelSource(path, options)).name
    assert name in FORMATS
    return table, name


def check_out(out: Path) -> None:
    """Raise if the folder holds anything but an audit."""
    kept = {"features.npz", "features.json"}
    if out.is_file():
        raise data_error(out, "this is a file; --out names a folder.")
    if out.is_dir() and not (out / "audit.json").is_file():
        others = sorted(entry.name for entry in out.iterdir() if entry.name not in kept)
        if others:
            raise data_error(
                out, f"this folder holds other files, such as {others[0]!r}; choose a new one."
            )


def score_by_folds(
    table: LabelTable,
    features: Tensor,
    rows: Places,
    *,
    given: Likelihood | None,
    folds: int,
    seed: int,
    say: Callable[[str], None],
) -> Tensor:
    """Train heads on all folds but one, and return out-of-fold logits for all rows.

    Args:
        table: The labels.
        features: One row for each of ``rows``.
        rows: Image numbers in the table.
        given: The model to train with; without it one that the labels suggest.
        folds: Into how many parts the images are dealt.
        seed: The same seed gives the same logits.
        say: Takes a sentence for the user.
    """
    if len(features) < 2 * folds:
        are = pluralize(len(features), "image is", "images are")
        raise DataError(
            f"{are} too few for {folds} folds, which need {2 * folds}; use fewer with --folds."
        )
    targets, observed, _ = label_block(table, rows)
    loss: Loss | None = given
    if loss is None:  # what was lost, and how, is asked of the scores afterwards
        loss = head_loss("bce", reduction="sum")
    say(f"training {REPEATS * folds} heads on {len(features):,} images, none on its own fold")
    return out_of_fold_logits(
        features,
        targets,
        loss,
        observed=observed,
        folds=folds,
        repeats=REPEATS,
        seed=seed,
    )


def audit(
    table: LabelTable,
    scored: Scored,
    *,
    given: Likelihood | None,
    top: int | None,
    before: LabelTable | None = None,
) -> Audited:
    """Fit the observation models, rank, and estimate.

    Args:
        table: The labels.
        scored: Out-of-sample logits.
        given: The model to rank by; the most probable one without it.
        top: How many candidates to keep, see :func:`rank_candidates`.
        before: The labels as they were lost, if some were put back since.
    """
    logits, rows = _sample(table, scored)
    targets, observed, unknown = label_block(table, rows)
    if before is not None:
        targets, observed, _ = label_block(before, rows)
    reading = select_model(logits, targets, observed=observed, given=given)
    candidates, tally = rank_candidates(
        table, scored.logits, reading.best, top=top, rows=scored.rows, before=before
    )
    share = len(rows) / len(scored.rows)
    others = tally.missing + _differences(reading, logits, targets, observed, unknown) / share
    labelled = table.select(scored.rows).counts_by_class(State.PRESENT)
    estimates = model_estimates(table.classes, labelled, tally, others=others)
    total = total_of_model(estimates, tally)
    return Audited(candidates, estimates, total, keep_of(total), reading, table)


def write_audit(
    audited: Audited,
    table: LabelTable,
    out: Path,
    *,
    labels: Path,
    format: str,
    reading: ReadOptions,
    images: Path | None,
) -> AuditFolder:
    """Write the folder of an audit; answers that it holds already stay."""
    folder = AuditFolder(
        path=out,
        labels=labels,
        format=format,
        reading=reading,
        images=images,
        images_total=len(table),
        keep_rate=asdict(audited.keep),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_labels(table, folder.audited_labels, format="hilltop")
    write_candidates(audited.candidates, table, out)
    write_estimates(audited.estimates, out / "estimates.csv")
    folder.write()
    return folder


def _sample(table: LabelTable, scored: Scored) -> tuple[Tensor, Places]:
    """Logits of some rows, evenly over the table, and their image numbers."""
    images = len(scored.rows)
    most = max(1, _SAMPLE_ENTRIES // max(1, len(table.classes)))
    if images <= most:
        return scored.logits(0, images).float(), scored.rows
    runs = np.linspace(0, images - _SAMPLE_RUN, max(1, most // _SAMPLE_RUN), dtype=np.int64)
    parts = [scored.logits(first, first + _SAMPLE_RUN).float() for first in runs.tolist()]
    places = (runs[:, None] + np.arange(_SAMPLE_RUN)).ravel()
    return torch.cat(parts), scored.rows[places]


def _differences(
    reading: ModelSelection,
    logits: Tensor,
    targets: Tensor,
    observed: Tensor | None,
    unknown: npt.NDArray[np.bool_],
) -> Sums:
    """How many more labels of each class are missing by the other models, a row each."""

    def missing(model: Fitted) -> Sums:
        tally = Tally(targets.shape[1])
        moved = model.calibration(logits)
        present = present_probability(model.loss, moved, targets, observed=observed).numpy()
        tally.add(moved, present, unknown, targets.isnan().numpy())
        return tally.missing

    mine = missing(reading.best)
    return np.stack([missing(other) - mine for other in reading.others])
