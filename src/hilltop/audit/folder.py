"""The folder of an audit: its files, their names, and what ``audit.json`` says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from hilltop.data import FORMATS, LabelTable, Layout, ReadOptions, read_labels
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.files import atomic_write
from hilltop.data.layout import RENAMED_OPTIONS
from hilltop.data.review_record import provenance_path
from hilltop.data.small_files import parse_json
from hilltop.training.config import build_dataclass

VERSION = 1
_ABOUT = "audit.json"


@dataclass(frozen=True)
class AuditFolder:
    """Points at the folder of one audit and knows what was audited.

    Attributes:
        path: The folder.
        labels: The original label file, as the user named it.
        format: Name of its format.
        reading: What the user said of it.
        images: The folder of images, if there is one.
        images_total: Number of images that were audited.
        missing: How many labels are missing: value, low and high.
        created: When the audit was made, in ISO format.
        summary: The sentence about missing labels.
        layout: How the labels are laid out; None in audits of older versions.
        earlier: When the audits were made that this one replaced while it kept their answers.
        pages: Review pages without a server that were written for this audit.
    """

    path: Path
    labels: Path
    format: str
    reading: ReadOptions = field(default_factory=ReadOptions)
    images: Path | None = None
    images_total: int = 0
    missing: dict[str, float] | None = None
    created: str = ""
    summary: str = ""
    layout: Layout | None = None
    earlier: tuple[str, ...] = ()
    pages: tuple[Path, ...] = ()

    @property
    def about(self) -> Path:
        """What was audited, and how."""
        return self.path / _ABOUT

    @property
    def candidates(self) -> Path:
        """All candidates, the most probable first."""
        return self.path / "candidates.parquet"

    @property
    def suspects(self) -> Path:
        """Labels that may be wrong, the most probable mistake first."""
        return self.path / "suspects.parquet"

    @property
    def sample(self) -> Path:
        """The last sample that was drawn to measure by."""
        return self.path / "sample.csv"

    @property
    def plans(self) -> list[Path]:
        """Plans of `hilltop evaluate` that the audit was given, in their order."""
        return sorted((self.path / "plans").glob("*.csv"))

    @property
    def gold(self) -> Path:
        """Gold questions, whose answers are known, if there are any."""
        before = self.path / "planted.csv"  # as audits of version 0.1 have it
        return before if before.is_file() else self.path / "gold.csv"

    @property
    def directions(self) -> Path:
        """Features of the images in few numbers, if there were features."""
        return self.path / "directions.npz"

    @property
    def model(self) -> Path:
        """The missing-label model of the audit."""
        return self.path / "missing.safetensors"

    @property
    def audited_labels(self) -> Path:
        """The labels that were audited, in Hilltop's own format."""
        return self.path / "labels.parquet"

    @property
    def decisions(self) -> Path:
        """The reviewers' answers."""
        return self.path / "decisions.sqlite"

    @property
    def unfinished(self) -> Path:
        """There while the files are being written, which belong together."""
        return self.path / "audit.unfinished"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of an audit that it makes or reads again."""
        own = (self.about, self.audited_labels, self.decisions, self.sample)
        found = (self.candidates, self.suspects, self.directions, self.model)
        tables = (path.with_suffix(".csv") for path in (self.candidates, self.suspects))
        return (*own, *found, *tables, self.path / "estimates.csv")

    @property
    def inputs(self) -> tuple[Path, ...]:
        """What later commands read: the files of the audit, labels and images that it is about."""
        images = () if self.images is None else (self.images,)
        return (*self.files, self.labels, provenance_path(self.labels), *images)

    def table(self) -> LabelTable:
        """Read the labels that were audited."""
        return read_labels(self.audited_labels, format="hilltop")

    def write(self) -> None:
        """Write ``audit.json``, completely or not at all; the folder is created."""
        about = {
            "version": VERSION,
            "labels": _plain(self.labels),
            "format": self.format,
            "reading": {key: _plain(value) for key, value in asdict(self.reading).items()},
            "layout": None if self.layout is None else self.layout.to_json(),
            "images": _plain(self.images),
            "images_total": self.images_total,
            "missing": self.missing,
            "created": self.created,
            "summary": self.summary,
            "earlier": list(self.earlier),
            "pages": [_plain(page) for page in self.pages],
        }
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
        atomic_write(self.about, text)
        self.unfinished.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> AuditFolder:
        """Read ``audit.json`` and see that the other files are there.

        Raises:
            DataError: This is not the folder of an audit, or a part of it is missing or damaged.
        """
        about = path / _ABOUT
        if not path.is_dir():
            raise data_error(
                path, "there is no such folder. Name the one that `hilltop audit` wrote."
            )
        if not about.is_file():
            raise data_error(
                path,
                f"this is not the folder of an audit: it holds no {_ABOUT}. Name the one that"
                " `hilltop audit` wrote.",
            )
        found = cls._parse(path, about)
        if found.unfinished.exists():
            raise data_error(
                path,
                "an audit was stopped while it wrote its files, or is writing them now. Run"
                " `hilltop audit` again with this --out; answers stay.",
            )
        errors = ErrorCollector(path)
        for needed in (found.candidates, found.audited_labels):
            if not needed.is_file():
                errors.add(f"{needed.name} is missing. Run `hilltop audit` again.")
        errors.check()
        return found

    @classmethod
    def _parse(cls, path: Path, about: Path) -> AuditFolder:
        try:
            content = parse_json(about.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise data_error(about, "this is not valid JSON. Run `hilltop audit` again.") from None
        if not isinstance(content, dict):
            raise data_error(about, "expected a JSON object. Run `hilltop audit` again.")
        if content.get("version") != VERSION:
            raise data_error(
                about,
                f"this audit has version {content.get('version')!r}, but this hilltop reads"
                f" {VERSION}. Run `hilltop audit` again, or install the hilltop that wrote it.",
            )

        def told(key: str, fits: Callable[[Any], bool], wanted: str, *default: Any) -> Any:
            value = content.get(key)
            if value is None and default:
                return default[0]
            if not fits(value):
                raise data_error(about, f"{key!r} must be {wanted}, but got {value!r:.60}.")
            return value

        labels = told("labels", _is_path, "a path")
        images = told("images", _is_path, "a path", None)
        return cls(
            path=path,
            labels=Path(labels),
            format=told("format", _is_format, f"one of {', '.join(FORMATS)}"),
            reading=_reading(about, content.get("reading", {})),
            layout=_layout(about, content.get("layout")),
            images=None if images is None else Path(images),
            images_total=told("images_total", _is_count, "a number of images", 0),
            missing=told(
                "missing", _is_interval, "an object with the numbers value, low and high", None
            ),
            created=str(content.get("created", "")),
            summary=str(content.get("summary", content.get("belief", ""))),
            earlier=tuple(told("earlier", _are_texts, "a list of texts", [])),
            pages=tuple(map(Path, told("pages", _are_texts, "a list of texts", []))),
        )


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _is_format(value: Any) -> bool:
    return isinstance(value, str) and value in FORMATS


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_interval(value: Any) -> bool:
    named = isinstance(value, dict) and {"value", "low", "high"} <= set(value)
    return named and all(isinstance(one, int | float) and one >= 0 for one in value.values())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _plain(value: Any) -> Any:
    """A value for JSON; paths are absolute, so that they hold wherever a later command runs."""
    return os.path.abspath(value) if isinstance(value, Path) else value


def _layout(about: Path, content: Any) -> Layout | None:
    if content is None:
        return None
    try:
        return Layout.from_json(content)
    except (TypeError, ValueError, AttributeError):
        raise data_error(about, "'layout' does not say how labels are laid out.") from None


def _reading(about: Path, content: Any) -> ReadOptions:
    if isinstance(content, dict):  # an audit of an older version has older names
        content = {RENAMED_OPTIONS.get(name, name): value for name, value in content.items()}
    known = {option.name for option in fields(ReadOptions)}
    if not isinstance(content, dict) or not set(content) <= known:
        raise data_error(about, f"'reading' must hold options among {', '.join(sorted(known))}.")
    faults: list[str] = []
    built = build_dataclass(ReadOptions, content, "reading.", faults)
    if faults:
        raise data_error(about, faults[0])
    return cast(ReadOptions, built)
