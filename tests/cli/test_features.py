"""Features of a folder of images, by a small backbone with random weights in a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import timm
from safetensors.torch import save_file

from hilltop.cli.main import main
from hilltop.data.data_errors import DataError
from hilltop.inputs.features import read_features
from tests.data.conftest import picture


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options that name a backbone."""
    file = tmp_path_factory.mktemp("weights") / "small.safetensors"
    save_file(timm.create_model("resnet10t").state_dict(), file)
    return ["--backbone", "resnet10t", "--weights", str(file), "--image-size", "32", "--workers=0"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    picture(0).save(folder / "a.png")
    picture(1).save(folder / "b.jpg")
    picture(0).save(folder / "more" / "a.png")
    return folder


def test_every_image_gets_a_row(photos: Path, words: list[str], tmp_path: Path) -> None:
    out = tmp_path / "new" / "features.npz"
    assert main(["features", str(photos), "--out", str(out), *words]) == 0
    found = read_features(out)
    assert found.images.to_pylist() == ["a.png", "b.jpg", "more/a.png"]
    assert found.values.shape == (3, 512)
    np.testing.assert_array_equal(found.values[0], found.values[2])  # the same picture
    assert not np.allclose(found.values[0], found.values[1])
    assert [file.name for file in out.parent.iterdir()] == ["features.npz"]


def test_labels_may_name_images_without_the_ending(
    photos: Path, words: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "features.npz"
    main(["features", str(photos), "--out", str(out), *words])
    features = read_features(out)
    named = pa.array(["more/a", "b.jpg", "a.png"])
    assert features.rows_of(named).tolist() == [2, 1, 0]
    with pytest.raises(DataError, match="no features for 1 of 2 labelled images, the first is 'c'"):
        features.rows_of(pa.array(["a", "c"]))


def test_two_files_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", ids=np.array(["a.png", "a.jpg"]), X=np.eye(2))
    features = read_features(tmp_path / "f.npz")
    assert features.rows_of(pa.array(["a.jpg"])).tolist() == [1]
    with pytest.raises(DataError, match=r"'a' matches 'a\.png' and 'a\.jpg'"):
        features.rows_of(pa.array(["a"]))


def test_a_broken_image_stops_or_is_left_out(
    photos: Path, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "b.jpg").write_bytes(b"no picture")
    out = tmp_path / "features.npz"
    assert main(["features", str(photos), "--out", str(out), *words]) == 1
    assert "b.jpg" in capsys.readouterr().err
    assert not out.exists()
    assert main(["features", str(photos), "--out", str(out), *words, "--skip-broken"]) == 0
    assert read_features(out).images.to_pylist() == ["a.png", "more/a.png"]
    assert f"left out: {photos / 'b.jpg'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--out", "f.npz"], "need a trained backbone"),
        (["--out", "f.csv", "--weights", "timm"], "must end in .npz"),
    ],
)
def test_wrong_usage_is_one_sentence(
    photos: Path, wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["features", str(photos), *wrong]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_label_file_that_holds_features_gives_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.svm").write_text("0,1 1:0.5 3:2\n1 2:1\n")
    out = tmp_path / "features.npz"
    assert main(["features", str(tmp_path / "train.svm"), "--out", str(out)]) == 0
    assert "2 images, 3 numbers each" in capsys.readouterr().out
    features = read_features(out)
    assert features.images.to_pylist() == ["0", "1"]
    assert features.values.tolist() == [[0.5, 0, 2], [0, 1, 0]]


def test_a_run_on_features_of_a_known_network_tags_photographs(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, features = tmp_path / "photos", tmp_path / "features.npz"
    weights = shutil.copy(words[3], tmp_path)
    words = [*words[:3], weights, *words[4:]]
    folder.mkdir()
    for number in range(12):
        picture(number).save(folder / f"{number:02}.png")
    lines = [f"{number:02}.png,{('even', 'odd')[number % 2]}" for number in range(12)]
    (tmp_path / "labels.csv").write_text("\n".join(["image,class", *lines]) + "\n")
    assert main(["features", str(folder), "--out", str(features), *words]) == 0
    assert read_features(features).images_folder == str(folder)
    run = ["--labels", str(tmp_path / "labels.csv"), "--unlisted", "unknown", "--epochs", "1"]
    run += ["--features", str(features), "--out", str(tmp_path / "run"), "--workers", "0"]
    assert main(["train", *run]) == 0
    tagged = []
    for source in (["--images", str(folder)], ["--features", str(features)]):
        out = tmp_path / f"{source[0][2:]}.jsonl"
        words_ = ["predict", str(tmp_path / "run"), *source, "--top", "1", "--out", str(out)]
        assert main(words_) == 0
        tagged.append(out.read_text())
    assert tagged[0] == tagged[1]
    assert tagged[0].count('"file"') == 12
    assert "12 images, 12 tags" in capsys.readouterr().out
    save_file(timm.create_model("resnet10t").state_dict(), weights)  # others, under the same name
    again = ["predict", str(tmp_path / "run"), "--images", str(folder), "--out"]
    assert main([*again, str(tmp_path / "t.csv")]) == 1
    assert "not the weights that the features were made with" in capsys.readouterr().err
