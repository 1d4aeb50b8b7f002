"""Every format is found, and where several fit, their declared priorities decide."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from hilltop.data import ReadOptions, State, read_labels, write_labels
from hilltop.data.formats import FORMATS, LabelSource, recognise, registry, tables
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError, OptionNeeded

NEW_FORMAT = """
from pathlib import Path

from hilltop.data.assemble import Collector
from hilltop.data.formats.base import Format, Priority
from hilltop.data.state import State


def read(source, options):
    collector = Collector(source.path)
    for line in source.text.splitlines()[1:]:
        image, name = line.split("=")
        collector.label(collector.image(image), name, State.PRESENT)
    return collector.table(unlisted=options.need_unlisted(source.path), format="equals")


def write(table, path, lossy):
    raise NotImplementedError


FORMAT = Format(
    name="equals",
    summary="Lines such as a.jpg=cat below a line of dashes.",
    priority=Priority.EXACT,
    fits=lambda source: source.head.startswith("----"),
    read=read,
    write=write,
)
"""


@pytest.mark.parametrize(
    ("text", "fitting", "taken"),
    [
        ("image,class\na.jpg,1\nb.jpg,0\n", {"long", "wide"}, "long"),
        (
            "image,id,labels,annotator,annotation_id\na,1,cat,1,1\n",
            {"label_studio", "list_column"},
            "label_studio",
        ),
        ("image,id,annotator,annotation_id\n1,1,1,1\n", {"label_studio", "wide"}, "label_studio"),
    ],
)
def test_the_highest_priority_is_taken(
    tmp_path: Path, text: str, fitting: set[str], taken: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    source = LabelSource(path)
    assert {format.name for format in FORMATS.values() if format.fits(source)} == fitting
    assert recognise(source).name == taken


def test_equal_priorities_are_put_to_the_user(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\na.jpg,1\nb.jpg,0\n")
    with pytest.raises(OptionNeeded, match="fits 2 formats: list_column, wide"):
        read_labels(path)


def test_a_format_is_found_by_putting_its_module_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "equals.py").write_text(NEW_FORMAT)
    monkeypatch.setattr(tables, "__path__", [*tables.__path__, str(tmp_path)])
    found = {format.name: format for format in registry.find_formats()}
    assert set(found) == {*FORMATS, "equals"}
    monkeypatch.setattr(registry, "FORMATS", found)
    labels = tmp_path / "labels.txt"
    labels.write_text("----\na.jpg=cat\n")
    table = read_labels(labels, options=ReadOptions(unlisted="unknown"))
    assert table.labels_of(0) == ("cat",)


def test_names_of_formats_differ() -> None:
    names = [format.name for format in registry.find_formats()]
    assert len(set(names)) == len(names) == len(FORMATS)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_format_names_another(name: str) -> None:
    """Formats share through the room ``text`` or a module without a FORMAT, never each other."""
    others = {format.read.__module__ for format in FORMATS.values()} - {
        FORMATS[name].read.__module__
    }
    text = Path(
        __import__(FORMATS[name].read.__module__, fromlist=["x"]).__file__ or ""
    ).read_text()
    assert not [other for other in others if f"{other} import" in text]


def test_an_ending_that_says_nothing_is_asked_about(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(OptionNeeded, match="its ending does not say which format to write"):
        write_labels(small, tmp_path / "labels.csv")


def test_an_unknown_table_is_answered_with_its_columns_and_a_command(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("person,town,said\nx y,Rome,a cat\nx y,Oslo,a dog\nz w,Oslo,a cat\n")
    with pytest.raises(OptionNeeded) as caught:
        read_labels(path)
    said = str(caught.value)
    assert "Columns: person (x y), town (Rome), said (a cat)." in said
    assert "nearest to a table with one column of labels" in said
    assert said.endswith("--delimiter ';'")
    command = said.partition("hilltop inspect ")[2].split()
    named = ReadOptions(
        unlisted="unknown",
        image_column=command[command.index("--image-column") + 1],
        label_column=command[command.index("--label-column") + 1],
        delimiter=" ",
    )
    assert read_labels(path, options=named).count(State.PRESENT) > 0


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (ReadOptions(unlisted="unknown", label_column="town"), "list_column"),
        (ReadOptions(unlisted="unknown", class_columns="cat,dog"), "wide"),
        (ReadOptions(unlisted="unknown", image_column="town"), "wide"),
    ],
)
def test_what_the_user_says_tells_the_format(
    tmp_path: Path, options: ReadOptions, taken: str
) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("person,town,cat,dog\nAnn,Rome,1,0\nBob,Oslo,0,1\n")
    assert recognise(LabelSource(path, options)).name == taken


def test_standard_input_is_a_file_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    pipe("image,cat,dog\na.jpg,1,0\n")
    assert read_labels("-", options=ReadOptions(unlisted="unknown")).labels_of(0) == ("cat",)
    pipe("image,cat,dog\na.jpg,1,0\n")
    with pytest.raises(OptionNeeded, match=r"^standard input: 0 stands .* inspect - --unlisted"):
        read_labels("-")


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("image,cat,dog\na.jpg,1,0\n",))
    writer.start()
    assert read_labels(pipe, options=ReadOptions(unlisted="unknown")).labels_of(0) == ("cat",)
    writer.join()


@pytest.mark.parametrize("name", ["labels.xlsx", "labels.csv.gz"])
def test_what_is_only_read_is_not_written(small: LabelTable, tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="read, but not written"):
        write_labels(small, tmp_path / name, format="wide")


def test_half_a_character_in_a_name_is_said(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text('{"a.jpg": ["\\ud83d"], "b.jpg": ["cat"]}')
    with pytest.raises(DataError, match=r"labels\.json: a name holds half a character"):
        read_labels(path, options=ReadOptions(unlisted="unknown"))


@pytest.mark.parametrize("name", ["labels.xlsx", "labels.csv", "labels.parquet"])
def test_a_device_without_an_end_is_not_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.symlink_to("/dev/zero")
    with pytest.raises(DataError, match="this is neither a file nor a folder"):
        read_labels(path)
