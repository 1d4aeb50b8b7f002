"""The audit of arrays: the same as the command's, from whatever kind of matrix."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse

from hilltop.audit import find_missing_labels
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import read_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.audit.run import Audited
from hilltop.cli.main import main
from hilltop.data import LabelTable, State, write_labels
from hilltop.errors import ArgumentError, DataError, MissingExtra
from hilltop.losses import bce, scar_likelihood
from tests.audit.simulated import Simulated, average_precision, simulate


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    return simulate()


@pytest.fixture(scope="module")
def found(simulated: Simulated) -> Audited:
    return find_missing_labels(simulated.targets, features=simulated.features)


def pairs(audited: Audited) -> tuple[list[int], list[int], list[float]]:
    found = audited.candidates
    return found.rows().tolist(), found.columns().tolist(), found.probabilities().tolist()


def test_arrays_give_the_audit_of_the_command(
    simulated: Simulated, found: Audited, tmp_path: Path
) -> None:
    write_labels(simulated.labels, tmp_path / "labels.parquet")
    simulated.save_features(tmp_path / "features.npz")
    words = ["--labels", "labels.parquet", "--features", "features.npz", "--out", "audit"]
    here = [str(tmp_path / word) if "." in word or word == "audit" else word for word in words]
    assert main(["audit", *here]) == 0
    folder = AuditFolder.read(tmp_path / "audit")
    index = CandidateIndex.read(folder, folder.table())
    assert len(index) == len(found.candidates)
    written = read_estimates(tmp_path / "audit" / "estimates.csv")
    for mine, theirs in zip(found.estimates, written, strict=True):
        assert mine.labelled == theirs.labelled
        assert mine.missing.value == pytest.approx(
            theirs.missing.value, abs=0.06
        )  # written with one decimal


def test_what_it_ranks_first_is_missing(simulated: Simulated, found: Audited) -> None:
    ranked = np.zeros(simulated.targets.shape)
    rows, columns, probabilities = pairs(found)
    ranked[rows, columns] = probabilities
    unlabelled = simulated.targets.numpy() == 0
    missing = simulated.missing[unlabelled]
    assert average_precision(ranked[unlabelled], missing) > 4 * missing.mean()


def test_how_many_are_missing_is_found_with_few_features_and_few_images(
    simulated: Simulated, found: Audited
) -> None:
    missing = simulated.missing.sum()
    assert 0.7 * missing < found.missing.value < 1.4 * missing
    assert found.total.low <= missing <= found.total.high


@pytest.mark.parametrize(
    "kind",
    [
        lambda targets: targets.numpy().astype(np.int8),
        lambda targets: targets.numpy() == 1,
        lambda targets: sparse.csr_matrix(targets.numpy()),
        lambda targets: targets.bool(),
        lambda targets: targets.tolist(),
    ],
    ids=["int8", "bool", "sparse", "tensor of bool", "lists"],
)
def test_every_kind_of_matrix_gives_the_same(
    simulated: Simulated, found: Audited, kind: Any
) -> None:
    again = find_missing_labels(kind(simulated.targets), features=simulated.features.numpy())
    assert pairs(again) == pairs(found)


class Frame:
    """What is asked of a data frame: columns, and an array that must not be written to."""

    def __init__(self, values: npt.NDArray[Any], columns: list[str]) -> None:
        self.values, self.columns = values.copy(), columns
        self.values.flags.writeable = False

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return self.values


def test_a_data_frame_gives_its_names(simulated: Simulated, found: Audited) -> None:
    targets, features = simulated.targets.numpy(), simulated.features.numpy()
    names = [f"class {number}" for number in range(targets.shape[1])]
    again = find_missing_labels(Frame(targets, names), features=Frame(features, []))
    assert [one.class_name for one in again.estimates] == names
    assert again.total == found.total


def test_a_table_gives_the_same_with_its_names(simulated: Simulated, found: Audited) -> None:
    again = find_missing_labels(simulated.labels, features=simulated.features)
    assert pairs(again) == pairs(found)
    assert [one.class_name for one in again.estimates] == [f"class {n}" for n in range(6)]
    assert [one.class_name for one in found.estimates] == list("012345")


def test_probabilities_are_ranked_by_the_given_likelihood(simulated: Simulated) -> None:
    probabilities = torch.sigmoid(simulated.features[:, :6]).bfloat16()
    audited = find_missing_labels(
        simulated.targets,
        probabilities=probabilities,
        likelihood=scar_likelihood(label_frequency=0.4),
        class_names=list("abcdef"),
        top=7,
    )
    assert len(audited.candidates) == 7
    assert [one.class_name for one in audited.estimates] == list("abcdef")
    assert audited.frequency.value == pytest.approx(0.4, abs=0.03)


def test_what_a_person_confirmed_is_no_candidate(simulated: Simulated) -> None:
    observed = torch.zeros_like(simulated.targets, dtype=torch.bool)
    observed[:150] = True  # labels and absents
    audited = find_missing_labels(
        simulated.targets, features=simulated.features, verified=sparse.coo_array(observed.numpy())
    )
    assert min(audited.candidates.rows().tolist()) == 150
    assert len(audited.candidates) == int((simulated.targets[150:] == 0).sum())


def test_labels_that_are_all_confirmed_say_how_they_were_lost(
    simulated: Simulated, found: Audited
) -> None:
    again = find_missing_labels(
        simulated.targets, features=simulated.features, verified=simulated.targets
    )
    assert pairs(again) == pairs(found)


def matrix(*rows: list[float]) -> np.ndarray:
    return np.array(rows * 20)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (matrix([1, 0]), {}, "one of features and probabilities"),
        (matrix([1, 0]), {"features": matrix([1.0]), "probabilities": 1}, "one of features and"),
        (matrix([1, np.nan]), {"features": matrix([1.0])}, r"entry \(0, 1\) is nan.* is 0 here"),
        (matrix([0, 0.5]), {"features": matrix([1.0])}, r"entry \(0, 1\) is 0.5"),
        (np.ones(3), {"features": matrix([1.0])}, r"labels must be a matrix .* shape \(3,\)"),
        (matrix([1, 0]), {"features": np.ones((3, 2))}, "a row for each of 20 images, not 3"),
        (matrix([1, 0]), {"features": matrix([np.inf])}, "those of row 0 are not"),
        (matrix([1, 0]), {"features": matrix([1.0]), "folds": 1}, "folds must be at least 2"),
        (matrix([1, 0]), {"probabilities": matrix([0.5])}, "values must have the shape"),
        (matrix([1, 0]), {"features": matrix([1.0]), "class_names": "a"}, "class_names must have"),
        (
            matrix([1, 0]),
            {"features": matrix([1.0]), "verified": matrix([1])},
            "verified must have",
        ),
    ],
)
def test_what_does_not_fit_is_said(labels: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        find_missing_labels(labels, **options)


def test_a_loss_that_is_no_likelihood_is_refused(simulated: Simulated) -> None:
    with pytest.raises(
        ArgumentError, match=r"count_likelihood\(\) or scar_likelihood\(\), but got"
    ):
        find_missing_labels(simulated.targets, features=simulated.features, likelihood=bce())  # type: ignore[arg-type]


def test_no_labels_and_no_unknown_pairs_are_said() -> None:
    features = np.ones((20, 1))
    with pytest.raises(DataError, match="no label at all"):
        find_missing_labels(np.zeros((20, 2)), features=features)
    with pytest.raises(DataError, match="No pair is unknown"):
        find_missing_labels(np.ones((20, 2)), features=features)
    table = LabelTable.from_coo(["a"], ["x"], [0], [0], State.PRESENT, unlisted=State.UNKNOWN)
    with pytest.raises(ArgumentError, match="A table has its own"):
        find_missing_labels(table, features=features, class_names=["x"])


def test_the_room_of_the_review_page_does_not_load_torch() -> None:
    code = "import sys, hilltop.audit.review.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_candidates_become_a_dataframe(found: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    pandas = types.ModuleType("pandas")
    pandas.DataFrame = made.update  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    found.to_pandas()
    rows, columns, probabilities = pairs(found)
    assert list(made) == ["image", "class", "probability", "rank"]
    assert made["image"].tolist() == [str(row) for row in rows]
    assert made["class"].tolist() == [str(column) for column in columns]
    assert made["probability"].tolist() == probabilities


def test_without_pandas_its_extra_is_named(found: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[pandas\]'"):
        found.to_pandas()
