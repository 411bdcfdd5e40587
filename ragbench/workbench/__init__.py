"""The interface for notebooks, scripts and the commands: an experiment as a value, results as data frames and figures.

from ragbench import Experiment

results = Experiment.sweep("exp=baseline,phase1").run()
results.summary()
results.plot_pareto()
"""

from ragbench.base import console
from ragbench.workbench.experiment import Experiment
from ragbench.workbench.results import Results

console.show_messages()

__all__ = ["Experiment", "Results"]
