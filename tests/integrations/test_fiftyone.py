"""The plugin inside a real FiftyOne, with its database: ``make test-tools`` installs both."""

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FIFTYONE = importlib.util.find_spec("fiftyone")
if FIFTYONE is None:
    pytest.skip("fiftyone is not installed", allow_module_level=True)
DATABASE = Path(*FIFTYONE.submodule_search_locations or (), "db", "bin", "mongod")
if not (DATABASE.is_file() or os.environ.get("FIFTYONE_DATABASE_URI")):
    pytest.skip(f"FiftyOne has no database: {DATABASE} is missing", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # their own

ROWS, CLASSES = 600, ("boat", "car", "dog", "tree")


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins")
    os.environ["FIFTYONE_PLUGINS_DIR"] = str(folder)
    import fiftyone as fo

    fo.config.plugins_dir = str(folder)
    from hilltop.integrations.fiftyone_plugin import install

    install(folder)
    return folder


@pytest.fixture(scope="module")
def truth() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).random((ROWS, len(CLASSES))) < 0.35


@pytest.fixture(scope="module")
def dataset(plugins: Path, truth: np.ndarray[Any, Any]) -> Any:
    import fiftyone as fo

    rng = np.random.default_rng(1)
    labels = truth & (rng.random(truth.shape) < 0.5)  # half of them were forgotten
    vectors = truth @ rng.standard_normal((len(CLASSES), 16))
    vectors += 0.3 * rng.standard_normal(vectors.shape)
    probs = np.where(truth, 0.8, 0.1) + rng.uniform(-0.1, 0.1, truth.shape)
    dataset = fo.Dataset()
    dataset.add_samples(
        [
            fo.Sample(
                filepath=f"/nowhere/{row}.jpg",
                number=row,
                embedding=vectors[row],
                tags_of_people=fo.Classifications(
                    classifications=[
                        fo.Classification(label=CLASSES[at]) for at in np.flatnonzero(labels[row])
                    ]
                ),
                model=fo.Classifications(
                    classifications=[
                        fo.Classification(label=name, confidence=float(prob))
                        for name, prob in zip(CLASSES, probs[row], strict=True)
                    ]
                ),
            )
            for row in range(ROWS)
        ]
    )
    yield dataset
    dataset.delete()


def run(dataset: Any, operator: str, **params: Any) -> dict[str, Any]:
    import fiftyone.operators as foo

    ctx = {"dataset": dataset, "params": params}
    done = foo.execute_operator(f"@hilltop/missing-labels/{operator}", ctx)
    assert done.error is None, done.error
    return dict(done.result)


def test_fiftyone_lists_three_operators(plugins: Path) -> None:
    import fiftyone.operators as foo

    listed = {one.name for one in foo.list_operators(enabled=True)}
    assert {"find_missing_labels", "estimate_missing_labels", "evaluate_incomplete"} <= listed


@pytest.mark.parametrize("scores", ["embedding", "model"])
def test_candidates_are_a_saved_view_with_probabilities(
    dataset: Any, truth: np.ndarray[Any, Any], scores: str
) -> None:
    run(dataset, "find_missing_labels", labels="tags_of_people", scores=scores, top=100)
    view = dataset.load_saved_view("missing labels")
    highest = view.values("tags_of_people_missing_probability")
    assert highest == sorted(highest, reverse=True)
    candidates = [
        (sample.number, CLASSES.index(one.label), one.confidence)
        for sample in view
        for one in sample.tags_of_people_missing.classifications
    ]
    assert len(candidates) == 100
    assert np.mean([truth[row, column] for row, column, _ in candidates]) > 0.95
    labelled = {
        (one.number, c.label) for one in dataset for c in one.tags_of_people.classifications
    }
    assert not labelled & {(row, CLASSES[column]) for row, column, _ in candidates}
    # A second search replaces the first.
    run(dataset, "find_missing_labels", labels="tags_of_people", scores=scores, top=10)
    assert dataset.count("tags_of_people_missing.classifications") == 10


def test_the_estimate_contains_the_true_number(dataset: Any, truth: np.ndarray[Any, Any]) -> None:
    shown = run(dataset, "estimate_missing_labels", labels="tags_of_people", scores="embedding")
    true = truth.sum() - dataset.count("tags_of_people.classifications")
    assert sum(row["low"] for row in shown["table"]) < true
    assert true < sum(row["high"] for row in shown["table"])
    assert dataset.info["hilltop"]["estimate_missing_labels"] == shown


def test_metrics_are_those_of_complete_labels(dataset: Any, truth: np.ndarray[Any, Any]) -> None:
    shown = run(dataset, "evaluate_incomplete", labels="tags_of_people", scores="model")
    metrics = {row["metric"]: row for row in shown["table"]}
    # Predictions above one half are exactly the truth; half of it is labelled.
    assert metrics["OP"]["high"] > 95
    assert metrics["OP"]["low"] > 60


def test_a_view_is_judged_alone(dataset: Any) -> None:
    import fiftyone.operators as foo

    view = dataset.limit(200)
    params = {"labels": "tags_of_people", "scores": "embedding", "view_target": "CURRENT_VIEW"}
    done = foo.execute_operator(
        "@hilltop/missing-labels/estimate_missing_labels",
        {"dataset": dataset, "view": view, "params": params},
    )
    labels = sum(row["labels"] for row in done.result["table"])
    assert labels == view.count("tags_of_people.classifications")


def test_a_field_without_labels_is_named(dataset: Any) -> None:
    from hilltop.errors import ArgumentError
    from hilltop.integrations.fiftyone_plugin import read_field

    with pytest.raises(ArgumentError, match="embedding"):
        read_field(dataset, "embedding")


def test_fields_and_views_of_somebody_else_stay(dataset: Any) -> None:
    from fiftyone.operators.executor import ExecutionError

    search = {"labels": "tags_of_people", "scores": "model", "top": 10, "name": "mine"}
    dataset.save_view("mine", dataset.limit(3))
    with pytest.raises(ExecutionError, match="a saved view 'mine' that Hilltop did not write"):
        run(dataset, "find_missing_labels", **search)
    assert len(dataset.load_saved_view("mine")) == 3
    for copy in ("again", "again_missing"):
        dataset.clone_sample_field("tags_of_people", copy)
    before = dataset.count("again_missing.classifications")
    search |= {"labels": "again", "scores": "embedding", "name": "of the model"}
    with pytest.raises(ExecutionError, match="a field 'again_missing' that Hilltop did not write"):
        run(dataset, "find_missing_labels", **search)
    assert dataset.count("again_missing.classifications") == before


def test_predictions_that_are_listed_twice_count_once(plugins: Path) -> None:
    import fiftyone as fo

    from hilltop.errors import ArgumentError
    from hilltop.integrations.fiftyone_plugin import read_predictions

    def named(label: str | None, confidence: float) -> Any:
        return fo.Classification(label=label, confidence=confidence)

    twice = fo.Classifications(classifications=[named("car", 0.9), named("car", 0.2)])
    dataset = fo.Dataset()
    try:
        dataset.add_sample(fo.Sample(filepath="/nowhere/a.jpg", model=twice))
        assert read_predictions(dataset, "model", ["car", "dog"]).tolist() == [[0.9, 0.0]]
        unnamed = fo.Classifications(classifications=[named(None, 0.2)])
        dataset.add_sample(fo.Sample(filepath="/nowhere/b.jpg", model=unnamed))
        with pytest.raises(ArgumentError, match="in the field 'model' has no label"):
            read_predictions(dataset, "model", ["car"])
    finally:
        dataset.delete()
