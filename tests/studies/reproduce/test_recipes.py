"""Recipes: all load, all their parts can be built, and their headers show commands that work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import timm

from hilltop.cli.compare import Compare, check_common
from hilltop.cli.main import main, parse
from hilltop.cli.reproduce import Reproduce
from hilltop.errors import ArgumentError, ConfigError
from hilltop.studies.compare import COMPLETE, NAMED, Method, parse_methods
from hilltop.studies.reproduce import Recipe, choose_recipes, read_recipes
from hilltop.studies.reproduce.figures import FIGURES
from hilltop.studies.reproduce.recipe import LABELS_PER_IMAGE, PAPER_TRAINING, recipe_folder
from hilltop.training import TrainConfig

RECIPES = read_recipes()
ITEMS = {
    "statistics", "coco", "voc-nus", "openimages", "hill-ablation", "splc-losses",
    "hyperparameters", "backbones", "appendix-coco-75", "appendix-coco-40", "appendix-coco-single",
    "appendix-voc", "appendix-nus", "appendix-openimages", "negative-gradients",
    "focal-margin-gradients", "asl-gradients", "stages", "test-distributions", "missing-by-epoch",
    "examples", "more-examples",
}  # fmt: skip


def test_the_protocol_of_later_methods_can_be_compared_in() -> None:
    text = (recipe_folder() / "single_positive.yaml").read_text()
    command = re.search(r"#   hilltop (compare .*?--out cole)", text, re.DOTALL)
    assert command is not None
    words = command[1].replace("\\\n#", " ").split()
    words[words.index("--config") + 1] = str(recipe_folder() / "single_positive.yaml")
    parsed = parse(words)
    assert isinstance(parsed, Compare)
    assert parsed.run_options.learning_rate == 1e-5
    assert "gr" in [str(method) for method in parse_methods(parsed.methods)]


def test_every_table_and_figure_of_the_paper_has_a_recipe() -> None:
    assert set(RECIPES) == ITEMS
    assert [recipe.place for recipe in RECIPES.values()] == list(range(1, len(ITEMS) + 1))
    numbers = {recipe.number for recipe in RECIPES.values()}
    figures, tables = range(2, 10), range(2, 16)
    assert numbers == {f"Figure {at}" for at in figures} | {f"Table {at}" for at in tables}


def with_labels_per_image(method: str) -> Method:
    return Method.parse(method.replace(LABELS_PER_IMAGE, "2.9"))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_every_method_of_a_recipe_can_be_built(recipe: Recipe) -> None:
    specs = list(recipe.specs(parse=with_labels_per_image))  # parsing a method builds its loss
    assert bool(specs) == bool(recipe.rows or recipe.methods)
    assert {spec.level for spec in specs} <= {COMPLETE.name, *NAMED}
    assert (recipe.kind == "figure") == (recipe.name in FIGURES)
    assert all(timm.is_model_pretrained(model) for model in recipe.models)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_the_header_of_a_recipe_shows_commands_that_parse(recipe: Recipe) -> None:
    (path,) = recipe_folder().glob(f"*/{recipe.name}.yaml")
    commands = re.findall(r"^#   hilltop reproduce (.*)$", path.read_text(), re.MULTILINE)
    assert commands
    for command in commands:
        words = command.split()
        assert words[0] == recipe.name
        parsed = parse(["reproduce", *words])
        assert parsed.names == (recipe.name,)
        needs_none = not recipe.data_sets
        assert parsed.source == "embedded" or needs_none or parsed.run_options.epochs == 31


def test_commands_of_the_page_on_reproduction_parse() -> None:
    page = (recipe_folder().parent / "reproduction" / "README.md").read_text()
    text = re.sub(r"\\\n\s*", "", page)
    commands = re.findall(r"^    hilltop (\w+) ([^#\n]*)", text, re.MULTILINE)
    assert {name for name, _ in commands} == {"compare", "reproduce"}
    for name, rest in commands:
        assert isinstance(parse([name, *rest.split()]), Compare | Reproduce)


def test_runs_on_images_are_trained_as_in_the_paper() -> None:
    config = TrainConfig.from_file(recipe_folder() / PAPER_TRAINING)
    assert (config.epochs, config.schedule_epochs, config.batch_size) == (31, 80, 128)
    assert (config.learning_rate, config.weight_decay, config.ema) == (1e-4, 1e-4, 0.9997)
    assert (config.model.model, config.model.image_size) == ("resnet50.tv_in1k", 448)
    assert config.model.normalise is False
    assert config.loss == "hill"


@pytest.mark.parametrize("command", ["train", "compare", "reproduce"])
def test_the_paper_s_settings_suit_every_command_that_trains(command: str, tmp_path: Path) -> None:
    words = [command, "--labels", tmp_path, "--images", tmp_path, "--val-labels", tmp_path]
    words += ["--config", recipe_folder() / PAPER_TRAINING]
    parsed = parse([*map(str, words), *(["coco"] if command == "reproduce" else [])])
    options = parsed.run_options
    assert options.epochs == 31
    assert options.loss == ("hill" if command == "train" else "auto"), "methods are named there"
    if isinstance(parsed, Compare | Reproduce):
        check_common(command, options)


def test_splc_has_the_threshold_of_the_released_code_where_most_labels_are_left() -> None:
    recipe = RECIPES["coco"]
    columns = [column for column in recipe.columns if column.metric == "mAP"]
    specs = [column.spec(recipe.rows[-1]) for column in columns]
    assert [spec.level for spec in specs] == list(NAMED)
    taus = [dict(spec.method.options).get("tau") for spec in specs]
    assert taus == [0.65, None, None], "0.6 is the usual one"


def test_the_list_shows_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(RECIPES)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["coc"], "There is no table or figure 'coc'. Did you mean 'coco'?"),
        ([], "Give names of tables and figures, or --all"),
        (["coco", "--all"], "Give names of tables and figures, or --all"),
        (["coco"], "Give one source: --root DIR"),
        (["coco", "--labels", "x.csv"], "reproduce needs --val-labels"),
        (["coco", "--labels", "x.csv", "--loss", "asl"], "reproduce sets --loss for each run"),
        (["coco", "--source", "embedded", "--epochs", "3"], "drop --epochs"),
    ],
)
def test_wrong_words_are_told(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_faults_in_recipes_are_reported_together(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "a.yaml").write_text("kind: tabel\nplace: 1\ntitle: A\n")
    (folder / "b.yaml").write_text("kind: table\nplace: 2\ntitel: B\n")
    (folder / "c.yaml").write_text("kind: table\nplace: 3\ntitle: C\nrows: [{paper: x}]\n")
    column = "{paper: x, level: 0.4, metric: mAP}"
    (folder / "d.yaml").write_text(f"kind: table\nplace: 4\ntitle: D\ncolumns: [{column}]\n")
    with pytest.raises(ConfigError) as caught:
        read_recipes(tmp_path)
    message = str(caught.value)
    assert re.search(r"a.yaml: kind .*'tabel'; expected table or statistics or figure", message)
    assert re.search(r"b.yaml: tit\w+ is not known. Did you mean 'title'?", message)
    assert re.search(r"c.yaml: .*'method'", message)
    assert re.search(r"d.yaml: level .*0\.4; expected text", message)


def test_no_recipe_at_all_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no recipes here"):
        read_recipes(tmp_path)


def test_recipes_are_chosen_once_in_the_order_of_the_words() -> None:
    assert [item.name for item in choose_recipes(["coco", "stages", "coco"], RECIPES)] == [
        "coco",
        "stages",
    ]
    with pytest.raises(ArgumentError):
        choose_recipes(["x"], RECIPES)
