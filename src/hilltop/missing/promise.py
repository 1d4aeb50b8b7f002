"""Promises: thresholds whose recall or precision holds with a stated confidence.

Labels that annotators left out make every threshold that is fitted to labels wrong. A person who
answers a few hundred questions, drawn at random, makes a promise possible that holds however wrong
scores and model are. The model only makes it tight. ``docs/promises.md`` has the theorem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from hilltop.checks import check_choice, check_number, check_same_shape, check_whole, pluralize
from hilltop.errors import ArgumentError, MissingExtra
from hilltop.missing import priors
from hilltop.missing.answers import Flags, Ints, PlannedPairs, SampledAnswers
from hilltop.missing.bets import Claims, Draws, proven
from hilltop.missing.interval import Interval
from hilltop.missing.logistic import Floats, as_floats
from hilltop.missing.model import MissingLabelModel
from hilltop.missing.tally import (
    EVERYTHING,
    Groups,
    Metric,
    Per,
    Population,
    Scores,
    Tally,
    coefficients,
    corrections,
    count_below,
    draw_weights,
    image_means,
    image_sums,
    keys_in_turn,
)

Over = Literal["new", "these"]
LEVELS: Floats = np.linspace(0.005, 0.995, 199)
"""Recalls and precisions that are tried for one threshold."""
MIN_CLASS_ANSWERS = 30
"""Answers about a class from which it gets a threshold of its own."""
MIN_IMAGES = 30
"""Images below which nothing is promised of others like them."""
_HOPES = (200, 500, 1000, 2000, 5000)
GROUPS = 1000
"""Most groups of images that are bet on, where promises are about new images."""
_DRAWS, _QUANTILES, _CURVE = 16, 101, 24
_SURE = 1e-6
_KS_1_PERCENT = 1.63
_OTHER_POPULATION = 5.0  # standard errors


@dataclass(frozen=True, eq=False, repr=False)
class Promise:
    """A threshold with a guarantee.

    Attributes:
        metric: What is promised.
        wanted: The least value of it.
        confidence: Probability, over the random choice of questions, that it holds.
        over: Whether it is about images like these, or about these alone.
        per: Whether it is about all (image, class) pairs together or the mean over images.
        threshold: Scores above it are tags; None where nothing can be promised.
        tags: How many tags that makes of these images.
        recall: Estimate of the recall at the threshold, with a 90% interval.
        precision: The same of the precision.
        answers: Answers that it rests on.
        images: Number of images that the questions were drawn from.
        exact: Whether the questions were drawn in the planned order; other random samples are
            taken as drawn with replacement, which is an approximation.
        notes: Sentences about answers that could not be used.
        curve: Threshold, tags and lower bound of the metric for plots; empty unless asked for.
        profile: Quantiles of the sum of the scores of an image, to notice other images.
    """

    metric: Metric
    wanted: float
    confidence: float
    over: Over
    per: Per
    threshold: float | None
    tags: int
    recall: Interval
    precision: Interval
    answers: int
    images: int
    exact: bool = True
    notes: tuple[str, ...] = ()
    curve: tuple[tuple[float, float, float], ...] = ()
    profile: tuple[float, ...] = field(default=(), repr=False)

    @property
    def interval(self) -> Interval:
        """Estimate of what is promised, at the threshold, with a 90% interval."""
        return self.recall if self.metric == "recall" else self.precision

    def describe(self) -> str:
        """Return the promise in a sentence."""
        images = pluralize(self.images, "image", "images")
        where = f"these {images}" if self.over == "these" else f"images like these {images}"
        mean = "in the mean over images " if self.per == "image" else ""
        said = f"{self.metric} of at least {self.wanted:.4g} {mean}for {where}"
        rests = f"{self.confidence:.4g} confidence, {pluralize(self.answers, 'answer', 'answers')}"
        if self.threshold is None and not self.answers:
            return (
                f"No promise is possible without answers: a {said} cannot be told from scores and"
                " labels, because a label that nobody recorded looks like a class that is absent."
            )
        if self.threshold is None:
            return f"No threshold has a {said} ({rests})."
        if self.threshold <= EVERYTHING:
            return f"Only tagging every class of every image has a {said} ({rests})."
        return (
            f"Scores above {self.threshold:.4g} have a {said} ({rests}). They make"
            f" {pluralize(self.tags, 'tag', 'tags')} of these; estimates are recall"
            f" {self.recall.share()} and precision {self.precision.share()}."
        )

    def __repr__(self) -> str:
        """Return the promise in a line."""
        return f"Promise({' '.join([self.describe(), *self.notes])})"

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name, as ``--json`` prints it and :meth:`from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Promise:
        """Return what :meth:`as_dict` wrote."""
        values = dict(content)
        for name in ("profile", "notes"):
            values[name] = tuple(values[name])
        values["curve"] = tuple(tuple(point) for point in values["curve"])
        for name in ("recall", "precision"):
            values[name] = Interval(**values[name])
        return cls(**values)

    def differs(self, scores: Any) -> str | None:
        """Say how new images differ from those that were asked about; None where they do not.

        The sums of the scores of images are compared by a two-sample Kolmogorov-Smirnov test at
        the 1% level.

        Args:
            scores: Of new images ``(N, C)``, by the same model.
        """
        sums, known = np.sort(_image_sums(np.asarray(scores))), np.asarray(self.profile)
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
            xlabel=f"{self.metric} that holds with {self.confidence:.4g} confidence",
            ylabel="tags per image",
            yscale="log",
        )
        return figure


class PromiseTest:
    r"""Images with incomplete labels or none, and scores that must not depend on the answers.

    All open (image, class) pairs stand in one random order, drawn without replacement, from all of
    them or image by image, in proportion to

    .. math:: w_i = f_i \sqrt{p_i (1 - p_i) + \epsilon^2}

    with a small f where an answer says little about the promise asked for. A person is asked from
    the top. Every beginning of the order is a sample that a promise can rest on, so that one may
    look at any time and ask on. Images stand in a random order of their own, for promises of the
    mean over images.

    Labels are taken to be right. Pairs that a person verified to be absent are known, too.

    Args:
        scores: Of each pair ``(N, C)``; tags are scores above a threshold.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part ``(N, C)``; without
            it nothing is labelled.
        verified: True where a person verified that an entry is absent.
        probs: Probability that each open entry is present. Without it scores must be
            probabilities; :func:`present_probs` follows from them and labels, if there are any.
            Probabilities may be wrong, but must not depend on the answers.
        plan_for: Metric and value that the questions are chosen for. Others can be promised, too,
            with more tags.
        over: What promises are about: ``new`` images like these, for which images count as drawn
            at random, or ``these`` alone, which takes fewer tags.
        seed: Of the random orders.

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
        self,
        scores: Any,
        targets: Any = None,
        *,
        verified: Any = None,
        probs: Any = None,
        plan_for: tuple[Metric, float] = ("recall", 0.9),
        over: Over = "new",
        seed: int = 0,
    ) -> None:
        """Find what is known, what is open and how probable that is, and draw the orders."""
        values = np.asarray(scores)
        if len(values.shape) != 2:
            raise ArgumentError(f"scores must have the shape (N, C), but got {values.shape}.")
        labels = np.zeros(values.shape, np.float32) if targets is None else np.asarray(targets)
        check_same_shape("scores", values.shape, "targets", labels.shape)
        if probs is None:
            probs = present_probs(values, labels, verified=verified)
        check_same_shape("probs", np.shape(probs), "targets", labels.shape)
        still = labels == 0
        there = still | (labels == 1)
        if verified is not None:
            still = still & (np.asarray(verified) != 1)
        if np.isnan(values).any():
            there &= ~np.isnan(values)
            still &= there
        if not np.isfinite(guess := np.where(still, probs, 0.0)).all():
            raise ArgumentError("probs must be finite for every entry that is open.")
        self.images, self.classes = (int(size) for size in labels.shape)
        check_choice("over", over, get_args(Over))
        self.over = over
        rng = np.random.default_rng(seed)
        # Exponential clocks ring in the order of successive draws in proportion to their rates.
        clock = rng.exponential(size=labels.shape).astype(np.float32)
        self._image_keys = rng.exponential(size=self.images)
        guess = np.clip(guess, _SURE, 1 - _SURE, dtype=np.float32)
        present = np.where(still, guess, (labels == 1) & there).astype(np.float32)
        ranked = np.where(there, values, -np.inf)
        weights = draw_weights(ranked, present, *plan_for)
        keys = np.where(still, clock / weights, np.inf)
        group = np.zeros(self.images, dtype=np.int64)
        if over == "new":
            group[np.argsort(self._image_keys)] = np.arange(self.images) % GROUPS
        groups = Groups.of(group, weights, still)
        if over == "new":
            keys = keys_in_turn(keys, groups, rng)
        self._all = Population(ranked, present, still, there, weights, keys, groups)
        self._tallies: dict[tuple[int | None, Per], _Tallied] = {}
        sums = _image_sums(values)
        self.profile = tuple(np.quantile(sums, np.linspace(0, 1, _QUANTILES)).tolist())

    def plan(
        self, number: int, *, answers: SampledAnswers | None = None, per: Per = "pair"
    ) -> PlannedPairs:
        """Return the pairs to ask about next.

        Args:
            number: How many.
            answers: Answers so far; the pairs after them in the order are returned.
            per: With ``image``, all open pairs of so many images as it takes.
        """
        check_whole("number", number, low=1)
        check_choice("per", per, get_args(Per))
        answers = SampledAnswers.none() if answers is None else answers
        if per == "image":
            return self._plan_images(number, answers)
        order = self._order(answers)
        done = max([order.known, *order.ends])
        last = min(done + number, int(self._all.open.sum()))
        places = self._first(last)
        probs = self._all.probs.ravel()[places].astype(np.float64)
        # Probability to be among the first: what `evaluate` weights answers with.
        mean = self._all.weights.ravel()[places].astype(np.float64) * self._all.end(last)
        inclusion = np.clip(mean if self.over == "new" else -np.expm1(-mean), 1e-12, 1.0)
        some = slice(done, last)
        rows, columns = np.divmod(places, self.classes)
        return PlannedPairs(rows[some], columns[some], probs[some], inclusion[some])

    def _plan_images(self, number: int, answers: SampledAnswers) -> PlannedPairs:
        order = np.argsort(self._image_keys)
        still = self._all.open[order].sum(axis=1)
        ranks = np.argsort(order)[answers.rows]
        # Images in whose place something was asked: planned ones, whether all was answered or not.
        first = int(ranks.max()) + 1 if len(ranks) else 0
        last = first + int(np.searchsorted(np.cumsum(still[first:]), number)) + 1
        rows, columns = np.nonzero(self._all.open[order[first:last]])
        rows = order[first:last][rows]
        probs = self._all.probs[rows, columns].astype(np.float64)
        share = min(last, self.images) / self.images
        return PlannedPairs(rows, columns, probs, np.full(len(rows), share))

    def promise(
        self,
        metric: Metric,
        wanted: float,
        answers: SampledAnswers | None = None,
        *,
        confidence: float = 0.9,
        per: Per = "pair",
        column: int | None = None,
        curve: bool = False,
    ) -> Promise:
        """Return the threshold with the fewest (recall) or most (precision) tags that keeps it.

        Args:
            metric: ``recall``, the share of the true labels that become tags, or ``precision``,
                the share of the tags that are true.
            wanted: Its least value.
            answers: What people said of pairs of :meth:`plan`, or of any random sample of the open
                pairs, if it tells with which probability each was asked. ``unsure`` and gaps count
                as the worst case. The number of questions of one batch must not depend on what
                the answers say; whether there is another batch may.
            confidence: Probability that the promise holds.
            per: ``pair``: of all pairs together. ``image``: the mean over images of the recall of
                an image, or of its precision; 1 for an image without labels, or without tags. It
                rests on images all of whose pairs were answered, see :meth:`plan`.
            column: A class to promise it for alone.
            curve: Whether to find what can be promised at other thresholds, too, for plots. These
                bounds hold one by one, not together.

        Raises:
            ArgumentError: A number is out of range, there are too few images for ``new``, or
                answers are a sample of other pairs.
        """
        case = self.case(metric, wanted, answers, confidence, per=per, column=column)
        found = conclude([case])[0]
        if not curve:
            return found
        places = np.unique(np.linspace(0, len(case.of.grid) - 1, _CURVE).astype(int))
        tags = case.of.tally.tags.sum(axis=0)
        points = zip(places, self._bounds(case, places), strict=True)
        shown = [(float(case.of.grid[at]), float(tags[at]), low) for at, low in points if low > 0]
        return replace(found, curve=tuple(shown))

    def by_class(
        self,
        metric: Metric,
        wanted: float,
        answers: SampledAnswers,
        *,
        confidence: float = 0.9,
    ) -> dict[int, Promise]:
        """Return a promise for each class with enough answers, each at that confidence by itself.

        Divide the allowed risk, 1 less the confidence, by the number of classes for promises that
        hold all together.
        """
        told = np.bincount(self._order(answers).columns(self.classes), minlength=self.classes)
        columns = np.flatnonzero(told >= MIN_CLASS_ANSWERS).tolist()
        cases = [self.case(metric, wanted, answers, confidence, column=one) for one in columns]
        return dict(zip(columns, conclude(cases), strict=True))

    def bound(
        self,
        metric: Metric,
        threshold: float,
        answers: SampledAnswers,
        *,
        confidence: float = 0.9,
        per: Per = "pair",
        column: int | None = None,
    ) -> float:
        """Return the highest recall or precision that can be promised at a threshold; 0 for none.

        The threshold must not depend on the answers.
        """
        grid = np.array([threshold], dtype=np.float64)
        case = self.case(metric, 0.5, answers, confidence, per=per, column=column, grid=grid)
        return self._bounds(case, [0])[0]

    def at_present(self, case: _Case) -> tuple[float, float]:
        """Return what the model expects to suffice for a case, and what is promised there now.

        Returns:
            The threshold at which the model expects what is wanted, and the highest value of the
            metric that answers allow to promise at it.
        """
        expected = case.expected()
        enough = np.flatnonzero(expected >= case.wanted)
        if not len(enough):
            at = int(expected.argmax())
        else:
            at = int(enough[-1] if case.metric == "recall" else enough[0])
        return float(case.of.grid[at]), self._bounds(case, [at])[0]

    def outlook(self, case: _Case, *, numbers: Sequence[int] = _HOPES) -> dict[int, float | None]:
        """Return how many tags a promise would allow after so many answers, if the model is right.

        Further answers are drawn from the model; the median of a few draws is returned, None where
        no threshold could be promised.
        """
        people, rng = case.everyone, np.random.default_rng(0)
        tags, found = np.append(case.of.tally.tags.sum(axis=0), np.nan), {}
        for number in sorted({min(number, int(people.open.sum())) for number in numbers}):
            if number <= case.order.answered:
                continue
            places = people.first(number)
            probs = people.probs.ravel()[places]
            problems = []
            for _ in range(_DRAWS):
                present = (rng.random(number) < probs).astype(np.float64)
                told = min(number, case.order.known) if case.order.exact else 0
                present[:told] = case.order.present[:told]
                order = _Order(places, present, (number,), number)
                problems.append(case.problem(order=order))
            chosen = [case.chosen(one) for one in proven(problems, case.delta)]
            median = float(np.median([tags[-1 if at is None else at] for at in chosen]))
            found[number] = None if np.isnan(median) else median
        return found

    def _bounds(self, case: _Case, places: Iterable[int]) -> list[float]:
        """The highest level that is promised at each of some thresholds of the case."""
        problems = []
        for at in places:
            limits = np.full(len(LEVELS), at)
            problems.append(case.problem(LEVELS, limits))
        reached = (int(np.cumprod(one).sum()) for one in proven(problems, case.delta))
        return [float(LEVELS[count - 1]) if count else 0.0 for count in reached]

    def case(
        self,
        metric: Metric,
        wanted: float,
        answers: SampledAnswers | None = None,
        confidence: float = 0.9,
        *,
        per: Per = "pair",
        column: int | None = None,
        grid: Floats | None = None,
    ) -> _Case:
        """Return everything that a promise follows from; :func:`conclude` makes many at once."""
        check_choice("metric", metric, get_args(Metric))
        check_choice("per", per, get_args(Per))
        check_number("wanted", wanted, low=0, high=0.999, low_open=True)
        check_number("confidence", confidence, low=0.5, high=0.9999)
        if self.over == "new" and self.images < MIN_IMAGES:
            raise ArgumentError(
                f"{pluralize(self.images, 'image is', 'images are')} too few to promise anything of"
                f" others: it takes {MIN_IMAGES}. Promise it of these images alone, with over"
                " 'these'."
            )
        if per == "image" and column is not None:
            raise ArgumentError("A promise per image is about all classes; leave column out.")
        of = self._tallied(column, per) if grid is None else self._tally(column, per, grid)
        given = SampledAnswers.none() if answers is None else answers
        order = self._image_order(given) if per == "image" else self._order(given)
        notes = self._notes(given, order)
        if column is not None and self.over == "these":
            order = order.of_class(column, self.classes)
        return _Case(
            metric, wanted, confidence, self.over, per, column, self._all, of, order, notes,
            self.profile,
        )  # fmt: skip

    def _tallied(self, column: int | None, per: Per) -> _Tallied:
        """Pairs, thresholds and sums, which no answer changes."""
        if (column, per) not in self._tallies:
            self._tallies[column, per] = self._tally(column, per)
        return self._tallies[column, per]

    def _tally(self, column: int | None, per: Per, grid: Floats | None = None) -> _Tallied:
        people = self._all if column is None else self._all.of_class(column)
        clear = np.zeros(0)
        if grid is None:
            grid, clear = people.grid()
        return _Tallied(people, grid, clear, Tally.of(people, grid, per))

    def used(self, answers: SampledAnswers, per: Per = "pair") -> int:
        """Return how many of these answers a promise rests on."""
        return (self._image_order(answers) if per == "image" else self._order(answers)).answered

    def _notes(self, answers: SampledAnswers, order: _Order) -> tuple[str, ...]:
        notes = []
        known = self._all.there & ~self._all.open
        said = known[answers.rows, answers.columns]
        value = self._all.probs[answers.rows, answers.columns] > 0.5
        wrong = int((said & (value != answers.present)).sum())
        if wrong:
            notes.append(
                f"{pluralize(wrong, 'answer contradicts', 'answers contradict')} a label or a"
                " verified entry, which promises take to be right. Correct them in the labels."
            )
        unused = len(answers) - order.total - int(said.sum())
        if unused > 0:
            notes.append(
                f"{pluralize(unused, 'answer is', 'answers are')} not of this plan or sample, and"
                " not used."
            )
        if order.answered and not order.exact:
            notes.append(
                "These answers are not in the order of the plan for promises, so that their"
                " sampling probabilities were used as of draws with replacement: an approximation."
            )
        return tuple(notes)

    def _first(self, number: int) -> Ints:
        return self._all.first(number)

    def _order(self, answers: SampledAnswers) -> _Order:
        """The beginning of the order that was answered: at least half of it, from the top.

        Where most answers lie elsewhere, the random samples that they say they are.
        """
        keys, still = self._all.keys.ravel(), self._all.open.ravel()
        at = answers.rows * self.classes + answers.columns
        # Of several answers to one pair the last one counts.
        _, last = np.unique(at[::-1], return_index=True)
        chosen = np.sort(len(at) - 1 - last)
        answers = answers.select(chosen[still[at[chosen]]])
        at = answers.rows * self.classes + answers.columns
        by_rank = np.argsort(keys[at], kind="stable")
        at, said, batch = at[by_rank], answers.present[by_rank], answers.batch[by_rank]
        ranks = _ranks(keys, keys[at])
        dense = np.flatnonzero(np.arange(1, len(at) + 1) * 2 >= ranks + 1)
        count = int(dense[-1]) + 1 if len(dense) else 0
        sampled = int((~np.isnan(answers.sampled_with)).sum())
        if sampled > 2 * count:
            return self._sampled_order(answers.select(~np.isnan(answers.sampled_with)))
        length = int(ranks[count - 1]) + 1 if count else 0
        places, present = self._first(length), np.full(length, np.nan)
        present[ranks[:count]] = said[:count]
        ends: list[int] = []
        for number, asked in answers.batches():
            mine = ranks[:count][batch[:count] == number]
            if len(mine):
                start = ends[-1] if ends else 0
                ends.append(max(start + asked, int(mine.max()) + 1))
        return _Order(places, present, tuple(ends), count, total=count)

    def _sampled_order(self, answers: SampledAnswers) -> _Order:
        """Random samples as draws with replacement, in random order."""
        weights = np.zeros(len(answers))
        for number, asked in answers.batches():
            mine = answers.batch == number
            if not mine.any():
                continue
            weights[mine] = answers.sampled_with[mine] / asked
            self._check_population(answers.sampled_with[mine], int(mine.sum()) / asked)
        turn = np.random.default_rng(0).permutation(len(answers))
        places = (answers.rows * self.classes + answers.columns)[turn]
        present = answers.present[turn].astype(np.float64)
        return _Order(
            places, present, (len(answers),), len(answers), weights[turn], total=len(answers)
        )

    def _check_population(self, sampled: Floats, answered: float) -> None:
        """Refuse a sample of other pairs than those that are open."""
        here = int(self._all.open.sum())
        drawn = float((1 / sampled).sum()) / answered
        error = float(np.sqrt(((1 - sampled) / sampled**2).sum())) / answered
        if abs(drawn - here) > _OTHER_POPULATION * error + 0.05 * here:
            raise ArgumentError(
                f"These answers are a random sample of about {drawn:,.0f} pairs, but {here:,} are"
                " open here. Draw a sample of the images that the promise is to be about."
            )

    def _image_order(self, answers: SampledAnswers) -> _Order:
        """Images whose open pairs were answered, from the top of the order of images."""
        said = np.full((self.images, self.classes), np.nan)
        said[answers.rows, answers.columns] = answers.present
        still = self._all.open
        gaps = (still & np.isnan(said)).sum(axis=1)
        order = np.argsort(self._image_keys)
        touched = (gaps < still.sum(axis=1))[order] | (still.sum(axis=1) == 0)[order]
        dense = np.flatnonzero(np.cumsum(touched) * 2 >= np.arange(1, self.images + 1))
        dense = dense[touched[dense]] if len(answers) else dense[:0]
        length = int(dense[-1]) + 1 if len(dense) else 0
        told = order[:length]
        count = int((still & ~np.isnan(said))[told].sum())
        ends: list[int] = []
        ranks = np.argsort(order)[answers.rows]
        for number, _ in answers.batches():
            mine = ranks[(answers.batch == number) & (ranks < length)]
            if len(mine):
                ends.append(max(int(mine.max()) + 1, *ends) if ends else int(mine.max()) + 1)
        return _Order(told, said[told], tuple(ends) or (length,), count, total=count)


def conclude(cases: Sequence[_Case]) -> list[Promise]:
    """Make the promises of several cases together, which is faster than one by one."""
    found: dict[int, Promise] = {}
    for delta in {case.delta for case in cases}:
        mine = [at for at, case in enumerate(cases) if case.delta == delta]
        problems = (cases[at].problem() for at in mine)
        for at, flags in zip(mine, proven(list(problems), delta), strict=True):
            found[at] = cases[at].promised(flags)
    return [found[at] for at in range(len(cases))]


@dataclass(frozen=True, eq=False)
class _Order:
    """What was asked: places, answers (NaN: none), ends of batches; images where per image.

    ``weights`` are the probabilities of single draws, where they were made with replacement.
    """

    places: Ints
    present: Floats
    ends: tuple[int, ...]
    answered: int
    weights: Floats | None = None
    total: int = 0

    @property
    def exact(self) -> bool:
        """Whether the order is that of the plan."""
        return self.weights is None

    @property
    def known(self) -> int:
        """How many draws were answered, or passed over."""
        return len(self.places)

    def columns(self, classes: int) -> Ints:
        """Classes of the answers."""
        return self.places[~np.isnan(self.present)] % classes

    def filled(self, places: Ints) -> _Order:
        """The same with all that was asked, answered or not."""
        present = np.full(len(places), np.nan)
        present[: len(self.present)] = self.present[: len(places)]
        return replace(self, places=places, present=present)

    def of_class(self, column: int, classes: int) -> _Order:
        """The same of one class; draws with replacement hit others in between."""
        inside = self.places % classes == column
        count = int((~np.isnan(self.present[inside])).sum())
        if not self.exact:
            return replace(
                self, places=np.where(inside, self.places // classes, -1), answered=count
            )
        share = len(inside) / max(inside.sum(), 1)
        ends = [
            int(inside[:end].sum()) + round(max(end - len(inside), 0) / share) for end in self.ends
        ]
        places = self.places[inside] // classes
        return _Order(
            places, self.present[inside], tuple(sorted(set(ends))), count, total=self.total
        )


@dataclass(frozen=True, eq=False)
class _Tallied:
    """Pairs of all classes or of one, thresholds and sums, which no answer changes."""

    people: Population
    grid: Floats
    clear: Floats
    tally: Tally


@dataclass(frozen=True, eq=False)
class _Case:
    """A promise that is asked for, and everything it follows from."""

    metric: Metric
    wanted: float
    confidence: float
    over: Over
    per: Per
    column: int | None
    everyone: Population
    of: _Tallied
    order: _Order
    notes: tuple[str, ...]
    profile: tuple[float, ...]

    @property
    def delta(self) -> float:
        """Probability with which the promise may be broken, by the last batch of questions."""
        looks = len(self.order.ends) if self.over == "new" else 0
        return (1 - self.confidence) * (
            (1 - priors.BET_RESERVE) * priors.BET_RESERVE ** (looks - 1) if looks else 1.0
        )

    def problem(
        self,
        levels: Floats | None = None,
        limits: Ints | None = None,
        order: _Order | None = None,
    ) -> tuple[Claims, Draws]:
        """Whether the levels, or what is wanted, are reached at thresholds, and what was drawn."""
        order = self.order if order is None else order
        limits = np.arange(len(self.of.grid)) if limits is None else limits
        levels = np.full(len(limits), self.wanted) if levels is None else levels
        if not order.answered and self.of.people.open.any():  # nothing is known of what is open
            one, none = np.ones(len(limits)), np.zeros(0)
            return Claims(-one, one, one, one), Draws(none.reshape(0, len(limits)), none, ())
        if self.per == "image":
            claims, draws = self._of_images(levels, limits, order)
        elif self.over == "new":
            claims, draws = self._of_groups(levels, limits, order)
        else:
            claims, draws = self._of_these(levels, limits, order)
        sure = self._sure(limits)
        mean, worst = np.where(sure, 1.0, claims.mean), np.where(sure, 0.0, claims.worst)
        return replace(claims, mean=mean, worst=worst), draws

    def _sure(self, limits: Ints) -> Flags:
        """Whether nothing can be missed, because everything is tagged."""
        tags = self.of.tally.tags[:, limits].sum(axis=0)
        found: Flags = (tags == self.of.people.there.sum()) & (self.metric == "recall")
        return found

    def _gain(
        self, levels: Floats, limits: Ints, order: _Order, people: Population
    ) -> tuple[Floats, Floats]:
        """By how much drawn pairs exceed their guess ``(n, H)``, and their weights."""
        places = np.maximum(order.places, 0)
        probs = people.probs.ravel()[places].astype(np.float64)
        bins = count_below(people.scores.ravel()[places], self.of.grid)
        up, down = coefficients(self.metric, levels)
        a = np.where(bins[:, None] > limits, up, down)
        y = order.present[:, None]
        gain = a * (np.where(np.isnan(y), a < 0, y) - probs[:, None])
        return np.where(a == 0, np.nan, gain), people.weights.ravel()[places].astype(np.float64)

    def _of_these(self, levels: Floats, limits: Ints, order: _Order) -> tuple[Claims, Draws]:
        """Pairs that were drawn one after the other from all that are open."""
        tally, recall = self.of.tally, self.metric == "recall"
        weight = tally.weight[0, 0, limits] + (tally.weight[1, 0, limits] if recall else 0)
        scale = np.sqrt(tally.spread(self.metric, levels, limits) * weight)
        worst = tally.worst(self.metric, levels, limits)[0]
        gain, drawn = self._gain(levels, limits, order, self.of.people)
        if order.weights is not None:
            up, down = coefficients(self.metric, levels)
            weight, worst = np.ones_like(scale), np.maximum(up, -down) / order.weights.min()
            gain = np.where(order.places[:, None] < 0, 0.0, np.nan_to_num(gain))  # another class
            drawn = order.weights
        claims = Claims(tally.guess(self.metric, levels, limits)[0], weight, worst, scale)
        return claims, Draws(gain, drawn, order.ends, replaced=not order.exact)

    def _of_groups(self, levels: Floats, limits: Ints, order: _Order) -> tuple[Claims, Draws]:
        """Groups of images as independent draws; questions tell about each what they can."""
        tally, groups = self.of.tally, self.everyone.groups
        up, down = coefficients(self.metric, levels)
        guess = tally.guess(self.metric, levels, limits)
        asked = max(order.ends, default=0)
        if order.exact:
            order = order.filled(self.everyone.first(asked))
            chance = np.minimum(groups.weight * self.everyone.end(asked), 1.0)
            chance[chance == 0] = 1.0  # nothing is open
            weight = groups.weight / chance
            single = np.minimum(weight, 1 / self.everyone.end(asked))  # one wrong answer
            worst = tally.worst(self.metric, levels, limits) * single[:, None]
        gain, drawn = self._gain(levels, limits, order, self.everyone)
        gain = np.nan_to_num(gain)
        group, column = np.divmod(order.places, self.everyone.scores.shape[1])
        group = groups.of_image[group]
        if self.column is not None:
            gain[column != self.column] = 0.0
        if order.weights is None:
            found = guess + corrections(gain, drawn, group, groups) / chance[:, None]
        else:
            drawn = order.weights * len(order.places)
            weight = np.full(len(guess), 1 / drawn.mean())
            worst = np.maximum(up, -down) / drawn.min()
            found = guess.copy()
            np.add.at(found, group, gain / drawn[:, None])
        # What another image may lose though nothing of it is open: all its tags, one more label.
        most = -down - guess.min(axis=0)
        if self.metric == "precision":
            most = levels * (tally.tags[:, limits] / groups.images[:, None]).max(axis=0)
        worst = np.maximum((worst - guess).max(axis=0), most)
        mean = guess.mean(axis=0)
        noise = tally.spread(self.metric, levels, limits) * weight.mean() / len(guess)
        scale = np.sqrt(guess.var(axis=0) + noise)
        draws = Draws(found - mean, np.ones(len(guess)), (len(guess),), replaced=True)
        return Claims(mean, np.ones_like(mean), mean + worst, scale), draws

    def _of_images(self, levels: Floats, limits: Ints, order: _Order) -> tuple[Claims, Draws]:
        """Whole images."""
        mean, own = self.of.tally.means[int(self.metric == "precision")][:, :, limits]
        size, images = self.everyone.groups.images, len(self.everyone.scores)
        guess, value = (one[:, limits] for one in self._image_values(order))
        one = np.ones(len(limits))
        if self.over == "these":
            scale = np.sqrt(own.sum(axis=0) * images)
            claims = Claims(mean.sum(axis=0) - levels * images, images * one, one, scale)
            return claims, Draws(value - guess, np.ones(len(guess)), order.ends)
        many = min(len(order.places), len(size))
        blocks = np.arange(len(size)) % max(many, 1)
        expected = _block_means(mean, size, blocks)
        found = expected.copy()
        if many:
            found += _block_means(value - guess, np.ones(len(guess)), np.arange(len(guess)) % many)
        scale = np.sqrt(expected.var(axis=0) + own.sum(axis=0) / images)
        middle = mean.sum(axis=0) / images - levels
        worst = middle + levels + 1 - expected.min(axis=0)
        draws = Draws(found - levels - middle, np.ones(len(found)), (len(found),), replaced=True)
        return Claims(middle, one, worst, scale), draws

    def _image_values(self, order: _Order) -> tuple[Floats, Floats]:
        """Guess and worst possible value of the metric of each drawn image ``(n, H)``."""
        rows, people, grid = order.places, self.everyone, self.of.grid
        bins = count_below(people.scores[rows], grid)
        size, classes = len(grid), people.scores.shape[1]
        place = np.repeat(np.arange(len(rows)) * (size + 1), classes) + bins

        def split(values: Any) -> tuple[Floats, Floats]:
            return image_sums(np.asarray(values).ravel(), place, len(rows), size)

        number = split(people.there[rows])[0]
        metric, probs = int(self.metric == "precision"), people.probs[rows]
        still = people.open[rows]
        known = np.where(still, order.present, probs)
        hits = split(np.nan_to_num(known))[0]
        missed = split(np.where(np.isnan(known), 1.0, known))[1]
        return image_means(metric, *split(probs), number), image_means(metric, hits, missed, number)

    def chosen(self, flags: Flags) -> int | None:
        """The last threshold of an order fixed beforehand up to which all claims are proven.

        Recall: from the lowest threshold upwards. Precision: from the threshold where a smooth
        curve through the labels promises the clearest case downwards, to more tags.
        """
        if self.metric == "recall":
            count = int(np.cumprod(flags).sum())
            return count - 1 if count else None
        tags = self.of.tally.tags.sum(axis=0)
        first = int(((self.of.clear - self.wanted) * np.sqrt(tags)).argmax())
        count = int(np.cumprod(flags[first::-1]).sum())
        return first - count + 1 if count else None

    def promised(self, flags: Flags) -> Promise:
        """Return the promise, if these claims are proven."""
        at = self.chosen(flags)
        recall, precision = (self._estimate(one, at) for one in get_args(Metric))
        return Promise(
            self.metric, self.wanted, self.confidence, self.over, self.per,
            None if at is None else float(self.of.grid[at]),
            0 if at is None else int(self.of.tally.tags[:, at].sum()),
            recall, precision, self.order.answered, len(self.everyone.scores), self.order.exact,
            self.notes, (), self.profile,
        )  # fmt: skip

    def expected(self) -> Floats:
        """The metric that the model expects at each threshold."""
        tally, everything = self.of.tally, np.arange(len(self.of.grid))
        found: Floats
        if self.per == "image":
            means = tally.means[int(self.metric == "precision"), 0].sum(axis=0)
            found = means / len(self.everyone.scores)
        else:
            zero, one = (
                tally.guess(self.metric, np.full(len(everything), level), everything).sum(axis=0)
                for level in (0.0, 1.0)
            )
            found = zero / np.maximum(zero - one, 1e-9)
        return found

    def _estimate(self, metric: Metric, at: int | None) -> Interval:
        """A metric at a threshold: guesses, corrected by answers, with its standard error."""
        if at is None:
            return Interval(0.0, 0.0, 1.0)
        case, limits = replace(self, metric=metric), np.array([at, at])
        if case._sure(limits).any():
            return Interval(1.0, 1.0, 1.0)
        if not len(self.order.places):
            return Interval(float(case.expected()[at]), 0.0, 1.0)
        # A claim about level v is A - v B, linear in the answers: the estimate is A / B.
        claims, draws = case.problem(np.array([0.0, 1.0]), limits)
        steps = claims.mean + draws.values(claims.weight)
        numerator, rest = steps.mean(axis=0).tolist()
        size = max(numerator - rest, 1e-9)
        value = float(np.clip(numerator / size, 0.0, 1.0))
        steps = steps @ [1 - value, value]
        (claims, _) = case.problem(np.array([value]), limits[:1])
        error = max(float(np.sqrt((steps**2).mean())), float(claims.scale[0]))
        error = min(error / np.sqrt(len(steps)) / size, 1.0)
        # Where every answer agrees, the truth is still an error away from 0 or 1.
        return Interval.of_share(float(np.clip(value, error / 2, 1 - error / 2)), error)


def _block_means(values: Floats, size: Any, blocks: Ints) -> Floats:
    """Sums of values of blocks, divided by those of sizes."""
    found = np.zeros((int(blocks.max()) + 1, values.shape[1]))
    np.add.at(found, blocks, values)
    return found / np.bincount(blocks, size)[:, None]


def _image_sums(scores: Scores) -> Floats:
    found: Floats = np.nansum(scores, axis=1, dtype=np.float64)
    return found


def _ranks(keys: Any, asked: Any) -> Ints:
    """How many keys are smaller than each of those asked for, which are sorted."""
    if not len(asked):
        return np.zeros(0, dtype=np.int64)
    found: Ints = np.searchsorted(np.sort(keys[keys <= asked[-1]]), asked)
    return found


def present_probs(scores: Any, targets: Any, *, verified: Any = None) -> Floats:
    """Return the probability that each entry is present, as promises use it ``(N, C)``.

    That of a :class:`MissingLabelModel`, shrunk towards the share of labelled entries: where the
    model is too sure of an absent class, the one answer that contradicts it costs most. Without any
    label it is the score.

    Args:
        scores: Probabilities ``(N, C)``.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
        verified: True where a person verified that an entry is absent.

    Raises:
        ArgumentError: A score is no probability.
    """
    values, labels = as_floats(scores), as_floats(targets)
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        raise ArgumentError(
            "Scores must be probabilities, between 0 and 1, unless probs is given, but got"
            f" {float(outside[0])!r}. Put logits through a sigmoid."
        )
    if not (labels == 1).any():
        return shrunk(values)
    inside = np.clip(values, _SURE, 1 - _SURE)
    logits = np.log(inside) - np.log1p(-inside)
    model = MissingLabelModel.fit(logits, labels, verified=verified)
    found = model.prob_present(logits, labels, verified=verified)
    return shrunk(found, float(np.nanmean(labels)))


def shrunk(probs: Any, towards: float | None = None) -> Floats:
    """Return probabilities of a model, shrunk towards a common one, or towards their mean."""
    share = priors.PROMISE_SHRINKAGE
    if towards is None:
        towards = float(np.nanmean(probs)) if np.size(probs) else 0.0
    found: Floats = (1 - share) * probs + share * towards
    return found


__all__ = ["Metric", "Over", "Per", "Promise", "PromiseTest", "present_probs"]
