"""Writes the corrected labels in the format they came in, and who said so beside them.

Where it can, the original file is changed as little as possible (``patches/``) and read back to
see that it says what it should; otherwise it is written anew from the table, in the same order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.corrected import Verdicts, corrected, verdicts
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.checks import pluralize
from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.patches import PATCHES, Change, Original, Patched
from hilltop.data.reviewed import provenance_path, read_provenance, write_provenance
from hilltop.errors import DataError, HilltopError


@dataclass(frozen=True)
class Applied:
    """What was written.

    Attributes:
        path: The new label file.
        provenance: Every answer that holds, with reviewer, time and probability; those of earlier
            reviews of the same labels too.
        added: Labels that were added.
        absent: Confirmed absents that were recorded.
        unsaid: Confirmed absents that the format cannot express.
        unsure: Pairs that nobody could tell.
        disputed: Pairs that reviewers disagree on; they stay as they were.
        patched: Whether the rest of the file was left as it was, instead of written anew.
        notes: What else the user should know.
    """

    path: Path
    provenance: Path
    added: int
    absent: int
    unsaid: int
    unsure: int
    disputed: int
    patched: bool
    notes: tuple[str, ...]


def apply_decisions(
    folder: AuditFolder,
    out: Path,
    *,
    format: str | None = None,
    labels: Path | None = None,
    lossy: bool = False,
) -> Applied:
    """Write the labels of an audit with the reviewers' answers applied.

    Args:
        folder: The audit.
        out: The file to write.
        format: Its format; None for the one the labels came in.
        labels: Where the original label file is now, if not where it was.
        lossy: Leave out what another format cannot express.

    Raises:
        DataError: The original file is gone or changed, or the new one cannot be written.
    """
    if not out.parent.is_dir():
        raise data_error(out, "its folder does not exist. Create it first.")
    table, answers = folder.table(), read_answers(folder)
    found = verdicts(table, answers)
    source = labels or folder.labels
    if out.exists() and source.exists() and out.samefile(source):
        raise data_error(out, "this is the original label file. Choose another name.")
    chosen = format or folder.format
    same = chosen == folder.format
    patched = _patch(folder, source, out, table, found.changes) if same else None
    if patched is None:
        said = _rewrite(table, out, found.changes, chosen, lossy)
    else:
        said = patched.absents
    provenance = provenance_path(out)
    atomic_write(provenance, write_provenance([*read_provenance(source), *_provenance(answers)]))
    return _result(out, provenance, found, patched, said, same)


def read_answers(folder: AuditFolder) -> Answers:
    """Return the answers of an audit.

    Raises:
        DataError: Nothing was reviewed yet.
    """
    if not folder.decisions.is_file():
        raise data_error(
            folder.path, f"there are no answers yet. Review first: hilltop review {folder.path}"
        )
    store = DecisionStore(folder.decisions)
    try:
        return Answers.of(store)
    finally:
        store.close()


def _patch(
    folder: AuditFolder, source: Path, out: Path, table: LabelTable, changes: Sequence[Change]
) -> Patched | None:
    """Change the original file; None for kinds of files that are written anew."""
    if folder.format not in PATCHES or source.is_dir():
        return None
    _check_unchanged(folder, source, table)
    original = Original(source, folder.reading, table)
    proposals = [*PATCHES[folder.format](original, changes)]
    for proposal in proposals:
        said = [one for one in changes if proposal.absents or one.state == State.PRESENT]
        if _reads_as(proposal, out.name, folder.format, corrected(table, said)):
            for added, content in proposal.beside.items():
                atomic_write(out.with_name(f"{out.name}{added}"), content)
            atomic_write(out, proposal.content)
            return proposal
    if proposals:
        raise data_error(
            source,
            "its labels could not be changed without disturbing the others. Pass --format hilltop"
            " to write them anew.",
        )
    return None


def _check_unchanged(folder: AuditFolder, source: Path, table: LabelTable) -> None:
    if not source.exists():
        raise data_error(
            source, "the label file that was audited is not there. Say where with --labels."
        )
    if read_labels(source, format=folder.format, options=folder.reading) != table:
        raise data_error(
            source,
            "its labels are not those that were audited. Pass --labels with the file as it was,"
            " or run `hilltop audit` again.",
        )


def _reads_as(proposal: Patched, name: str, format: str, wanted: LabelTable) -> bool:
    """Whether a proposal, read as its user will, gives the wanted table."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / name
        path.write_bytes(proposal.content)
        for added, content in proposal.beside.items():
            path.with_name(f"{name}{added}").write_bytes(content)
        try:
            return read_labels(path, format=format, options=proposal.options) == wanted
        except HilltopError:
            return False


def _rewrite(
    table: LabelTable, out: Path, changes: Sequence[Change], format: str, lossy: bool
) -> bool:
    """Write the whole table; return whether absents could be said."""
    present = [change for change in changes if change.state == State.PRESENT]
    try:
        write_labels(corrected(table, changes), out, format=format)
        return True
    except DataError:
        if len(present) < len(changes):
            try:
                write_labels(corrected(table, present), out, format=format)
                return False
            except DataError:
                pass
        if not lossy:
            raise
    write_labels(corrected(table, changes), out, format=format, lossy=True)
    return False


def _provenance(answers: Answers) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for image, name, votes in answers.all():
        outcome = resolve(votes.values())
        for vote in votes.values():
            chance = "" if vote.probability is None else f"{vote.probability:.6g}"
            who = (vote.answer, vote.reviewer, vote.time, chance, vote.mode, outcome)
            rows.append((image, name, *who))
    return rows


def _result(
    out: Path, provenance: Path, found: Verdicts, patched: Patched | None, said: bool, same: bool
) -> Applied:
    absent = sum(change.state == State.ABSENT for change in found.changes)
    notes = [] if patched is None or not patched.note else [patched.note]
    if patched is None and same:
        notes.append("The file was written anew; images and classes are in the same order.")
    if absent and not said:
        stand = pluralize(absent, "confirmed absent stands", "confirmed absents stand")
        notes.append(
            f"This format cannot say that a class is absent: {stand} in {provenance.name} only."
            " Pass --format hilltop to keep absents with the labels."
        )
    if found.foreign:
        are = pluralize(found.foreign, "answer is about a pair", "answers are about pairs")
        notes.append(f"{are} that this audit does not have.")
    return Applied(
        path=out,
        provenance=provenance,
        added=sum(change.state == State.PRESENT for change in found.changes),
        absent=absent if said else 0,
        unsaid=0 if said else absent,
        unsure=found.outcomes["unsure"],
        disputed=found.outcomes["disputed"],
        patched=patched is not None,
        notes=tuple(notes),
    )
