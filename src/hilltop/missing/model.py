"""MissingLabelModel: what is missing, what is true, what to predict.

It is fitted once for a data set from out-of-fold scores and labels. Training, audit, prediction,
evaluation, report and review page read it, so that all of them say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import expit, logit

from hilltop.checks import pluralize
from hilltop.errors import ArgumentError, MissingExtra
from hilltop.missing import priors
from hilltop.missing.decision import Decision, ExpectedCounts, Goal, decide
from hilltop.missing.frequency import (
    CountRule,
    Profile,
    count_posterior,
    draw_frequencies,
    fit_count_rule,
    fit_profile,
    fit_ratio,
    loglik_gain,
    shape_features,
    shape_prior,
)
from hilltop.missing.interval import Interval
from hilltop.missing.logistic import Counts, Floats, Prior, as_floats, fit_logistic

if TYPE_CHECKING:
    from hilltop.missing.answers import SampledAnswers
    from hilltop.missing.promise import Over, Promise, PromiseTest
    from hilltop.missing.tally import Metric, Per

Kind = Literal["complete", "none", "scar", "count"]
SCENARIOS = 7
"""Equally probable assumptions about label frequencies that decisions average over."""
ASSUMPTION = "This assumes that whether a label was recorded does not depend on how clear it is."
_SAMPLE_ENTRIES = 2_000_000
_SURE = 1e-6


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""From scores of a model to log odds of the truth.

    .. math:: \eta_j(x) = a_j x + b_j + h_j (x - k_j)_+

    Attributes:
        slope: a of each class ``(C,)``.
        shift: b of each class.
        bend: h of each class.
        knot: k of each class.
    """

    slope: Floats
    shift: Floats
    bend: Floats
    knot: Floats

    def __call__(self, scores: Any) -> Any:
        """Return log odds of the truth, as an array or a tensor, whatever scores are."""
        if isinstance(scores, torch.Tensor):
            slope, shift, bend, knot = (
                torch.as_tensor(one, dtype=scores.dtype, device=scores.device)
                for one in (self.slope, self.shift, self.bend, self.knot)
            )
            return scores * slope + shift + bend * (scores - knot).clamp(min=0)
        values = np.asarray(scores)
        return values * self.slope + self.shift + self.bend * np.maximum(values - self.knot, 0)

    def of_columns(self, columns: Any) -> Calibration:
        """Return the calibration of entries of these classes."""
        parts = (self.slope, self.shift, self.bend, self.knot)
        return Calibration(*(part[columns] for part in parts))

    def inverse(self, log_odds: Floats) -> Floats:
        """Return the score of each class that has these log odds ``(C,)``."""
        at_knot = self.slope * self.knot + self.shift
        below = (log_odds - self.shift) / self.slope
        return np.where(
            log_odds <= at_knot, below, self.knot + (log_odds - at_knot) / (self.slope + self.bend)
        )

    @classmethod
    def fit(cls, counts: Counts, *, levels: Floats | None = None) -> Calibration:
        """Calibrate scores to probabilities of truth."""
        levels = counts.levels() if levels is None else levels
        fit = fit_logistic(shape_features(counts.scores, levels), levels, counts, shape_prior())
        return cls.about(levels, fit.coefficients)

    @classmethod
    def about(cls, levels: Floats, coefficients: Floats) -> Calibration:
        """Return what has these coefficients about the level of each class."""
        slope, shift, bend = coefficients
        bend = np.maximum(bend, priors.LOWEST_SLOPE - slope)  # higher scores stay more probable
        return cls(slope, levels * (1 - slope) + shift, bend, levels)

    def after(self, slope: float, shift: Floats) -> Calibration:
        """Return the calibration of x where this one is that of ``slope * x + shift``."""
        knot = (self.knot - shift) / slope
        return Calibration(
            self.slope * slope, self.slope * shift + self.shift, self.bend * slope, knot
        )


@dataclass(frozen=True, eq=False)
class MissingCounts:
    """How many labels are missing.

    Attributes:
        total: In all classes together.
        by_class: Value, lower and upper end for each class ``(3, C)``; values add up to the total.
        labelled: Labels of each class.
    """

    total: Interval
    by_class: Floats
    labelled: Floats

    @property
    def frequency(self) -> Interval:
        """Label frequency: the share of the true labels that is recorded."""
        labelled = float(self.labelled.sum())
        ends = (self.total.value, self.total.high, self.total.low)
        return Interval(*(labelled / max(1.0, labelled + missing) for missing in ends))

    def of_class(self, column: int) -> Interval:
        """Missing labels of one class."""
        return Interval(*self.by_class[:, column].tolist())


@dataclass(frozen=True, eq=False)
class _Order:
    """How open entries are ranked; see :meth:`MissingLabelModel.prob_present`.

    Attributes:
        slope: Calibration of scores to the truth that all classes share.
        shift: The same.
        log_frequency: Common log label frequency.
        odds_shift: Added to log odds, so that probabilities add up to the missing labels.
    """

    slope: float
    shift: float
    log_frequency: float
    odds_shift: float = 0.0


@dataclass(frozen=True, eq=False)
class MissingLabelModel:
    """How labels were lost, and what follows.

    Build it with :meth:`fit`.

    Attributes:
        kind: ``"complete"`` where every entry is verified, ``"none"`` where labels show no sign
            that any is missing, ``"scar"`` where each was recorded with a probability of its
            class, ``"count"`` where the number of labels of an image points to the paper's rule.
        missing: How many labels are missing.
        calibration: From scores to log odds of the truth.
        counts: What thresholds are chosen by.
        images: Number of images.
        single_label_share: Share of the images with exactly one label.
        ratio: Missing ratio of the count rule.
        loglik_gain: Coarsened log-likelihood by which SCAR prefers missing labels to none.
        order: How open entries are ranked.
        lost: How many labels were missing before a review put some of them back; None where
            there was no review.
        draws: Draws of log label frequencies from their posterior ``(draws, C)``; None in a model
            that was read from a file.
        profile: Calibrations at every label frequency; likewise.
        score_scale: Slope and shifts that turn scores into logits of labels; likewise.
    """

    kind: Kind
    missing: MissingCounts
    calibration: Calibration
    counts: ExpectedCounts
    images: int
    single_label_share: float = 0.0
    ratio: str | None = None
    loglik_gain: float = 0.0
    order: _Order | None = None
    lost: MissingCounts | None = None
    draws: Floats | None = None
    profile: Profile | None = None
    score_scale: tuple[float, Floats] | None = None

    @classmethod
    def fit(
        cls,
        logits: Any,
        targets: Any,
        *,
        verified: Any = None,
        restored: Any = None,
        label_frequency: float | None = None,
        count_ratio: str | None = None,
        counts: Counts | None = None,
        images: int | None = None,
        seed: int = 0,
    ) -> MissingLabelModel:
        """Fit the model to out-of-fold scores and labels.

        Args:
            logits: Scores of models that did not learn from these labels ``(N, C)``; NaN where
                there is none.
            targets: 1 labelled, 0 not labelled, NaN for entries that nobody was asked about.
            verified: True where a person verified the target.
            restored: True for labels that were missing, and that a person added since; together
                with verified absent entries they are evidence of how many are missing. Entries may
                have been chosen by their scores, but not by their truth.
            label_frequency: The share of true labels that was recorded, where it is known.
            count_ratio: The missing ratio of the count rule, where it is known.
            counts: Labels of more images by their scores, see :meth:`Counts.of_blocks`, where
                logits and targets are a sample of the images, by which the count rule is judged.
            images: Number of images of ``counts``.
            seed: Of the draws from the posterior.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> logits = rng.normal(-1, 4, (3000, 3))
            >>> true = rng.random((3000, 3)) < expit(logits)
            >>> recorded = true & (rng.random((3000, 3)) < 0.5)
            >>> model = MissingLabelModel.fit(logits, recorded)
            >>> model.kind, bool(model.missing.total.low < (true & ~recorded).sum())
            ('scar', True)
            >>> MissingLabelModel.fit(logits, true).kind
            'none'
        """
        scores, labels, absent = _checked(logits, targets, verified)
        if absent is not None and bool((absent | (labels != 0)).all()):
            return cls._complete(scores, labels, absent)
        added, now = None, labels
        if restored is not None:
            added = (as_floats(restored) == 1) & (labels == 1)
            labels = np.where(added, 0.0, labels)
        sampled, images = counts, len(labels) if images is None else images
        if sampled is None:
            counts = Counts.of_labels(scores, now, absent, added)
            recorded = Counts.of_labels(scores, labels)
        else:
            counts, recorded = sampled, sampled.as_recorded()
        scale = images / len(labels)
        slope, shift = _calibrate_to_labels(recorded)
        scaled = counts.rescored(counts.scores * slope + shift)
        profile = fit_profile(scaled)
        known = label_frequency is not None or count_ratio is not None
        rule = None
        if label_frequency is None:
            rule = fit_count_rule(scores * slope + shift, labels, absent, profile, scale=scale)
            if count_ratio is not None:
                rule = _given_rule(count_ratio, scores * slope + shift, labels, absent, scale)
        labelled = scaled.labelled.sum(axis=0)
        rng = np.random.default_rng(seed)
        draws = draw_frequencies(profile, labelled, rule, rng)
        gain = loglik_gain(profile, float(labelled.sum()))
        if label_frequency is not None:
            draws = _known_draws(label_frequency, draws, rng)
        missing = _missing_counts(draws, labelled, scaled, rng)
        some = known or rule is not None or gain > priors.MIN_LOGLIK_GAIN
        kind: Kind = "count" if rule is not None else "scar" if some else "none"
        if not some:
            missing = _none_missing(missing)
        scenarios = _scenarios(draws, labelled)
        calibration, expected = _decide_by(profile, scaled, scenarios)
        single = float((np.nansum(labels, axis=1) == 1).mean()) if labels.shape[1] > 2 else 0.0
        model = cls(
            kind,
            missing,
            calibration.after(slope, shift),
            replace(expected, rows=images),
            images,
            single,
            None if rule is None else rule.ratio,
            loglik_gain=gain,
            draws=draws,
            profile=profile,
            score_scale=(slope, shift),
        )
        model = model._ranked(scores, labels, absent, counts, sampled)
        if added is None:
            return model
        if sampled is not None:
            there = sampled.present, sampled.labelled + sampled.present, sampled.unlabelled
            return model.after_review(*(one.sum(axis=0) for one in there))
        still_open = (now == 0) if absent is None else (now == 0) & ~absent
        sums = [one.sum(axis=0).astype(float) for one in (added, now == 1, still_open)]
        return model.after_review(*sums)

    @classmethod
    def _complete(cls, scores: Floats, labels: Floats, absent: Any) -> MissingLabelModel:
        """Where every entry is verified, no label can be missing."""
        counts = Counts.of_probs(scores, labels)
        calibration, classes = Calibration.fit(counts), labels.shape[1]
        probs = expit(calibration(counts.scores))[None]
        labelled = np.nansum(labels, axis=0)
        none = MissingCounts(Interval(0.0, 0.0, 0.0), np.zeros((3, classes)), labelled)
        expected = ExpectedCounts.of(calibration(counts.scores), counts.total, probs)
        return cls("complete", none, calibration, replace(expected, rows=len(labels)), len(labels))

    def probs(self, logits: Any) -> Any:
        """Return the probability that each label is true, for images without labels ``(N, C)``."""
        odds = self.calibration(logits)
        return torch.sigmoid(odds) if isinstance(odds, torch.Tensor) else expit(odds)

    def prob_present(
        self, logits: Any, targets: Any, *, verified: Any = None, by_rule: bool = True
    ) -> Floats:
        r"""Return the probability that each entry is present, given the labels of its image.

        Labelled entries have 1, verified absent ones 0, entries that nobody was asked about
        :meth:`probs`. The others add up to the number of missing labels. Their order is that of
        out-of-fold scores where these are certain, and of scores calibrated by class where not: the
        calibration of a class follows from its many uncertain entries, and says little of the few
        certain ones.

        .. math:: \eta' = \eta_0 + (1 - \sigma(\eta_0)) (\eta_1 - \eta_0)

        with log odds calibrated for all classes in common, eta_0, and by class, eta_1.

        Args:
            logits: Out-of-fold scores ``(N, C)``.
            targets: 1 labelled, 0 not labelled, NaN for entries that nobody was asked about.
            verified: True where a person verified the target.
            by_rule: Whether to use the count rule, where one was found; SCAR without it.
        """
        scores, labels, absent = _checked(logits, targets, verified)
        if self.kind == "complete" or self.order is None:
            return np.where(np.isnan(labels), self.probs(scores), labels)
        odds = self._open_log_odds(scores, labels, absent, by_rule=by_rule)
        present = expit(odds + self.order.odds_shift)
        present = np.where(np.isnan(labels), self.probs(scores), present)
        present[labels == 1] = 1.0
        if absent is not None:
            present[absent] = 0.0
        found: Floats = present
        return found

    def _open_log_odds(
        self, scores: Floats, labels: Floats | None, absent: Any, *, by_rule: bool = True
    ) -> Floats:
        """Log odds that an entry without a label is present, before they are made to add up."""
        by = self.order
        assert by is not None
        in_common = by.slope * scores + by.shift
        adjusted = in_common + expit(-in_common) * (self.calibration(scores) - in_common)
        if self.ratio is None or not by_rule:
            found: Floats = adjusted + np.log(-np.expm1(by.log_frequency))
            return found
        _, present = count_posterior(self.ratio, adjusted, labels, absent)
        odds: Floats = logit(np.clip(present, _SURE, 1 - _SURE))
        return odds

    def _ranked(
        self, scores: Floats, labels: Floats, absent: Any, counts: Counts, sampled: Counts | None
    ) -> MissingLabelModel:
        """Fit how open entries are ranked."""
        labelled = float(self.missing.labelled.sum())
        lost = self.missing.total.value if self.kind != "none" else 0.0
        frequency = min(labelled / max(1.0, labelled + lost), priors.ORDER_FREQUENCY)
        order = _Order(*_fit_common(counts, frequency), float(np.log(frequency)))
        model = replace(self, order=order)
        wanted = max(lost, labelled * (1 / frequency - 1))
        if sampled is not None and self.ratio is None:
            odds = model._open_log_odds(sampled.scores, None, None)
            return model._adding_up(odds, sampled.unlabelled, wanted)
        every = max(1, scores.size // _SAMPLE_ENTRIES)
        some = scores[::every], labels[::every], None if absent is None else absent[::every]
        open_entries = (some[1] == 0) if some[2] is None else (some[1] == 0) & ~some[2]
        odds = model._open_log_odds(*some)[open_entries]
        share = every * self.images / len(labels)
        return model._adding_up(odds, np.ones(()), wanted / share)

    def _adding_up(self, odds: Floats, number: Floats, wanted: float) -> MissingLabelModel:
        """Return the model whose open entries, with these log odds, add up to what is wanted."""
        assert self.order is not None
        number = np.broadcast_to(number, odds.shape)
        expected = min(wanted, 0.9 * float(number.sum()))
        if not odds.size or expected <= 0:
            return self

        def surplus(shift: float) -> float:
            found: float = float((expit(odds + shift) * number).sum()) - expected
            return found

        shift = brentq(surplus, -40.0, 40.0, xtol=1e-4)
        return replace(self, order=replace(self.order, odds_shift=float(shift)))

    @property
    def ranks_by_score(self) -> bool:
        """Whether an open entry's probability depends on its own score alone."""
        return self.order is not None and self.ratio is None and self.kind != "complete"

    def prob_open(self, logits: Any, columns: Any) -> Floats:
        """Return :meth:`prob_present` of single open entries, where scores alone decide.

        Args:
            logits: Out-of-fold scores ``(n,)``.
            columns: Their classes ``(n,)``.
        """
        assert self.order is not None
        entries = replace(self, calibration=self.calibration.of_columns(columns), ratio=None)
        odds = entries._open_log_odds(as_floats(logits), None, None)
        found: Floats = expit(odds + self.order.odds_shift)
        return found

    def least_scores(self, probs: Floats) -> Floats:
        """Return scores below which no open entry of a class has a probability ``(C,)``.

        Log odds are a mean of two increasing functions of the score, see :meth:`prob_present`, so
        that the larger of the two bounds them.
        """
        by = self.order
        assert by is not None
        with np.errstate(divide="ignore"):
            odds = logit(probs) - by.odds_shift - np.log(-np.expm1(by.log_frequency))
        lowest = np.minimum((odds - by.shift) / by.slope, self.calibration.inverse(odds))
        found: Floats = np.where(probs > 0, lowest - 1e-4 * (1 + np.abs(lowest)), -np.inf)
        return found

    def thresholds(self, goal: Goal = "balanced_f1", *, wanted: float | None = None) -> Decision:
        """Choose thresholds on :meth:`probs`; see :func:`hilltop.missing.decide`."""
        return decide(self.counts, goal, wanted=wanted)

    def promise(
        self,
        logits: Any,
        targets: Any = None,
        answers: SampledAnswers | None = None,
        *,
        recall: float | None = None,
        precision: float | None = None,
        false_discovery: float | None = None,
        confidence: float = 0.9,
        over: Over = "new",
        per: Per = "pair",
        verified: Any = None,
        curve: bool = False,
        seed: int = 0,
    ) -> Promise:
        """Return a threshold on :meth:`probs` whose recall or precision is guaranteed.

        The promise rests on answers to the questions of ``promise_test(...).plan(number)``; without
        them its threshold is None, and it says why.

        Args:
            logits: Of images that the scores' model did not learn from ``(N, C)``.
            targets: Labels of these images that are known to be right, if there are any: 1
                labelled, 0 not labelled, NaN for entries that take no part.
            answers: What people said.
            recall: Share of the true labels that are to become tags, at least.
            precision: Share of the tags that are to be true, at least.
            false_discovery: Share of the tags that may be false, at most; 1 less the precision.
            confidence: Probability that the promise holds.
            over: Promise it of ``new`` images like these, or of ``these`` alone.
            per: Of all pairs together, or of the mean over images.
            verified: True where a person verified that an entry is absent.
            curve: Whether to find what can be promised at other thresholds, for ``plot``.
            seed: Of the random order of questions.
        """
        goal = _goal(recall, precision, false_discovery)
        test = self.promise_test(
            logits, targets, plan_for=goal, over=over, verified=verified, seed=seed
        )
        return test.promise(*goal, answers, confidence=confidence, per=per, curve=curve)

    def promise_test(
        self,
        logits: Any,
        targets: Any = None,
        *,
        plan_for: tuple[Metric, float] = ("recall", 0.9),
        over: Over = "new",
        verified: Any = None,
        seed: int = 0,
    ) -> PromiseTest:
        """Return what plans the questions of :meth:`promise`, and makes many promises.

        Args:
            logits: As for :meth:`promise`, as are other arguments.
            targets: The same.
            plan_for: Metric and value that questions are chosen for.
            over: The same.
            verified: The same.
            seed: The same.
        """
        from hilltop.missing.promise import PromiseTest, shrunk

        scores = self.probs(np.asarray(logits))
        probs = scores
        if targets is not None:
            probs = self.prob_present(logits, targets, verified=verified)
        return PromiseTest(
            scores, targets, verified=verified, probs=shrunk(probs), plan_for=plan_for, over=over,
            seed=seed,
        )  # fmt: skip

    def for_scores(
        self, logits: Any, fitted_logits: Any, targets: Any, *, verified: Any = None
    ) -> MissingLabelModel:
        """Return the same model for the scores of another classifier on the same images.

        What is missing stays what it was; only the calibration is that of the other scores.

        Args:
            logits: Out-of-fold scores of the other classifier ``(N, C)``.
            fitted_logits: The scores that the model was fitted to.
            targets: The labels that it was fitted to.
            verified: True where a person verified the target.
        """
        scores, labels, absent = _checked(logits, targets, verified)
        if self.profile is None or self.draws is None or self.score_scale is None:
            return MissingLabelModel._complete(scores, labels, absent)
        slope, shift = self.score_scale
        own = np.nan_to_num(as_floats(fitted_logits)) * slope + shift
        known = np.where(labels == 1, 1.0, np.where(np.isnan(labels), np.nan, -1.0))
        if absent is not None:
            known[absent] = 0.0
        levels, scenarios = None, []
        for frequencies in _scenarios(self.draws, self.as_lost.labelled):
            truth = Calibration.about(self.profile.levels, self.profile.at(frequencies))
            lost = np.log(np.maximum(-np.expm1(frequencies), _SURE))
            probs = np.where(known >= 0, known, expit(truth(own) + lost))
            probs[np.isnan(known)] = np.nan
            counts = Counts.of_probs(scores, probs)
            levels = counts.levels() if levels is None else levels
            found = Calibration.fit(counts, levels=levels)
            scenarios.append(expit(found(counts.scores)))
        stacked = np.stack(scenarios)
        calibration = Calibration.fit(counts.as_truth(stacked.mean(axis=0)), levels=levels)
        odds = calibration(counts.scores)
        expected = ExpectedCounts.of(odds, counts.total, stacked)
        return replace(
            self, calibration=calibration, counts=replace(expected, rows=len(labels)), order=None
        )

    def for_labels(self, labelled: Floats) -> MissingLabelModel:
        """Return the model of more images like those that it was fitted to, before any review.

        Args:
            labelled: Labels of each class in all of them.
        """
        mine = self.as_lost
        factor = labelled / np.maximum(mine.labelled, 1e-9)
        by_class = np.where(mine.labelled > 0, mine.by_class * factor, 0.0)
        whole = labelled.sum() / max(float(mine.labelled.sum()), 1e-9)
        ends = (mine.total.value, mine.total.low, mine.total.high)
        total = Interval(*(whole * end for end in ends))
        if by_class[0].sum():
            by_class = by_class * (total.value / by_class[0].sum())
        missing = MissingCounts(total, by_class, np.asarray(labelled, float))
        return replace(self, missing=missing, lost=None)

    @property
    def as_lost(self) -> MissingCounts:
        """How many labels were missing before a review, or are, where there was none."""
        return self.missing if self.lost is None else self.lost

    def after_review(self, restored: Floats, labelled: Floats, pairs: Floats) -> MissingLabelModel:
        """Return the model where some of the missing labels were put back since.

        Args:
            restored: Labels of each class that were put back.
            labelled: Labels of each class that are there now.
            pairs: Entries of each class that could still be missing labels.
        """
        lost = self.as_lost
        ends = np.array([lost.total.value, lost.total.low, lost.total.high])
        total = Interval(*np.clip(ends - restored.sum(), 0.0, pairs.sum()).tolist())
        by_class = np.clip(lost.by_class - restored, 0.0, pairs)
        if by_class[0].sum():
            value = np.minimum(by_class[0] * (total.value / by_class[0].sum()), pairs)
            by_class = np.stack(
                [value, np.minimum(by_class[1], value), np.maximum(by_class[2], value)]
            )
        return replace(self, missing=MissingCounts(total, by_class, labelled), lost=lost)

    def describe(self) -> str:
        """Return the sentence about missing labels that every command prints."""
        single = self.single_label_share
        return describe_missing(self.kind, self.missing, ratio=self.ratio, single=single)

    def __repr__(self) -> str:
        """Return what was found in a line."""
        return f"MissingLabelModel({self.describe()})"

    def _repr_html_(self) -> str:
        """Return what was found as a paragraph, for notebooks."""
        from html import escape

        return f"<p>{escape(self.describe())}</p>"

    def to_pandas(self, class_names: Any = None) -> Any:
        """Return labels, missing labels and label frequency of each class as a DataFrame.

        Args:
            class_names: Names of the classes; their numbers without it.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("MissingLabelModel.to_pandas", error.name, "pandas") from None
        labelled, (value, low, high) = self.missing.labelled, self.missing.by_class
        names = list(range(len(labelled))) if class_names is None else list(class_names)
        found = {"labelled": labelled, "missing": value, "low": low, "high": high}
        found["label_frequency"] = labelled / np.maximum(labelled + value, 1e-9)
        return pandas.DataFrame(found, index=pandas.Index(names, name="class"))

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything that prediction needs, as tensors to keep in a file."""
        arrays = {
            **{f"calibration.{name}": value for name, value in vars(self.calibration).items()},
            **{f"counts.{name}": value for name, value in vars(self.counts).items()},
            "missing.total": np.array([*vars(self.missing.total).values()]),
            "missing.by_class": self.missing.by_class,
            "missing.labelled": self.missing.labelled,
            "images": np.array(self.images),
            "single_label_share": np.array(self.single_label_share),
        }
        if self.order is not None:
            arrays["order"] = np.array([*vars(self.order).values()])
        return {
            name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()
        }

    def note(self) -> dict[str, Any]:
        """What belongs to :meth:`tensors` and is text."""
        return {"kind": self.kind, "ratio": self.ratio, "describe": self.describe()}

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, torch.Tensor], note: Mapping[str, Any]
    ) -> MissingLabelModel:
        """Read what :meth:`tensors` and :meth:`note` returned."""
        arrays = {name: value.numpy() for name, value in tensors.items()}

        def part(name: str) -> dict[str, Any]:
            mine = (key for key in arrays if key.startswith(f"{name}."))
            return {key.partition(".")[2]: arrays[key] for key in mine}

        total, counts = Interval(*arrays["missing.total"].tolist()), part("counts")
        return cls(
            note["kind"],
            MissingCounts(total, arrays["missing.by_class"], arrays["missing.labelled"]),
            Calibration(**part("calibration")),
            ExpectedCounts(**{**counts, "rows": counts["rows"].item()}),
            arrays["images"].item(),
            arrays["single_label_share"].item(),
            note["ratio"],
            order=_Order(*arrays["order"].tolist()) if "order" in arrays else None,
        )


def describe_missing(
    kind: Kind,
    missing: MissingCounts,
    *,
    ratio: str | None = None,
    single: float = 0.0,
    answers: int = 0,
) -> str:
    """Say how many labels are missing.

    Args:
        kind: How labels were lost.
        missing: How many.
        ratio: Missing ratio of a count rule.
        single: Share of the images with exactly one label.
        answers: Verified answers that took part.
    """
    total, frequency = missing.total, missing.frequency
    if kind == "complete":
        return "Every entry is verified as present or absent, so no label is missing."
    told = f"by {pluralize(answers, 'verified answer', 'verified answers')}, " if answers else ""
    if kind == "none" and not total.value:
        told += (
            "the labels show no sign that any is missing, though up to"
            f" {total.high:,.0f} could be (90% interval)."
        )
    else:
        told += (
            f"about {total.value:,.0f} labels are missing"
            f" ({total.low:,.0f} to {total.high:,.0f}, 90% interval): {frequency.value:.0%} of the"
            " true labels were recorded."
        )
        if ratio is not None:
            told += f" The labels per image fit the count rule with a missing ratio of {ratio}."
        if not answers:
            told += f" {ASSUMPTION}"
    said = told[0].upper() + told[1:]
    if single >= priors.SINGLE_LABEL_SHARE and not answers:
        said += (
            f" {single:.0%} of the images have exactly one label: whether annotators stopped after"
            " one or there is only one, answers to a random sample tell."
        )
    return said


def describe_total(labelled: int, missing: Interval, answers: int) -> str:
    """Say how many labels are missing by a random sample of answers.

    Args:
        labelled: Number of labels.
        missing: How many are missing.
        answers: Number of answers.
    """
    counts = MissingCounts(missing, np.zeros((3, 0)), np.array([float(labelled)]))
    return describe_missing("scar" if missing.value else "none", counts, answers=answers)


def _goal(
    recall: float | None, precision: float | None, false_discovery: float | None
) -> tuple[Metric, float]:
    """The one metric that is asked for."""
    given = [one for one in (recall, precision, false_discovery) if one is not None]
    if len(given) != 1:
        raise ArgumentError("Give one of recall, precision and false_discovery.")
    if recall is not None:
        return "recall", recall
    return "precision", given[0] if precision is not None else 1 - given[0]


def _checked(logits: Any, targets: Any, verified: Any) -> tuple[Floats, Floats, Any]:
    """Finite scores, labels that are NaN where there is no score, and verified absent entries."""
    scores, labels = as_floats(logits), as_floats(targets)
    if scores.shape != labels.shape or scores.ndim != 2:
        raise ArgumentError(
            f"logits and targets must have the same shape (N, C), but got {scores.shape} and"
            f" {labels.shape}."
        )
    labels[np.isnan(scores)] = np.nan
    absent = None
    if verified is not None:
        absent = (as_floats(verified) == 1) & (labels == 0)
    return np.nan_to_num(scores), labels, absent


def _calibrate_to_labels(counts: Counts) -> tuple[float, Floats]:
    """One slope for all classes and a shift for each that turn scores into logits of labels."""
    levels = counts.levels()
    prior = Prior(
        np.array([1.0, 0.0]), np.array([0.01, 1e-6]), np.array([np.inf, priors.SHAPE_SD**-2])
    )
    fit = fit_logistic(shape_features(counts.scores, levels)[:2], levels, counts, prior)
    slope, shift = fit.coefficients
    return float(slope[0]), levels * (1 - slope) + shift


def _fit_common(counts: Counts, frequency: float) -> tuple[float, float]:
    """Slope and shift that all classes share, at a label frequency."""
    features = shape_features(counts.scores, np.zeros(counts.scores.shape[1]))[:2]
    prior = Prior(np.array([1.0, 0.0]), np.array([0.25, 1e-6]), np.full(2, np.inf))
    slope, shift = fit_logistic(features, 0.0, counts, prior, frequency=frequency).shared.tolist()
    return slope, shift


def _missing_counts(
    draws: Floats, labelled: Floats, counts: Counts, rng: np.random.Generator
) -> MissingCounts:
    """Number of missing labels, in total and by class."""
    rate = rng.gamma(np.maximum(labelled, 0.5), size=draws.shape)
    possible = (counts.unlabelled + counts.present).sum(axis=0)
    found = np.minimum(rng.poisson(rate * np.expm1(-draws)), possible)
    found = np.maximum(found, counts.present.sum(axis=0).astype(np.int64))
    together = found.sum(axis=1)
    low, value, high = np.quantile(together, (0.05, 0.5, 0.95))
    ends = np.quantile(found, (0.05, 0.95), axis=0)
    values = found.mean(axis=0) * (value / max(found.mean(axis=0).sum(), 1e-9))
    by_class = np.stack([values, np.minimum(ends[0], values), np.maximum(ends[1], values)])
    return MissingCounts(Interval(float(value), float(low), float(high)), by_class, labelled)


def _none_missing(missing: MissingCounts) -> MissingCounts:
    """The same upper ends, where labels show no sign that any is missing."""
    none = np.zeros_like(missing.by_class[0])
    total = Interval(0.0, 0.0, missing.total.high)
    return MissingCounts(total, np.stack([none, none, missing.by_class[2]]), missing.labelled)


def _known_draws(frequency: float, draws: Floats, rng: np.random.Generator) -> Floats:
    """Draws about a label frequency that is known."""
    if not 0 < frequency <= 1:
        raise ArgumentError(f"label_frequency must lie in (0, 1], but got {frequency!r}.")
    noise = rng.normal(0.0, priors.COMMON_ERROR / 2, draws.shape)
    found: Floats = np.minimum(np.log(frequency) + noise, 0.0)
    return found


def _given_rule(ratio: str, scores: Floats, labels: Floats, absent: Any, scale: float) -> CountRule:
    """The count rule that is known to hold."""
    _, missing = fit_ratio(ratio, scores, labels, absent)
    return CountRule(ratio, scale * missing, float("inf"))


def _scenarios(draws: Floats, labelled: Floats) -> list[Floats]:
    """Log label frequencies of equally probable scenarios, from few missing labels to many."""
    total = (labelled * np.expm1(-draws)).sum(axis=1)
    groups = np.array_split(np.argsort(total, kind="stable"), SCENARIOS)
    return [-np.log(np.exp(-draws[group]).mean(axis=0)) for group in groups]


def _decide_by(
    profile: Profile, counts: Counts, scenarios: list[Floats]
) -> tuple[Calibration, ExpectedCounts]:
    """The mean calibration over scenarios, and what thresholds on it give in each."""
    truths = [Calibration.about(profile.levels, profile.at(one)) for one in scenarios]
    probs = np.stack([expit(truth(counts.scores)) for truth in truths])
    mean = Calibration.fit(counts.as_truth(probs.mean(axis=0)), levels=profile.levels)
    return mean, ExpectedCounts.of(mean(counts.scores), counts.total, probs)
