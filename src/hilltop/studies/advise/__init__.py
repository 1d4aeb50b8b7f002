"""Which loss suits a set of labels: what the labels say, and a trial on the user's own features."""

from hilltop.studies.advise.advice import Advice, advise
from hilltop.studies.advise.facts import LabelFacts
from hilltop.studies.advise.simulation import Simulation, simulation_of
from hilltop.studies.advise.trial import Trial, Tried, run_trial

__all__ = [
    "Advice",
    "LabelFacts",
    "Simulation",
    "Trial",
    "Tried",
    "advise",
    "run_trial",
    "simulation_of",
]
