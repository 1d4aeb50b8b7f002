"""An audit on a local Ray cluster of two workers, one of them killed, is that of one process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hilltop.audit import Scored
from hilltop.audit.run import Audited, audit, fold_logits
from hilltop.cli.main import main
from hilltop.data import write_labels
from hilltop.errors import DataError
from hilltop.inputs import Parts, Ranks
from hilltop.inputs.ranks import RayWorkers, ray_workers
from hilltop.training import class_blocks
from tests.audit.simulated import Simulated, simulate

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.distributed


@pytest.fixture(scope="module")
def workers() -> Iterator[RayWorkers]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with ray_workers() as found:
            yield found
    finally:
        ray.shutdown()


@pytest.fixture(scope="module")
def many() -> Simulated:
    return simulate(images=1200, classes=30, width=16, shift=-3.0, seed=3)


class OneIsKilled(RayWorkers):
    """In every stage a worker is killed with a job that it has begun."""

    def each(self, jobs: Sequence[Any], do: Callable[[Any], object]) -> Iterator[Any]:
        folder = ray.get(ray.put(os.environ["KILLED"]))
        marker = Path(folder, f"{len(list(Path(folder).iterdir()))}-{len(jobs)}-jobs")

        def deadly(job: Any) -> None:
            if job == jobs[len(jobs) // 2] and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            do(job)

        return super().each(jobs, deadly)


def audited(many: Simulated, parts: Parts) -> Audited:
    rows = np.arange(len(many.labels))
    options: dict[str, Any] = {"folds": 4, "seed": 0, "say": str}
    logits = fold_logits(many.labels, many.features, rows, parts=parts, **options)
    return audit(many.labels, Scored(logits, rows), parts=parts, shard=300)


def test_two_workers_one_killed_in_every_stage_find_what_one_process_finds(
    many: Simulated, workers: RayWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("hilltop.audit.run", "hilltop.training.class_blocks"):
        monkeypatch.setattr(f"{module}.WHOLE_PAIRS", 1000)
    monkeypatch.setattr(class_blocks, "_BLOCK_ENTRIES", 1200 * 8 * 4)
    killed = tmp_path / "killed"
    killed.mkdir()
    monkeypatch.setenv("KILLED", str(killed))
    assert workers.world == 2
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker has: sums of floats depend on it
    try:
        alone = audited(many, Parts(tmp_path / "one", Ranks()))
        shared = audited(many, Parts(tmp_path / "two", OneIsKilled(world=2)))
    finally:
        torch.set_num_threads(threads)
    assert len(list(killed.iterdir())) == 2  # one among the heads, one among the shards
    np.testing.assert_array_equal(shared.candidates.keys, alone.candidates.keys)
    np.testing.assert_array_equal(shared.wrong.suspects.keys, alone.wrong.suspects.keys)
    assert shared.missing == alone.missing


def test_an_error_of_a_worker_is_the_error_of_the_command(workers: RayWorkers) -> None:
    def fail(job: int) -> None:
        if job == 3:
            raise DataError(f"job {job} cannot be done")

    with pytest.raises(DataError, match="job 3 cannot be done") as caught:
        list(workers.each(range(5), fail))
    assert "Traceback" not in str(caught.value)


def test_the_command_writes_the_same_files(
    many: Simulated, workers: RayWorkers, tmp_path: Path
) -> None:
    write_labels(many.labels, tmp_path / "labels.csv")
    ids = np.array(many.labels.images.to_pylist())
    np.savez(tmp_path / "f.npz", ids=ids, X=many.features.numpy())
    words = ["audit", "--labels", str(tmp_path / "labels.csv"), "--unlisted", "unknown"]
    words += ["--features", str(tmp_path / "f.npz"), "--allow-missing", "--shard", "500"]
    for engine in ("torchrun", "ray"):
        assert main([*words, "--out", str(tmp_path / engine), "--engine", engine]) == 0
    one, two = (np.genfromtxt(tmp_path / engine / "estimates.csv", delimiter=",", skip_header=1,
                              usecols=(2, 3, 4)) for engine in ("torchrun", "ray"))  # fmt: skip
    np.testing.assert_allclose(two, one, rtol=1e-3, atol=0.2)
    assert not (tmp_path / "ray" / "parts").exists()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "127.0.0.1:99999"])
def test_an_address_where_no_cluster_answers_is_one_sentence(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", address)
    words = ["audit", "--labels", "labels.csv", "--features", "f.npz", "--engine", "ray"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"No Ray cluster answers at RAY_ADDRESS={address!r}." in said
    assert not (tmp_path / "out").exists()
