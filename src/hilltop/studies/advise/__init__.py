"""Which loss suits a set of labels: what the labels say, and a trial on the user's own features."""

from hilltop.studies.advise.advice import Advice, advise
from hilltop.studies.advise.belief import Belief, believe
from hilltop.studies.advise.facts import LabelFacts
from hilltop.studies.advise.trial import Trial, Tried, run_trial

__all__ = ["Advice", "Belief", "LabelFacts", "Trial", "Tried", "advise", "believe", "run_trial"]
