"""Theorems 1 and 4 on data: corrections until no error is left, against the bounds (section 4.2).

The margin is that of ``laso.theorem_bounds``, over all decisions on the good paths, from the
factors of the joint problem, since the feature vectors of all steps would take hours in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import SAME_LABEL, Array, Input, Out
from laso.engine.problem import CompiledProblem
from laso.engine.reference import input_of, output_of
from laso.tasks.joint.problem import (
    HEAD,
    HORIZON,
    LAYER,
    N_FACTOR_GROUPS,
    N_LAYERS,
    N_PREFIXES,
    ORDER,
    SIZE,
    Joint,
)
from laso.theorem_bounds import theorem1, theorem4
from studies.measure import Row, format_table
from studies.paper import joint
from studies.report import Plan
from studies.runner import Config, Experiment

PROBLEM: type[CompiledProblem] = Joint
SENTENCES, BEAM, ALPHA = 1000, 5, 0.9
ROWS = {
    "Theorem 1": Config({"queue": BEAM, "update": "perceptron", "epochs": 200}),
    "Theorem 4": Config(
        {"queue": BEAM, "update": "alma", "alpha": ALPHA, "B": "sqrt(8)/alpha", "epochs": 500}
    ),
}
PAPER = {"corrections": 15932, "margin": 0.01299, "bound": 17724}


class Decision(NamedTuple):
    """One decision: the score difference and the distance of the good step to each other step."""

    gaps: Array  # w . Delta
    norms: Array  # ||Delta||


def decisions(
    x: Input, y: Array, weights: dict[int, Array], masks: dict[Any, Array]
) -> Iterator[Decision]:
    """Yield the decisions on the good path of an input, given the weight row of each feature key.

    ``masks`` caches which steps are allowed after which labels.
    """
    spec = x.spec
    others, prefixes, n = (int(spec[i]) for i in (N_FACTOR_GROUPS, N_PREFIXES, HEAD + SIZE))
    horizon = max(int(spec[HEAD + LAYER * i + HORIZON]) for i in range(spec[N_LAYERS]))
    limits = np.zeros(len(at.Limit), np.int64)
    PROBLEM.limits(x, limits)
    out = Out(np.zeros(limits[at.MAX_FEATURES], np.int64), np.zeros(0))
    nothing = np.zeros(len(next(iter(weights.values()))))
    state, new = np.zeros((2, limits[at.STATE_SIZE]), np.int32)
    PROBLEM.initial(x, state)

    def summed(group: int) -> tuple[Array, int]:
        """Return the summed weights of a group's own features, and their number."""
        block = int(PROBLEM.block(x, state, group))
        keys = out.keys[: PROBLEM.block_features(x, block, out)].tolist() if block >= 0 else []
        keys += out.keys[: PROBLEM.features(x, state, group, out)].tolist()
        return sum((weights[key] for key in keys if key in weights), nothing), len(keys)

    labels = np.arange(n)
    for gold in y.tolist():
        good = divmod(gold, n)
        known: dict[int, tuple[Array, int]] = {}
        scores, squares = np.zeros((prefixes, n)), np.zeros((prefixes, n))
        factors = [list(_factors(x, state, others + prefix)) for prefix in range(prefixes)]
        for prefix in range(prefixes):
            for (group, label), (theirs, its) in zip(
                factors[prefix], factors[good[0]], strict=True
            ):
                if group not in known:
                    known[group] = summed(group)
                sums, count = known[group]
                mine = labels if label == SAME_LABEL else label
                target = good[1] if its == SAME_LABEL else its
                scores[prefix] += sums[mine]
                squares[prefix] += 2 * count * ((group != theirs) | (mine != target))
        left = min(len(y) - int(state[0]) - 1, horizon)
        after = (left, *state[1 :: max(1, spec[ORDER])].tolist())
        if after not in masks:
            masks[after] = np.array(
                [
                    [PROBLEM.allowed(x, state, others + prefix, label) for label in range(n)]
                    for prefix in range(prefixes)
                ]
            )
        bad = masks[after].copy()
        bad[good] = False
        yield Decision((scores[good] - scores)[bad], np.sqrt(squares[bad]))
        PROBLEM.apply(x, state, others + good[0], good[1], new)
        state, new = new, state


def _factors(x: Input, state: Array, group: int) -> Iterator[tuple[int, int]]:
    yield group, SAME_LABEL
    i = 0
    while True:
        other, label = PROBLEM.factors(x, state, group, i)
        if other < 0:
            return
        yield int(other), int(label)
        i += 1


class Margins(NamedTuple):
    """The margins of weights, for Delta unchanged and projected, and the radius R."""

    plain: float
    projected: float
    radius: float


def measure_margins(model: Any, path: Path) -> Margins:
    """Return the margins of a model's weights on a file."""
    task = model.task_
    corpus = task.encode(*task.read(path, None))
    table = model.weights_
    rows = table.slots[table.slots[:, 1] != 0]
    weights = {int(key): table.v[row - 1].astype(np.float64) for key, row in rows.tolist()}
    size = math.sqrt(math.fsum(float(row @ row) for row in weights.values()))
    plain = projected = math.inf
    radius, masks = 0.0, dict[Any, Array]()
    for i in range(len(corpus.starts) - 1):
        for gaps, norms in decisions(input_of(corpus, i), output_of(corpus, i), weights, masks):
            plain = min(plain, float(gaps.min()) / size)
            projected = min(projected, float((gaps / np.maximum(1.0, norms)).min()) / size)
            radius = max(radius, float(norms.max()))
    return Margins(plain, projected, radius)


def evaluate(model: Any, path: Path) -> Row:
    """Return the number of corrections, the largest known margin and the bound it gives."""
    large = hasattr(model.update, "alpha")
    greedy = type(model)(**model.get_params()).set_params(queue=1).fit(path)
    margins = {"beam": measure_margins(model, path), "greedy": measure_margins(greedy, path)}
    gammas = {name: one.projected if large else one.plain for name, one in margins.items()}
    separator = max(gammas, key=lambda name: gammas[name])
    gamma, radius = gammas[separator], margins[separator].radius
    bound = None
    if gamma > 0.0:
        bound = theorem4(gamma, model.update.alpha) if large else theorem1(radius, gamma)
    assert model.training_ is not None
    lengths = model.task_.read(path, None)[0].lengths
    return {
        "train_beam": model.queue,
        "strategy": model.strategy.__name__,
        "sentences": len(lengths),
        "words": int(lengths.sum()),
        "converged": bool(model.converged_),
        "corrections": int(model.training_.table.ints[at.GENERATION]) - 1,
        "margin": gamma,
        "separator": separator,
        "own_margin": gammas["beam"],
        "radius": radius,
        "bound": bound,
        "test_s": 0.0,
    }


NOTES = """\
Training ends with the first epoch without an error. A margin is the smallest over all decisions on
the good paths, for Theorem 1 of Delta, for Theorem 4 of Delta / max(1, ||Delta||). R is the length
of the longest Delta. The theorems refer to the largest margin of any weights. The weights learned
with a beam may have no margin, since the good path only has to stay within the beam. Therefore
weights are also learned greedily until no error is left, and the larger of the two margins counts.
A beam compares whole paths, so the proof needs more than a margin of decisions (Xu & Fern 2007);
the bound is that of the theorems as they stand."""


COLUMNS = {
    "row": "{row}",
    "seed": "{seed}",
    "sentences": "{sentences:,}",
    "words": "{words:,}",
    "epochs": "{epochs}",
    "no error left": "{ended}",
    "corrections": "{corrections:,}",
    "R": "{radius:.2f}",
    "margin of its own weights": "{own_margin:.5f}",
    "largest margin": "{margin:.5f}",
    "of weights learned by": "{separator}",
    "bound": "{most}",
    "below it": "{below}",
}


def section(results: list[Row]) -> str:
    """Return a table for both theorems, and the paper's check."""
    lines = []
    for row in results:
        bound, words = row["bound"], {True: "yes", False: "no"}
        below = bound is not None and row["corrections"] <= bound
        most = "-" if bound is None else f"{bound:,.0f}"
        ended = words[row["converged"]]
        lines.append({**row, "ended": ended, "most": most, "below": words[below]})
    theirs = (
        f"The paper's check of Theorem 4: {PAPER['corrections']:,} corrections, margin "
        f"{PAPER['margin']}, bound {PAPER['bound']:,}."
    )
    return f"{format_table(lines, COLUMNS, left=1)}\n\n{theirs}"


PLAN = Plan("theorem4", "Theorems 1 and 4 on data", ROWS, NOTES, section, by_seed=False)


def tagger() -> Any:
    """Return the estimator, with last weights instead of averaged ones, in double precision."""
    return joint.tagger(average=False, dtype="float64")


EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=tagger,
    evaluate=evaluate,
    shown={"corrections": 0, "margin": 5, "train_s": 1},
    features=("rich",),
    sentences=SENTENCES,
    seeds=1,
)
