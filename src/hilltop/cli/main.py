"""The ``hilltop`` command: parsing, exit codes and the printing of errors."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import hilltop
from hilltop.checks import check_choice, did_you_mean
from hilltop.cli.terminal import shown
from hilltop.errors import (
    AmbiguousInputError,
    ArgumentError,
    ArgumentTypeError,
    ConfigError,
    HilltopError,
    MissingExtra,
)

SHELLS = ("bash", "zsh", "fish")
OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

# Where each subcommand lives; only the module of the one that is asked for is imported.
COMMANDS = {
    "start": "hilltop.cli.start:Start",
    "inspect": "hilltop.cli.labels:Inspect",
    "convert": "hilltop.cli.labels:Convert",
    "join": "hilltop.cli.join:Join",
    "simulate": "hilltop.cli.simulate:Simulate",
    "statistics": "hilltop.cli.labels:Statistics",
    "features": "hilltop.cli.features:Features",
    "train": "hilltop.cli.train:Train",
    "resume": "hilltop.cli.train:Resume",
    "predict": "hilltop.cli.predict:Predict",
    "evaluate": "hilltop.cli.evaluate:Evaluate",
    "export": "hilltop.cli.evaluate:Export",
    "advise": "hilltop.cli.advise:Advise",
    "compare": "hilltop.cli.compare:Compare",
    "reproduce": "hilltop.cli.reproduce:Reproduce",
    "audit": "hilltop.cli.audit:Audit",
    "queue": "hilltop.cli.audit:Queue",
    "review": "hilltop.cli.review:Review",
    "estimate": "hilltop.cli.audit:Estimate",
    "apply": "hilltop.cli.review:Apply",
    "demo": "hilltop.cli.demo:Demo",
}
LEAST = {
    "seed": 0, "workers": 0, "draws": 1, "jobs": 1, "folds": 2, "top": 1, "page": 0,
    "image_size": 1, "shard": 1, "number": 1, "plan": 1, "port": 0, "gold": 1, "most_classes": 0,
}  # fmt: skip
"""Least values of whole numbers that commands take."""
TOO_LARGE = 2**63
OUT_OF_MEMORY = (
    "There is not enough memory for this. Free some, or use a machine with more; --dry-run of"
    " audit, features and train says how much they take."
)
HELP_WIDTH = 100
"""Columns of the help, where a terminal is not narrower."""
RENAMED = {
    "--blank": "--empty", "--confidence-cut": "--label-threshold",
    "--label-column": "--label-columns", "--renames": "--class-map",
    "--none-class": "--background-class", "--write-renames": "--write-class-map",
    "--r": "--missing-ratio", "--train-from": "--freeze-below", "--head-start": "--bias-init",
    "--ask-average": "--ema-teacher", "--plant": "--gold", "--also": "--extra-scores",
    "--also-names": "--extra-names", "--tensorboard": "--logger=tensorboard",
}  # fmt: skip
"""Old names of options, with their new ones."""
START = """Hilltop: multi-label learning when annotators left labels out.

start here
  hilltop start PHOTOS LABELS            tags for every photo, and the labels that were forgotten
  hilltop demo                           all of it on drawn pictures, in minutes
  hilltop inspect LABELS                 what is in a label file, and what looks wrong
  hilltop advise LABELS --features FILE  which loss suits them, and why

labels
  hilltop convert IN OUT               the same labels in another format
  hilltop join A B --out FILE          labels of several sources that looked for different classes
  hilltop simulate LABELS ...          drop labels on purpose, to try methods out
  hilltop statistics LABELS ...        the paper's table of data set statistics

models
  hilltop features DIR --weights timm --out FILE  what a pretrained network sees in images
  hilltop train LABELS --images DIR               train, with progress, metrics and a report
  hilltop resume RUN                              go on with a run that was stopped
  hilltop predict RUN --images DIR --out FILE     tags for new images
  hilltop evaluate SCORES LABELS                  metrics of scores
  hilltop predict RUN --promise recall=0.9 ...    tags with a guaranteed recall or precision
  hilltop export RUN --to onnx --out FILE         the model for use elsewhere

methods
  hilltop compare --labels LABELS --val-labels ...  methods side by side, over missing ratios
  hilltop reproduce NAME ... | --all                the tables and figures of the paper

audit
  hilltop audit LABELS ... --out DIR           rank likely missing labels, by features or images
  hilltop queue DIR --out FILE                 the pairs to ask about, by what answers are for
  hilltop review DIR                           a page where people confirm or reject them
  hilltop estimate DIR                         how many are missing, from a reviewed random sample
  hilltop apply DIR --out FILE                 the labels with the answers, in their own format

Every command has --help, with an example, --json for scripts, --quiet and --debug.
hilltop --completion bash (or zsh, fish) prints what completes them; hilltop --version.
"""


@dataclass(frozen=True)
class CommonOptions:
    """What was said of the options of every command, and the other words."""

    words: tuple[str, ...]
    json: bool
    quiet: bool
    debug: bool

    @classmethod
    def split(cls, given: Sequence[str]) -> CommonOptions:
        """Take the options of every command out of a command line; ``--`` ends them."""
        at = list(given).index("--") if "--" in given else len(given)
        options = ("--json", "--quiet", "--debug")
        rest = [word for word in given[:at] if word not in options] + list(given[at:])
        return cls(tuple(rest), *(option in given[:at] for option in options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code."""
    _wait_passively()
    _mend_streams()
    given = CommonOptions.split(sys.argv[1:] if arguments is None else arguments)
    try:
        _run(given)
    except HilltopError as error:
        if given.debug:
            raise
        print(f"hilltop: {error}{_command_to_try(error, given.words)}", file=sys.stderr)
        usage = isinstance(
            error, AmbiguousInputError | ArgumentError | ArgumentTypeError | ConfigError
        )
        return WRONG_USAGE if usage else FAILED
    except KeyboardInterrupt:
        print("hilltop: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        sys.stderr.close()
        return OK
    except OSError as error:
        if given.debug:
            raise
        named = f"{error.filename}: " if error.filename else ""
        room = " Make room on the disk." if error.errno == errno.ENOSPC else ""
        print(f"hilltop: {named}{error.strerror or error}.{room}", file=sys.stderr)
        return FAILED
    except (MemoryError, RuntimeError) as error:
        if given.debug or not _is_out_of_memory(error):
            raise
        print(f"hilltop: {OUT_OF_MEMORY}", file=sys.stderr)
        return FAILED
    return OK


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out; torch says so by a RuntimeError, of a GPU or of the machine."""
    words = ("out of memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(one in str(error) for one in words)


def _command_to_try(error: HilltopError, words: Sequence[str]) -> str:
    """The command that was given, with answers to the questions that a label file leaves open."""
    questions: Any = getattr(error, "ambiguous", None)
    if questions is None or not questions.answers:
        return ""
    from hilltop.data.layout import option_words

    answers = option_words(type(questions.options)(), **questions.answers)
    again = _without_options(words, answers)
    try:
        parse([*again, *answers])
    except HilltopError:  # this command takes no such options, but all that reads labels has them
        again = ["inspect", str(questions.path)]
    return f" For example: {shlex.join(['hilltop', *again, *answers])}"


def _without_options(words: Sequence[str], answers: Sequence[str]) -> list[str]:
    """The words of a command without options that are about to be given again."""
    named = {word.partition("=")[0] for word in answers if word.startswith("--")}
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.partition("=")[0] in named:
            skip = "=" not in word and word != "--merge-names"
        else:
            kept.append(word)
    return kept


def _run(given: CommonOptions) -> None:
    """Run the command, its help or the completion of all; print its result where JSON is asked."""
    name, *rest = given.words or ("--help",)
    if name == "help" and rest:  # as git and others have it
        name, rest = rest[0], ["--help"]
    if name in ("-h", "--help", "help"):
        print(START, end="", flush=True)
    elif given.words == ("--version",):
        print(f"hilltop {hilltop.__version__}", flush=True)
    elif name == "--completion":
        from hilltop.cli.parser import completion_script

        shell = check_choice("--completion", rest[0] if rest else "", SHELLS)
        commands = {name: load_command(name) for name in COMMANDS}
        print(completion_script(commands, shell), end="")
    elif {"-h", "--help", "--help-labels"} & set(rest):
        command = load_command(name)
        from hilltop.cli.parser import render_help

        width = min(HELP_WIDTH, shutil.get_terminal_size((HELP_WIDTH, 24)).columns)
        print(render_help(command, name, labels="--help-labels" in rest, width=width), end="")
    else:
        answers = getattr(load_command(name), "prints_answer", False)
        silent = given.quiet and (given.json or not answers)
        with shown(quiet=given.quiet, json=given.json, aside=answers, debug=given.debug):
            result = run_command(given.words, silent=silent)
        if given.json and result is not None:
            print(json.dumps(result, indent=2, default=str))


def _mend_streams() -> None:
    """Open streams that the caller has closed, and let any text be printed in any encoding."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (as long as the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _wait_passively() -> None:
    """Have threads of torch sleep while they wait, unless the user wants otherwise.

    Spinning threads of several processes take the cores from those that work. It is read when
    torch is imported, which no command has done yet.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def load_command(name: str) -> Any:
    """Return the dataclass of a command; its packages are imported only now."""
    if name not in COMMANDS:
        raise ArgumentError(
            f"There is no command {name!r}.{did_you_mean(name, COMMANDS)}"
            f" Commands: {', '.join(COMMANDS)}."
        )
    module, _, kind = COMMANDS[name].partition(":")
    try:
        importlib.import_module("cyclopts")  # parses every command
        return getattr(importlib.import_module(module), kind)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"`hilltop {name}`", error.name, "all") from None


def parse(words: Sequence[str]) -> Any:
    """Turn words into an object of a command, ready to run."""
    name, *rest = CommonOptions.split(words).words
    command = load_command(name)
    from hilltop.cli.parser import parse_words

    return parse_words(command, [_renamed(word) for word in rest], name=name)


def _renamed(word: str) -> str:
    """A word of a command, under its new name if it is an option that was renamed."""
    option, equals, value = word.partition("=")
    new = RENAMED.get(option)
    if new is None:
        return word
    print(f"hilltop: {option} is deprecated; use {new}.", file=sys.stderr)
    return f"{new}{equals}{value}"


def check_options(command: Any) -> None:
    """Raise if a whole number is out of its bounds, or an option would have no effect.

    A command may have ``needs``, for an option those that belong to it: "static", or "for_=promise"
    where it must have that value.
    """
    for name, low in LEAST.items():
        value = getattr(command, name, None)
        if isinstance(value, int) and not low <= value < TOO_LARGE:
            bound = f"at least {low}" if value < low else "less than 2 to the power of 63"
            raise ArgumentError(f"{_option(name)} must be {bound}, but got {value}.")
    usual = {item.name: item.default for item in fields(command)}
    for needed, options in getattr(command, "needs", {}).items():
        name, _, value = needed.partition("=")
        given = getattr(command, name)
        if given == value if value else given != usual[name]:
            continue
        for option in options:
            if getattr(command, option) != usual[option]:
                whole = f"{_option(name)} {value}".rstrip()
                raise ArgumentError(f"{_option(option)} belongs to {whole}, which was not given.")


def _option(name: str) -> str:
    """A field of a command as it is typed."""
    return "--" + name.strip("_").replace("_", "-")


def use_device(device: str) -> None:
    """Let torch see the device that was asked for, and no other; it is not at work yet."""
    if device == "auto":
        return
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise ArgumentError(f"--device must be auto, cpu, cuda or cuda:1, but got {device!r}.")
    if kind == "cpu" or number:
        os.environ["CUDA_VISIBLE_DEVICES"] = number
    if kind == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ArgumentError(f"--device {device}: torch finds no such GPU. Drop it, or use cpu.")


def run_command(words: Sequence[str], *, silent: bool = False) -> dict[str, Any] | None:
    """Run a command and return what it found; None from all processes but the first.

    Args:
        words: What stands behind ``hilltop`` on its command line.
        silent: Print nothing.
    """
    command = parse(words)
    check_options(command)
    use_device(getattr(command, "device", "auto"))
    with contextlib.ExitStack() as stack:
        if silent:
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        return command.run()  # type: ignore[no-any-return]
