"""Reports: self-contained, escaped, and with just the numbers that were given."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from hilltop.data import LabelTable, State, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.errors import DataError
from hilltop.missing import Interval
from hilltop.report import DemoMethod, DemoPairs, write_demo_report, write_run_report
from hilltop.report.demo_report import DemoAudit, gap_closed

AUDIT = DemoAudit(
    rows=np.array([0, 2, 1]),
    columns=np.array([1, 0, 2]),
    probs=np.array([0.9, 0.6, 0.2]),
    right=np.array([True, False, True]),
    missing=Interval(1.6, 0.0, 3.0),
    folder=Path("demo/audit"),
)
EVIL = "<script>alert('x')</script>"
VOID = {"meta", "img", "br"}


class Checked(HTMLParser):
    """Collects elements and attributes and checks that every element is closed."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(page.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_self_contained(page: Path) -> None:
    checked = Checked(page)
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|url\(", text)
    assert "script" not in checked.elements
    assert "link" not in checked.elements
    sources = [value for name, value in checked.attributes if name in ("src", "href")]
    assert sources
    assert all(value.startswith("data:image/") for value in sources)
    assert not [name for name, _ in checked.attributes if name.startswith("on")]


def epochs(*values: float) -> list[dict[str, float]]:
    return [
        {"epoch": number, "loss": 1 / number, "mAP": value, "OF1": value / 2, "CF1": value / 4}
        for number, value in enumerate(values, start=1)
    ]


def run_folder(path: Path, classes: list[str]) -> Path:
    path.mkdir()
    rows = ["epoch,loss,mAP,OF1,CF1", "1,0.5,0.25,0.3,0.2", "2,0.4,0.6125,0.5,0.4"]
    rows.append("3,0.3,0.5875,0.55,0.45")
    path.joinpath("metrics.csv").write_text("\n".join(rows) + "\n")
    config = f'labels: "{EVIL}"\nloss: hill\nseed: 7\nmodel:\n  model: resnet10t\n'
    path.joinpath("config.yaml").write_text(config)
    images = ["a.jpg", "b.jpg", "c.jpg"]
    states = [State.PRESENT] * len(classes)
    table = LabelTable.from_coo(
        images, classes, np.arange(len(classes)) % 3, range(len(classes)), states,
        unlisted=State.ABSENT,
    )  # fmt: skip
    write_labels(table, path / "val_labels.parquet", format="hilltop")
    values = np.random.default_rng(0).random((3, len(classes)))
    ScoreTable(pa.array(images, pa.string()), tuple(classes), values).save(path / "val_scores.npy")
    return path


def judged(value: float) -> tuple[dict[str, float], dict[str, float]]:
    """Metrics at one half, and at thresholds that were found."""
    half = {"mAP": value, "OF1": value / 2, "CF1": value / 4}
    return half, {"mAP": value, "OF1": value * 0.8, "CF1": value * 0.6}


@pytest.fixture
def demo(tmp_path: Path) -> tuple[DemoMethod, list[DemoMethod], DemoPairs]:
    files = [tmp_path / f"{number}.jpg" for number in range(3)]
    for file in files:
        Image.new("RGB", (8, 8), "teal").save(file)
    known = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)
    missing = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    good = np.where(missing, 0.9, np.where(known, 0.8, 0.1))
    bad = np.where(missing, 0.2, np.where(known, 0.8, 0.3))
    pairs = DemoPairs(files, ["sun", EVIL, "moon", "cup"], known, missing)
    methods = [
        DemoMethod("BCE", "takes it for absent", *judged(0.401), bad),
        DemoMethod("Hill", "trusts it less", *judged(0.502), good),
    ]
    ceiling = DemoMethod("BCE, complete labels", "knows", *judged(0.603), good)
    return ceiling, methods, pairs


def write_demo(path: Path, demo: tuple[DemoMethod, list[DemoMethod], DemoPairs]) -> Path:
    ceiling, methods, pairs = demo
    return write_demo_report(
        path,
        ceiling=ceiling,
        methods=methods,
        pairs=pairs,
        audit=AUDIT,
        test_images=1234,
        seconds=56.7,
    )


def test_the_audit_is_judged_by_the_candidates_in_their_order() -> None:
    right = np.array([True] * 90 + [False] * 10 + [True] * 30 + [False] * 870)
    audit = replace(AUDIT, right=right)
    assert audit.looked() == [(100, 90), (120, 110)]
    assert audit.looked()[0].precision == 0.9
    assert audit.an_hour() == (120, 110)
    assert replace(AUDIT, right=np.ones(5000, dtype=bool)).an_hour() == (1200, 1200)


def test_the_run_report_needs_nothing_but_itself(tmp_path: Path) -> None:
    page = write_run_report(run_folder(tmp_path / "run", [EVIL, "b", "c"]))
    assert page == tmp_path / "run" / "report.html"
    assert_self_contained(page)


def test_the_run_report_escapes_names(tmp_path: Path) -> None:
    page = write_run_report(run_folder(tmp_path / "run", [EVIL, "b", "c"]))
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in text


def test_the_run_report_tells_the_last_epoch_from_the_best(tmp_path: Path) -> None:
    text = write_run_report(run_folder(tmp_path / "run", ["a"])).read_text(encoding="utf-8")
    assert "<dt>mAP, last epoch</dt><dd>58.75</dd>" in text
    assert "<dt>mAP, best epoch (2)</dt><dd>61.25</dd>" in text


def test_metrics_that_rest_on_few_labels_are_told_with_a_caution(tmp_path: Path) -> None:
    few = write_run_report(run_folder(tmp_path / "run", ["a"])).read_text(encoding="utf-8")
    assert "take them for a hint" in few
    many = [f"class {number}" for number in range(120)]
    enough = write_run_report(run_folder(tmp_path / "many", many)).read_text(encoding="utf-8")
    assert "take them for a hint" not in enough


def test_the_run_report_leaves_curves_as_a_picture(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", ["a"])
    write_run_report(folder)
    with Image.open(folder / "curves.png") as curves:
        assert curves.width > 1000
        assert len(set(curves.convert("L").tobytes())) > 10, "not an empty sheet"


def test_a_run_of_few_images_has_numbers_and_curves(tmp_path: Path) -> None:
    text = write_run_report(run_folder(tmp_path / "run", ["a"])).read_text(encoding="utf-8")
    assert "58.75" in text
    assert "How good the tags will be" not in text


def test_a_method_below_the_baseline_is_named(
    demo: tuple[DemoMethod, list[DemoMethod], DemoPairs], tmp_path: Path
) -> None:
    ceiling, (bce, hill), pairs = demo
    assert "Below" not in write_demo(tmp_path / "a.html", demo).read_text(encoding="utf-8")
    worse = DemoMethod("worse", "why", *judged(0.3), bce.train_probs)
    text = write_demo(tmp_path / "b.html", (ceiling, [bce, hill, worse], pairs)).read_text()
    assert "Below BCE in this run: worse." in text
    assert "\N{MINUS SIGN}50%" in text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("metrics.csv", None, "there is no such file"),
        ("metrics.csv", "epoch,loss,mAP\n", "there is no epoch"),
        ("metrics.csv", "epoch,loss\n1,0.5\n", "there is no column 'mAP'"),
        ("metrics.csv", "epoch,loss,mAP\n1,0.5,high\n", "not a table of numbers"),
        ("config.yaml", None, "there is no such file"),
        ("config.yaml", "a: [", "this is not YAML"),
    ],
)
def test_what_a_run_folder_lacks_is_said(
    name: str, content: str | None, words: str, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path / "run", ["a"])
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(DataError, match=f"{name}: .*{words}"):
        write_run_report(folder)


def test_the_demo_report_needs_nothing_but_itself_and_escapes_names(
    demo: tuple[DemoMethod, list[DemoMethod], DemoPairs], tmp_path: Path
) -> None:
    page = write_demo(tmp_path / "report.html", demo)
    assert_self_contained(page)
    assert "&lt;script&gt;alert(&#39;x&#39;)" in page.read_text(encoding="utf-8")


def test_the_numbers_in_the_table_are_those_given(
    demo: tuple[DemoMethod, list[DemoMethod], DemoPairs], tmp_path: Path
) -> None:
    text = write_demo(tmp_path / "report.html", demo).read_text(encoding="utf-8")
    lines = re.findall(r"<tr[^>]*><td>(.*?)</tr>", text)
    cells = [[re.sub("<[^>]+>", "", cell) for cell in line.split("</td>")] for line in lines]
    assert [row[:-1] for row in cells] == [
        ["BCE", "20%", "32%", "10%", "24%"],  # tags
        ["Hill", "25%", "40%", "13%", "30%"],
        ["BCE, complete labels", "30%", "48%", "15%", "36%"],
        ["BCE", "40.1", "0%", "takes it for absent"],  # methods
        ["Hill", "50.2", "50%", "trusts it less"],
        ["BCE, complete labels", "60.3", "100%", "knows"],
        ["2", "50%", "1", "80%"],  # of the review: 3 labels of 5 were left
    ]
    assert "1,234" in text
    assert "57 seconds" in text


def test_examples_show_known_labels_and_what_the_audit_found_and_missed(
    demo: tuple[DemoMethod, list[DemoMethod], DemoPairs], tmp_path: Path
) -> None:
    def shown(path: Path, missing: float) -> list[tuple[str, str]]:
        ceiling, methods, pairs = demo
        audit = replace(AUDIT, missing=Interval(missing, 0.0, 3.0))
        write_demo_report(
            path, ceiling=ceiling, methods=methods, pairs=pairs, audit=audit, test_images=9,
            seconds=1.0,
        )  # fmt: skip
        gallery = path.read_text(encoding="utf-8").partition('<ul class="gallery">')[2]
        assert gallery.count("<li>") == 2, "only images from which a label was removed"
        return re.findall(r'<span class="tag (\w+)">([a-z. 0-9]+)</span>', gallery)

    two = shown(tmp_path / "two.html", 1.6)  # candidates, as many as are missing
    assert ("known", "sun") in two
    assert ("missed", "moon") in two
    assert ("found", "moon 0.20") in shown(tmp_path / "three.html", 3.0)


def test_the_gap_is_none_where_the_ceiling_is_not_above_the_baseline(
    demo: tuple[DemoMethod, list[DemoMethod], DemoPairs], tmp_path: Path
) -> None:
    ceiling, methods, pairs = demo
    assert gap_closed(methods[1], ceiling, methods[0]) is None
    write_demo(tmp_path / "report.html", (methods[0], [ceiling, methods[1]], pairs))
