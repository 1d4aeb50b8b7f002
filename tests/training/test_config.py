"""Configurations: from files, from the command line, and what is wrong with them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hilltop.cli.main import main, parse
from hilltop.errors import ConfigError
from hilltop.training import TrainConfig


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_file_and_its_configuration_say_the_same(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.yaml",
        "labels: l.csv\nloss: splc\nloss_options: {tau: 0.65}\nlearning-rate: 1e-3\n"
        "model: {model: mlp, hidden: 64}\nreading: {unlisted: unknown}\nema: 0\n",
    )
    config = TrainConfig.from_file(path)
    assert config.loss_options == {"tau": 0.65}
    assert config.learning_rate == 1e-3
    assert (config.model.model, config.model.hidden) == ("mlp", 64)
    assert config.reading.unlisted == "unknown"
    assert TrainConfig.from_dict(config.as_dict()) == config


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.yaml", "epohcs: 3\nseed: many\nprecision: 64\nmodel: resnet\naugment: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        TrainConfig.from_file(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert f"{path}: epohcs is not known. Did you mean 'epochs'?" in lines
    assert any("seed cannot be 'many'; expected a whole number" in line for line in lines)
    assert any("precision cannot be 64; expected auto or 32" in line for line in lines)


def test_files_that_are_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such configuration file"):
        TrainConfig.from_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="this is not YAML"):
        TrainConfig.from_file(write(tmp_path / "a.yaml", "a: [1"))
    with pytest.raises(ConfigError, match="expected names and values, but got list"):
        TrainConfig.from_file(write(tmp_path / "b.yaml", "- 1"))


def test_a_number_beyond_all_floats_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", f"learning_rate: 1{'0' * 400}\n")
    with pytest.raises(ConfigError, match=r"learning_rate cannot be 10+; expected a number"):
        TrainConfig.from_file(path)


@pytest.mark.parametrize("last", ["labels: *j", "loss_options: {tau: *j}", "seed: &s [*s]"])
def test_a_file_that_repeats_its_parts_without_end_is_not_read(last: str, tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{one}: &{one} [{', '.join(9 * [f'*{before}'])}]" for before, one in pairwise("abcdefghij")
    ]
    with pytest.raises(ConfigError, match="or repeats its own parts"):
        TrainConfig.from_file(write(tmp_path / "c.yaml", "\n".join([*lines, last])))


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", "epochs: 7\nseed: 5\n")
    parsed = parse(["train", "--config", str(path), "--seed", "9"])
    assert (parsed.run_options.epochs, parsed.run_options.seed) == (7, 9)


def test_what_cannot_work_is_said_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["train", "--labels", "none.csv", "--loss", "hil", "--epochs", "0", "--out", str(out)]
    assert main(words) == 2
    message = capsys.readouterr().err
    for part in (
        "labels: there is no file 'none.csv'.",
        "'hil' is not known. Did you mean 'hill'?",
        "epochs must be at least 1, but got 0",
        "Give one of --images and --features.",
    ):
        assert part in message
    assert not out.exists()


def test_a_folder_in_place_of_a_file_is_said_and_a_file_in_place_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "f.npz", "")
    assert main(["train", "--features", str(tmp_path), "--val-images", str(file)]) == 2
    said = capsys.readouterr().err
    assert "Name the label file: hilltop train LABELS" in said
    assert f"features: {str(tmp_path)!r} is a folder; expected a file." in said
    assert f"val_images: {str(file)!r} is a file; expected a folder." in said


def test_automatic_choices_depend_on_what_is_trained_on() -> None:
    images = TrainConfig(images=Path("d")).resolved()
    features = TrainConfig(features=Path("f.npz")).resolved()
    assert (images.learning_rate, images.ema, images.model.model) == (1e-4, 0.9997, "resnet50")
    assert (features.learning_rate, features.ema, features.model.model) == (None, 0.0, "linear")
    assert features.weight_decay is None, "chosen by cross-validation"
