"""The candidates in memory: by class, in order, and joined to the labels by name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.errors import DataError
from tests.audit.made_up import unknown_pairs


def rewrite(folder: AuditFolder, table: pa.Table) -> None:
    pq.write_table(table, folder.candidates, row_group_size=500)


def test_every_class_has_its_pairs_in_the_order_of_ranks(audit: AuditFolder) -> None:
    labels = audit.table()
    names = labels.images.to_pylist()
    index = CandidateIndex.read(audit, labels)
    ranked = sorted(unknown_pairs(labels), key=lambda pair: -pair[2])
    assert len(index) == len(ranked)
    for column, name in enumerate(labels.classes):
        wanted = [(image, chance) for image, found, chance in ranked if found == name]
        assert [names[row] for row in index.class_rows(column)] == [image for image, _ in wanted]
        assert index.count(column) == len(wanted)
        assert index.expected(column) == pytest.approx(sum(chance for _, chance in wanted))
        for place, (image, _) in enumerate(wanted):
            assert index.place(column, names.index(image)) == place
    absent = set(range(len(names))) - set(index.class_rows(0).tolist())
    assert all(index.place(0, row) is None for row in absent)


def test_the_order_of_the_rows_does_not_matter_only_their_ranks(audit: AuditFolder) -> None:
    labels = audit.table()
    before = CandidateIndex.read(audit, labels)
    table = pq.read_table(audit.candidates)
    mixed = table.take(pa.array(np.random.default_rng(0).permutation(len(table))))
    rewrite(audit, mixed)
    after = CandidateIndex.read(audit, labels)
    assert np.array_equal(after.rows, before.rows)
    assert np.array_equal(after.probabilities, before.probabilities)


def test_words_may_be_stored_as_dictionaries(audit: AuditFolder) -> None:
    labels = audit.table()
    before = CandidateIndex.read(audit, labels)
    table = pq.read_table(audit.candidates)
    for at, name in enumerate(("image", "class")):
        table = table.set_column(at, name, table.column(name).dictionary_encode())
    rewrite(audit, table)
    assert np.array_equal(CandidateIndex.read(audit, labels).rows, before.rows)


def test_no_candidates_at_all_is_fine(audit: AuditFolder) -> None:
    rewrite(audit, pq.read_table(audit.candidates).slice(0, 0))
    index = CandidateIndex.read(audit, audit.table())
    assert len(index) == len(index.images()) == index.count(0) == 0


def test_the_sample_gives_every_pair_the_same_chance(audit: AuditFolder) -> None:
    labels = audit.table()
    index = CandidateIndex.read(audit, labels)
    firsts = []
    for column in range(len(labels.classes)):
        order = index.sample_order(column)
        assert sorted(order) == list(range(index.count(column)))
        assert np.array_equal(order, index.sample_order(column))
        firsts += (order[:10] / index.count(column)).tolist()
    # Places of the first ten of each class, as shares: their mean is that of a uniform draw.
    error = np.sqrt(1 / 12 / len(firsts))
    assert abs(np.mean(firsts) - 0.5) < 4 * error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop_columns("rank"), "the column 'rank' is missing"),
        (
            lambda table: table.set_column(0, "image", pa.array(["x"] * len(table))),
            r"the image 'x' is not in labels\.parquet",
        ),
        (
            lambda table: table.set_column(1, "class", pa.array(["x"] * len(table))),
            r"the class 'x' is not in labels\.parquet",
        ),
        (
            lambda table: table.set_column(2, "probability", pa.nulls(len(table), pa.float32())),
            "some cells are empty",
        ),
    ],
)
def test_files_that_do_not_fit_are_faults_in_words(
    audit: AuditFolder, change: object, said: str
) -> None:
    assert callable(change)
    rewrite(audit, change(pq.read_table(audit.candidates)))
    with pytest.raises(DataError, match=said) as caught:
        CandidateIndex.read(audit, audit.table())
    assert str(audit.candidates) in str(caught.value)


def test_a_damaged_file_is_said_to_be_damaged(audit: AuditFolder) -> None:
    audit.candidates.write_bytes(audit.candidates.read_bytes()[:100])
    with pytest.raises(DataError, match="the candidates cannot be read"):
        CandidateIndex.read(audit, audit.table())
