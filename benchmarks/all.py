"""Runs every benchmark in turn, each in a process of its own, and says how long each took.

With --save the rows go to results.csv, and tables and figures of docs/benchmarks.md are made anew.
Run it with: python benchmarks/all.py [--quick] [--save]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from results import PATH, parser

SCRIPTS = (
    "losses",
    "observation",
    "metrics",
    "labels",
    "audit",
    "input_path",
    "training",
    "growth",
    "side_by_side",
    "peaks",
)


def main() -> None:
    """Run them all; a script that fails is named at the end, the others run all the same."""
    options = parser(__doc__).parse_args()
    keeps = options.save and not options.quick
    if keeps:
        PATH.unlink(missing_ok=True)  # rows of questions that are no longer asked would stay
    flags = [flag for flag in ("--save", "--quick") if getattr(options, flag[2:])]
    failed = [name for name in SCRIPTS if not run(name, *flags)]
    if keeps:
        failed += [name for name in ("plots", "page") if not run(name)]
    if failed:
        sys.exit(f"These benchmarks failed: {', '.join(failed)}.")


def run(name: str, *flags: str) -> bool:
    """Run one script, and return whether it worked."""
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    script = Path(__file__).with_name(f"{name}.py")
    done = subprocess.run([sys.executable, str(script), *flags], check=False)
    print(f"== {name} took {time.perf_counter() - start:.0f} s\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
