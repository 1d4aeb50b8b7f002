"""Help shows every option there is, in groups, with an example that parses."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
import tyro

from hilltop.cli.common import COMMON
from hilltop.cli.main import COMMANDS, START, load_command, main, parse

NAMES = sorted(COMMANDS)


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([name, "--help"]) == 0
    return capsys.readouterr().out


def options(text: str) -> set[str]:
    return set(re.findall(r"^\W*(--[a-z][a-z-]*)", text, re.MULTILINE))


RENAMED = {"--also": "--extra-scores", "--also-names": "--extra-names"}
"""Old names of options, which the parser prints first and our help not at all."""


def parsed_by_tyro(name: str) -> set[str]:
    """Options in the help that the parser itself prints."""
    written = io.StringIO()
    settings = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):
        tyro.cli(load_command(name), args=["--help"], config=settings)
    return {RENAMED.get(one, one) for one in options(written.getvalue())} - {"--help"}


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_what_the_parser_knows_but_for_what_means_nothing_here(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = {"--" + word.replace("_", "-") for word in getattr(load_command(name), "hidden", ())}
    hidden |= {word.replace("--", "--no-") for word in hidden}
    assert options(shown(name, capsys)) == (parsed_by_tyro(name) - hidden) | set(COMMON)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_command_parses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = shown(name, capsys).partition("Example:\n")[2].partition("\n\n")[0]
    words = shlex.split(example.replace("\\\n", " "))
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
    assert "True)" not in text


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


def test_what_is_done_anyway_is_told_beside_the_word_that_stops_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = " ".join(shown("train", capsys).split())
    assert "--no-report Write report.html and curves.png at the end. (done unless" in text


def test_defaults_come_from_the_file_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("epochs: 77\n")
    assert main(["train", "--config", str(path), "--help"]) == 0
    assert "(default: 77)" in capsys.readouterr().out


def test_formats_that_are_only_read_are_not_offered_for_writing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = shown("convert", capsys).partition("--to TEXT")[2].partition("--lossy")[0]
    assert "coco," in written
    assert not {"class_folders", "fasttext", "mulan"} & set(re.findall(r"\w+", written))


def test_what_may_be_given_without_an_option_stands_in_the_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown("reproduce", capsys).startswith("usage: hilltop reproduce [NAMES ...] [options]\n")
    text = shown("resume", capsys)
    assert "  --quiet  No progress" in text  # beside it, not below


def test_old_names_of_options_still_parse(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", "--labels", "none.csv", "--scores", "none.npy", "--out", "a"]
    assert main([*words, "--also", "extra.npz", "--also-names", "names.csv"]) == 1
    assert "none.csv" in capsys.readouterr().err
