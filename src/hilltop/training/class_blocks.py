"""Cross-validated heads of very many classes, a block of classes at a time.

Heads of cross-entropy of different classes are problems of their own. A block is fitted to all
images with a label of its classes, and to a sample of the others that is weighted to stand for all
of them. The mean gradient of many more images then takes the place of the sample's, and the block
is fitted once more from where it is: so the heads are close to those of all images. Only weights
are kept; logits are computed when somebody asks for them.

Reference:
    Jordan, Lee and Yang, "Communication-Efficient Distributed Statistical Inference", JASA 2019.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data import LabelTable, State
from hilltop.data.files import replacing
from hilltop.data.label_table import entries_of
from hilltop.inputs.ranks import Ranks
from hilltop.models import FeatureHead, input_rows
from hilltop.progress import ProgressLog
from hilltop.training.folds import HeadShards, assign_folds
from hilltop.training.learner import step_threads
from hilltop.training.logistic import (
    Entries,
    LogisticSolver,
    ScaledRows,
    Spectrum,
    l2_penalty,
    label_log_odds,
)
from hilltop.training.recipe import HEADS, Recipe

Ints = npt.NDArray[np.int64]
DENSE_PAIRS = 1 << 26
"""Pairs of images and classes up to which targets and logits are held as matrices, which takes
about 60 bytes a pair: 4 GB."""
BACKGROUND = 1 << 13
"""Images without a label of the block that its heads learn from, at the most."""
LABELLED = 1 << 15
"""Images with a label of the block that its heads learn from, at the most."""
CORRECTED_PAIRS = 1 << 31
"""Pairs of all classes and of the images whose gradients correct what the sample says."""
_CORRECTED_LABELLED = 1 << 19
_BLOCK_ENTRIES = 1 << 20
_CHUNK_ENTRIES = 1 << 20
_SAVED_BLOCKS = 16


@dataclass(frozen=True, eq=False)
class FoldHeads:
    """Heads of all classes, each trained on all folds but one.

    Attributes:
        features: One row an image ``(N, F)``.
        head: The scale of the features.
        weight: Weights ``(heads, C, F)``.
        bias: Biases ``(heads, C)``.
        fold_of: Fold of each image in each deal ``(N, repeats)``.
    """

    features: Tensor
    head: FeatureHead
    weight: Tensor
    bias: Tensor
    fold_of: Tensor

    @torch.no_grad()
    def logits(self, first: int, last: int) -> Tensor:
        """Return out-of-fold logits of the images from a first one to before a last one."""
        inputs = self.head.scaled(input_rows(self.features, torch.arange(first, last))).float()
        repeats = self.fold_of.shape[1]
        folds, found = len(self.weight) // repeats, inputs.new_zeros(len(inputs), len(self.bias[0]))
        for number, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            mine = self.fold_of[first:last, number // folds] == number % folds
            rows = torch.nonzero(mine).flatten()
            if len(rows):
                found.index_add_(0, rows, torch.addmm(bias, inputs[rows], weight.T))
        return found.div_(repeats)


def fit_fold_heads(
    features: Tensor,
    table: LabelTable,
    rows: Ints,
    *,
    folds: int,
    repeats: int,
    seed: int,
    say: Callable[[str], None],
    shards: HeadShards | None = None,
    recipe: Recipe = HEADS,
) -> FoldHeads:
    """Fit heads of cross-entropy on all folds but one, a block of classes at a time.

    Memory grows with the features and with the weights, ``folds * repeats * C * F`` numbers; not
    with images x classes. Folds are those of :func:`~hilltop.training.folds.cross_validate`.

    Args:
        features: One row for each of ``rows``.
        table: The labels.
        rows: Image numbers in the table.
        folds: Into how many parts the images are dealt.
        repeats: How often they are dealt anew.
        seed: The same seed gives the same heads.
        say: Takes a sentence for the user.
        shards: Several processes that share the blocks, and the folder where finished ones stay.
        recipe: How the heads are trained.
    """
    generator = torch.Generator().manual_seed(seed)
    deals = [assign_folds(len(rows), folds, generator) for _ in range(repeats)]
    fold_of, classes = torch.stack(deals, dim=1).to(torch.uint8), len(table.classes)
    head = FeatureHead(features.shape[1], 1, hidden=None)
    recipe = recipe.for_head(
        head, features, lambda some: (torch.from_numpy(table.batch(rows[some])[0]), None), seed=seed
    )
    learning = _Learning(features, table, rows, head, recipe, fold_of, folds, seed)
    blocks = list(learning.blocks())
    say(
        f"training {repeats * folds} heads of {classes:,} classes on {len(rows):,} images in"
        f" {len(blocks)} blocks of classes, none on its own fold"
    )
    weight = torch.empty(repeats * folds, classes, features.shape[1])
    bias = torch.empty(repeats * folds, classes)
    units = [blocks[at : at + _SAVED_BLOCKS] for at in range(0, len(blocks), _SAVED_BLOCKS)]
    with contextlib.ExitStack() as stack:
        if shards is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            shards = HeadShards(Path(folder), Ranks())
        files = _unit_files(shards.parts, learning, len(units))

        def solve(number: int) -> None:
            if not files[number].is_file():
                solved = learning.solve_all(units[number])
                with replacing(files[number]) as temporary:
                    np.savez(temporary, weight=solved[0].numpy(), bias=solved[1].numpy())

        mine = len(shards.ranks.share(range(len(units))))
        with ProgressLog("cross-validation", mine, "parts") as said:
            for done, _ in enumerate(shards.ranks.each(range(len(units)), solve), start=1):
                said.update(done)
        for unit, file in zip(units, files, strict=True):
            columns = np.concatenate(unit)
            with np.load(file, allow_pickle=False) as content:
                weight[:, columns] = torch.from_numpy(content["weight"])
                bias[:, columns] = torch.from_numpy(content["bias"])
    return FoldHeads(features, head, weight, bias, fold_of)


class _Sample(NamedTuple):
    """Images to learn from, in order, and how many images each stands for."""

    images: Ints
    weight: npt.NDArray[np.float64]

    def parts(self, size: int) -> Iterator[_Sample]:
        """Yield so many images at a time."""
        for first in range(0, len(self.images), size):
            here = slice(first, first + size)
            yield _Sample(self.images[here], self.weight[here])


class _Learning:
    """What the heads of all blocks learn from."""

    def __init__(
        self,
        features: Tensor,
        table: LabelTable,
        rows: Ints,
        head: FeatureHead,
        recipe: Recipe,
        fold_of: Tensor,
        folds: int,
        seed: int,
    ) -> None:
        self.features, self._head, self._table, self._rows = features, head, table, rows
        assert recipe.weight_decay is not None
        self.decay, self.slope = recipe.weight_decay, recipe.slope
        self._fold_of, self._folds, self.seed = fold_of, folds, seed
        listed, lengths = entries_of(table.indptr, rows)
        present = table.states[listed] == State.PRESENT
        columns = table.columns[listed][present]
        order = np.argsort(columns, kind="stable")
        self.images = np.repeat(np.arange(len(rows)), lengths)[present][order]
        self.counts = np.bincount(columns, minlength=len(table.classes))
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        order = np.random.default_rng([seed, 1]).permutation(len(rows))
        most = max(BACKGROUND, CORRECTED_PAIRS // len(self.counts))
        self._background, self._corrected = np.sort(order[:BACKGROUND]), np.sort(order[:most])
        self._spectrum = Spectrum(self._inputs(self._background))

    def blocks(self) -> Iterator[Ints]:
        """Yield classes that are fitted together, from rare ones to common ones."""
        heads = self._folds * self._fold_of.shape[1]
        block: list[int] = []
        labelled = 0
        for column in np.argsort(self.counts, kind="stable").tolist():
            more = labelled + int(self.counts[column])
            entries = (len(self._background) + min(more, LABELLED)) * (len(block) + 1) * heads
            if block and (more > LABELLED or entries > _BLOCK_ENTRIES):
                yield np.array(block)
                block, more = [], int(self.counts[column])
            block.append(column)
            labelled = more
        yield np.array(block)

    def solve_all(self, blocks: list[Ints]) -> tuple[Tensor, Tensor]:
        """Fit the heads of some blocks: weights ``(heads, classes, F)`` and biases."""
        weights, biases = zip(*(self._solve(block) for block in blocks), strict=True)
        return torch.cat(weights, dim=1), torch.cat(biases, dim=1)

    def _solve(self, columns: Ints) -> tuple[Tensor, Tensor]:
        sample = self._sample(columns, self._background, LABELLED)
        entries, scoring = self._entries(columns, sample), self._scoring(sample.images)
        inputs = self._inputs(sample.images)
        inputs.spectrum = self._spectrum
        heads, width = scoring.shape[1], inputs.shape[1]
        weight, bias = torch.zeros(heads * len(columns), width), torch.zeros(heads * len(columns))
        penalty = l2_penalty(self.decay, entries)
        solver = LogisticSolver(
            weight, bias, inputs, entries, penalty, learns=scoring == 0, slope=self.slope
        )
        with step_threads(len(sample.images), width, len(weight)):
            solver.solve()
            more = self._sample(columns, self._corrected, _CORRECTED_LABELLED)
            if len(more.images) > len(sample.images):
                fit_bias = solver.fit_bias
                here, there = (
                    self._mean_gradient(columns, some, weight, fit_bias, bias)
                    for some in (sample, more)
                )
                solver.tilt(there[0] - here[0], there[1] - here[1])
                solver.solve()
        # As in cross-validation of all classes together: scores of folds are comparable.
        whole = label_log_odds(entries.rows @ entries.positive, entries.rows @ entries.total)
        level = whole.repeat(heads) - solver.log_odds
        return weight.view(heads, len(columns), width), (bias + level).view(heads, len(columns))

    def _mean_gradient(
        self, columns: Ints, sample: _Sample, weight: Tensor, fit_bias: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradient of the mean loss of each head by weights, and its mean error, over a sample."""
        gradient, surplus = torch.zeros_like(weight), torch.zeros_like(bias)
        rows: Tensor | float = 0.0
        for part in sample.parts(max(1, _CHUNK_ENTRIES // len(weight))):
            entries, inputs = self._entries(columns, part), self._scaled(part.images)
            learns = (self._scoring(part.images) == 0) * entries.rows.unsqueeze(1)
            scores = inputs @ weight.T
            by_weight = (
                _errors(scores / self.slope + fit_bias, entries)
                .mul_(learns.unsqueeze(2))
                .flatten(1)
            )
            gradient.addmm_(by_weight.T, inputs)
            shifted = _errors(scores.add_(bias), entries)
            surplus += torch.einsum("nhc,nh->hc", shifted, learns).flatten()
            rows = rows + learns.sum(dim=0)
        assert isinstance(rows, Tensor)
        rows = rows.repeat_interleave(len(columns))
        return gradient / rows.unsqueeze(1), surplus / rows

    def _entries(self, columns: Ints, sample: _Sample) -> Entries:
        """Labels of some classes in a sample, as weights."""
        targets = np.zeros((len(sample.images), len(columns)), dtype=np.float32)
        for at, column in enumerate(columns.tolist()):
            mine = self._labelled(column)
            place = np.searchsorted(sample.images, mine).clip(max=len(targets) - 1)
            targets[place[sample.images[place] == mine], at] = 1.0
        positive = torch.from_numpy(targets)
        known, scopes = torch.ones_like(positive), self._table.scopes
        if scopes is not None:
            looked = scopes.looked_for[scopes.of_image[self._rows[sample.images]]][:, columns]
            known = torch.from_numpy(looked).float().maximum(positive)
        return Entries(positive, known, torch.from_numpy(sample.weight).float())

    def _scoring(self, images: Ints) -> Tensor:
        """1 for the heads that are to score an image, which do not learn from it."""
        folds = self._fold_of[torch.from_numpy(images)].long()
        return torch.nn.functional.one_hot(folds, self._folds).flatten(1)

    def _sample(self, columns: Ints, background: Ints, most: int) -> _Sample:
        """Images with a label of these classes, at most so many, and those of the background."""
        labelled = np.unique(np.concatenate([self._labelled(one) for one in columns.tolist()]))
        others = np.setdiff1d(background, labelled, assume_unique=True)
        outside = (len(self._rows) - len(labelled)) / max(1, len(others))
        inside = max(1.0, len(labelled) / most)
        if len(labelled) > most:
            rng = np.random.default_rng([self.seed, 2, int(columns[0])])
            labelled = rng.permutation(labelled)[:most]
        chosen = np.concatenate([labelled, others])
        weight = np.repeat([inside, outside], [len(labelled), len(others)])
        order = np.argsort(chosen)
        return _Sample(chosen[order], weight[order])

    def _labelled(self, column: int) -> Ints:
        found: Ints = self.images[self._starts[column] : self._starts[column + 1]]
        return found

    def _inputs(self, images: Ints) -> ScaledRows:
        return ScaledRows(self._scaled(images), None)

    def _scaled(self, images: Ints) -> Tensor:
        return self._head.scaled(input_rows(self.features, torch.from_numpy(images))).float()


def _errors(logits: Tensor, entries: Entries) -> Tensor:
    """Probabilities minus labels, times weights ``(rows, heads, classes)``; logits are used up."""
    probs = logits.sigmoid_().view(len(logits), -1, entries.total.shape[1])
    return probs.mul_(entries.total.unsqueeze(1)).sub_(entries.positive.unsqueeze(1))


def _unit_files(parts: Path, learning: _Learning, number: int) -> list[Path]:
    """Where heads are kept: names follow from everything that they depend on, about."""
    parts.mkdir(parents=True, exist_ok=True)
    features = learning.features
    how = f"{learning.decay} {learning.slope} {learning.seed}"
    settings = f"{tuple(features.shape)} {how} {number}"
    digest = hashlib.blake2b(settings.encode(), digest_size=8)
    some = features[:: max(1, len(features) // 4096)].contiguous()
    for array in (some.view(torch.uint8).numpy(), learning.images, learning.counts):
        digest.update(np.ascontiguousarray(array).data)
    name = digest.hexdigest()
    return [parts / f"heads-{name}-{at:04}.npz" for at in range(number)]
