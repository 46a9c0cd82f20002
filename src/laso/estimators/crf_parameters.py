"""The parameters of CRFsuite's training algorithms: names, types, defaults and descriptions.

``CRF`` has them under the names of sklearn-crfsuite, ``laso.crfsuite.Trainer`` under their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from laso.errors import quoted

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
LONG_NAMES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
UNLIMITED = 2**31 - 1  # the largest number of iterations, which CRFsuite takes as no limit
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")


def as_bool(value: Any) -> bool:
    """Return a truth value, which CRFsuite writes as 0 or 1."""
    return bool(int(value))


class Parameter(NamedTuple):
    """A parameter of some algorithms."""

    name: str  # in CRFsuite
    field: str  # in sklearn-crfsuite
    cast: Callable[[Any], Any]
    defaults: Mapping[str, Any]  # for each algorithm that has it
    description: str


def _for_all(default: Any) -> dict[str, Any]:
    return dict.fromkeys(ALGORITHMS, default)


PARAMETERS = (
    Parameter(
        "feature.minfreq",
        "min_freq",
        float,
        _for_all(0.0),
        "The minimum frequency of features.",
    ),
    Parameter(
        "feature.possible_states",
        "all_possible_states",
        as_bool,
        _for_all(False),
        "Also learn weights for attributes and labels that never occur together.",
    ),
    Parameter(
        "feature.possible_transitions",
        "all_possible_transitions",
        as_bool,
        _for_all(False),
        "Also learn weights for labels that never follow each other.",
    ),
    Parameter("c1", "c1", float, {"lbfgs": 0.0}, "The coefficient of the L1 prior."),
    Parameter("c2", "c2", float, {"lbfgs": 1.0, "l2sgd": 1.0}, "The coefficient of the L2 prior."),
    Parameter(
        "max_iterations",
        "max_iterations",
        int,
        {"lbfgs": UNLIMITED, "l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100},
        "The largest number of iterations.",
    ),
    Parameter(
        "num_memories",
        "num_memories",
        int,
        {"lbfgs": 6},
        "The number of past steps that approximate the inverse Hessian.",
    ),
    Parameter(
        "epsilon",
        "epsilon",
        float,
        {"lbfgs": 1e-5, "ap": 0.0, "pa": 0.0, "arow": 0.0},
        "The stopping criterion: the gradient of lbfgs, the fraction of errors of the others.",
    ),
    Parameter(
        "period",
        "period",
        int,
        {"lbfgs": 10, "l2sgd": 10},
        "The number of iterations over which an improvement is measured.",
    ),
    Parameter(
        "delta",
        "delta",
        float,
        {"lbfgs": 1e-5, "l2sgd": 1e-6},
        "Stop when the improvement of the log-likelihood over a period is no greater.",
    ),
    Parameter(
        "linesearch",
        "linesearch",
        str,
        {"lbfgs": "MoreThuente"},
        f"The line search of L-BFGS: {', '.join(LINE_SEARCHES)}.",
    ),
    Parameter(
        "max_linesearch",
        "max_linesearch",
        int,
        {"lbfgs": 20},
        "The largest number of trials of a line search.",
    ),
    Parameter(
        "calibration.eta",
        "calibration_eta",
        float,
        {"l2sgd": 0.1},
        "The first learning rate of the calibration.",
    ),
    Parameter(
        "calibration.rate",
        "calibration_rate",
        float,
        {"l2sgd": 2.0},
        "The factor between two learning rates of the calibration.",
    ),
    Parameter(
        "calibration.samples",
        "calibration_samples",
        int,
        {"l2sgd": 1000},
        "The number of sequences of the calibration.",
    ),
    Parameter(
        "calibration.candidates",
        "calibration_candidates",
        int,
        {"l2sgd": 10},
        "The number of candidates for the learning rate.",
    ),
    Parameter(
        "calibration.max_trials",
        "calibration_max_trials",
        int,
        {"l2sgd": 20},
        "The largest number of trials of the calibration.",
    ),
    Parameter(
        "type",
        "pa_type",
        int,
        {"pa": 1},
        "The update: 0 without slack variables, 1 for PA-I, 2 for PA-II.",
    ),
    Parameter("c", "c", float, {"pa": 1.0}, "The aggressiveness of PA-I and PA-II."),
    Parameter(
        "error_sensitive",
        "error_sensitive",
        as_bool,
        {"pa": True},
        "The margin grows with the number of wrong labels.",
    ),
    Parameter("averaging", "averaging", as_bool, {"pa": True}, "Average the weights."),
    Parameter("variance", "variance", float, {"arow": 1.0}, "The first variance of each weight."),
    Parameter("gamma", "gamma", float, {"arow": 1.0}, "The trade-off of loss and change."),
)


def parameters_of(algorithm: str) -> dict[str, Parameter]:
    """Return the parameters of an algorithm by their names in CRFsuite."""
    return {each.name: each for each in PARAMETERS if algorithm in each.defaults}


def algorithm_named(name: str) -> str:
    """Return the short name of an algorithm; a name that is none raises ValueError."""
    short = LONG_NAMES.get(name.lower(), name.lower())
    if short not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, found {quoted(name)}")
    return short
