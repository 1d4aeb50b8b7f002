"""results.csv: one row for each contender, with hardware, versions, commit and date."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
from dataclasses import asdict, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from timing import Row, show

PATH = Path(__file__).with_name("results.csv")
KEY = ("question", "size", "contender", "baseline", "hardware")
CONTEXT = ("hardware", "versions", "commit", "date")


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(description=doc.partition("\n")[0])
    made.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results.csv")
    made.add_argument("--quick", action="store_true", help="small sizes only; nothing is kept")
    return made


def finish(rows: list[Row], options: argparse.Namespace, packages: list[str]) -> None:
    """Print the rows and, with ``--save``, put them into results.csv."""
    show(rows)
    if options.save and not options.quick:
        save(rows, packages)


def save(rows: list[Row], packages: list[str], path: Path = PATH) -> None:
    """Put rows into the file; one replaces an older one of the same question and hardware."""
    context = dict(
        zip(CONTEXT, (hardware(), _versions(packages), _commit(), _today()), strict=True)
    )
    new = [{**asdict(row), **context} for row in rows]
    measured = {_key(row) for row in new}
    old = [row for row in load(path) if _key(row) not in measured]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*(field.name for field in fields(Row)), *CONTEXT])
        writer.writeheader()
        writer.writerows([*old, *new])


def load(path: Path = PATH) -> list[dict[str, str]]:
    """Return the rows of the file as they are written there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def hardware() -> str:
    """Name of the processor, and how many cores there are."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def installed(package: str) -> str | None:
    """Version of a package, or None if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _versions(packages: list[str]) -> str:
    found = {package: installed(package) for package in packages}
    return " ".join(f"{package} {number}" for package, number in found.items() if number)


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row.get(name) for name in KEY)


def _commit() -> str:
    """The commit, and whether the tree differs from it in more than what benchmarks write."""
    number = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--", ":/", ":!/benchmarks/*.csv", ":!/docs")
    return f"{number or 'unknown'}{'-dirty' if changed else ''}"


def _git(*words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PATH.parent)
    return done.stdout.strip()


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
