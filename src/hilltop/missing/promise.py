"""Promises: thresholds whose recall or precision holds with a stated confidence.

Labels that annotators left out make every threshold that is fitted to labels wrong. A person who
answers a few hundred questions, drawn in a known random order, makes a promise possible that holds
however wrong scores and model are. The model only makes it tight. ``docs/promises.md`` has the
theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from hilltop.checks import check_choice, check_number, check_same_shape, check_whole, pluralize
from hilltop.errors import ArgumentError, MissingExtra
from hilltop.missing import priors
from hilltop.missing.answers import Flags, Ints, PlannedPairs, SampledAnswers
from hilltop.missing.logistic import Floats, as_floats
from hilltop.missing.model import MissingLabelModel

Metric = Literal["recall", "precision"]
Over = Literal["new", "these"]
GRID = 120
"""Thresholds that are tried, at equal steps of the expected recall."""
LEVELS: Floats = np.linspace(0.005, 0.995, 199)
"""Recalls and precisions that are tried for one threshold."""
EVERYTHING = -1.0
"""A threshold that every score exceeds."""
MIN_CLASS_ANSWERS = 30
"""Answers about a class from which it gets a threshold of its own."""
_HOPES = (200, 500, 1000, 2000)
_DRAWS, _QUANTILES = 16, 101
_SURE = 1e-6
_KS_1_PERCENT = 1.63
_IMAGES_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Promise:
    """A threshold with a guarantee.

    Attributes:
        metric: What is promised.
        wanted: The least value of it.
        confidence: Probability, over the random choice of questions, that it holds.
        over: Whether it is about images like these, or about these alone.
        threshold: Scores above it are tags; None where nothing can be promised.
        tags: How many tags that makes of these images.
        expected: Recall and precision that the model expects there.
        answers: Answers that it rests on.
        images: Number of images that the questions were drawn from.
        curve: Threshold, tags and lower bound of the metric for plots; empty unless asked for.
        profile: Quantiles of the expected number of labels of an image, to notice other images.
    """

    metric: Metric
    wanted: float
    confidence: float
    over: Over
    threshold: float | None
    tags: int
    expected: dict[str, float]
    answers: int
    images: int
    curve: tuple[tuple[float, float, float], ...] = ()
    profile: tuple[float, ...] = field(default=(), repr=False)

    def describe(self) -> str:
        """Return the promise in a sentence."""
        images = pluralize(self.images, "image", "images")
        where = f"these {images}" if self.over == "these" else f"images like these {images}"
        said = f"{self.metric} of at least {self.wanted:.0%} over {where}"
        rests = f"{self.confidence:.0%} confidence, {pluralize(self.answers, 'answer', 'answers')}"
        if self.threshold is None:
            return f"No threshold has a {said} with {rests}."
        if self.threshold == EVERYTHING:
            return f"Only tagging every class of every image has a {said} ({rests})."
        return (
            f"Scores above {self.threshold:.4g} have a {said} ({rests}). They make"
            f" {pluralize(self.tags, 'tag', 'tags')} here; the model expects recall"
            f" {self.expected['recall']:.0%} and precision {self.expected['precision']:.0%}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name, as ``--json`` prints it and :meth:`from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Promise:
        """Return what :meth:`as_dict` wrote."""
        values = dict(content)
        for name in ("curve", "profile"):
            values[name] = tuple(values[name])
        return cls(**values)

    def differs(self, probs: Any) -> str | None:
        """Say how new images differ from those that were asked about; None where they do not.

        The expected numbers of labels of images are compared by a two-sample Kolmogorov-Smirnov
        test at the 1% level.

        Args:
            probs: Scores of new images ``(N, C)``, by the same model.
        """
        sums, known = np.sort(np.nansum(as_floats(probs), axis=1)), np.asarray(self.profile)
        if not len(sums) or not len(known):
            return None
        places = np.linspace(0, 1, len(known))
        reached = np.searchsorted(sums, known, side="right") / len(sums)
        below = np.searchsorted(sums, known, side="left") / len(sums)
        gap = float(np.maximum(reached - places, places - below).max()) - 1 / (len(known) - 1)
        if gap <= _KS_1_PERCENT * np.sqrt(1 / len(sums) + 1 / self.images):
            return None
        middle = known[len(known) // 2]
        return (
            "These images are not like those that were asked about: the scores of an image add up"
            f" to {np.median(sums):.3g} labels, there to {middle:.3g} (medians). The promise is"
            " about images like those; ask about some of these to renew it."
        )

    def plot(self) -> Any:
        """Draw the number of tags against what can be promised, and return the figure."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtra("plot", error.name, "train") from None
        if not self.curve:
            raise ArgumentError("This promise has no curve. Make it with curve=True.")
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        _, tags, bound = np.asarray(self.curve).T
        axes.plot(bound, tags / self.images, marker=".")
        axes.axvline(self.wanted, linestyle=":", color="gray")
        axes.set(
            xlabel=f"{self.metric} that holds with {self.confidence:.0%} confidence",
            ylabel="tags per image",
            yscale="log",
        )
        return figure


class PromiseTest:
    r"""Images with incomplete labels, and scores of a model that did not learn from them.

    All open (image, class) pairs stand in one random order, drawn without replacement in
    proportion to

    .. math:: w_i = \sqrt{p_i (1 - p_i) + \epsilon^2}

    A person is asked from the top. Every beginning of the order is a sample that a promise can rest
    on, so that one may look at any time and ask on.

    Labels are taken to be right. Pairs that a person verified to be absent are known, too.

    Args:
        scores: Of each pair ``(N, C)``; tags are scores above a threshold.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part ``(N, C)``.
        verified: True where a person verified that an entry is absent.
        probs: Probability that each open entry is present; without it :func:`present_probs`, for
            which scores must be probabilities. They may be wrong, but must not depend on the
            answers.
        seed: Of the random order.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(-2, 3, (2000, 4))
        >>> scores = 1 / (1 + np.exp(-logits))
        >>> true = rng.random((2000, 4)) < scores
        >>> test = PromiseTest(scores, true & (rng.random((2000, 4)) < 0.4))
        >>> ask = test.plan(300)
        >>> answers = ask.answered(true[ask.rows, ask.columns])
        >>> found = test.promise("recall", 0.9, answers)
        >>> bool((true & (scores > found.threshold)).sum() >= 0.9 * true.sum())
        True
    """

    def __init__(
        self, scores: Any, targets: Any, *, verified: Any = None, probs: Any = None, seed: int = 0
    ) -> None:
        """Find what is known, what is open and how probable that is, and draw the order."""
        values, labels = as_floats(scores), as_floats(targets)
        check_same_shape("scores", values.shape, "targets", labels.shape)
        absent = np.zeros(labels.shape, dtype=bool)
        if verified is not None:
            absent = (as_floats(verified) == 1) & (labels == 0)
        if probs is None:
            probs = present_probs(values, labels, verified=verified)
        check_same_shape("probs", np.shape(probs), "targets", labels.shape)
        there = ~np.isnan(labels) & ~np.isnan(values)
        still = there & (labels == 0) & ~absent
        self.images, self.classes = labels.shape
        rows, columns = np.nonzero(there)
        self._all = _Pairs(
            rows,
            columns,
            values[there],
            np.where(still, as_floats(probs), labels)[there].astype(np.float64),
            still[there],
        )
        self._all.probs[self._all.open] = np.clip(self._all.probs[self._all.open], _SURE, 1 - _SURE)
        rng = np.random.default_rng(seed)
        weights = _weights(self._all.probs[self._all.open])
        self._keys = np.full(len(rows), np.inf)
        # Exponential clocks ring in the order of successive draws in proportion to their rates.
        self._keys[self._all.open] = rng.exponential(size=len(weights)) / weights
        self.profile = tuple(
            np.quantile(np.nansum(values, axis=1), np.linspace(0, 1, _QUANTILES)).tolist()
        )

    def plan(self, number: int, *, answers: SampledAnswers | None = None) -> PlannedPairs:
        """Return the pairs to ask about next.

        Args:
            number: How many.
            answers: Answers so far; the pairs after them in the order are returned.
        """
        check_whole("number", number, low=1)
        done = 0 if answers is None else len(self._sequence(answers).places)
        last = min(done + number, int(self._all.open.sum()))
        places = self._first(last)
        weights = _weights(self._all.probs[places])
        # Probability to be among the first: what `evaluate` weights answers with.
        clock = self._keys[places].max() if last else 0.0
        inclusion = np.clip(-np.expm1(-weights * clock), 1e-12, 1.0)
        chosen = slice(done, last)
        return PlannedPairs(
            self._all.rows[places][chosen],
            self._all.columns[places][chosen],
            self._all.probs[places][chosen],
            inclusion[chosen],
        )

    def promise(
        self,
        metric: Metric,
        wanted: float,
        answers: SampledAnswers,
        *,
        confidence: float = 0.9,
        over: Over = "new",
        column: int | None = None,
        curve: bool = False,
    ) -> Promise:
        """Return the threshold with the fewest (recall) or most (precision) tags that keeps it.

        Args:
            metric: ``recall``, the share of the true labels that become tags, or ``precision``,
                the share of the tags that are true, of all pairs together.
            wanted: Its least value.
            answers: What people said of pairs of :meth:`plan`. Others are not used. ``unsure`` and
                gaps count as the worst case. The number of answers of one batch must not depend on
                what they say; whether there is another batch may.
            confidence: Probability that the promise holds.
            over: ``these`` images, which is exact; or ``new`` images like these, which adds a
                margin for the choice of images, by the normal approximation.
            column: A class to promise it for alone.
            curve: Whether to find what can be promised at other thresholds, too, for plots. These
                bounds hold one by one, not together.

        Raises:
            ArgumentError: A number is out of range.
        """
        self._check(metric, wanted, confidence, over)
        pairs = self._population(column)
        sequence = self._sequence(answers, column)
        grid = _thresholds(pairs)
        held = _Hypotheses.of_metric(
            metric, np.full(len(grid), wanted), np.arange(len(grid)), pairs, grid, self.images
        )
        delta = 1 - confidence
        if over == "new":
            held, delta = held.with_margin(0.1 * delta), 0.9 * delta
        kept = _rejected(held, _Draws.of(pairs, grid, sequence), sequence.ends, delta)[0]
        at = held.chosen(kept)
        threshold = None if at is None else float(grid[at])
        found, tags = _expected(pairs, threshold)
        points: tuple[tuple[float, float, float], ...] = ()
        if curve:
            places = np.unique(np.linspace(0, len(grid) - 1, 24).astype(int))
            points = tuple(
                (float(grid[place]), _expected(pairs, float(grid[place]))[1], bound)
                for place in places
                if (bound := self._bound(metric, grid, place, pairs, sequence, delta, over)) > 0
            )
        return Promise(
            metric, wanted, confidence, over, threshold, tags, found, sequence.answered,
            self.images, points, self.profile,
        )  # fmt: skip

    def bound(
        self,
        metric: Metric,
        threshold: float,
        answers: SampledAnswers,
        *,
        confidence: float = 0.9,
        over: Over = "new",
        column: int | None = None,
    ) -> float:
        """Return the highest recall or precision that can be promised at a threshold; 0 for none.

        The threshold must not depend on the answers.
        """
        self._check(metric, 0.5, confidence, over)
        pairs = self._population(column)
        sequence, delta = self._sequence(answers, column), 1 - confidence
        delta *= 0.9 if over == "new" else 1.0
        return self._bound(metric, np.array([threshold]), 0, pairs, sequence, delta, over)

    def outlook(
        self,
        metric: Metric,
        wanted: float,
        *,
        answers: SampledAnswers | None = None,
        confidence: float = 0.9,
        over: Over = "new",
        numbers: Sequence[int] = _HOPES,
    ) -> dict[int, float | None]:
        """Return how many tags a promise would allow after so many answers, if the model is right.

        Further answers are drawn from the model; the median of a few draws is returned, None where
        no threshold could be promised.
        """
        self._check(metric, wanted, confidence, over)
        pairs, grid = self._all, _thresholds(self._all)
        held = _Hypotheses.of_metric(
            metric, np.full(len(grid), wanted), np.arange(len(grid)), pairs, grid, self.images
        )
        delta = 1 - confidence
        if over == "new":
            held, delta = held.with_margin(0.1 * delta), 0.9 * delta
        told = self._sequence(answers or SampledAnswers.none())
        tags = np.append(_tags(pairs, grid), np.nan)
        rng, found = np.random.default_rng(0), {}
        for number in numbers:
            number = min(number, int(pairs.open.sum()))
            places = self._first(number)
            present = (rng.random((_DRAWS, number)) < pairs.probs[places]).astype(np.float64)
            known = min(number, len(told.places))
            present[:, :known] = told.present[0, :known]
            draws = _Draws.of(pairs, grid, _Sequence(places, present, (number,), number))
            rejected = _rejected(held, draws, (number,), delta)
            chosen = [held.chosen(one) for one in rejected]
            median = float(np.median([tags[-1 if at is None else at] for at in chosen]))
            found[number] = None if np.isnan(median) else median
        return found

    def class_answers(self, answers: SampledAnswers) -> Ints:
        """Return how many answers of the plan are about each class ``(C,)``."""
        places = self._sequence(answers).places
        return np.bincount(self._all.columns[places], minlength=self.classes)

    def used(self, answers: SampledAnswers) -> int:
        """Return how many of these answers a promise rests on."""
        return self._sequence(answers).answered

    def _bound(
        self,
        metric: Metric,
        grid: Floats,
        place: int,
        pairs: _Pairs,
        sequence: _Sequence,
        delta: float,
        over: Over,
    ) -> float:
        """The highest level that is promised at one threshold of a grid."""
        places = np.full(len(LEVELS), place)
        held = _Hypotheses.of_metric(metric, LEVELS, places, pairs, grid, self.images)
        if over == "new":
            held = held.with_margin(delta / 9)
        kept = _rejected(held, _Draws.of(pairs, grid, sequence), sequence.ends, delta)[0]
        reached = int(np.cumprod(kept).sum())
        return float(LEVELS[reached - 1]) if reached else 0.0

    def _population(self, column: int | None) -> _Pairs:
        return self._all if column is None else self._all.only(self._all.columns == column)

    def _first(self, number: int) -> Ints:
        """The first pairs of the random order."""
        if number >= len(self._keys):
            return np.argsort(self._keys)[:number]
        first = np.argpartition(self._keys, max(number - 1, 0))[:number]
        return first[np.argsort(self._keys[first])]

    def _sequence(self, answers: SampledAnswers, column: int | None = None) -> _Sequence:
        """The beginning of the order that was answered: at least half of it, from the top."""
        pairs = self._all
        flat = pairs.rows * self.classes + pairs.columns  # ascending: pairs are in row order
        asked = answers.rows * self.classes + answers.columns
        at = np.minimum(np.searchsorted(flat, asked), max(len(flat) - 1, 0))
        mine = (flat[at] == asked) & pairs.open[at] if len(flat) else np.zeros(0, dtype=bool)
        at, said, batch = at[mine], answers.present[mine], answers.batch[mine]
        order = np.argsort(self._keys[at], kind="stable")
        at, said, batch = at[order], said[order], batch[order]
        ranks = _ranks(self._keys, self._keys[at])
        dense = np.flatnonzero(np.arange(1, len(at) + 1) * 2 >= ranks + 1)
        count = int(dense[-1]) + 1 if len(dense) else 0
        length = int(ranks[count - 1]) + 1 if count else 0
        places, present = self._first(length), np.full(length, np.nan)
        present[ranks[:count]] = said[:count]
        batch = batch[:count]
        ends = [int(ranks[:count][batch == one].max()) + 1 for one in np.unique(batch)]
        if column is not None:
            inside = pairs.columns[places] == column
            ends = [int(inside[:end].sum()) for end in ends]
            count = int((~np.isnan(present[inside])).sum())
            renumbered = np.cumsum(pairs.columns == column) - 1
            places, present = renumbered[places[inside]], present[inside]
        return _Sequence(places, present[None], tuple(sorted(set(ends))), count)

    @staticmethod
    def _check(metric: str, wanted: float, confidence: float, over: str) -> None:
        check_choice("metric", metric, get_args(Metric))
        check_choice("over", over, get_args(Over))
        check_number("wanted", wanted, low=0, high=0.999, low_open=True)
        check_number("confidence", confidence, low=0.5, high=0.9999)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All (image, class) pairs; ``probs`` is 0 or 1 where the truth is known."""

    rows: Ints
    columns: Ints
    scores: Floats
    probs: Floats
    open: Flags

    def only(self, chosen: Flags) -> _Pairs:
        return _Pairs(
            self.rows[chosen], self.columns[chosen], self.scores[chosen], self.probs[chosen],
            self.open[chosen],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Sequence:
    """What was asked: pairs, answers ``(draws, n)`` (NaN: none), ends of batches."""

    places: Ints
    present: Floats
    ends: tuple[int, ...]
    answered: int


@dataclass(frozen=True, eq=False)
class _Draws:
    """What a test needs of each drawn pair: answers ``(draws, n)``, others ``(n,)``."""

    present: Floats
    probs: Floats
    weights: Floats
    bins: Ints

    @classmethod
    def of(cls, pairs: _Pairs, grid: Floats, sequence: _Sequence) -> _Draws:
        probs = pairs.probs[sequence.places]
        bins = np.searchsorted(grid, pairs.scores[sequence.places], side="left")
        return cls(sequence.present, probs, _weights(probs), bins)


@dataclass(frozen=True, eq=False)
class _Hypotheses:
    r"""Linear statements :math:`D = const + \sum_i a_i y_i < 0`, to be rejected one by one.

    The coefficient a is ``up`` above the threshold of a hypothesis and ``down`` below. Recall of at
    least r is :math:`\sum y (1\{tag\} - r) \ge 0`, precision of at least q is
    :math:`\sum_{tags} (y - q) \ge 0`.

    Attributes:
        metric: What they are about.
        limits: Tagged are pairs whose bin is above it ``(H,)``.
        up: Coefficient of tags.
        down: Coefficient of other pairs.
        mean: D if the model were right.
        weight: Sum of the weights of open pairs with a coefficient that is not 0.
        worst: Largest loss of a pair, divided by its weight.
        variance: Of one draw, if the model were right.
        between: Standard deviation of D by the choice of images.
    """

    metric: Metric
    limits: Ints
    up: Floats
    down: Floats
    mean: Floats
    weight: Floats
    worst: Floats
    variance: Floats
    between: Floats

    @classmethod
    def of_metric(
        cls,
        metric: Metric,
        levels: Floats,
        limits: Ints,
        pairs: _Pairs,
        grid: Floats,
        images: int,
    ) -> _Hypotheses:
        recall = metric == "recall"
        up = 1 - levels if recall else np.ones_like(levels)
        down = -levels if recall else np.zeros_like(levels)
        bins = np.searchsorted(grid, pairs.scores, side="left")
        size, still = len(grid) + 1, pairs.open
        p, w, b = pairs.probs[still], _weights(pairs.probs[still]), bins[still]

        def split(values: Floats, where: Ints = b) -> tuple[Floats, Floats]:
            """Sums above and below the threshold of each hypothesis."""
            sums: Floats = np.bincount(where, values, minlength=size).astype(np.float64)
            below: Floats = np.cumsum(sums)[limits]
            return float(sums.sum()) - below, below

        above, under = split(pairs.probs, bins)
        mean = up * above + down * under
        if not recall:
            mean -= levels * split(np.ones(len(bins)), bins)[0]
        over_weight, under_weight = split(w)
        noise = split(p * (1 - p) / w)
        high, low = np.zeros(size), np.zeros(size)
        np.maximum.at(high, b, p / w)
        np.maximum.at(low, b, (1 - p) / w)
        top = np.maximum.accumulate(high[::-1])[::-1][limits + 1]
        bottom = np.maximum.accumulate(low)[limits]
        weight = over_weight + under_weight if recall else over_weight
        return cls(
            metric, limits, up, down, mean, weight,
            np.maximum(up * top, -down * bottom),
            (up**2 * noise[0] + down**2 * noise[1]) * weight,
            _between(pairs, bins, limits, up, down, 0 if recall else levels, size, images),
        )  # fmt: skip

    def with_margin(self, alpha: float) -> _Hypotheses:
        """The same for the distribution that the images come from, by the normal approximation."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _Hypotheses(**values | {"mean": self.mean + ndtri(alpha) * self.between})

    def chosen(self, rejected: Flags) -> int | None:
        """The last hypothesis of an order fixed beforehand up to which all are rejected.

        Recall: from the lowest threshold upwards. Precision: from the threshold where the model
        expects the clearest case downwards, to more tags.
        """
        if self.metric == "recall":
            count = int(np.cumprod(rejected).sum())
            return count - 1 if count else None
        clear = self.mean / np.sqrt(np.maximum(self.variance, 1e-12))
        first = int(np.where(self.weight > 0, clear, -np.inf).argmax())
        count = int(np.cumprod(rejected[first::-1]).sum())
        return first - count + 1 if count else None


def _between(
    pairs: _Pairs,
    bins: Ints,
    limits: Ints,
    up: Floats,
    down: Floats,
    less: Any,
    size: int,
    images: int,
) -> Floats:
    """Standard deviation of D over the choice of images, with the model's probabilities."""
    first, second, own = (np.zeros(len(limits)) for _ in range(3))
    for start in range(0, images, _IMAGES_AT_ONCE):
        stop = min(start + _IMAGES_AT_ONCE, images)
        mine = slice(*np.searchsorted(pairs.rows, (start, stop)))
        where = (pairs.rows[mine] - start) * size + bins[mine]

        def sums(values: Floats, where: Ints = where, count: int = stop - start) -> Floats:
            found = np.bincount(where, values, minlength=count * size).reshape(count, size)
            return np.cumsum(found, axis=1)

        present, every = sums(pairs.probs[mine]), sums(np.ones(len(where)))
        under = present[:, limits]
        d = up * (present[:, -1:] - under) + down * under
        d -= less * (every[:, -1:] - every[:, limits])
        first, second = first + d.sum(axis=0), second + (d**2).sum(axis=0)
        noise = sums(pairs.probs[mine] * (1 - pairs.probs[mine])).sum(axis=0)
        own += up**2 * (noise[-1] - noise[limits]) + down**2 * noise[limits]
    found: Floats = np.sqrt(np.maximum(second - first**2 / images, 0.0) + own)
    return found


def _rejected(held: _Hypotheses, draws: _Draws, ends: Sequence[int], delta: float) -> Flags:
    r"""Which hypotheses are rejected ``(draws, H)``: a bet against each of them reached 1/delta.

    Before draw k every open pair i that is left comes next with probability q_i = w_i / W, so that

    .. math:: Z_k = const + \sum_{seen} a y + \sum_{left} a p + a_i (y_i - p_i) / q_i

    has the mean D, whatever p is. Where D < 0, wealth that is multiplied by
    :math:`1 + \lambda_k Z_k` with :math:`0 \le \lambda_k \le 1 / -\min Z_k` chosen before the
    draw does not grow on average, and reaches 1/delta with probability delta at most (Ville).
    """
    count, size = draws.present.shape[0], len(held.mean)
    mean = np.broadcast_to(held.mean, (count, size)).copy()
    weight, hedge = held.weight.copy(), np.asarray(priors.BET_SHARES)
    squares, seen = np.zeros((count, size)), np.zeros(size)
    bold = np.full((count, size), 1 - priors.BET_RESERVE)
    careful = np.full((count, size, len(hedge)), priors.BET_RESERVE / len(hedge))
    rejected = np.zeros((count, size), dtype=bool)
    total_weight = max(float(held.weight.max(initial=0.0)), 1e-12)
    scale = np.sqrt(np.maximum(held.variance, 1e-18))
    end_of = np.searchsorted(np.asarray(ends), np.arange(len(draws.probs)), side="right")
    for k in range(len(draws.probs)):
        if k and end_of[k] != end_of[k - 1]:  # another batch: what is left is divided anew
            whole = bold + careful.sum(axis=-1)
            bold = (1 - priors.BET_RESERVE) * whole
            each = priors.BET_RESERVE * whole / len(hedge)
            careful = np.repeat(each[..., None], len(hedge), axis=-1)
        low = mean - weight * held.worst
        rejected |= low >= 0  # D can no longer be negative
        a = np.where(draws.bins[k] > held.limits, held.up, held.down)
        y = draws.present[:, k, None]
        y = np.where(np.isnan(y), a < 0, y)
        step = a * (y - draws.probs[k])
        z = mean + step * weight / draws.weights[k]
        most = 1 / np.maximum(-low, 1e-9)
        active = a != 0
        sigma = np.sqrt((priors.BET_PRIOR * scale**2 + squares) / (priors.BET_PRIOR + seen))
        left = np.maximum((ends[end_of[k]] - k) * weight / total_weight, 1.0)
        chance = np.clip(delta * bold, 1e-12, 1 - 1e-9)
        normal = ndtri(chance)
        wager = np.exp(-(normal**2) / 2) / (2.5066282746 * chance * sigma * np.sqrt(left))
        wager = np.minimum(wager, priors.BET_MOST * most)
        bold = np.where(active, bold * (1 + wager * z), bold)
        gain = 1 + hedge * (z * most)[..., None]
        careful = np.where(active[:, None], careful * gain, careful)
        rejected |= bold + careful.sum(axis=-1) >= 1 / delta
        bold, careful = np.minimum(bold, 1e9), np.minimum(careful, 1e9)
        squares += np.where(active, (z - mean) ** 2, 0.0)
        seen += active
        mean += step
        weight = weight - np.where(active, draws.weights[k], 0.0)
    return rejected | (mean - np.maximum(weight, 0.0) * held.worst >= 0)


def _thresholds(pairs: _Pairs) -> Floats:
    """Thresholds at equal steps of the expected recall, the one that tags everything first."""
    order = np.argsort(pairs.scores, kind="stable")
    reached = np.cumsum(pairs.probs[order])
    if not len(order) or reached[-1] <= 0:
        return np.array([EVERYTHING])
    steps = np.concatenate([np.geomspace(1e-3, 0.02, 12)[:-1], np.linspace(0.02, 0.99, GRID - 12)])
    places = np.minimum(np.searchsorted(reached, steps * reached[-1]), len(order) - 1)
    lowest = float(pairs.scores[order[0]])
    everything = min(EVERYTHING, lowest - 1)
    return np.unique(np.concatenate([[everything], pairs.scores[order[places]]]))


def _tags(pairs: _Pairs, grid: Floats) -> Floats:
    bins = np.bincount(np.searchsorted(grid, pairs.scores, side="left"), minlength=len(grid) + 1)
    return (len(pairs.scores) - np.cumsum(bins)[:-1]).astype(np.float64)


def _expected(pairs: _Pairs, threshold: float | None) -> tuple[dict[str, float], int]:
    """Recall and precision that the model expects, and the number of tags."""
    if threshold is None:
        return {"recall": 0.0, "precision": 0.0}, 0
    tagged = pairs.scores > threshold
    hits, tags = float(pairs.probs[tagged].sum()), int(tagged.sum())
    return {
        "recall": hits / max(float(pairs.probs.sum()), 1e-9),
        "precision": hits / max(tags, 1),
    }, tags


def _weights(probs: Floats) -> Floats:
    found: Floats = np.sqrt(probs * (1 - probs) + priors.PROMISE_SD**2)
    return found


def _ranks(keys: Floats, asked: Floats) -> Ints:
    """How many keys are smaller than each of those asked for, which are sorted."""
    if not len(asked):
        return np.zeros(0, dtype=np.int64)
    smaller = np.sort(keys[keys <= asked[-1]])
    return np.searchsorted(smaller, asked)


def present_probs(scores: Any, targets: Any, *, verified: Any = None) -> Floats:
    """Return the probability that each entry is present, as promises use it ``(N, C)``.

    That of a :class:`MissingLabelModel`, shrunk towards the share of labelled entries: where the
    model is too sure of an absent class, the one answer that contradicts it costs most.

    Args:
        scores: Probabilities ``(N, C)``.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
        verified: True where a person verified that an entry is absent.

    Raises:
        ArgumentError: A score is no probability, or there is no label.
    """
    values, labels = as_floats(scores), as_floats(targets)
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        raise ArgumentError(
            "Scores must be probabilities, between 0 and 1, unless probs is given, but got"
            f" {float(outside[0])!r}. Put logits through a sigmoid."
        )
    if not (labels == 1).any():
        raise ArgumentError(
            f"None of the {len(labels)} rows has a label: nothing tells what is missing."
            " Label some of them first."
        )
    inside = np.clip(values, _SURE, 1 - _SURE)
    logits = np.log(inside) - np.log1p(-inside)
    model = MissingLabelModel.fit(logits, labels, verified=verified)
    return shrunk(model.prob_present(logits, labels, verified=verified), labels)


def shrunk(probs: Floats, labels: Floats) -> Floats:
    """Return probabilities of a model, shrunk towards the share of labelled entries."""
    share = priors.PROMISE_SHRINKAGE
    found: Floats = (1 - share) * probs + share * float(np.nanmean(labels))
    return found


__all__ = ["Promise", "PromiseTest", "present_probs"]
