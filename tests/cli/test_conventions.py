"""What holds for every command: JSON, quiet, one style of errors, completion; by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import typing
import warnings
from pathlib import Path
from typing import Any

import pytest

from hilltop.checks import check_choice
from hilltop.cli.main import COMMANDS, SHELLS, load_command, main
from hilltop.errors import ArgumentError, HilltopWarning, install_command

NAMES = sorted(COMMANDS)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\na.jpg,cat;dog\nb.jpg,cat\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_every_command_returns_what_it_found(name: str) -> None:
    assert typing.get_type_hints(load_command(name).run)["return"] == dict[str, Any]


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_option_is_told_in_one_line_with_the_way_to_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--no-such-option"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("hilltop: ")
    assert said.endswith(f" See hilltop {name} --help.\n")
    assert said.count("\n") == 1
    assert not {"│", "╭"} & set(said)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["features", "photos"], ("features needs --out.",)),
        (["features", "photos", "--out"], ("--out needs a value.",)),
        (["inspect"], ("inspect needs LABELS.",)),
        (["predict", "x", "--out", "y", "--wich", "last"], ("--wich", "Did you mean '--which'?")),
        (["train", "--epochs", "x"], ("--epochs", '"x"', "int")),
        (["train", "--epochs", "2.5"], ("--epochs must be a whole number, but got '2.5'.",)),
        (["audit", "l", "--out", "o", "--top=1e1.5"], ("--top must be a whole number",)),
        (["train", "--LR", "1"], ("--LR", "Did you mean '--lr'?")),
        (["train", "--learning-rate", "x"], ("--learning-rate", '"x"', "float")),
        (["train", "--labels", "x", "y"], ("train has no place for 'y'",)),
        (["export", "x", "--out", "y", "--to", "z"], ("--to", '"z"', '"onnx", "hub-folder"')),
    ],
)
def test_wrong_words_are_told_with_what_was_given_and_what_is_expected(
    words: list[str], told: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert [fact for fact in told if fact not in said] == []


def test_of_thousands_of_choices_an_error_lists_some_and_the_nearest() -> None:
    names = [f"class {number}" for number in range(9605)]
    with pytest.raises(ArgumentError, match="and 9,575 more, but got 'class 77x'") as told:
        check_choice("classes", "class 77x", names)
    assert len(str(told.value)) < 600
    assert "Did you mean 'class 77'?" in str(told.value)


def test_what_is_far_from_every_option_has_no_suggestion(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["inspect", "x.csv", "--lr", "1"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("review a --top 5", "--top belongs to --static"),
        ("review a --overlap 0.5", "--overlap belongs to --assign"),
        ("queue a --out q.csv --images p", "--images belongs to --for promise"),
        ("evaluate s.npy l.csv --plan 3", "--plan belongs to --incomplete"),
        ("evaluate s.npy l.csv --incomplete --out p.csv", "--out belongs to --plan"),
        ("predict run --out t.csv --answers a.csv", "--answers belongs to --promise"),
        ("predict run --out t.csv --allow-missing", "--allow-missing belongs to --labels"),
        ("apply a --out o.csv --image-prefix x", "--image-prefix belongs to --candidates"),
        ("audit l.csv --out a --extra-names n.csv", "--extra-names belongs to --extra-scores"),
    ],
)
def test_an_option_without_effect_is_told(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"hilltop: {told}, which was not given.\n"


@pytest.mark.parametrize("device", ["gpu", "cpu:1", "cuda:x"])
def test_an_unknown_device_is_told(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "photos", "--out", "f.npz", "--device", device]) == 2
    assert f"--device must be auto, cpu, cuda or cuda:1, but got {device!r}." in (
        capsys.readouterr().err
    )


def test_a_device_hides_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert main(["features", "photos", "--out", "f.txt", "--device", "cpu"]) == 2
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["features", "photos", "--out", "f.txt", "--device", "cuda:3"]) == 2
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    assert "torch finds no such GPU" in capsys.readouterr().err


def test_json_has_standard_output_for_itself(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    words = ["convert", str(labels), str(out), "--unlisted", "unknown", "--json"]
    assert main(words) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["labels"] == 3
    assert found["out"] == str(out)
    assert "2 images" in said.err


def test_quiet_leaves_an_answer_and_nothing_else(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--unlisted", "unknown", "--quiet"]
    assert main(["convert", str(labels), str(tmp_path / "out.parquet"), *how]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert main(["inspect", str(labels), *how]) == 0
    assert "images" in capsys.readouterr().out


def test_a_missing_ratio_out_of_bounds_is_told_by_its_option(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", str(labels), "--out", str(tmp_path / "o.csv"), "--missing-ratio", "2"]
    assert main(words) == 2
    assert "--missing-ratio must be at least 0 and at most 1, but got 2.0." in (
        capsys.readouterr().err
    )


def test_a_run_that_cannot_begin_leaves_no_folder_behind(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(labels), "--unlisted", "unknown", "--images", "photos"]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "photos"]


def test_quiet_json_is_the_result_and_nothing_else(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(labels), "--unlisted", "unknown", "--quiet", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["images"] == 2
    assert said.err == ""


def test_options_of_every_command_may_stand_before_or_behind_others(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json", "inspect", str(labels), "--unlisted", "unknown"]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 2


def test_a_warning_is_a_sentence_and_those_of_others_are_for_debugging(
    labels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: object) -> dict[str, Any]:
        warnings.warn("Look here.", HilltopWarning, stacklevel=1)
        warnings.warn("deep inside", DeprecationWarning, stacklevel=1)
        return {}

    monkeypatch.setattr(load_command("inspect"), "run", run)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["inspect", str(labels)]) == 0
    assert capsys.readouterr().err == "hilltop: warning: Look here.\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_commands_options_and_values(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (*NAMES, "learning-rate", "min-precision", "safetensors"):
        assert word in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("hilltop sta", {"start", "statistics"}),
        ("hilltop predict --wh", {"--which"}),
        ("hilltop predict --which ", {"best", "last"}),
    ],
)
def test_bash_completes(
    typed: str, offered: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--completion", "bash"]) == 0
    (tmp_path / "complete").write_text(capsys.readouterr().out, encoding="utf-8")
    words = " ".join(f"'{word}'" for word in typed.split(" "))
    code = (
        f"source {tmp_path}/complete; COMP_WORDS=({words}); COMP_CWORD={typed.count(' ')};"
        ' _hilltop; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered


def test_an_unknown_shell_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", "cmd"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_an_extra_is_installed_from_where_this_was(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return told

    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    told: str | None = '{"url": "file:///home/me/my%20clone", "dir_info": {"editable": true}}'
    assert install_command("xlsx") == "pip install -e '/home/me/my clone[xlsx]'"
    told = '{"url": "file:///home/me/clone", "dir_info": {}}'
    assert install_command("xlsx") == "pip install '/home/me/clone[xlsx]'"
    told = None
    assert install_command("xlsx") == "pip install '.[xlsx]'"
