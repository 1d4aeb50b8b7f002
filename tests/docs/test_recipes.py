# ruff: noqa: E501 (lines of files as they are)
"""The recipes for other label files, run on small files of each kind."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, State
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^\*\*([^*\n]+)\*\*[^\n]*\n\n```py\n(.*?)```", PAGE, re.M | re.S))
FILES: dict[str, dict[str, str]] = {
    "LabelMe": {f"labels/{n}.json": json.dumps({"imagePath": f"{n}.jpg", "shapes": [{"label": "dog"}]}) for n in "ab"},
    "Labelbox": {"export.ndjson": json.dumps({"data_row": {"external_id": "a.jpg"}, "projects": {"p": {"labels": [{"annotations": {"objects": [{"name": "dog"}, {"name": "cat"}]}}]}}})},
    "SageMaker Ground Truth": {"output.manifest": json.dumps({"source-ref": "a.jpg", "tags": [0, 2], "tags-metadata": {"class-map": {"0": "cat", "2": "dog"}}})},
    "Prodigy": {"prodigy.jsonl": json.dumps({"image": "a.jpg", "accept": ["cat", "dog"], "answer": "accept"})},
    "Datumaro": {"default.json": json.dumps({"categories": {"label": {"labels": [{"name": "cat"}, {"name": "dog"}]}}, "items": [{"id": "a", "annotations": [{"label_id": 1}, {"label_id": 0}]}]})},
    "VGG Image Annotator": {"via.json": json.dumps({"_via_img_metadata": {"x": {"filename": "a.jpg", "regions": [{"region_attributes": {"animal": "dog "}}, {"region_attributes": {"animal": "cat"}}]}}})},
    "XMP sidecars": {"photos/a.xmp": "<rdf:li>dog</rdf:li><rdf:li>cat</rdf:li>"},
    "fastText": {"train.txt": "__label__a __label__b some text\n"},
    "MovieLens (`::`)": {"movies.dat": "1::Toy::cat|dog\n"},
    "Image and class in one cell": {"train.csv": "ID,Label\na_cat,1\na_dog,1\n"},
    "A text file per class with its images": {"labels/cat.txt": "1\n", "labels/dog.txt": "1\n"},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_recipe_gives_two_labels(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    for file, content in FILES[name].items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(content)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"LabelTable": LabelTable}
    setup = re.search(r"```py\n(import json.*?)```", PAGE, re.S)
    assert setup is not None
    exec(setup[1], scope)
    exec(RECIPES[name], scope)
    if "table" not in scope:
        exec(
            "table = " + re.findall(r"```py\n(LabelTable.from_dataframe.*?)```", PAGE, re.S)[0],
            scope,
        )
    assert scope["table"].count(State.PRESENT) == 2


def test_hashtags_and_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    scope: dict[str, Any] = {
        "pd": pandas,
        "df": pandas.DataFrame({"image": ["a"], "text": ["#cat and #dog"]}),
    }
    exec(RECIPES["Hashtags in a text"], scope)
    table = LabelTable.from_dataframe(scope["df"], image="image", label="label", unlisted="unknown")
    assert table.labels_of(0) == ("cat", "dog")
    monkeypatch.chdir(tmp_path)
    Path("table.md").write_text("| image | cat | dog |\n|---|---|---|\n| a | 1 | 1 |\n")
    exec(RECIPES["Markdown tables"], scope)
    table = LabelTable.from_dataframe(scope["df"], image="image", classes=["cat", "dog"])
    assert table.count(State.PRESENT) == 2
