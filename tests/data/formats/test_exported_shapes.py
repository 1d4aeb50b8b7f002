# ruff: noqa: E501 (lines of files as they are)
"""Label files as programs export them and people write them down: read as their answers tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions, read_labels
from hilltop.errors import DataError, OptionNeeded
from tests.data.formats.shapes import Counts, check_damaged, counts_of, read_as_told

PROSE = ["cat, dog {0} emu", "dog {0} cat", "emu", "cat", "dog"]
FILES: dict[str, tuple[str, str, Counts, int]] = {
    **{
        f"a list with {word}": (
            "a.csv",
            "image,labels\n" + "".join(f'{at}.jpg,"{cell.format(word)}"\n' for at, cell in enumerate(PROSE)),
            (5, 3, 8),
            1,
        )
        for word in ("and", "und", "et", "&")
    },
    "a comma before and": ("a.csv", 'image,labels\na.jpg,"cat, dog, and emu"\nb.jpg,dog and cat\nc.jpg,emu\nd.jpg,cat\n', (4, 3, 7), 1),
    "a table of Markdown": ("a.md", "# Labels\n\n| image | labels |\n|:---|---|\n| a.jpg | cat, dog |\n| `b.jpg` | dog |\n| c.jpg | cat |\n| d.jpg | |\n\nBy Ann.\n", (4, 2, 4), 1),
    "marks in Markdown": ("a.md", "image | cat | dog\n--- | --- | ---\na.jpg | x | \nb.jpg | x | x\n", (2, 2, 3), 1),
    "a camera trap": ("a.csv", "image_id,frame_num,common_name,datetime\na1,1,red fox,2020-01-01\na1,1,cow,2020-01-01\na2,1,cow,2020-01-02\n", (2, 2, 3), 1),
    "a count for each animal": ("a.csv", "capture_id,season,question__species,question__resting\nS1#1,S1,zebra,0\nS1#1,S1,gnu,1\nS1#2,S1,gnu,0\nS1#3,S2,gnu,1\n", (3, 2, 4), 2),
    "tags that nobody wrote": ("a.csv", "id,image_url,tag_list,common_name\n1,http://a/1.jpg,,Red Fox\n2,http://a/2.jpg,,Common Frog\n3,http://a/3.jpg,,Red Fox\n", (3, 2, 3), 1),
    "ranks": ("a.csv", "filename,class,order,genus,species,common_name\na.jpg,Mammalia,Carnivora,Vulpes,vulpes,Red Fox\nb.jpg,Mammalia,Carnivora,Vulpes,lagopus,Arctic Fox\nb.jpg,Aves,P,Turdus,merula,Blackbird\n", (2, 3, 3), 1),
    "species beside classes": ("a.csv", "image,species,day,night\na.jpg,fox,1,0\nb.jpg,cow,0,1\n", (2, 2, 2), 1),
    "tags in XML": ("a.xml", '<?xml version="1.0"?>\n<images><image name="a.jpg"><tag>cat</tag><tag>dog</tag></image><image name="b.jpg"/><image name="c.jpg"><tag>big dog</tag></image></images>', (3, 3, 3), 1),
    "elements in XML": ("a.xml", "<set><images><image><filename>a.jpg</filename><tags><tag>cat</tag><tag>dog</tag></tags></image><image><filename>b.jpg</filename><tags><tag>cat</tag></tags></image></images></set>", (2, 2, 3), 1),
    "posts": ("Posts.xml", '<posts>\n<row Id="1" PostTypeId="1" Tags="&lt;c#&gt;&lt;linq&gt;" />\n<row Id="2" PostTypeId="2" />\n<row Id="3" PostTypeId="1" Tags="&lt;c#&gt;" /></posts>', (2, 2, 3), 1),
    "zeros and ones alone": ("a.txt", "1 0 1 0 0\n0 1 0 0 1\n1 1 0 0 0\n0 0 0 1 1\n", (4, 5, 8), 1),
    "captions": ("a.csv", 'file,caption\na.jpg,"What a day, in the sun! #cat #dog"\nb.jpg,Home again #dog\nc.jpg,"Rain, rain. #cat #big_emu"\n', (3, 3, 5), 1),
    "dashes": ("a.txt", "a.jpg - cat, dog\nb.jpg - dog\nc.jpg - cat, big emu\n", (3, 3, 5), 1),
    "what Flickr answers": ("a.json", '{"photos": {"page": 1, "photo": [{"id": "1", "title": "x", "tags": "cat dog"}, {"id": "2", "title": "y", "tags": "dog"}, {"id": "3", "title": "z", "tags": "cat emu"}]}, "stat": "ok"}', (3, 3, 5), 1),
}  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_read_as_its_answers_tell(file: str, tmp_path: Path) -> None:
    name, content, expected, answers = FILES[file]
    path = tmp_path / name
    path.write_text(content)
    table, said = read_as_told(path)
    assert (counts_of(table), len(said)) == (expected, answers)


def test_names_with_and_in_them_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        'image,labels\na.jpg,"Arts & Crafts, Food, Bars"\nb.jpg,"Food, Salt and Pepper"\n'
        'c.jpg,"Bars, Food"\nd.jpg,"Food, Bars, Arts & Crafts"\ne.jpg,Salt and Pepper\nf.jpg,Food\n'
    )
    table = read_labels(path, options=ReadOptions(unlisted="unknown"))
    assert table.classes == ("Arts & Crafts", "Bars", "Food", "Salt and Pepper")


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        '<!DOCTYPE i [<!ENTITY a "cat">]><i><image name="a.jpg"><tag>&a;</tag></image></i>'
    )
    with pytest.raises(DataError, match="document type"):
        read_labels(path, format="xml_records", options=ReadOptions(unlisted="unknown"))


def test_answers_among_posts_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    path.write_text(FILES["posts"][1])
    table, _ = read_as_told(path)
    assert "1 element has no 'Tags' and is left out." in table.notes


def test_damaged_xml_ends_in_a_table_or_a_sentence(tmp_path: Path) -> None:
    for file in ("tags in XML", "posts"):
        name, content, expected, _ = FILES[file]
        check_damaged(("xml_records", name, content, expected), tmp_path, 20)


def test_tables_with_one_header_are_read_together(tmp_path: Path) -> None:
    for name in ("beach", "forest"):
        (tmp_path / f"{name}.csv").write_text(f"image,sea,tree\n{name}1.jpg,1,0\n{name}2.jpg,0,1")
    table, said = read_as_told(tmp_path)
    assert (counts_of(table), len(said)) == ((4, 2, 4), 1)
    note = "2 tables with the same columns are read together: beach.csv, forest.csv."
    assert note in table.notes


@pytest.mark.parametrize("header", ["image,sea,sand", "image,sea,tree"])
def test_parts_of_a_data_set_and_other_tables_are_not_mixed(header: str, tmp_path: Path) -> None:
    other = "test.csv" if header == "image,sea,tree" else "beach.csv"
    (tmp_path / "forest.csv").write_text("image,sea,tree\na.jpg,1,0\nb.jpg,0,1\n")
    (tmp_path / other).write_text(f"{header}\nc.jpg,1,0\nd.jpg,0,1\n")
    with pytest.raises(OptionNeeded, match="Name a file"):
        read_labels(tmp_path)


def test_a_remark_among_zeros_and_ones_is_no_class(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,unclear,joy,fear,love\na1,False,1,0,0\nb2,True,0,0,0\nc3,False,0,1,1\n")
    table, _ = read_as_told(path)
    assert table.classes == ("joy", "fear", "love")
    assert any("TRUE and FALSE stand in unclear" in note for note in table.notes)
    options = ReadOptions(unlisted="unknown", class_columns="unclear,joy")
    assert read_labels(path, options=options).classes == ("unclear", "joy")


def test_classes_of_true_and_false_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,cat,dog,emu\na.jpg,TRUE,1,0\nb.jpg,FALSE,0,1\n")
    assert len(read_labels(path, options=ReadOptions(unlisted="unknown")).classes) == 3


def test_class_numbers_beside_images_are_labels(tmp_path: Path) -> None:
    for name, number in (("a", "0"), ("b", "2"), ("c", "2\n")):
        (tmp_path / f"{name}.jpg").touch()
        (tmp_path / f"{name}.cls").write_text(number)
    table, said = read_as_told(tmp_path)
    assert (counts_of(table), len(said)) == ((3, 2, 3), 1)
    names = tmp_path.parent / "names.txt"
    names.write_text("cat\ndog\nemu\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(tmp_path, options=options).labels_of(1) == ("emu",)


def test_readers_who_disagree_are_told_what_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,reader,cat,dog\na.jpg,Ann,1,0\na.jpg,Bob,0,0\nb.jpg,Ann,0,1\n")
    with pytest.raises(DataError, match=r"line 3: .* 'cat' both .* --zero unknown goes on"):
        read_labels(path, options=ReadOptions(zero="absent"))
    assert counts_of(read_labels(path, options=ReadOptions(zero="unknown"))) == (2, 2, 2)


def test_a_named_key_of_files_beside_photos_holds_the_labels(tmp_path: Path) -> None:
    for name, people in (("a", '[{"name": "Ann"}, {"name": "Bob"}]'), ("b", '[{"name": "Bob"}]')):
        content = f'{{"title": "{name}.jpg", "description": "", "people": {people}}}'
        (tmp_path / f"{name}.jpg.json").write_text(content)
    options = ReadOptions(unlisted="unknown", label_column="people")
    table = read_labels(tmp_path, options=options)
    assert (counts_of(table), table.images.to_pylist()) == ((2, 2, 3), ["a.jpg", "b.jpg"])
