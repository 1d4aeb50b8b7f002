"""Joined tables: what nobody looked for takes no part, and everything else survives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.audit import find_missing_labels
from hilltop.cli.main import main
from hilltop.data import (
    LabelSet,
    LabelTable,
    State,
    Step,
    join_tables,
    read_labels,
    summarise,
    write_labels,
)
from hilltop.errors import ArgumentError, DataError
from hilltop.losses import bce, scar_likelihood
from hilltop.training.stages import add_confident

NAN = np.nan


def table(
    images: list[str],
    classes: list[str],
    present: list[tuple[int, int]],
    unlisted: State = State.UNKNOWN,
) -> LabelTable:
    rows, columns = zip(*present, strict=True) if present else ((), ())
    return LabelTable.from_coo(images, classes, rows, columns, State.PRESENT, unlisted=unlisted)


@pytest.fixture
def joined() -> LabelTable:
    pets = table(["1", "2", "3"], ["cat", "dog"], [(0, 0), (1, 1)])
    birds = table(["3", "4"], ["bird", "cat"], [(0, 0), (1, 1)], State.ABSENT)
    return join_tables([LabelSet("pets", pets), LabelSet("birds", birds, ["bird", "cat", "owl"])])


def test_a_pair_nobody_looked_for_is_nan_and_an_image_in_two_sources_has_both(
    joined: LabelTable,
) -> None:
    targets, observed = joined.batch()
    assert joined.classes == ("cat", "dog", "bird", "owl")
    expected = [[1, 0, NAN, NAN], [0, 1, NAN, NAN], [0, 0, 1, 0], [1, NAN, 0, 0]]
    np.testing.assert_array_equal(targets, np.array(expected, dtype=np.float32))
    # Image 3: the second source says that there is no cat and no owl; dogs are unknown.
    assert observed[2].tolist() == [True, False, True, True]
    assert not observed[0, 1:].any()


def test_counts_and_shares_are_of_images_that_were_looked_at(joined: LabelTable) -> None:
    assert joined.not_looked_for().tolist() == [0, 1, 2, 2]
    assert joined.counts_by_class(State.UNKNOWN).tolist() == [1, 2, 0, 0]
    assert joined.count(State.UNKNOWN) == 3
    assert joined.label_shares().tolist() == [2 / 4, 1 / 3, 1 / 2, 0]
    assert "5 not looked for" in repr(joined)
    assert summarise(joined).sources == {"pets": 2, "birds": 1, "pets + birds": 1}


def test_metrics_leave_them_out_even_where_only_positives_are_listed() -> None:
    one = LabelSet("one", table(["1"], ["cat", "dog"], [(0, 0)]))
    other = LabelSet("other", table(["2"], ["dog"], [(0, 0)]))
    assert np.array_equal(
        join_tables([one, other]).eval_targets(), np.array([[1, 0], [NAN, 1]]), equal_nan=True
    )


def test_scopes_survive_selection_more_classes_and_the_native_file(
    joined: LabelTable, tmp_path: Path
) -> None:
    write_labels(joined, tmp_path / "j.parquet")
    again = read_labels(tmp_path / "j.parquet")
    assert again == joined
    assert again.history[-1].name == "join"
    chosen = again.select([3, 0]).with_classes(["zebra", *reversed(joined.classes)])
    targets, _ = chosen.batch()
    expected = np.array([[NAN, 0, 0, NAN, 1], [NAN, NAN, NAN, 0, 1]], dtype=np.float32)
    np.testing.assert_array_equal(targets, expected)
    np.testing.assert_array_equal(chosen.batch([1])[0], expected[1:])
    assert chosen != chosen.with_classes(chosen.classes[::-1])


def test_an_answer_makes_a_pair_part_of_the_table(joined: LabelTable) -> None:
    said = joined.with_states([0, 1], [2, 2], [State.PRESENT, State.ABSENT], step=Step("review"))
    assert said.batch()[0][:2, 2].tolist() == [1, 0]
    assert said.batch()[1][:2, 2].all()
    assert said.not_looked_for().tolist() == [0, 1, 0, 2]


def test_joining_again_keeps_what_each_image_was_looked_at_for(joined: LabelTable) -> None:
    more = table(["1", "9"], ["owl"], [(1, 0)])
    twice = join_tables([LabelSet("joined", joined), LabelSet("owls", more)])
    targets, _ = twice.batch()
    np.testing.assert_array_equal(targets[0], np.array([1, 0, NAN, 0], dtype=np.float32))
    np.testing.assert_array_equal(targets[4], np.array([NAN, NAN, NAN, 1], dtype=np.float32))


def test_contradictions_stop_with_the_pair_or_become_unknown() -> None:
    yes = LabelSet("yes.csv", table(["1"], ["cat"], [(0, 0)]))
    no = LabelSet("no.csv", table(["1"], ["cat"], [], State.ABSENT))
    with pytest.raises(DataError, match=r"yes\.csv and no\.csv: image '1' has class 'cat' both"):
        join_tables([yes, no])
    settled = join_tables([yes, no], contradictions="unknown")
    assert settled.count(State.UNKNOWN) == 1
    assert settled.history[-1].details["contradictions"] == 1


def test_other_formats_say_that_they_cannot_express_it(joined: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nobody looked for 5 pairs"):
        write_labels(joined, tmp_path / "labels.json", format="coco")


def test_unlisted_pairs_of_a_joined_table_cannot_become_absent(joined: LabelTable) -> None:
    with pytest.raises(ArgumentError, match="list the absents"):
        joined.with_states([], [], State.ABSENT, step=Step("x"), unlisted=State.ABSENT)


def test_pairs_nobody_looked_for_have_no_part_in_a_loss(joined: LabelTable) -> None:
    targets, observed = (torch.from_numpy(part) for part in joined.batch())
    logits = torch.randn(targets.shape, requires_grad=True)
    bce(reduction="sum")(logits, targets, verified=observed).backward()
    assert logits.grad is not None
    assert torch.equal(logits.grad == 0, targets.isnan())


def test_pseudo_labels_are_given_only_where_somebody_looked(joined: LabelTable) -> None:
    scores = np.full((4, 4), 0.9, dtype=np.float32)
    labelled = add_confident(joined, scores, 0.5)
    assert labelled.not_looked_for().tolist() == joined.not_looked_for().tolist()
    assert labelled.count(State.UNKNOWN) == 0


@pytest.fixture(scope="module")
def audited() -> tuple[LabelTable, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    true = rng.random((900, 3)) < 0.4
    features = true @ rng.standard_normal((3, 8)) + 0.1 * rng.standard_normal((900, 8))
    kept = true & (rng.random(true.shape) < 0.7)
    halves = (range(600), [0, 1]), (range(300, 900), [1, 2])
    sets = []
    for number, (rows, columns) in enumerate(halves):
        part = kept[np.ix_(list(rows), columns)]
        names = [f"c{column}" for column in columns]
        one = LabelTable.from_coo(
            [str(row) for row in rows], names, *part.nonzero(), State.PRESENT,
            unlisted=State.UNKNOWN,
        )  # fmt: skip
        sets.append(LabelSet(str(number), one))
    return join_tables(sets), true, features


def test_the_audit_ranks_what_nobody_looked_for_and_counts_it_apart(
    audited: tuple[LabelTable, np.ndarray, np.ndarray],
) -> None:
    joined, true, features = audited
    found = find_missing_labels(joined, features=features, likelihood=scar_likelihood(0.7))
    beyond = ~joined.looked_for()
    hidden = (true & beyond).sum(axis=0)
    assert [one.beyond for one in found.estimates] == pytest.approx(hidden.tolist(), rel=0.15)
    lost = (true & ~beyond).sum(axis=0) - joined.counts_by_class(State.PRESENT)
    assert [one.missing.value for one in found.estimates] == pytest.approx(lost.tolist(), rel=0.35)
    assert found.frequency.value == pytest.approx(0.7, abs=0.06)
    ranked = found.candidates
    first = slice(int(hidden.sum() * 0.8))
    assert true[ranked.rows(first), ranked.columns(first)].mean() > 0.95
    assert beyond[ranked.rows(first), ranked.columns(first)].any()


def test_the_command_joins_with_options_of_single_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("image,labels\n1.jpg,cat;dog\n2.jpg,cat\n3.jpg,\n")
    Path("b.csv").write_text("image,labels\n3.jpg,bird\n4.jpg,bird;cat\n5.jpg,\n")
    Path("list.txt").write_text("cat\ndog\nfox\n")
    words = ["a.csv:looked-for=list.txt", "b.csv:unlisted=absent"]
    assert main(["join", *words, "--unlisted", "unknown", "--out", "j.parquet"]) == 0
    said = capsys.readouterr().out
    assert "6 pairs (30%) nobody looked for" in said
    assert "1 image is in more than one source." in said
    joined = read_labels("j.parquet")
    assert joined.count(State.ABSENT) == 3  # of the second source alone
    assert joined.not_looked_for().tolist() == [0, 2, 2, 2]
    assert main(["join", "a.csv", "--unlisted", "unknown", "--out", "j.parquet"]) == 2


def test_a_file_may_be_called_like_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a:split=1.csv").write_text("image,labels\n1.jpg,cat;dog\n")
    Path("b.csv").write_text("image,labels\n2.jpg,cat\n")
    words = ["join", "a:split=1.csv", "b.csv", "--unlisted", "unknown", "--out"]
    assert main([*words, "a:split=1.csv", "--force"]) == 2  # and is not written over
    assert main([*words, "j.parquet"]) == 0
    assert len(read_labels("j.parquet")) == 2
