"""The notation of methods and levels."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import LOSSES
from hilltop.studies.compare import Level, Method, parse_level, parse_levels, parse_methods


@pytest.mark.parametrize(
    ("text", "loss", "options", "pseudo_label"),
    [
        ("hill", "hill", {}, None),
        ("splc:tau=0.65", "splc", {"tau": 0.65}, None),
        ("splc:tau=0.65:base=asl", "splc", {"base": "asl", "tau": 0.65}, None),
        ("splc:start_epoch=3", "splc", {"start_epoch": 3}, None),
        ("bce+pseudo_label", "bce", {}, 0.5),
        ("hill:margin=5e-1+pseudo_label:0.6", "hill", {"margin": 0.5}, 0.6),
    ],
)
def test_a_method_is_a_loss_with_options_and_perhaps_a_second_stage(
    text: str, loss: str, options: dict[str, object], pseudo_label: float | None
) -> None:
    method = Method.parse(text)
    assert (method.loss, dict(method.options), method.pseudo_label) == (loss, options, pseudo_label)
    assert Method.parse(str(method)) == method


def test_two_ways_of_writing_a_method_are_one_method() -> None:
    assert Method.parse("splc:tau=0.70:base=asl") == Method.parse("splc:base=asl:tau=.7")
    assert len(parse_methods("bce, hill,bce")) == 2


def test_folder_names_are_allowed_everywhere_and_tell_methods_apart() -> None:
    texts = ["splc", "splc:tau=0.5", "splc:tau=0.5+pseudo_label", "splc:tau=0.5+pseudo_label:0.4"]
    folders = [Method.parse(text).folder for text in texts]
    assert len(set(folders)) == len(texts)
    assert not set("".join(folders)) & set('<>:"/\\|?* ')


def test_all_stands_for_every_registered_loss_and_pseudo_labels() -> None:
    assert {str(method) for method in parse_methods("all")} == {*LOSSES, "bce+pseudo_label"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hil", "Unknown loss 'hil'. Did you mean 'hill'?"),
        ("splc:tau", "'tau' should be an option with a value"),
        ("splc:tau=[1, 2]", "the value of tau must be a number or a word"),
        ("splc:tau=2", "tau"),
        ("bce+splc", "after + comes pseudo_label"),
        ("bce+pseudo_label:high", "the threshold must be a number, but got 'high'"),
        ("bce+pseudo_label:2", "the threshold must be between 0 and 1, but is 2"),
        (" , ", "at least one method"),
    ],
)
def test_what_is_wrong_with_a_method_is_said_in_words(text: str, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_methods(text)
    assert words in str(caught.value)


def test_an_option_that_a_loss_does_not_have_is_named() -> None:
    with pytest.raises(ArgumentTypeError, match=r"no option 'taus'\. Did you mean 'tau'"):
        Method.parse("splc:taus=0.6")


def test_levels_have_the_ratios_of_the_paper() -> None:
    assert [level.r for level in parse_levels(None)] == ["0.5", "0.8", "1"]
    assert parse_level("r=0.3").r == "0.3"


def test_a_reduced_file_takes_the_place_of_the_rule() -> None:
    levels = parse_levels("0.4,single", ["0.4=left.txt", "mine=mine.csv"])
    assert levels == (
        Level("0.4", "40% labels left", labels=Path("left.txt")),
        parse_level("single"),
        Level("mine", "mine", labels=Path("mine.csv")),
    )
    assert [level.name for level in parse_levels(None, ["mine=mine.csv"])] == ["mine"]


@pytest.mark.parametrize(
    ("keep", "reduced", "words"),
    [
        ("0.5", [], "keep knows 0.75, 0.4, single and r=<ratio>, but got '0.5'"),
        ("singel", [], "Did you mean 'single'?"),
        ("r=2", [], "r must be at least 0 and at most 1, but got 2.0"),
        ("r=x", [], "r must be a number between 0 and 1, but got 'x'"),
        ("", [], "at least one level"),
        (None, ["left.txt"], "as in 0.4=reduced.txt, but got 'left.txt'"),
        (None, ["../x=left.txt"], "a name of letters and digits"),
        (None, ["complete=left.txt"], "but got 'complete=left.txt'"),
    ],
)
def test_what_is_wrong_with_a_level_is_said_in_words(
    keep: str | None, reduced: list[str], words: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_levels(keep, reduced)
    assert words in str(caught.value)
