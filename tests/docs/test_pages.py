"""Every example on the site runs: Python as it stands, commands on small generated files."""

from __future__ import annotations

import csv
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop import losses
from hilltop.audit.decisions.store import Answer, DecisionStore, now
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import keep_plan
from hilltop.cli.main import COMMANDS, main, parse
from hilltop.losses import LOSSES, build
from tests.docs.pages import PAGES, ROOT, blocks, commands, mentions, name
from tests.docs.small_data import write_small_data

# So that a command takes seconds; nothing that a page says about it changes.
QUICK = {
    "advise": "--draws 1",
    "compare": "--epochs 1 --batch-size 64",
    "train": "--epochs 1 --batch-size 64",
}
QUICK["start"] = "--weights weights.pth --backbone test_resnet"
QUICK_IMAGES = "--model test_resnet --image-size 32 --workers 0"
# They try several losses on features.
LONG = {"docs/choosing.md": pytest.mark.slow}
# These draw thousands of pictures, and have tests of their own.
ONLY_PARSED = {"demo", "reproduce"}

PACKAGE = ROOT / "src" / "hilltop"
TEXTS = {name(path): path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *PAGES]}
WITH_PYTHON = [page for page, text in TEXTS.items() if blocks(text, "python")]
WITH_COMMANDS = [page for page, text in TEXTS.items() if commands(text)]
MENTIONED = sorted({line for text in TEXTS.values() for line in mentions(text)})
READMES = [ROOT / "CONTRIBUTING.md", ROOT / "reproduction" / "README.md"]
IN_READMES = sorted({line for path in READMES for line in commands(path.read_text())})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_small_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words_of(line: str) -> list[str]:
    """Words behind ``hilltop``, which torchrun may start."""
    words = shlex.split(line)
    return words[words.index("hilltop") + 1 :]


def answer_first_candidate(audit: Path) -> None:
    """Say yes to one pair, as a reviewer would on the page."""
    with (audit / "candidates.csv").open(newline="", encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    answer = Answer(
        "1", "1", "me", now(), first["image"], first["class"], "present", "ranked",
        float(first["probability"]),
    )  # fmt: skip
    store = DecisionStore(AuditFolder.read(audit).decisions)
    store.add([answer])
    store.close()


def run(line: str) -> None:
    """Run a line of a page, or look up what it names."""
    first, *rest = shlex.split(line)
    if first == "make":
        assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    elif first == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        named = re.findall(r"\[(\w+)\]", line)
        assert set(named) <= set(extras["optional-dependencies"]), line
    else:
        run_command(words_of(line))


def run_command(words: list[str]) -> None:
    command = words[0]
    quick = QUICK.get(command, "").split()
    if command == "train" and "--images" in words:
        quick += QUICK_IMAGES.split()
    made = parse([*words, *quick])
    if command in ONLY_PARSED and "--list" not in words:
        return
    if command == "review" and "--queue" in words:
        keep_plan(AuditFolder.read(made.folder), made.queue)
        return
    if command == "review" and "--static" not in words:
        answer_first_candidate(made.folder)
        return
    assert main([*words, *quick]) == 0, words


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_on_a_page_runs_from_top_to_bottom(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for registered in ("_builders", "references"):  # a page may register one
        monkeypatch.setattr(LOSSES, registered, dict(getattr(LOSSES, registered)))
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(TEXTS[page], "python"):
        exec(compile(block, page, "exec", dont_inherit=True), names)


def test_the_shards_of_a_ranking_run_on_a_dask_cluster() -> None:
    pytest.importorskip("distributed")
    page = TEXTS["docs/scaling.md"]
    names: dict[str, Any] = {"__name__": "__main__"}
    (plain,) = (block for block in blocks(page, "python") if "rank_shard" in block)
    exec(compile(plain, "page", "exec", dont_inherit=True), names)
    alone = names["whole"]
    (dask,) = blocks(page, "py")
    exec(compile(dask, "page", "exec", dont_inherit=True), names)
    assert names["whole"] is not alone
    np.testing.assert_array_equal(names["whole"].missing, alone.missing)
    np.testing.assert_array_equal(names["whole"].wrong, alone.wrong)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=LONG.get(page, ())) for page in WITH_COMMANDS]
)
def test_commands_on_a_page_run_one_after_the_other(page: str, folder: Path) -> None:
    for line in commands(TEXTS[page]):
        run(line)


@pytest.mark.parametrize("line", [*MENTIONED, *IN_READMES])
def test_a_command_in_the_text_exists_with_its_options(line: str) -> None:
    if line.startswith("make "):
        run(line)
        return
    words = words_of(line.partition(" ...")[0].partition("#")[0])
    if len(words) == 1 or words[-1].endswith(" "):
        assert words[0] in COMMANDS
    else:
        parse(words)


def test_there_are_examples_to_run() -> None:
    assert len(WITH_PYTHON) >= 4
    assert len(WITH_COMMANDS) >= 6
    assert len(MENTIONED) >= 5


@pytest.mark.parametrize("loss", list(LOSSES))
def test_a_loss_is_imported_by_the_name_it_is_registered_under(loss: str) -> None:
    builder = getattr(losses, loss)
    assert type(builder()) is type(build(loss))


def test_files_on_the_page_on_the_design_exist() -> None:
    named = re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", TEXTS["docs/design.md"])
    assert len(named) > 12
    missing = [path for path in named if not any((at / path).exists() for at in (PACKAGE, ROOT))]
    assert not missing
