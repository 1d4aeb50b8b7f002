"""The command, sent a signal at a given moment of its own, so that no clock decides when.

``python stopped_worker.py SIGINT 200 0 train ...`` interrupts it at its 200th step of training;
``SIGKILL 20 7 train ...`` kills it at the 7th file of the run folder that it opens, renames or
removes after 20 steps.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from torch.optim.optimizer import register_optimizer_step_post_hook

from hilltop.cli.main import main

TOUCHED = ("open", "os.rename", "os.remove")


class Stopper:
    """Counts steps first and files then, and sends the signal at the last of them."""

    def __init__(self, name: str, steps: int, files: int, folder: Path) -> None:
        self.number = signal.Signals[name]
        self.steps, self.files, self.folder = steps, files, str(folder)

    def step(self, *_: object) -> None:
        self.steps -= 1
        if self.steps == 0 and not self.files:
            os.kill(os.getpid(), self.number)

    def event(self, name: str, details: tuple[object, ...]) -> None:
        if self.steps > 0 or name not in TOUCHED or self.folder not in str(details[0]):
            return
        self.files -= 1
        if self.files == 0:
            os.kill(os.getpid(), self.number)


if __name__ == "__main__":
    _, name, steps, files, *words = sys.argv
    given = words[words.index("--out") + 1] if "--out" in words else words[1]
    stopper = Stopper(name, int(steps), int(files), Path(given))
    register_optimizer_step_post_hook(stopper.step)
    sys.addaudithook(stopper.event)
    sys.exit(main(words))
