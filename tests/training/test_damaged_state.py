"""Checkpoints that are damaged or made up are refused with a sentence, and nothing crashes."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from hilltop.cli.main import main
from hilltop.errors import DataError
from hilltop.training.checkpoint import (
    Progress,
    load_state,
    load_tensors,
    rng_state,
    save_state,
    save_tensors,
)
from tests.forked import fork
from tests.training.conftest import STOPPED, command

Edit = Callable[[dict[str, Tensor], dict[str, Any]], None]


def crafted(path: Path, edit: Edit) -> None:
    """Change a checkpoint as somebody who knows the format would: without a checksum."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        note = json.loads(file.metadata()["hilltop"])
    del note["sha256"]
    edit(tensors, note)
    save_file(tensors, path, metadata={"hilltop": json.dumps(note)})


@pytest.fixture(scope="module")
def stopped(problem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted in its second epoch."""
    out = tmp_path_factory.mktemp("runs") / "stopped"
    (ended,) = fork(
        STOPPED, "SIGINT", 70, 0, *command(problem, out, "--epochs", 4, "--loss", "bce")
    )
    assert ended.code == 130
    return out


@pytest.fixture
def run_copy(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def first(tensors: dict[str, Tensor], ending: str) -> str:
    return next(name for name in sorted(tensors) if name.endswith(ending))


def smaller_moment(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    tensors[first(tensors, ".exp_avg")] = torch.zeros(1)


def whole_moment(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    name = first(tensors, ".exp_avg")
    tensors[name] = tensors[name].long()


def other_parameter(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    tensors["optimizer.99.exp_avg"] = torch.zeros(1)


def nan_weight(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    tensors["model.centre"][0] = torch.nan


def half_a_state(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    del tensors[first(tensors, ".exp_avg_sq")]


def words_for_numbers(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    note["groups"][0]["lr"] = "fast"


def negative_epoch(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    note["progress"]["epoch"] = -3


def no_progress(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    note["progress"] = [1, 2]


def endless_step(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    tensors[first(tensors, ".step")] = torch.tensor(torch.inf)


def nan_moment(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    tensors[first(tensors, ".exp_avg")].fill_(torch.nan)


def no_random(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    tensors["random.cpu"] = torch.zeros(0, 5056, dtype=torch.uint8)


@pytest.mark.parametrize(
    "edit",
    [
        smaller_moment,
        whole_moment,
        other_parameter,
        nan_weight,
        half_a_state,
        words_for_numbers,
        negative_epoch,
        no_progress,
        endless_step,
        nan_moment,
        no_random,
    ],
)
def test_a_made_up_state_is_refused_with_a_sentence(
    edit: Edit, run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = run_copy / "resume.safetensors"
    crafted(state, edit)
    assert main(["resume", str(run_copy)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"hilltop: {state}: ")
    assert "Traceback" not in message


def test_a_state_of_another_size_never_reaches_a_fused_optimiser(tmp_path: Path) -> None:
    """Before the shapes were compared, the next step ended the process with a signal."""
    model = nn.Linear(400, 400)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    model(torch.ones(1, 400)).sum().backward()
    optimizer.step()
    states = {"cpu": rng_state()["cpu"].unsqueeze(0)}
    path = tmp_path / "state"
    save_state(path, {"model": model}, optimizer, {}, Progress(), states)
    crafted(path, lambda tensors, _: tensors.update({"optimizer.0.exp_avg": torch.zeros(1)}))
    with pytest.raises(DataError, match=r"optimizer\.0\.exp_avg has the shape \(1,\)"):
        load_state(path, {"model": model}, optimizer, {})


def test_a_state_of_steps_is_no_end_of_a_head_that_is_solved(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    states = {"cpu": rng_state()["cpu"].unsqueeze(0)}
    for number, kept in enumerate((optimizer, None)):
        save_state(tmp_path / f"{number}", {"model": model}, kept, {}, Progress(epoch=3), states)
    with pytest.raises(DataError, match=r"an earlier release wrote it\. Remove the file"):
        load_state(tmp_path / "0", {"model": model}, None, {})
    assert load_state(tmp_path / "1", {"model": model}, None, {}).epoch == 3


def test_more_epochs_than_were_planned_are_said(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = run_copy / "config.yaml"
    config.write_text(config.read_text().replace("\nepochs: 4\n", "\nepochs: 5\n"))
    assert main(["resume", str(run_copy)]) == 1
    said = capsys.readouterr().err
    assert "its learning rates are planned for" in said
    assert "or train anew with another --out." in said


def test_a_flipped_bit_is_noticed(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("resume.safetensors", "best.safetensors"):
        path = run_copy / name
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match="its checksum is wrong"):
            load_tensors(path)
    assert main(["resume", str(run_copy)]) == 1
    assert "its checksum is wrong" in capsys.readouterr().err


def test_a_note_nested_without_end_is_said(tmp_path: Path) -> None:
    path = tmp_path / "last.safetensors"
    save_file({"w": torch.zeros(1)}, path, metadata={"hilltop": "[" * 100_000})
    with pytest.raises(DataError, match="this is not a whole safetensors file"):
        load_tensors(path)


def test_equal_checkpoints_are_equal_files(tmp_path: Path) -> None:
    contents = set()
    for number in range(20):
        save_tensors(tmp_path / f"{number}", {"a": torch.ones(2)}, {"epoch": 1, "classes": ["x"]})
        contents.add((tmp_path / f"{number}").read_bytes())
    assert len(contents) == 1


def test_nan_weights_do_not_predict(
    problem: Path, run_copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
        tensors["centre"][0] = torch.nan

    crafted(run_copy / "best.safetensors", spoil)
    words = [
        "predict",
        run_copy,
        "--features",
        problem / "features.npz",
        "--out",
        tmp_path / "s.npy",
    ]
    assert main([str(word) for word in words]) == 1
    assert "the weights 'centre' hold numbers that are not finite" in capsys.readouterr().err
    assert not (tmp_path / "s.npy").exists()


def test_the_gradient_scaler_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    states = {"cpu": rng_state()["cpu"].unsqueeze(0)}
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**7)
    save_state(tmp_path / "s", {"model": model}, optimizer, {"scaler": scaler}, Progress(), states)
    fresh = torch.amp.GradScaler("cpu")
    load_state(tmp_path / "s", {"model": model}, optimizer, {"scaler": fresh})
    assert fresh.state_dict() == scaler.state_dict()
    assert fresh.get_scale() == 2.0**7


def test_a_full_disk_is_told_with_the_checkpoint(tmp_path: Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    save_tensors(tmp_path / "a.safetensors", {"a": torch.ones(1)}, {})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))
    try:
        with pytest.raises(DataError, match=r"a\.safetensors: it could not be written: .*large"):
            save_tensors(tmp_path / "a.safetensors", {"a": torch.zeros(1000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert load_tensors(tmp_path / "a.safetensors")[0]["a"].item() == 1


def test_a_model_that_torch_cannot_write_as_onnx_is_said(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object, **options: object) -> None:
        raise torch.onnx.OnnxExporterError("no such\noperator")

    monkeypatch.setattr(torch.onnx, "export", fail)
    out = run_copy / "model.onnx"
    assert main(["export", str(run_copy), "--to", "onnx", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "cannot write this model as ONNX: no such operator. Install a newer torch" in said
    assert not out.exists()
