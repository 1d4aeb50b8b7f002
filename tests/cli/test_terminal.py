"""Progress is a bar in a terminal, lines in a log, and nothing where it is over at once."""

from __future__ import annotations

import io
import logging

import pytest

from hilltop.cli.terminal import shown
from hilltop.progress import NEXT_LINE, ProgressLog, logger, say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(seconds: list[float], total: int = 4) -> None:
    times = iter([0.0, *(second for second in seconds for _ in range(3))])
    last = [0.0]

    def clock() -> float:
        last[0] = next(times, last[0])
        return last[0]

    with ProgressLog("features", total, "images", clock=clock) as progress:
        for done in range(1, total + 1):
            progress.update(done)


def test_short_work_leaves_no_line_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(quiet=False, json=False, aside=False, debug=False):
        work([0.1, 0.2, 0.3, 0.4])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("debug", [False, True])
def test_what_matplotlib_says_of_a_read_only_home_is_for_debug(
    debug: bool, caplog: pytest.LogCaptureFixture
) -> None:
    of_package = logging.getLogger("matplotlib")
    before = of_package.level
    with shown(quiet=False, json=False, aside=False, debug=debug):
        of_package.warning("mkdir -p failed for path")
        of_package.error("something broke")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * debug + ["ERROR"]
    assert of_package.level == before


def test_long_work_is_told_from_time_to_time_with_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = iter(range(1000)).__next__
    with (
        shown(quiet=False, json=False, aside=False, debug=False),
        ProgressLog("features", 100, "images", clock=clock) as progress,
    ):
        for done in range(1, 101):
            progress.update(done)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("features: ")
    assert " of 100 images, " in lines[0]
    assert lines[0].endswith(" left")
    assert 3 < len(lines) < 4 * 100 / NEXT_LINE


def test_a_terminal_gets_a_bar_that_goes_away_and_lines_stay_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with (
        shown(quiet=False, json=False, aside=False, debug=False),
        ProgressLog("features", 400, "images") as progress,
    ):
        progress.update(64)
        say("left out: a.jpg")
        progress.update(128)
    assert "128/400 images" in terminal.getvalue()
    assert capsys.readouterr().out == "left out: a.jpg\n"


def test_no_color_means_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    with (
        shown(quiet=False, json=False, aside=False, debug=False),
        ProgressLog("features", 400, "images") as progress,
    ):
        progress.update(64)
    assert "64/400" in terminal.getvalue()
    assert "\x1b[38" not in terminal.getvalue()
    assert "\x1b[3" not in terminal.getvalue()


def test_other_processes_of_torchrun_show_no_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    with shown(quiet=False, json=False, aside=False, debug=False):
        work([5.0, 20.0, 40.0, 60.0])
    assert capsys.readouterr().out == ""


def test_the_library_logs_and_prints_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="hilltop"):
        say("8 heads")
        work([5.0, 20.0, 40.0, 60.0])
    assert caplog.messages[0] == "8 heads"
    assert len(caplog.messages) > 1
    assert capsys.readouterr().out == ""


def test_nothing_is_left_behind() -> None:
    before = list(logger.handlers), logger.level, logger.propagate
    with shown(quiet=False, json=False, aside=False, debug=False):
        say("")
    assert (list(logger.handlers), logger.level, logger.propagate) == before
