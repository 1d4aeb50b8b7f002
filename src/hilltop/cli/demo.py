"""``demo``: the whole story on pictures that the project draws itself."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from hilltop.cli.parser import Out


@dataclass(frozen=True)
class Demo:
    """Draw pictures, leave labels out, train with several losses and write a report.

    Example: hilltop demo --out demo
    """

    _: KW_ONLY
    out: Out = Path("demo")
    """Folder for pictures, runs and report.html; an older demo in it is replaced."""
    seed: int = 0
    """Seed of pictures, removed labels and training."""

    def run(self) -> dict[str, Any]:
        """Run it."""
        from hilltop.studies.demo import run_demo

        page = run_demo(self.out, seed=self.seed)
        return {"report": page}
