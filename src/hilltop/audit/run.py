"""An audit from beginning to end: scores no label had a part in, ranked candidates, estimates."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from hilltop.audit.find.candidates import Candidates, candidate_rows, write_candidates
from hilltop.audit.find.directions import write_directions
from hilltop.audit.find.estimate import Estimate, keep_of, model_estimates, write_estimates
from hilltop.audit.find.rank_folder import RankFolder, shared_ranking
from hilltop.audit.find.ranking import fit_ranking
from hilltop.audit.find.score_blocks import Scored, label_block
from hilltop.audit.find.suspects import WrongLabels, wrong_labels
from hilltop.audit.folder import AuditFolder
from hilltop.calibration.belief import Belief
from hilltop.calibration.keep_rate import KeepEstimate
from hilltop.checks import pluralize
from hilltop.data import LabelTable, Layout, ReadOptions, State, detect, read, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import holding_alone
from hilltop.data.formats import named_table, open_source
from hilltop.data.layout import Ambiguous
from hilltop.data.scores import Places
from hilltop.errors import ArgumentError, DataError, MissingExtra
from hilltop.inputs import Ranks
from hilltop.inputs.shards import check_shard_folder
from hilltop.losses import Loss
from hilltop.losses.likelihood.summed import Likelihood
from hilltop.training.fold_shards import HeadShards, shared_out_of_fold_logits
from hilltop.training.learner import head_loss

REPEATS = 2
PARTS = "parts"
"""Folder of what processes have finished of an audit that they share."""


@dataclass(frozen=True)
class Audited:
    """What an audit found.

    Attributes:
        candidates: Unlabelled pairs, the most probable missing label first.
        estimates: How many labels are missing, for each class.
        total: The same for all classes together.
        keep: Share of the true labels that is there.
        belief: How labels were lost, as far as scores tell.
        labels: The labels that were audited.
        wrong: Labels that may be wrong.
    """

    candidates: Candidates
    estimates: list[Estimate]
    total: Estimate
    keep: KeepEstimate
    belief: Belief
    labels: LabelTable
    wrong: WrongLabels

    def to_pandas(self, *, wrong: bool = False) -> Any:
        """The candidates as a DataFrame: image, class, probability and rank.

        Args:
            wrong: Labels that may be wrong instead, with the probability that they are.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("Audited.to_pandas", error.name, "pandas") from None
        chosen = self.wrong.suspects if wrong else self.candidates
        content = candidate_rows(chosen, self.labels)
        return pandas.DataFrame({name: content[name].to_numpy() for name in content.column_names})


def read_audited(
    path: Path, *, format: str | None, options: ReadOptions
) -> tuple[LabelTable, Layout]:
    """Read the labels, and return them with their layout."""
    if str(path) == "-" or path.is_fifo():
        raise ArgumentError(
            "An audit needs a label file to come back to, not standard input or a pipe."
        )
    source = open_source(path, options)
    layout = detect(source, options, format=format)
    if isinstance(layout, Ambiguous):
        raise layout.error()
    table = named_table(read(source, layout), path, options)
    if not table.count(State.PRESENT):
        raise data_error(path, "there is no label at all; nothing can be learned from it.")
    return table, layout


def check_out(out: Path) -> None:
    """Raise if the folder holds anything but an audit."""
    kept = {PARTS}
    if out.is_file():
        raise data_error(out, "this is a file; --out names a folder.")
    check_shard_folder(out / PARTS)
    if (out / "features.json").is_file() or (out / PARTS).is_dir():  # of an audit that was stopped
        kept |= {"features.npz", "features.json"}
    stopped = AuditFolder(out, labels=Path(), format="")
    if stopped.unfinished.is_file():
        kept |= {path.name for path in (stopped.unfinished, *stopped.files)}
    if out.is_dir() and not (out / "audit.json").is_file():
        others = sorted(
            entry.name
            for entry in out.iterdir()
            if entry.name not in kept and not entry.match(".*.writing")
        )
        if others:
            raise data_error(
                out, f"this folder holds other files, such as {others[0]!r}; choose a new one."
            )


@contextlib.contextmanager
def held_out(out: Path, ranks: Ranks) -> Iterator[None]:
    """Keep the folder of an audit for the processes of one command; an empty one does not stay.

    Raises:
        DataError: Another command writes it.
    """
    if not ranks.first:
        yield
        return
    out.mkdir(parents=True, exist_ok=True)
    with holding_alone(out, "another `hilltop audit` writes this folder. Wait for it."):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                out.rmdir()


def score_by_folds(
    table: LabelTable,
    features: Tensor,
    rows: Places,
    *,
    given: Likelihood | None,
    folds: int,
    seed: int,
    say: Callable[[str], None],
    shards: HeadShards | None = None,
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
        shards: Several processes that share the heads; all of them call this.
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
    return shared_out_of_fold_logits(
        features,
        targets,
        loss,
        shards=shards or HeadShards(Path(), Ranks()),
        observed=observed,
        folds=folds,
        repeats=REPEATS,
        seed=seed,
        say=say,
    )


def audit(
    table: LabelTable,
    scored: Scored,
    *,
    given: Likelihood | None,
    top: int | None,
    before: LabelTable | None = None,
    shards: RankFolder | None = None,
) -> Audited:
    """Fit the observation models, rank, and estimate.

    Args:
        table: The labels.
        scored: Out-of-sample logits.
        given: The model to rank by; the most probable one without it.
        top: How many candidates to keep, see :func:`fit_ranking`.
        before: The labels as they were lost, if some were put back since.
        shards: Several processes that share the ranking; all of them call this.
    """
    lost = table if before is None else before
    shards = shards or RankFolder()
    belief, by = shards.ranks.from_first(
        lambda: fit_ranking(table, scored, given=given, top=top, before=before)
    )
    assert by.false_labels is not None
    ranked = shared_ranking(table, scored, by, shards, before=before)
    width = len(table.classes)
    suspects = Candidates(ranked.wrong, width)
    wrong = wrong_labels(lost, scored.rows, by.false_labels, suspects)
    there = table.select(scored.rows).counts_by_class(State.PRESENT)
    kept = lost.select(scored.rows).counts_by_class(State.PRESENT)
    estimates, total = model_estimates(
        table.classes,
        there,
        belief.posterior.missing(kept),
        ranked.tally,
        restored=there - kept,
        wrong=wrong.rates * kept,
    )
    candidates = Candidates(ranked.missing, width)
    return Audited(candidates, estimates, total, keep_of(total), belief, table, wrong)


def write_audit(
    audited: Audited,
    table: LabelTable,
    out: Path,
    *,
    labels: Path,
    format: str,
    reading: ReadOptions,
    images: Path | None,
    layout: Layout | None = None,
    scored: Scored | None = None,
) -> AuditFolder:
    """Write the folder of an audit; answers that it holds already stay.

    Args:
        audited: What was found.
        table: The labels.
        out: The folder.
        labels: The file of the labels, as the user named it.
        format: Its format.
        reading: What the user said of it.
        images: The folder of images, if there is one.
        layout: How it is laid out.
        scored: What was ranked by; with its features the review page can learn.
    """
    folder = AuditFolder(
        path=out,
        labels=labels,
        format=format,
        reading=reading,
        layout=layout,
        images=images,
        images_total=len(table),
        keep_rate=asdict(audited.keep),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        belief=audited.belief.of_candidates,
    )
    out.mkdir(parents=True, exist_ok=True)
    folder.unfinished.touch()  # a kill must not leave files of two audits side by side unsaid
    write_labels(table, folder.audited_labels, format="hilltop")
    write_candidates(audited.candidates, table, out)
    write_candidates(audited.wrong.suspects, table, out, name="suspects")
    write_estimates(audited.estimates, out / "estimates.csv")
    folder.directions.unlink(missing_ok=True)
    if scored is not None and scored.features is not None:
        write_directions(scored.features, scored.rows, folder.directions)
    folder.write()
    return folder
