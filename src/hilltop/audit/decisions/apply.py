"""Writes the corrected labels in the format they came in, and who said so beside them.

Where it can, the original file is changed as little as possible (the format's patch) and read back
to see that it says what it should; otherwise it is written anew from the table, in the same order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.open_candidates import image_files, likely_candidates
from hilltop.audit.decisions.planted import read_planted
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.decisions.verdicts import Verdicts, apply_changes, review_records, verdicts
from hilltop.audit.folder import AuditFolder
from hilltop.checks import pluralize
from hilltop.data import FORMATS, LabelTable, State, Step, read_labels, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, check_folder, check_outputs
from hilltop.data.formats import Change, Format, Handoff, Original, Patched, named_format
from hilltop.data.review_record import (
    ReviewRecord,
    provenance_path,
    read_provenance,
    write_provenance,
)
from hilltop.errors import ArgumentError, DataError, HilltopError

_ANEW = "The file was written anew; images and classes are in the same order."


@dataclass(frozen=True)
class Applied:
    """What was written.

    Attributes:
        path: The new label file.
        provenance: Every answer that holds, with reviewer, time and probability; those of earlier
            reviews of the same labels too.
        added: Labels that were added.
        struck: Labels that were wrong and are gone.
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
    struck: int
    absent: int
    unsaid: int
    unsure: int
    disputed: int
    patched: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Written:
    """What came of writing a file: where, whether absents could be said, and what to note."""

    path: Path
    absents: bool
    patched: bool = False
    notes: tuple[str, ...] = ()


def apply_decisions(
    folder: AuditFolder,
    out: Path,
    *,
    format: str | None = None,
    labels: Path | None = None,
    lossy: bool = False,
    candidates: bool = False,
    image_prefix: str | None = None,
) -> Applied:
    """Write the labels of an audit with the reviewers' answers applied.

    In another format than that of the labels, images are named by their files where the format
    asks for files and the audit knows the folder of images.

    Args:
        folder: The audit.
        out: The file to write.
        format: Its format; None for the one the labels came in.
        labels: Where the original label file is now, if not where it was.
        lossy: Leave out what another format cannot express.
        candidates: Write what is still open and likely missing too, for another tool; then the
            audit need not be reviewed yet.
        image_prefix: With candidates, what stands before the files of images for the other tool.

    Raises:
        ArgumentError: The format has no place for candidates.
        DataError: The original file is gone or changed, or the new one cannot be written.
    """
    check_folder(out)
    source = labels or folder.labels
    check_outputs([out, provenance_path(out)], [source, *folder.inputs], force=True)
    table, chosen = folder.table(), named_format(format or folder.format)
    reviewed = folder.decisions.is_file() or not candidates
    answers = read_answers(folder) if reviewed else Answers()
    found = verdicts(table, answers)
    named = table
    if candidates:
        written = _hand_off(folder, chosen, table, out, found, answers, image_prefix)
    elif chosen.name == folder.format:
        patched = _patch(folder, chosen, source, out, table, found)
        written = patched or replace(_rewrite(table, out, found, chosen, lossy), notes=(_ANEW,))
    else:
        named = _named_by_files(folder, table) if chosen.file_names else table
        written = _rewrite(named, out, found, chosen, lossy)
    records = _renamed([*read_provenance(source), *review_records(answers)], table, named)
    provenance = provenance_path(out)
    if records or reviewed:
        atomic_write(provenance, write_provenance(records))
    return _result(written, provenance, found)


def read_answers(folder: AuditFolder) -> Answers:
    """Return the answers of an audit, those to planted pairs left out.

    Raises:
        DataError: Nothing was reviewed yet.
    """
    if not folder.decisions.is_file():
        raise data_error(
            folder.path, f"there are no answers yet. Review first: hilltop review {folder.path}"
        )
    store = DecisionStore(folder.decisions)
    try:
        answers = Answers.of(store)
        answers.leave_out(read_planted(folder))
        return answers
    finally:
        store.close()


def _named_by_files(folder: AuditFolder, table: LabelTable) -> LabelTable:
    """The table with the files of its images for ids, where the audit knows them."""
    files = image_files(folder, table)
    if files == table.images.to_pylist():
        return table
    return table.with_images(files, step=Step("name_by_files", {"folder": str(folder.images)}))


def _renamed(
    records: list[ReviewRecord], table: LabelTable, named: LabelTable
) -> list[ReviewRecord]:
    """The records under the ids of the table that was written."""
    if named is table:
        return records
    name_of = dict(zip(table.images.to_pylist(), named.images.to_pylist(), strict=True))
    return [replace(one, image=name_of.get(one.image, one.image)) for one in records]


def _hand_off(
    folder: AuditFolder,
    chosen: Format,
    table: LabelTable,
    out: Path,
    found: Verdicts,
    answers: Answers,
    prefix: str | None,
) -> _Written:
    """Write labels and likely candidates for another tool."""
    if chosen.hand_off is None:
        able = ", ".join(name for name, one in FORMATS.items() if one.hand_off is not None)
        raise ArgumentError(
            f"The format {chosen.name!r} has no place for candidates; these have one: {able}."
            " Name one of them with --format, or leave --candidates out."
        )
    likely = likely_candidates(folder, table, answers)
    handoff = Handoff(image_files(folder, table), folder.images, likely, prefix)
    changed = apply_changes(table, found.changes, reviewers=found.reviewers)
    path, *beside = chosen.hand_off(changed, out, handoff)
    count = sum(map(len, likely.values()))
    notes = [f"{pluralize(count, 'open candidate', 'open candidates')} written as predictions."]
    notes += [f"{file}: written beside it." for file in beside]
    if chosen.instructions is not None:
        notes.append(chosen.instructions(handoff))
    return _Written(path, absents=False, notes=tuple(notes))


def _patch(
    folder: AuditFolder,
    chosen: Format,
    source: Path,
    out: Path,
    table: LabelTable,
    found: Verdicts,
) -> _Written | None:
    """Change the original file; None for kinds of files that are written anew."""
    if chosen.patch_folder is not None:
        _check_unchanged(folder, source, table)
        return _patch_folder(chosen, Original(source, folder.reading, table), out, found)
    if chosen.patch is None or source.is_dir():
        return None
    _check_unchanged(folder, source, table)
    try:
        proposals = [*chosen.patch(Original(source, folder.reading, table), found.changes)]
    except UnicodeDecodeError:  # compressed, or in another encoding than UTF-8
        return None
    for proposal in proposals:
        said = found.changes if proposal.absents else found.without_absents(table.unlisted)
        if _reads_as(proposal, out.resolve().name, chosen.name, apply_changes(table, said)):
            for added, content in proposal.beside.items():
                atomic_write(out.parent / f"{out.name}{added}", content)
            atomic_write(out, proposal.content)
            notes = (proposal.note,) if proposal.note else ()
            return _Written(out, proposal.absents, patched=True, notes=notes)
    if proposals and not found.struck:  # few formats can take a label out of a file
        raise data_error(
            source,
            "its labels could not be changed without disturbing the others. Pass --format hilltop"
            " to write them anew.",
        )
    return None


def _patch_folder(
    chosen: Format, original: Original, out: Path, found: Verdicts
) -> _Written | None:
    """Change a folder of labels; it is tried elsewhere first, and read back."""
    assert chosen.patch_folder is not None
    said = found.without_absents(original.table.unlisted)
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch) / out.name
        options = chosen.patch_folder(original, said, trial)
        read_back = read_labels(trial, format=chosen.name, options=options)
    if read_back != apply_changes(original.table, said):
        return None
    chosen.patch_folder(original, said, out)
    whole = "Labels that were added have the box of the whole image."
    return _Written(
        out, absents=False, patched=True, notes=(whole,) if found.count(State.PRESENT) else ()
    )


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
    table: LabelTable, out: Path, found: Verdicts, chosen: Format, lossy: bool
) -> _Written:
    """Write the whole table; without absents, where they cannot be said."""

    def attempt(changes: Sequence[Change], *, lossy: bool = False) -> None:
        changed = apply_changes(table, changes, reviewers=found.reviewers)
        write_labels(changed, out, format=chosen.name, lossy=lossy)

    present = found.without_absents(table.unlisted)
    try:
        attempt(found.changes)
        return _Written(out, absents=True)
    except DataError:
        if present != list(found.changes):
            try:
                attempt(present)
                return _Written(out, absents=False)
            except DataError:
                pass
        if not lossy:
            raise
    attempt(found.changes, lossy=True)
    return _Written(out, absents=False)


def _result(written: _Written, provenance: Path, found: Verdicts) -> Applied:
    absent = found.count(State.ABSENT)
    notes = list(written.notes)
    if absent and not written.absents:
        stand = pluralize(absent, "confirmed absent stands", "confirmed absents stand")
        notes.append(
            f"This format cannot say that a class is absent: {stand} in {provenance.name} only."
            " Pass --format hilltop to keep absents with the labels."
        )
    if found.foreign:
        are = pluralize(found.foreign, "answer is about a pair", "answers are about pairs")
        notes.append(f"{are} that this audit does not have.")
    return Applied(
        path=written.path,
        provenance=provenance,
        added=found.count(State.PRESENT),
        struck=len(found.struck),
        absent=absent if written.absents else 0,
        unsaid=0 if written.absents else absent,
        unsure=found.outcomes["unsure"],
        disputed=found.outcomes["disputed"],
        patched=written.patched,
        notes=tuple(notes),
    )
