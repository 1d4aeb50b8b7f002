"""The watch that warns when training saturates, and the start from which it does not."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hilltop.errors import ArgumentError, HilltopWarning
from hilltop.losses import (
    LOSSES,
    CollapseWatch,
    bce,
    build,
    count_likelihood,
    hill,
    init_head_prior,
    scar_likelihood,
    splc,
)
from tests.data.test_missing import random_table

FEATURES = Path(__file__).parents[3] / "shared" / "data" / "coco16k_lite0.npz"
SATURATES = "Training saturates: after"


def steps(loss: nn.Module, count: int, logit: float, *, spread: float = 1.0) -> None:
    """Give the loss some batches of 8 images, of which 1 pair in 40 is labelled."""
    logits = logit + spread * torch.randn(8, 40, generator=torch.Generator().manual_seed(0))
    targets = torch.zeros(8, 40)
    targets[:, 0] = 1
    for _ in range(count):
        loss(logits.clone().requires_grad_(), targets)


def test_unlabelled_pairs_near_one_are_said_once_with_what_to_do() -> None:
    loss = hill(safe_start=False)
    with pytest.warns(
        HilltopWarning, match=f"{SATURATES} 10 steps 100% of the unlabelled"
    ) as caught:
        steps(loss, 40, 6.0)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "above probability 0.9, where 2.5% of all entries are labelled." in message
    assert "init_head(model, criterion, targets), or lower the learning rate" in message
    assert "watch=False" in message


@pytest.mark.parametrize(
    ("share", "warned"), [(0.04, False), (0.12, False), (0.13, True), (0.4, True)]
)
def test_sure_pairs_count_beyond_a_twentieth_and_three_times_the_labels(
    share: float, warned: bool
) -> None:
    targets = torch.zeros(50, 40)
    targets[:, 0] = 1  # 2.5% of all pairs: the limit is 0.05 + 3 * 0.025 of the others
    logits = torch.full((50, 40), -3.0)
    sure = round(share * 39 * 50)
    logits.view(-1)[(targets.view(-1) == 0).nonzero()[:sure, 0]] = 3.0
    watch = CollapseWatch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(10):
            watch.step(logits.requires_grad_(), targets)
    assert bool(caught) == warned


def test_pairs_that_stay_above_one_half_are_said_at_step_30() -> None:
    loss = hill(safe_start=False)
    steps(loss, 29, 0.5, spread=0.3)
    with pytest.warns(HilltopWarning, match=f"{SATURATES} 30 steps .* above probability 0.5"):
        steps(loss, 1, 0.5, spread=0.3)


def test_the_same_numbers_for_every_image_are_said_at_step_100() -> None:
    loss = hill(safe_start=False)
    steps(loss, 99, -3.0, spread=0.0)
    with pytest.warns(HilltopWarning, match=f"{SATURATES} 100 steps every image gets the same"):
        steps(loss, 1, -3.0, spread=0.0)


def test_nothing_is_said_of_a_healthy_batch_of_validation_or_of_few_pairs() -> None:
    loss = hill(safe_start=False)
    steps(loss, 1001, -4.0)
    with torch.no_grad():
        steps(loss, 40, 6.0)
    few = hill(safe_start=False)
    for _ in range(40):
        few(torch.full((2, 5), 6.0, requires_grad=True), torch.zeros(2, 5))


def test_dense_labels_are_no_collapse() -> None:
    logits = torch.full((8, 40), 4.0, requires_grad=True)
    targets = (torch.arange(40) % 2 == 0).float().expand(8, 40)
    loss = hill(safe_start=False)
    for _ in range(40):
        loss(logits, targets)


def test_losses_that_can_saturate_carry_the_watch_and_others_do_not() -> None:
    flat = {name for name in LOSSES if build(name).can_saturate}
    assert {"hill", "mse", "asl", "splc", "scar_likelihood", "count_likelihood"} <= flat
    assert not flat & {"bce", "wan", "focal", "focal_margin", "role"}
    for name in flat:
        assert isinstance(build(name).watch, CollapseWatch), name
        silent = build(name, watch=False).watch
        assert silent is None or not silent.warn, name  # it only hands back to cross-entropy
        assert build(name, watch=False, safe_start=False).watch is None, name
    for name in set(LOSSES) - flat:
        assert build(name).watch is None, name
    assert splc(bce()).watch is not None
    silent = splc(bce(watch=False)).watch
    assert silent is not None
    assert not silent.warn


def test_the_watch_is_no_part_of_a_state_and_survives_copies() -> None:
    loss = hill(safe_start=False)
    steps(loss, 5, -4.0)
    assert set(loss.state_dict()) == {"epoch"}
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert other.watch.steps == 5
        with pytest.warns(HilltopWarning, match=f"{SATURATES} 10 steps"):
            steps(other, 5, 6.0)


def test_compiled_code_does_not_count() -> None:
    torch.compiler.reset()
    loss = hill(safe_start=False)
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    steps(compiled, 12, 6.0)
    assert loss.watch is not None
    assert loss.watch.steps == 0


def coco() -> tuple[Tensor, Tensor]:
    """Standardised features and the 40% of labels that are left, of the first 10,000 images."""
    if not FEATURES.exists():
        pytest.skip(f"{FEATURES.name} is not there")
    stored = np.load(FEATURES)
    features = stored["X"][:10_000].astype(np.float32)
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-6)
    return torch.from_numpy(features), torch.from_numpy(stored["Y_04left"][:10_000]).float()


def first_epoch(name: str, features: Tensor, labels: Tensor, *, prior: bool, rate: float) -> None:
    torch.manual_seed(0)
    head, loss = (
        nn.Linear(features.shape[1], labels.shape[1]),
        build(name, reduction="sum", safe_start=False),
    )
    nn.init.zeros_(head.bias)
    if prior:
        init_head_prior(head, labels)
    optimizer = torch.optim.Adam(head.parameters(), lr=rate)
    for rows in torch.randperm(len(features)).split(128):
        optimizer.zero_grad()
        loss(head(features[rows]), labels[rows]).backward()
        optimizer.step()


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-3, 3e-3])
@pytest.mark.parametrize("name", ["hill", "splc", "scar_likelihood", "count_likelihood"])
def test_on_real_features_bias_zero_is_warned_of_and_the_prior_is_not(
    name: str, rate: float
) -> None:
    features, labels = coco()
    with pytest.warns(HilltopWarning, match="Start the head where this loss is least"):
        first_epoch(name, features, labels, prior=False, rate=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first_epoch(name, features, labels, prior=True, rate=rate)


class TestInitHeadPrior:
    """Where the head starts."""

    targets = torch.tensor(
        [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, float("nan"), 0.0], [1.0, 0, 0]]
    )

    @staticmethod
    def start(labels: object, **options: object) -> list[float]:
        head = init_head_prior(nn.Linear(2, 3), labels, **options)
        return head.bias.detach().sigmoid().tolist()

    def test_targets_give_their_share_of_known_images(self) -> None:
        rare = pytest.approx(0, abs=1e-4)
        assert self.start(self.targets) == [pytest.approx(3 / 4), pytest.approx(1 / 3), rare]
        assert self.start(self.targets) == self.start([0.75, 1 / 3, 0.0])

    def test_a_table_gives_its_share(self) -> None:
        table = random_table(200, 3)
        shares = [
            len([row for row in range(200) if name in table.labels_of(row)]) / 200
            for name in table.classes
        ]
        assert self.start(table) == pytest.approx(shares, abs=1e-6)

    def test_a_label_frequency_raises_the_start_but_not_above_one_half(self) -> None:
        assert self.start([0.1, 0.4, 0.7], label_frequency=0.5) == pytest.approx([0.2, 0.5, 0.7])
        assert self.start([0.1, 0.1, 0.1], label_frequency=[0.2, 0.5, 1]) == pytest.approx(
            [0.5, 0.2, 0.1]
        )

    def test_a_class_of_which_nothing_is_known_starts_at_the_mean(self) -> None:
        targets = self.targets.clone()
        targets[:, 1] = float("nan")
        assert self.start(targets)[1] == pytest.approx(3 / 8)

    @pytest.mark.parametrize(
        ("labels", "options", "message"),
        [
            ([0.1, 0.2], {}, "one class for each of 3 outputs of the last layer, but got 2"),
            (torch.zeros(4, 2), {}, "one class for each of 3 outputs of the last layer, but got 2"),
            ([0.1, 0.2, 1.5], {}, "share of labelled images must lie between 0 and 1"),
            (torch.full((4, 3), -1.0), {}, "labels must lie between 0 and 1, or be NaN"),
            (torch.zeros(2, 2, 3), {}, r"shape \(images, classes\), but got \(2, 2, 3\)"),
            (0.1, {"label_frequency": 0.0}, "label_frequency must be greater than 0 and at most 1"),
            (
                0.1,
                {"label_frequency": [0.5, 0.5]},
                "label_frequency must be one number or one for each of 3 classes",
            ),
        ],
    )
    def test_labels_that_do_not_fit(
        self, labels: object, options: dict[str, object], message: str
    ) -> None:
        with pytest.raises(ArgumentError, match=message):
            self.start(labels, **options)

    def test_a_model_without_a_bias_is_an_error(self) -> None:
        with pytest.raises(ArgumentError, match="no linear or convolution layer with a bias"):
            init_head_prior(nn.Linear(2, 3, bias=False), 0.1)


def test_the_likelihoods_can_be_told_not_to_watch() -> None:
    for loss in (scar_likelihood, count_likelihood):
        steps(loss(watch=False, safe_start=False), 40, 6.0)
