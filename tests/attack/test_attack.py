"""Every attack runs and holds, a few tries each; ``make attack`` tries harder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import COMMANDS, load_command
from hilltop.cli.outputs import WRITTEN
from tests.attack.__main__ import ATTACKS
from tests.attack.outcome import Outcome
from tests.attack.overwriting import WRITERS
from tests.attack.places import fresh_places


@pytest.mark.slow
@pytest.mark.parametrize("attack", list(ATTACKS), ids=lambda attack: attack.__name__)
def test_the_attack_does_not_get_through(
    attack: Callable[[Path, int], Outcome], tmp_path: Path
) -> None:
    found = attack(tmp_path, max(1, ATTACKS[attack] // 10))
    assert found.tries
    assert found.broken == []


def test_no_command_that_writes_is_forgotten() -> None:
    writes = [
        name
        for name in COMMANDS
        if {item.name for item in fields(load_command(name))} & set(WRITTEN)
    ]
    assert set(writes) == {words[0] for words in WRITERS}


@pytest.mark.slow
def test_an_audit_reads_the_labels_of_the_place_it_is_tried_in(tmp_path: Path) -> None:
    for _ in fresh_places(tmp_path, 2):
        assert AuditFolder.read(Path("audit")).labels == Path("left.parquet").resolve()


def test_what_does_not_hold_is_counted() -> None:
    found = Outcome("something")
    found.expect(True, "fine")
    found.expect(False, "it broke")
    assert (found.tries, found.broken) == (2, ["it broke"])
    assert "BROKEN 1" in found.line()
