"""Where a head starts: at the constant that minimises the loss on the labels."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor, nn

from hilltop.errors import ArgumentError, ArgumentTypeError, HilltopError
from hilltop.losses import (
    LOSSES,
    LabelStats,
    bce,
    best_constant,
    build,
    count_likelihood,
    hill,
    init_head,
    init_head_prior,
    scar_likelihood,
)
from hilltop.losses.init import head_start, log_odds


def labels(share: float = 0.05, rows: int = 400, classes: int = 20) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.rand(rows, classes, generator=generator) < share).float()


def test_cross_entropy_starts_at_the_log_odds_of_a_label() -> None:
    targets = labels()
    share = targets.mean().item()
    assert best_constant(bce(), targets) == pytest.approx(math.log(share / (1 - share)), abs=0.011)


def test_a_likelihood_starts_at_the_share_it_believes_to_be_true() -> None:
    targets = labels()
    share = targets.mean().item() / 0.5
    expected = math.log(share / (1 - share))
    assert best_constant(scar_likelihood(label_frequency=0.5), targets) == pytest.approx(
        expected, abs=0.02
    )


@pytest.mark.parametrize("name", list(LOSSES))
def test_no_registered_loss_can_do_better_with_another_constant(name: str) -> None:
    targets = labels()
    loss = build(name)
    counts = torch.bincount(targets.sum(dim=1).long())
    loss.prepare(LabelStats(len(targets), targets.sum(dim=0).long(), counts, 10))
    index = torch.arange(len(targets))
    start = best_constant(loss, targets)
    with torch.no_grad():
        least = loss(torch.full_like(targets, start), targets, index=index)
        for other in (-8.0, -4.0, start - 0.3, start + 0.3, 2.0):
            assert loss(torch.full_like(targets, other), targets, index=index) >= least


def test_confirmed_absents_and_unknown_pairs_count_for_what_they_are() -> None:
    targets = labels()
    targets[:, 0] = torch.nan
    verified = torch.ones_like(targets, dtype=torch.bool)
    complete = best_constant(scar_likelihood(label_frequency=0.5), targets, verified=verified)
    assert complete == best_constant(bce(), targets)


@pytest.mark.parametrize("classes", [20, 80])
@pytest.mark.parametrize("r", [0.8, 0.9, 1])
def test_one_label_an_image_does_not_start_a_count_where_everything_is_present(
    r: float, classes: int
) -> None:
    targets = torch.eye(classes)
    start = best_constant(count_likelihood(r=r), targets)
    expected = classes * torch.sigmoid(torch.tensor(start)).item()
    assert 0.9 < expected < 3, "labels of an image"


def test_a_count_that_leaves_everything_open_starts_and_learns() -> None:
    """At r = 1 the best constant is 'everything', and from there the ranking is never learnt."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(400, 12, generator=generator)
    true = (features + 0.3 * torch.randn(400, 12, generator=generator)) > 1.2
    true[torch.arange(400), features.argmax(dim=1)] = True
    kept = torch.multinomial(true.float(), 1, generator=generator)
    targets = torch.zeros(400, 12).scatter_(1, kept, 1.0)
    loss, head = count_likelihood(r=1), torch.nn.Linear(12, 12)
    torch.nn.init.zeros_(head.weight)
    init_head(head, loss, targets)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        loss(head(features), targets).backward()
        optimiser.step()
    present = torch.sigmoid(head(features)).detach()
    assert present[true].mean() > present[~true].mean() + 0.3
    assert present.sum(dim=1).mean() < 6


def test_the_head_of_a_model_starts_there() -> None:
    targets = labels(classes=3)
    model = init_head(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), bce(), targets)
    assert isinstance(model, nn.Sequential)
    expected = torch.logit(targets.float().mean(dim=0))
    torch.testing.assert_close(model[2].bias.detach(), expected, rtol=0, atol=0.03)
    with pytest.raises(ArgumentError, match="has no bias to start from"):
        init_head(nn.Linear(4, 3, bias=False), bce(), targets)
    with pytest.raises(ArgumentError, match=r"with 3 outputs, .*but '2' has 4"):
        init_head(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)), bce(), targets)


def test_a_class_starts_as_far_from_the_best_constant_as_its_odds_from_the_average() -> None:
    targets = torch.zeros(100, 2)
    targets[:40, 0], targets[:5, 1] = 1, 1
    for loss in (hill(), scar_likelihood(0.4)):
        start = head_start(loss, targets)
        odds = torch.logit(torch.tensor([0.4, 0.05, 0.225]))
        best = best_constant(loss, targets)
        torch.testing.assert_close(start, best + odds[:2] - odds[2])
    rare = head_start(bce(), torch.zeros(10, 3))
    assert torch.isfinite(rare).all(), "a class without labels starts somewhere"


def test_a_class_of_which_nothing_is_known_starts_at_the_odds_of_all() -> None:
    targets = torch.tensor([[1.0, torch.nan], [0.0, torch.nan], [0.0, torch.nan], [0.0, torch.nan]])
    torch.testing.assert_close(log_odds(targets), torch.logit(torch.tensor([0.25, 0.25])))
    weight = torch.tensor([3.0, 1.0, 1.0, 1.0])
    torch.testing.assert_close(log_odds(targets, weight=weight), torch.zeros(2))


@pytest.mark.parametrize("name", ["gr", "role"])
def test_a_loss_that_guesses_labels_starts_at_the_prior_of_each_class(name: str) -> None:
    targets = labels(classes=3)
    loss = build(name)
    assert loss.self_labelling
    head = init_head(nn.Linear(4, 3), loss, targets)
    torch.testing.assert_close(head.bias, init_head_prior(nn.Linear(4, 3), targets).bias)


class TestHeads:
    """The layer that gives the logits, in models of other libraries."""

    targets = labels(classes=5)

    def start(self, model: nn.Module) -> Tensor:
        init_head(model, bce(), self.targets)
        return torch.logit(self.targets.mean(dim=0))

    def test_timm(self) -> None:
        timm = pytest.importorskip("timm")
        for name in ("resnet18", "vit_tiny_patch16_224", "efficientnet_lite0", "convnext_atto"):
            model = timm.create_model(name, num_classes=5)
            expected = self.start(model)
            torch.testing.assert_close(
                model.get_classifier().bias.detach(), expected, rtol=0, atol=0.03
            )

    def test_both_heads_of_a_distilled_timm_model(self) -> None:
        timm = pytest.importorskip("timm")
        model = timm.create_model("deit_tiny_distilled_patch16_224", num_classes=5)
        expected = self.start(model)
        for head in (model.head, model.head_dist):
            torch.testing.assert_close(head.bias.detach(), expected, rtol=0, atol=0.03)

    def test_torchvision(self) -> None:
        models = pytest.importorskip("torchvision").models
        for model, head in (
            (models.resnet18(num_classes=5), lambda model: model.fc),
            (models.mobilenet_v3_small(num_classes=5), lambda model: model.classifier[-1]),
            (models.squeezenet1_1(num_classes=5), lambda model: model.classifier[1]),
        ):
            expected = self.start(model)
            torch.testing.assert_close(head(model).bias.detach(), expected, rtol=0, atol=0.03)

    def test_hugging_face(self) -> None:
        transformers = pytest.importorskip("transformers")
        config = transformers.ViTConfig(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            num_labels=5,
        )  # fmt: skip
        model = transformers.ViTForImageClassification(config)
        expected = self.start(model)
        torch.testing.assert_close(model.classifier.bias.detach(), expected, rtol=0, atol=0.03)

    def test_both_heads_of_a_distilled_hugging_face_model(self) -> None:
        transformers = pytest.importorskip("transformers")
        config = transformers.DeiTConfig(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            num_labels=5,
        )  # fmt: skip
        model = transformers.DeiTForImageClassificationWithTeacher(config)
        expected = self.start(model)
        for head in (model.cls_classifier, model.distillation_classifier):
            torch.testing.assert_close(head.bias.detach(), expected, rtol=0, atol=0.03)

    def test_a_hidden_layer_as_wide_as_the_head_is_left_alone(self) -> None:
        for layers in ((nn.Linear(4, 5), nn.Linear(5, 5)), (nn.Linear(5, 5), nn.Linear(5, 5))):
            before = layers[0].bias.detach().clone()
            expected = self.start(nn.Sequential(layers[0], nn.ReLU(), layers[1]))
            assert torch.equal(layers[0].bias, before)
            torch.testing.assert_close(layers[1].bias.detach(), expected, rtol=0, atol=0.03)

    def test_a_head_without_a_bias_is_told_how_to_get_one(self) -> None:
        model = nn.Sequential(
            nn.Linear(4, 8), nn.ModuleDict({"score": nn.Linear(8, 5, bias=False)})
        )
        with pytest.raises(ArgumentError, match=r"'1\.score' has no bias") as caught:
            init_head(model, bce(), self.targets)
        (line,) = re.findall(r"made, (model\..*), or leave", str(caught.value))
        exec(line, {"model": model, "torch": torch})
        expected = self.start(model)
        torch.testing.assert_close(model[1]["score"].bias.detach(), expected, rtol=0, atol=0.03)

    def test_auxiliary_heads_start_with_the_main_one(self) -> None:
        models = pytest.importorskip("torchvision").models
        model = models.googlenet(num_classes=5, init_weights=False, aux_logits=True)
        expected = self.start(model)
        for head in (model.fc, model.aux1.fc2, model.aux2.fc2):
            torch.testing.assert_close(head.bias.detach(), expected, rtol=0, atol=0.03)
        layers = {"classifier": nn.Conv2d(8, 5, 1), "aux_classifier": nn.Conv2d(4, 5, 1)}
        self.start(nn.ModuleDict(layers))
        for layer in layers.values():
            torch.testing.assert_close(layer.bias.detach(), expected, rtol=0, atol=0.03)

    def test_a_head_that_does_not_know_its_inputs_is_told_how_to(self) -> None:
        model = nn.Sequential(nn.Flatten(), nn.LazyLinear(5))
        with pytest.raises(ArgumentError, match="'1' does not know its inputs yet"):
            init_head(model, bce(), self.targets)
        model(torch.zeros(2, 3))
        self.start(model)

    def test_a_convolution_of_three_dimensions_is_a_head(self) -> None:
        head = nn.Conv3d(4, 5, 1)
        expected = self.start(head)
        torch.testing.assert_close(head.bias.detach(), expected, rtol=0, atol=0.03)

    def test_targets_of_any_kind_of_matrix(self) -> None:
        sparse = pytest.importorskip("scipy.sparse")
        expected = init_head(nn.Linear(4, 5), bce(), self.targets).bias.detach()
        for targets in (
            self.targets.numpy(),
            self.targets.tolist(),
            self.targets.bool(),
            self.targets.to_sparse(),
            sparse.csr_matrix(self.targets.numpy()),
        ):
            head = init_head(nn.Linear(4, 5), bce(), targets)  # type: ignore[arg-type]
            assert torch.equal(head.bias, expected)

    @pytest.mark.parametrize(
        ("targets", "message"),
        [
            (torch.ones(5), r"shape \(images, classes\), but got \(5,\)"),
            (torch.ones(0, 5), r"shape \(images, classes\), but got \(0, 5\)"),
            (torch.full((2, 5), math.nan), "all NaN"),
            (["cat", "dog"], "array of numbers, .* but got list"),
            (object(), "array of numbers, .* but got object"),
        ],
    )
    def test_targets_that_are_no_matrix(self, targets: object, message: str) -> None:
        head = nn.Linear(4, 5)
        before = head.bias.detach().clone()
        with pytest.raises(HilltopError, match=message):
            init_head(head, bce(), targets)  # type: ignore[arg-type]
        assert torch.equal(head.bias, before)

    def test_what_is_no_model(self) -> None:
        with pytest.raises(ArgumentTypeError, match="model must be a Module, but got int"):
            init_head(3, bce(), self.targets)  # type: ignore[arg-type]

    def test_what_was_done_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 5))
        with caplog.at_level("INFO", logger="hilltop"):
            init_head(model, bce(), self.targets)
        assert caplog.messages[0].startswith("init_head: the bias of '2' (5 classes) now starts")
