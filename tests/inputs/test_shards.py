"""Features in shards: one process, two, and two that were killed give the same file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor

from hilltop.cli.main import main
from hilltop.data.data_errors import DataError
from hilltop.data.files import holding
from hilltop.inputs import Backbone, FeatureShards, Ranks, read_features, shared_features
from hilltop.inputs import shards as shards_module
from hilltop.inputs.backbone import FeatureExtractor
from tests.data.conftest import picture
from tests.forked import fork, run_forked

WORKER = Path(__file__).with_name("killed_worker.py")
IMAGES = 150  # two whole shards of 64 and a rest


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command for a folder of pictures and a small backbone."""
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(IMAGES):
        picture(number).save(folder / f"{number:03}.png")
    weights = folder.parent / "small.safetensors"
    torch.manual_seed(0)
    save_file(timm.create_model("resnet10t").state_dict(), weights)
    options = ["--backbone", "resnet10t", "--weights", str(weights), "--image-size", "32"]
    return ["features", str(folder), *options, "--workers", "0", "--shard", "64"]


class Looked:
    """A backbone that counts what it looks at."""

    def __init__(self, backbone: Backbone, *, images: int = 1) -> None:
        self.seen: list[str] = []

    def __call__(
        self, folder: Path, images: pa.StringArray, **_: object
    ) -> tuple[Tensor, pa.StringArray]:
        self.seen += images.to_pylist()
        readable = images.filter(pa.array([name != "broken" for name in images.to_pylist()]))
        return torch.tensor([[float(len(name))] for name in readable.to_pylist()]), readable


def shards_of(tmp_path: Path, names: list[str], size: int = 2) -> FeatureShards:
    backbone = Backbone("resnet50", "timm", 224)
    return FeatureShards(tmp_path, pa.array(names), backbone, tmp_path / "parts", size)


OPTIONS = {"workers": 0, "skip_broken": True, "say": lambda text: None}


@pytest.mark.distributed
def test_two_processes_killed_and_resumed_write_what_one_does(
    words: list[str], tmp_path: Path
) -> None:
    alone, shared = tmp_path / "one" / "f.npz", tmp_path / "two" / "f.npz"
    run_forked("-m", "hilltop", *words, "--out", alone)
    parts = shared.with_name("f.shards")
    ended = fork(WORKER, parts, "shard-*.npz", *words, "--out", shared, processes=2)
    assert ended[1].code == -9
    kept = len(list(parts.glob("shard-*.npz")))
    assert 1 <= kept <= 2  # those of the first process
    assert not shared.exists()
    output = run_forked("-m", "hilltop", *words, "--out", shared, processes=2)
    assert f"features: {kept} of 3 shards are there already" in output
    one, two = read_features(alone), read_features(shared)
    assert two.images.to_pylist() == one.images.to_pylist()
    np.testing.assert_array_equal(two.values, one.values)
    assert not parts.exists()


def test_finished_shards_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards_module, "FeatureExtractor", Looked)
    shards = shards_of(tmp_path, ["a", "bb", "ccc", "d", "ee"])
    shards.begin()
    looked = Looked(shards.backbone)
    shards.compute(1, looked, **OPTIONS)
    changed = shards.file(1).stat().st_mtime_ns
    values, names = shared_features(shards, Ranks(), **OPTIONS)
    assert shards.file(1).stat().st_mtime_ns == changed
    assert names.to_pylist() == ["a", "bb", "ccc", "d", "ee"]
    assert values.tolist() == [[1.0], [2.0], [3.0], [1.0], [2.0]]


def test_shards_of_other_images_or_another_backbone_are_not_mixed_in(tmp_path: Path) -> None:
    shards = shards_of(tmp_path, ["a", "b", "c"])
    shards.begin()
    shards.compute(0, Looked(shards.backbone), **OPTIONS)
    shards_of(tmp_path, ["a", "b", "c"]).begin()
    assert shards.file(0).is_file()
    shards_of(tmp_path, ["a", "b", "d"]).begin()
    assert not shards.file(0).exists()


def test_a_shard_in_which_nothing_can_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards_module, "FeatureExtractor", Looked)
    shards = shards_of(tmp_path, ["broken", "broken", "a"])
    values, names = shared_features(shards, Ranks(), **OPTIONS)
    assert (values.tolist(), names.to_pylist()) == ([[1.0]], ["a"])
    with pytest.raises(DataError, match="no image here could be read"):
        shared_features(shards_of(tmp_path, ["broken"]), Ranks(), **OPTIONS)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    shards = shards_of(tmp_path, ["a", "b", "c"])
    shards.begin()
    with pytest.raises(DataError, match=r"shard-000000\.npz: this shard was not computed yet"):
        shards.merge()


def test_every_job_falls_to_one_process() -> None:
    jobs = [list(Ranks(number, 3).share(range(8))) for number in range(3)]
    assert sorted(job for mine in jobs for job in mine) == list(range(8))


def test_two_commands_do_not_share_shards(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = tmp_path / "f.shards"
    parts.mkdir()
    with holding(parts):
        assert main([*words, "--out", str(tmp_path / "f.npz")]) == 1
    assert "another command computes these features" in capsys.readouterr().err
    assert not list(parts.iterdir())


def test_other_weights_under_the_same_name_give_no_part_of_the_features(tmp_path: Path) -> None:
    weights, made = tmp_path / "w.pt", []
    for content in (b"one", b"another"):
        weights.write_bytes(content)
        backbone = Backbone("resnet50", str(weights), 224).with_digest()
        shards = FeatureShards(tmp_path, pa.array(["a", "b"]), backbone, tmp_path / "parts", 1)
        shards.begin()
        made.append(shards.file(0).is_file())
        shards.compute(0, Looked(backbone), **OPTIONS)
    assert made == [False, False]


def test_weights_of_the_hub_are_not_looked_for_in_the_package_timm() -> None:
    backbone = Backbone("resnet50", "timm", 224)
    assert backbone.with_digest() == backbone


def test_a_network_whose_weights_changed_looks_at_nothing(tmp_path: Path) -> None:
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"one")
    backbone = Backbone("resnet50", str(weights), 224).with_digest()
    weights.write_bytes(b"another")
    with pytest.raises(DataError, match="not the weights that the features were made with"):
        FeatureExtractor(backbone, images=1)


@pytest.mark.parametrize(
    "text", ["[1]", '{"name": 1}', "{", '{"name":"a","weights":"b","image_size":"c"}']
)
def test_a_backbone_that_cannot_be_read_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    np.savez(path, ids=np.array(["a"]), X=np.ones((1, 2)), backbone=np.array(text))
    with pytest.raises(DataError, match="what it says of its backbone cannot be read"):
        read_features(path)
