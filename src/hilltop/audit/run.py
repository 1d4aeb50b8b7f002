"""An audit from beginning to end: scores no label had a part in, ranked candidates, estimates."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.find.candidates import Candidates, candidate_rows, write_candidates
from hilltop.audit.find.estimate import Estimate, write_estimates
from hilltop.audit.find.pca import write_pca
from hilltop.audit.find.ranking import Assumption, fit_ranking, open_pairs, rank_all
from hilltop.audit.find.score_blocks import LogitBlocks, Scored, blocks_of
from hilltop.audit.find.suspects import WrongLabels, wrong_labels
from hilltop.audit.folder import AuditFolder
from hilltop.checks import pluralize
from hilltop.data import LabelTable, Layout, ReadOptions, State, detect, read, write_labels
from hilltop.data.array_files import read_npz_texts
from hilltop.data.data_errors import data_error
from hilltop.data.files import holding_alone
from hilltop.data.formats import named_table, open_source
from hilltop.data.layout import Ambiguous
from hilltop.data.scores import Places
from hilltop.errors import ArgumentError, DataError, MissingExtra
from hilltop.inputs.ranks import Parts, Ranks
from hilltop.inputs.shards import check_shard_folder
from hilltop.missing.interval import Interval
from hilltop.missing.model import MissingCounts, MissingLabelModel
from hilltop.training.calibration import save_model
from hilltop.training.class_blocks import WHOLE_PAIRS, fit_fold_heads
from hilltop.training.heads import REPEATS

REPEATED_PAIRS = 1 << 32
"""Pairs beyond which images are dealt into folds once, which halves the time: with so many labels
another deal changes little."""
PARTS = "parts"
"""Folder of what processes have finished of an audit that they share."""


@dataclass(frozen=True, eq=False)
class Audited:
    """What an audit found.

    Attributes:
        candidates: Unlabelled pairs, the most probable missing label first.
        estimates: How many labels are missing, for each class.
        model: The missing-label model.
        labels: The labels that were audited.
        wrong: Labels that may be wrong.
        index: Names of the images in a DataFrame that labels came from, if there was one.
    """

    candidates: Candidates
    estimates: list[Estimate]
    model: MissingLabelModel
    labels: LabelTable
    wrong: WrongLabels
    index: Any = None

    @property
    def counts(self) -> MissingCounts:
        """How many labels are missing, with intervals in total and by class."""
        return self.model.missing

    @property
    def missing(self) -> Interval:
        """How many labels are missing, in all classes together."""
        return self.counts.total

    @property
    def total(self) -> Interval:
        """The same as :attr:`missing`."""
        return self.missing

    @property
    def frequency(self) -> Interval:
        """Label frequency: the share of the true labels that is recorded."""
        return self.counts.frequency

    def describe(self) -> str:
        """Return the sentence about missing labels that every command prints."""
        return self.model.describe()

    def to_pandas(self, *, wrong: bool = False) -> Any:
        """The candidates as a DataFrame: image, class, probability and rank.

        Images are named as in the index of the DataFrame that labels came from, if there was one.

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
        columns = {name: content[name].to_numpy() for name in content.column_names}
        if self.index is not None:
            columns["image"] = self.index.take(chosen.rows())
        return pandas.DataFrame(columns)

    def plot(self) -> Any:
        """Draw candidates, label frequency by class and calibration as a matplotlib figure."""
        from hilltop.missing.plots import plot_audit

        probs = self.candidates.probabilities()
        return plot_audit(probs, self.counts, self.model, self.labels.classes)

    def __repr__(self) -> str:
        """Return what was found in a line."""
        images, classes = len(self.labels), len(self.labels.classes)
        return f"Audited({images:,} images, {classes:,} classes: {self.describe()})"

    def _repr_html_(self) -> str:
        """Return the classes with most missing labels as a table, for notebooks."""
        from html import escape

        worst = sorted(self.estimates, key=lambda one: -one.missing.value)[:10]
        rows = "".join(
            f"<tr><td>{escape(one.class_name)}</td><td>{one.labelled:,}</td>"
            f"<td>{one.missing.count()}</td></tr>"
            for one in worst
        )
        head = "<tr><th>class</th><th>labelled</th><th>missing (90% interval)</th></tr>"
        return f"<p>{escape(self.describe())}</p><table>{head}{rows}</table>"


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


def check_out(out: Path, *, update: bool = True) -> None:
    """Raise if the folder holds anything but an audit, or answers that nobody said to keep.

    Args:
        out: The folder.
        update: Whether an audit with answers may be replaced; the answers stay.
    """
    kept = {PARTS}
    if out.is_file():
        raise data_error(out, "this is a file; --out names a folder.")
    check_shard_folder(out / PARTS)
    if (out / PARTS).is_dir() or _keeps_features(out):  # of an audit that was stopped
        kept.add("features.npz")
    stopped = AuditFolder(out, labels=Path(), format="")
    if stopped.unfinished.is_file():
        kept |= {path.name for path in (stopped.unfinished, *stopped.files)}
    elif not update and (answered := _answers(stopped)):
        raise ArgumentError(
            f"{out} holds {pluralize(answered, 'answer', 'answers')} of people. Pass --update to"
            " audit anew and keep them, or name another folder with --out."
        )
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


def _keeps_features(out: Path) -> bool:
    """Whether an audit computed features here, which it notes in them."""
    with contextlib.suppress(DataError):
        return "left_out" in read_npz_texts(out / "features.npz", ("left_out",))
    return False


def _answers(folder: AuditFolder) -> int:
    """Number of answers in a folder, those that were taken back too."""
    if not folder.decisions.is_file():
        return 0
    with contextlib.closing(DecisionStore(folder.decisions)) as store:
        return sum(isinstance(event, Answer) for _, event in store.read())


def _earlier(out: Path) -> tuple[str, ...]:
    """When the audits were made that a new one in this folder replaces."""
    try:
        before = AuditFolder.read(out)
    except DataError:  # none, or a stopped one
        return ()
    return (before.created, *before.earlier)


@contextlib.contextmanager
def lock_output(out: Path, ranks: Ranks) -> Iterator[None]:
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


def fold_logits(
    table: LabelTable,
    features: Tensor,
    rows: Places,
    *,
    folds: int,
    seed: int,
    say: Callable[[str], None],
    parts: Parts = Parts(),  # noqa: B008 (it cannot be changed)
) -> LogitBlocks:
    """Train heads on all folds but one, and return what gives out-of-fold logits of some rows.

    Only weights of the heads are kept; beyond ``WHOLE_PAIRS`` pairs, logits are computed whenever
    they are asked for, and nothing of the size images x classes is held or written.

    Args:
        table: The labels.
        features: One row for each of ``rows``.
        rows: Image numbers in the table.
        folds: Into how many parts the images are dealt.
        seed: The same seed gives the same logits.
        say: Takes a sentence for the user.
        parts: Several processes that share the heads; all of them call this.

    Raises:
        DataError: There are too few images, no pair that could be missing, or too many pairs.
    """
    if len(features) < 2 * folds:
        are = pluralize(len(features), "image is", "images are")
        raise DataError(
            f"{are} too few for {folds} folds, which need {2 * folds}; use fewer with --folds."
        )
    open_pairs(table)  # a fault of the labels is said before hours of work
    pairs = len(rows) * len(table.classes)
    repeats = REPEATS if pairs <= REPEATED_PAIRS else 1
    heads = fit_fold_heads(
        features, table, rows, folds=folds, repeats=repeats, seed=seed, say=say, parts=parts
    )
    return heads.logits if pairs > WHOLE_PAIRS else blocks_of(heads.logits(0, len(rows)))


def audit(
    table: LabelTable,
    scored: Scored,
    *,
    given: Assumption | None = None,
    top: int | None = None,
    before: LabelTable | None = None,
    parts: Parts = Parts(),  # noqa: B008 (it cannot be changed)
    shard: int | None = None,
) -> Audited:
    """Fit the missing-label model, rank, and estimate.

    Args:
        table: The labels.
        scored: Out-of-sample logits.
        given: How labels were lost, if that is known.
        top: How many candidates to keep, see :func:`fit_ranking`.
        before: The labels as they were lost, if some were put back since.
        parts: Several processes that share the ranking; all of them call this.
        shard: Images that are ranked between two saves, see :func:`rank_all`.
    """
    lost = table if before is None else before
    by = parts.ranks.from_first(
        lambda: fit_ranking(table, scored, given=given, top=top, before=before)
    )
    assert by.wrong_model is not None
    ranked = rank_all(table, scored, by, parts=parts, size=shard, before=before)
    width = len(table.classes)
    wrong = wrong_labels(lost, scored.rows, by.wrong_model, Candidates(ranked.wrong, width))
    counts, mistakes = by.model.missing, wrong.rates * by.model.missing.labelled
    estimates = [
        Estimate(
            name,
            int(counts.labelled[at]),
            counts.of_class(at),
            "model",
            float(ranked.beyond[at]),
            float(mistakes[at]),
        )
        for at, name in enumerate(table.classes)
    ]
    return Audited(Candidates(ranked.missing, width), estimates, by.model, table, wrong)


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
        missing=audited.missing.as_dict(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        summary=audited.describe(),
        earlier=_earlier(out),
    )
    out.mkdir(parents=True, exist_ok=True)
    folder.unfinished.touch()  # a kill must not leave files of two audits side by side unsaid
    write_labels(table, folder.audited_labels, format="hilltop")
    write_candidates(audited.candidates, table, out)
    write_candidates(audited.wrong.suspects, table, out, name="suspects")
    write_estimates(audited.estimates, out / "estimates.csv")
    save_model(audited.model, folder.model)
    folder.directions.unlink(missing_ok=True)
    if scored is not None and scored.features is not None:
        write_pca(scored.features, scored.rows, folder.directions)
    folder.write()
    return folder
