"""The parameters of CRFsuite's training algorithms: names, types, defaults and descriptions.

``CRF`` has them under the names of sklearn-crfsuite, ``Trainer`` under those of CRFsuite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from laso.errors import quoted

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
LONG_NAMES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
UNLIMITED = 2**31 - 1  # the largest number of iterations, which CRFsuite takes as no limit
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")


class Parameter(NamedTuple):
    """A parameter of some algorithms."""

    name: str  # in CRFsuite
    field: str  # in sklearn-crfsuite
    cast: Callable[[Any], Any]
    defaults: Mapping[str, Any]  # for each algorithm that has it
    description: str


def _as_bool(value: Any) -> bool:
    """Return a truth value, which CRFsuite writes as 0 or 1."""
    return bool(int(value))


def _parameter(
    name: str, description: str, field: str | None = None, /, **defaults: Any
) -> Parameter:
    kind = type(next(iter(defaults.values())))
    cast = _as_bool if kind is bool else kind
    return Parameter(name, field or name.replace(".", "_"), cast, defaults, description)


def _for_all(name: str, field: str, default: Any, description: str) -> Parameter:
    return _parameter(name, description, field, **dict.fromkeys(ALGORITHMS, default))


PARAMETERS = (
    _for_all("feature.minfreq", "min_freq", 0.0, "The minimum frequency of features."),
    _for_all(
        *("feature.possible_states", "all_possible_states", False),
        "Also learn weights for attributes and labels that never occur together.",
    ),
    _for_all(
        *("feature.possible_transitions", "all_possible_transitions", False),
        "Also learn weights for labels that never follow each other.",
    ),
    _parameter("c1", "The coefficient of the L1 prior.", lbfgs=0.0),
    _parameter("c2", "The coefficient of the L2 prior.", lbfgs=1.0, l2sgd=1.0),
    _parameter(
        "max_iterations",
        "The largest number of iterations.",
        lbfgs=UNLIMITED,
        l2sgd=1000,
        ap=100,
        pa=100,
        arow=100,
    ),
    _parameter("num_memories", "The number of steps that L-BFGS remembers.", lbfgs=6),
    _parameter(
        "epsilon",
        "The stopping criterion: the gradient of lbfgs, the fraction of errors of the others.",
        lbfgs=1e-5,
        ap=0.0,
        pa=0.0,
        arow=0.0,
    ),
    _parameter("period", "The iterations to measure an improvement over.", lbfgs=10, l2sgd=10),
    _parameter("delta", "Stop when a period improves less than this.", lbfgs=1e-5, l2sgd=1e-6),
    _parameter("linesearch", f"One of {', '.join(LINE_SEARCHES)}.", lbfgs="MoreThuente"),
    _parameter("max_linesearch", "The largest number of trials of a line search.", lbfgs=20),
    _parameter("calibration.eta", "The first learning rate of the calibration.", l2sgd=0.1),
    _parameter("calibration.rate", "The factor between two learning rates.", l2sgd=2.0),
    _parameter("calibration.samples", "The number of sequences of the calibration.", l2sgd=1000),
    _parameter("calibration.candidates", "The number of learning rates to try.", l2sgd=10),
    _parameter("calibration.max_trials", "The largest number of trials.", l2sgd=20),
    _parameter("type", "0: PA without slack variables, 1: PA-I, 2: PA-II.", "pa_type", pa=1),
    _parameter("c", "The aggressiveness of PA-I and PA-II.", pa=1.0),
    _parameter("error_sensitive", "The margin grows with the number of wrong labels.", pa=True),
    _parameter("averaging", "Average the weights.", pa=True),
    _parameter("variance", "The first variance of each weight.", arow=1.0),
    _parameter("gamma", "The trade-off of loss and change.", arow=1.0),
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
