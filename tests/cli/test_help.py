"""Help shows every option there is, in groups, with an example that parses."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from hilltop.cli.main import COMMANDS, RENAMED, START, load_command, main, parse
from hilltop.data import ReadOptions
from tests.processes import run

NAMES = sorted(COMMANDS)


def shown(name: str, capsys: pytest.CaptureFixture[str], page: str = "--help") -> str:
    assert main([name, page]) == 0
    return capsys.readouterr().out


def options(text: str) -> set[str]:
    """Options that a page lists."""
    lines = [line for line in text.splitlines() if line.startswith("│")]
    listed = [re.split(r"  +", line.strip("│* "))[0] for line in lines]
    return {word for left in listed for word in left.split() if word.startswith("--")}


def fields_of(command: Any) -> set[str]:
    """Names of all fields of a command and of the dataclasses within it."""
    found: set[str] = set()
    for field in dataclasses.fields(command):
        made = field.default_factory
        inner = None if made is dataclasses.MISSING else made()
        found |= fields_of(inner) if dataclasses.is_dataclass(inner) else {field.name}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_command_stands_on_one_of_its_pages(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = load_command(name)
    listed = options(shown(name, capsys) + shown(name, capsys, "--help-labels"))
    short = {"every": "all", "show": "list", "for_": "for", "import_": "import"}
    renamed = {
        "ask_average": "ema_teacher", "head_start": "bias_init", "train_from": "freeze_below",
        "report": "no_report", "ema_ramp": "no_ema_ramp",
    }  # fmt: skip
    fields = fields_of(command) - {"loss_options"} - set(getattr(command, "hidden", ()))
    wanted = {(short | renamed).get(field, field).replace("_", "-") for field in fields}
    assert {f"--{option}" for option in wanted} <= listed


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_command_parses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = shown(name, capsys).partition("Example: ")[2].partition("\n\n")[0]
    words = shlex.split(example)
    assert words[:2] == ["hilltop", name]
    assert isinstance(parse(words[1:]), load_command(name))


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_the_page_and_hides_how_it_is_built(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(name, capsys)
    assert max(map(len, text.splitlines())) <= 100
    assert "None" not in text
    assert "run-options" not in text
    assert "default: True" not in text


def test_options_of_label_files_have_a_page_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_labels = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(ReadOptions)}
    text = shown("train", capsys)
    assert options(text) & of_labels == {"--unlisted"}
    assert "--help-labels" in text
    assert len(text.splitlines()) <= 104  # two screens
    assert options(shown("train", capsys, "--help-labels")) == {*of_labels, "--format"}


def test_every_command_stands_on_the_first_page() -> None:
    assert set(re.findall(r"^  hilltop (\w+)", START, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", ["compare", "reproduce"])
def test_options_of_a_single_run_are_not_shown_where_many_are_made(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not {"--loss", "--seed", "--pseudo-label", "--no-report"} & options(shown(name, capsys))


def test_a_hidden_option_says_what_to_use_instead(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--labels", "a", "--val-labels", "b", "--seed", "3"]) == 2
    assert "use --seeds" in capsys.readouterr().err


def test_what_is_done_by_default_is_shown_as_the_option_that_stops_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown("train", capsys)
    assert re.search(r"--no-report +Do not write report.html\.", text)
    assert not {"--report", "--ema-ramp"} & options(text)
    assert parse(["train", "--no-report"]).run_options.report is False


def test_formats_that_are_only_read_are_not_offered_for_writing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = shown("convert", capsys).partition("--to STR")[2].partition("--lossy")[0]
    assert "coco," in written
    assert not {"class_folders", "fasttext", "mulan"} & set(re.findall(r"\w+", written))


def test_labels_may_be_given_without_an_option() -> None:
    for words in (["train"], ["audit", "--out", "a"]):
        command, *rest = words
        assert parse([command, "a.csv", *rest]) == parse([command, "--labels", "a.csv", *rest])


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["train", "--lr", "0.5"], "learning_rate", 0.5),
        (["train", "--output", "o"], "out", Path("o")),
        (["predict", "r", "--output", "o"], "out", Path("o")),
    ],
)
def test_short_names_that_people_type(words: list[str], field: str, value: Any) -> None:
    command = parse(words)
    assert getattr(getattr(command, "run_options", command), field, None) == value or (
        getattr(command, field) == value
    )


OLD = {
    "--r": ["simulate", "l.csv", "--out", "o", "--r", "0.5"],
    "--train-from": ["train", "--train-from", "layer4"],
    "--head-start": ["train", "--head-start", "default"],
    "--ask-average": ["train", "--ask-average"],
    "--plant": ["review", "a", "--plant", "3"],
    "--also": ["audit", "l.csv", "--out", "o", "--also", "s.npz"],
    "--also-names": ["audit", "l.csv", "--out", "o", "--also-names", "n.csv"],
    "--renames": ["inspect", "l.csv", "--renames", "m.csv"],
    "--write-renames": ["inspect", "l.csv", "--write-renames", "m.csv"],
    "--none-class": ["inspect", "l.csv", "--none-class", "none"],
    "--confidence-cut": ["inspect", "l.csv", "--confidence-cut=0.5"],
    "--blank": ["inspect", "l.csv", "--blank", "absent"],
    "--label-column": ["inspect", "l.csv", "--label-column", "tags"],
    "--tensorboard": ["train", "l.csv", "--tensorboard"],
}


@pytest.mark.parametrize("old", RENAMED)
def test_old_names_of_options_still_parse_and_tell_the_new_one(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = [re.sub(f"^{old}(?==|$)", RENAMED[old], word) for word in OLD[old]]
    assert parse(OLD[old]) == parse(new)
    assert capsys.readouterr().err == f"hilltop: {old} is deprecated; use {RENAMED[old]}.\n"


@pytest.mark.parametrize("name", NAMES)
def test_help_is_as_narrow_as_the_terminal_and_in_running_text(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for panel in shown(name, capsys).split("╭")[1:]:
        more = [line for line in panel.splitlines() if line.startswith("│       ")]
        assert len({len(line[1:]) - len(line[1:].lstrip()) for line in more}) <= 1
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, shown(name, capsys).splitlines())) <= 60


def test_help_may_be_asked_for_by_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "queue"]) == 0
    assert capsys.readouterr().out == shown("queue", capsys)
    assert main(["help"]) == 0
    assert capsys.readouterr().out == START
    assert main(["help", "statistix"]) == 2
    assert "Did you mean 'statistics'?" in capsys.readouterr().err


def test_usage_names_the_labels_and_defaults_of_zero_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown("train", capsys)
    assert text.startswith("Usage: hilltop train [OPTIONS] LABELS\n\nTrain")
    assert re.search(r"--seed INT .*\[default: 0\]", text)


def test_help_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys\nfrom hilltop.cli.main import COMMANDS, main\n"
        "for name in COMMANDS:\n    main([name, '--help'])\n"
        "print({'torch', 'matplotlib', 'scipy'} & set(sys.modules))"
    )
    assert run("-c", code).splitlines()[-1] == "set()"
