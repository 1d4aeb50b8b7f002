"""A dry run says what a command will take, and writes nothing."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

from hilltop.cli import dry_run
from hilltop.cli.dry_run import Cost, cost_of_images, prolong, some_of
from hilltop.cli.main import main
from hilltop.data import LabelTable, State, write_labels
from hilltop.errors import HilltopError
from hilltop.inputs.onnx_backbone import LEAST_IMAGES
from tests.audit.simulated import simulate
from tests.data.conftest import picture


class Takes:
    """A command that takes so many seconds and bytes."""

    def __init__(self, images: int, folder: Path) -> None:
        self.images, self.folder = images, folder

    def run(self) -> dict[str, object]:
        (self.folder / "made").write_bytes(b"x" * (100 + 3 * self.images))
        return {}


class Fails(Takes):
    def run(self) -> dict[str, object]:
        raise HilltopError("this cannot be done")


def test_costs_are_prolonged_from_runs_on_some_of_the_images() -> None:
    cost, measured = cost_of_images(Takes, 6400)
    assert measured == 1600  # a quarter
    assert cost.disk == 100 + 3 * 6400
    assert 0 < cost.memory < 1 << 33


def test_few_images_are_enough_where_each_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def measured(make: Callable[[Path], Takes], **_: object) -> Cost:
        ran.append(make(Path()).images)
        return Cost(5.0 + ran[-1], 100.0, float(ran[-1]))

    monkeypatch.setattr(dry_run, "measure", measured)
    cost, images = cost_of_images(Takes, 9_000_000, few=True)
    assert ran == [200, 800]
    assert (cost.seconds, images) == (9_000_005, 800)
    ran.clear()
    assert cost_of_images(Takes, 1000)[0].seconds == 1005
    assert ran == [200, 400], "two sizes that are close would say nothing"


class Looks(Takes):
    """Writes as many bytes as there must be images for ONNX Runtime to look at them."""

    def run(self) -> dict[str, object]:
        from hilltop.inputs import backbone

        (self.folder / "made").write_bytes(b"x" * backbone.LEAST_IMAGES)
        return {}


def test_parts_are_looked_at_by_what_looks_at_all_images() -> None:
    assert cost_of_images(Looks, LEAST_IMAGES)[0].disk == 0  # always
    assert cost_of_images(Looks, 20)[0].disk == 21  # never


def test_costs_in_two_sizes_are_told_apart_and_never_shrink() -> None:
    def cost(classes: float, pairs: float) -> Cost:
        return Cost(2 + 0.5 * classes + 0.001 * pairs, 100 - pairs, 7.0)

    runs = [(size, cost(*size)) for size in ((10.0, 100.0), (20.0, 100.0), (10.0, 300.0))]
    whole = prolong(runs, (100.0, 5000.0))
    assert whole.seconds == pytest.approx(2 + 50 + 5)
    assert whole.memory == runs[-1][1].memory
    assert whole.disk == 7


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 6997850100"
        ),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)
def test_memory_that_ran_out_is_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr("hilltop.cli.main._run", fail)
    assert main(["audit"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("hilltop: There is not enough memory")
    assert said.count("\n") == 1
    with pytest.raises(type(error)):
        main(["audit", "--debug"])


def test_another_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr("hilltop.cli.main._run", fail)
    with pytest.raises(RuntimeError, match="something else"):
        main(["audit"])


def test_an_error_of_the_command_is_the_error_of_the_dry_run() -> None:
    with pytest.raises(HilltopError, match="this cannot be done"):
        cost_of_images(Fails, 10)


def test_some_of_a_table_are_images_and_classes_from_all_over_it() -> None:
    rows = np.arange(1000)
    table = LabelTable.from_coo(
        [f"{row}" for row in rows],
        [f"c{column}" for column in range(50)],
        rows,
        rows % 50,
        State.PRESENT,
        unlisted=State.UNKNOWN,
    )
    part = some_of(table, 100, 10)
    assert (len(part), len(part.classes)) == (100, 10)
    assert part.images[-1].as_py() == "999"
    for row in range(100):
        image = int(part.images[row].as_py())
        expected = {f"c{image % 50}"} & set(part.classes)
        assert set(part.labels_of(row)) == expected


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    made = simulate(images=180, classes=4, width=8, seed=1)
    write_labels(made.labels, folder / "labels.csv")
    ids = np.array(made.labels.images.to_pylist())
    np.savez(folder / "f.npz", ids=ids, X=made.features.numpy())
    return folder / "labels.csv"


@pytest.mark.parametrize("command", ["audit", "train"])
def test_audits_and_runs_are_measured(
    labels: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = [command, "--labels", str(labels), "--unlisted", "unknown", "--out", str(out)]
    words += [
        "--features",
        str(labels.with_name("f.npz")),
        "--dry-run",
        "--json",
        "--allow-missing",
    ]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["seconds"] < 3600
    assert 1 << 26 < found["memory_bytes"] < 1 << 35
    assert 1000 < found["disk_bytes"] < 1 << 30
    assert not out.exists()


def test_an_audit_by_blocks_of_classes_is_measured_by_blocks(
    labels: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hilltop.training.class_blocks.WHOLE_PAIRS", 100)
    monkeypatch.setattr("hilltop.cli.dry_run._BLOCK_IMAGES", (100, 150))
    monkeypatch.setattr("hilltop.cli.dry_run._BLOCK_CLASSES", (2, 3))
    words = ["audit", "--labels", str(labels), "--unlisted", "unknown", "--dry-run"]
    words += ["--features", str(labels.with_name("f.npz")), "--out", str(tmp_path / "out")]
    assert main([*words, "--allow-missing"]) == 0
    said = capsys.readouterr().out
    assert "This will take about" in said
    assert "Measured on 150 of 180 images" in said


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_features_are_measured(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(20):
        picture(number).save(photos / f"{number}.png")
    with tarfile.open(tmp_path / "a-0.tar", "w") as archive:
        archive.add(photos, "photos")
    weights = tmp_path / "small.safetensors"
    torch.manual_seed(0)
    save_file(timm.create_model("resnet10t").state_dict(), weights)
    source = photos if kind == "folder" else tmp_path / "a-{0..0}.tar"
    words = ["features", str(source), "--backbone", "resnet10t", "--weights", str(weights)]
    words += ["--image-size", "32", "--workers", "0", "--out", str(tmp_path / "f.npz")]
    assert main([*words, "--dry-run"]) == 0
    assert "Measured on 20 of 20 images" in capsys.readouterr().out
    assert not (tmp_path / "f.npz").exists()
