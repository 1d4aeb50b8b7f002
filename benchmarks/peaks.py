"""Peak memory of every command, as a user starts it: the process and all that it starts.

Samples the resident memory of the process tree five times a second; of the demo also beside busy
loops on the same cores, because what runs ahead of its consumer grows on a slow machine.
Run it with: python benchmarks/peaks.py [--quick] [--save] [--only demo] [--way plain]
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from results import finish, parser
from side_by_side import write_problem
from timing import Row

ROWS, PHOTOS = 4000, 128
STEP_S, CURVE_S = 0.2, 2.0
CURVE = Path(__file__).with_name("demo_memory.csv")
QUESTION, PLAIN, BUSY = "peak memory", "plain", "busy"
WAYS = {PLAIN: "as it is", BUSY: "with a busy loop a core"}
COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "labels.parquet"),
    "statistics": ("statistics", "labels.parquet"),
    "convert": ("convert", "labels.parquet", "labels.csv", "--to", "long", "--lossy"),
    "simulate": ("simulate", "complete.parquet", "--missing-ratio", "0.5", "--out", "left.parquet"),
    "join": ("join", "left.parquet", "val.parquet", "--out", "joined.parquet"),
    "features": ("features", "photos/images", "--weights", "weights.pt", "--out", "seen.npz"),
    "advise": ("advise", "left.parquet"),
    "train": ("train", "--labels", "left.parquet", "--features", "features.npz", "--out", "run"),
    "predict": ("predict", "run", "--features", "features.npz", "--out", "scores.npy"),
    "evaluate": ("evaluate", "scores.npy", "complete.parquet"),
    "queue --for promise": ("queue", "scores.npy", "--for", "promise", "--out", "ask.csv"),
    "export": ("export", "run", "--out", "model.onnx"),
    "compare": (
        *("compare", "--labels", "complete.parquet", "--val-labels", "val.parquet", "--features"),
        *("features.npz", "--methods", "bce,hill", "--keep", "0.4", "--seeds", "0", "--jobs", "2"),
        *("--out", "comparison"),
    ),
    "audit": ("audit", "--labels", "left.parquet", "--features", "features.npz", "--out", "audit"),
    "queue": ("queue", "audit", "--out", "queue.csv"),
    "review audit --static page.html": ("review", "audit", "--static", "page.html"),
    "apply": ("apply", "audit", "--candidates", "--format", "fiftyone", "--out", "applied.json"),
    "demo": ("demo", "--out", "demo"),
}
"""What is run, in this order: later ones need what earlier ones leave."""
LONG = ("features", "compare", "demo")
"""What --quick leaves out."""
BUSY_TOO = ("demo",)
"""What is measured beside busy loops, too: it has readers and drawers of its own."""

Samples = list[tuple[float, float]]


def tree_mib(pid: int) -> float:
    """Resident memory of a process and its descendants, shared pages counted in each of them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has just ended
            children.setdefault(parent, []).append(int(entry.name))
    total, wanted = 0, [pid]
    while wanted:
        one = wanted.pop()
        wanted += children.get(one, [])
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def sample(words: tuple[str, ...], folder: Path) -> Samples:
    """Run a command; return seconds and MiB, sample by sample."""
    began, found = time.perf_counter(), []
    process = subprocess.Popen(
        [sys.executable, "-m", "hilltop", *words], cwd=folder, stdout=subprocess.DEVNULL
    )
    while process.poll() is None:
        found.append((time.perf_counter() - began, tree_mib(process.pid)))
        time.sleep(STEP_S)
    if process.returncode:
        sys.exit(f"{words[0]} failed with code {process.returncode}")
    return found


def write_photos(folder: Path) -> None:
    """Write drawn pictures, and weights that know nothing of them: memory asks for no more."""
    import timm
    import torch

    from hilltop.inputs.synthetic import write_dataset

    write_dataset(folder / "photos", images=PHOTOS, size=448, seed=0)
    torch.save(timm.create_model("resnet50").state_dict(), folder / "weights.pt")


def measure(names: list[str], busy: bool, rows: int) -> Iterator[tuple[str, float, Samples]]:
    """Run commands in turn in a folder of their own, if asked beside a busy loop for each core.

    Yields name, load of the machine before, and samples.
    """
    spin = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(spin) for _ in range(busy * (os.cpu_count() or 1))]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            write_problem(Path(scratch), rows)
            if "features" in names:
                write_photos(Path(scratch))
            for name in names:
                yield name, os.getloadavg()[0], sample(COMMANDS[name], Path(scratch))
    finally:
        for loop in loops:
            loop.kill()


def as_row(way: str, name: str, load: float, samples: Samples) -> Row:
    """A command in one way; there is nothing to compare its time with."""
    taken = 1e3 * samples[-1][0]
    row = Row(QUESTION, way, name, name, taken, taken, 1.0, 1.0, 1.0)
    return replace(row, peak_mib=round(max(mib for _, mib in samples)), note=f"{load:.1f}")


def save_curve(way: str, samples: Samples) -> None:
    """Keep the demo's memory over time, the most within every two seconds, beside other ways'."""
    with CURVE.open(newline="") if CURVE.is_file() else io.StringIO() as file:
        kept = [row for row in list(csv.reader(file))[1:] if row[0] != way]
    most: dict[int, float] = {}
    for seconds, mib in samples:
        at = int(seconds // CURVE_S)
        most[at] = max(mib, most.get(at, 0.0))
    kept += [[way, f"{at * CURVE_S:.0f}", f"{mib:.0f}"] for at, mib in most.items()]
    with CURVE.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["way", "seconds", "mib"], *kept])


def main() -> None:
    """Measure, print, keep."""
    made = parser(__doc__)
    made.add_argument("--way", choices=WAYS, help="one way to measure; both without it")
    made.add_argument("--only", choices=COMMANDS, help="one command that needs no other's files")
    made.add_argument("--without", choices=COMMANDS, help="all commands but this one")
    options = made.parse_args()
    names = [options.only] if options.only else list(COMMANDS)
    names = [name for name in names if name != options.without]
    rows = 400 if options.quick else ROWS
    if options.quick:
        names = [name for name in names if name not in LONG]
    ways = [options.way] if options.way else [PLAIN] if options.quick else list(WAYS)
    for way in ways:
        chosen = [name for name in names if way == PLAIN or name in BUSY_TOO]
        for name, load, samples in measure(chosen, way == BUSY, rows):
            # At once: a run that is cut short has measured what it has.
            finish([as_row(WAYS[way], name, load, samples)], options, ["torch"])
            if options.save and name == "demo" and not options.quick:
                save_curve(WAYS[way], samples)


if __name__ == "__main__":
    main()
