"""An audit over two processes finds what one finds, also after one of them was killed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch

from hilltop.audit.find.estimate import read_estimates
from hilltop.data import write_labels
from hilltop.data.scores import ScoreTable
from tests.audit.simulated import simulate
from tests.forked import fork, run_forked

WORKER = Path(__file__).parents[1] / "inputs" / "killed_worker.py"


def candidates(out: Path) -> dict[tuple[str, str], float]:
    content = pyarrow.parquet.read_table(out / "candidates.parquet").to_pydict()
    pairs = zip(content["image"], content["class"], strict=True)
    return dict(zip(pairs, content["probability"], strict=True))


@pytest.mark.distributed
def test_two_processes_killed_and_resumed_find_what_one_does(tmp_path: Path) -> None:
    simulated = simulate(images=400)
    labels, features = tmp_path / "labels.csv", tmp_path / "features.npz"
    write_labels(simulated.labels, labels, format="list_column", lossy=True)
    simulated.save_features(features)
    words = ["audit", "--labels", labels, "--unlisted", "unknown", "--features", features]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    run_forked("-m", "hilltop", *words, "--out", alone)
    parts = shared / "parts"
    ended = fork(WORKER, parts, "heads-*", *words, "--out", shared, processes=2)
    assert ended[1].code == -9
    kept = len(list(parts.glob("heads-*")))  # one may be in the middle of a file
    assert 1 <= kept <= 2  # those of the first process
    assert not (shared / "audit.json").exists()
    both = fork(WORKER, parts, "", *words, "--out", shared, processes=2)
    assert [one.code for one in both] == [0, 0]
    said = both[0].output + both[0].errors
    assert f"cross-validation: {kept} of 3 shards are there already" in said
    assert said.count("next: hilltop review") == 1
    assert not parts.exists()
    one, two = candidates(alone), candidates(shared)
    assert one.keys() == two.keys()
    together = np.array([[one[pair], two[pair]] for pair in one])
    np.testing.assert_allclose(together[:, 1], together[:, 0], rtol=1e-4, atol=1e-6)
    for mine, other in zip(
        read_estimates(alone / "estimates.csv"),
        read_estimates(shared / "estimates.csv"),
        strict=True,
    ):
        assert other.class_name == mine.class_name
        assert other.missing.value == pytest.approx(mine.missing.value, rel=1e-3, abs=0.1)


@pytest.mark.distributed
def test_a_ranking_killed_and_resumed_by_two_processes_is_that_of_one_to_the_byte(
    tmp_path: Path,
) -> None:
    simulated = simulate(images=330)
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.npy"
    write_labels(simulated.labels, labels, format="list_column", lossy=True)
    table = simulated.labels
    probs = torch.sigmoid(3 * simulated.true - 3 + simulated.features[:, :6]).numpy()
    ScoreTable(table.images, table.classes, probs).save(scores)
    words = ["audit", "--labels", labels, "--unlisted", "unknown", "--scores", scores]
    words += ["--shard", "100"]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    run_forked("-m", "hilltop", *words, "--out", alone)
    parts = shared / "parts"
    ended = fork(WORKER, parts, "rank-*", *words, "--out", shared, processes=2)
    assert ended[1].code == -9
    kept = len(list(parts.glob("rank-*.npz")))
    assert 1 <= kept <= 2  # those of the first process
    printed = run_forked("-m", "hilltop", *words, "--out", shared, processes=2)
    assert f"ranking: {kept} of 4 shards are there already" in printed
    assert not parts.exists()
    for name in ("candidates.csv", "suspects.csv", "estimates.csv"):
        assert (shared / name).read_bytes() == (alone / name).read_bytes()
