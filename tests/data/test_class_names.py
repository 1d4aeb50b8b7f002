"""Names of classes: spellings that are merged, files of new names, and "nothing there"."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.data.class_names import write_class_map
from hilltop.data.summary import likely_renames, name_mistakes
from hilltop.errors import DataError

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
LONG = "image,class\n1,Dog\n2,dog\n3,dog \n4,DOG\n5,dog\n5,Red_fox\n6,red fox\n6,emu\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(LONG)
    return path


def test_spellings_become_one_class_and_are_shown(path: Path) -> None:
    table = read_labels(path, options=ReadOptions(unlisted="unknown", merge_names=True))
    assert sorted(table.classes) == ["Red_fox", "dog", "emu"]
    assert table.count(P) == 8
    assert "merged into 'dog' (5 labels): 'DOG' (1), 'Dog' (1), 'dog' (3)." in table.notes
    assert table.history[-1].details["DOG"] == "dog"


@pytest.mark.parametrize(
    ("cells", "options", "state"),
    [
        ("1,0", ReadOptions(zero="absent"), P),
        ("0,", ReadOptions(zero="absent", empty="unknown"), A),
        (",0", ReadOptions(zero="absent", empty="unknown"), A),
        ("-1,0", ReadOptions(unlisted="absent", minus_one="unknown"), A),
        ("-1,-1", ReadOptions(unlisted="absent", minus_one="unknown"), U),
        (",", ReadOptions(empty="unknown"), U),
    ],
)
def test_present_counts_before_absent_and_absent_before_unknown(
    path: Path, cells: str, options: ReadOptions, state: State
) -> None:
    path.write_text(f"image,Dog,dog,emu\na,{cells},1\n")
    merged = ReadOptions(**{**vars(options), "merge_names": True})
    assert read_labels(path, options=merged).dense().tolist() == [[state, P]]


def test_a_file_of_new_names_is_written_and_read(path: Path, tmp_path: Path) -> None:
    options = ReadOptions(unlisted="unknown")
    table = read_labels(path, options=options)
    renames = tmp_path / "map.csv"
    write_class_map(table, renames, likely_renames(table))
    lines = renames.read_text().splitlines()
    assert lines[:3] == ["class,rename,labels", "DOG,dog,1", "Dog,dog,1"]
    renames.write_text(renames.read_text().replace("emu,,1", "emu,bird,1"))
    table = read_labels(path, options=ReadOptions(unlisted="unknown", class_map=renames))
    assert sorted(table.classes) == ["Red_fox", "bird", "dog"]
    renames.write_text("a,b\n1,2\n")
    with pytest.raises(
        DataError, match=r"map.csv, line 1: the column .* is missing; expected class, rename"
    ):
        read_labels(path, options=ReadOptions(unlisted="unknown", class_map=renames))


def test_a_class_for_nothing_makes_all_others_absent(path: Path) -> None:
    path.write_text("image,labels\na,No Finding\nb,mass|edema\nc,No Finding|tube\nd,\n")
    table = read_labels(
        path, options=ReadOptions(unlisted="unknown", background_class="No Finding")
    )
    assert table.classes == ("edema", "mass", "tube")
    assert table.dense().tolist() == [[A, A, A], [P, P, U], [A, A, P], [U, U, U]]
    assert table.notes[-1] == (
        "2 images have 'No Finding': all else is absent there. 1 of them has other labels all the"
        " same, which stay."
    )
    with pytest.raises(DataError, match=r"no class 'no finding'. Did you mean 'No Finding'\?"):
        read_labels(path, options=ReadOptions(unlisted="unknown", background_class="no finding"))


def test_names_that_look_wrong_are_told_with_the_remedy(path: Path) -> None:
    said = name_mistakes(read_labels(path, options=ReadOptions(unlisted="unknown")))
    assert "written in several ways, such as 'Dog' and 'DOG'" in said[0]
    assert said[0].endswith("--merge-names makes them one.")
    path.write_text("image,labels\na,No Finding\nb,mass|edema\n")
    said = name_mistakes(read_labels(path, options=ReadOptions(unlisted="unknown")))
    assert len(said) == 1
    assert "--background-class 'No Finding'" in said[0]


def test_a_class_without_labels_is_no_misspelling(path: Path) -> None:
    rows = "".join(f"{row}.jpg,1,0\n" for row in range(30))
    path.write_text(f"image,horse,horses\n{rows}")
    assert name_mistakes(read_labels(path, options=ReadOptions(unlisted="unknown"))) == []
