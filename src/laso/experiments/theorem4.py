"""Theorems 1 and 4 on data: corrections until no error is left, against the bounds (section 4.2).

The margin is that of ``laso.bounds``, over all decisions on the good paths, computed from the
factors of the joint problem: Python would take hours for the vectors of all steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.bounds import theorem1, theorem4
from laso.engine import layout as at
from laso.engine.layout import SAME_LABEL, Array, Input, Out
from laso.engine.problem import CompiledProblem
from laso.engine.reference import input_of, output_of
from laso.experiments import joint
from laso.experiments.measure import Row, table
from laso.experiments.report import Plan, document, saved
from laso.experiments.runner import Config, Experiment
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
    """One decision: how far the good step is above each other one, and how far away."""

    gaps: Array  # w . Delta
    norms: Array  # ||Delta||


def decisions(
    x: Input, y: Array, weights: dict[int, Array], masks: dict[Any, Array]
) -> Iterator[Decision]:
    """The decisions on the good path of an input, from the weights of each key.

    ``masks`` remembers which steps are allowed after which labels.
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
        """The weights of a group's own features, and how many it has."""
        block = int(PROBLEM.block(x, state, group))
        keys = out.keys[: PROBLEM.block_features(x, block, out)].tolist() if block >= 0 else []
        keys += out.keys[: PROBLEM.features(x, state, group, out)].tolist()
        return sum((weights[key] for key in keys if key in weights), nothing), len(keys)

    labels = np.arange(n)
    for wanted in y.tolist():
        good = divmod(wanted, n)
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
                wants = good[1] if its == SAME_LABEL else its
                scores[prefix] += sums[mine]
                squares[prefix] += 2 * count * ((group != theirs) | (mine != wants))
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
    """How well weights separate the decisions, of Delta as it is and projected, and R."""

    plain: float
    projected: float
    radius: float


def measured(model: Any, path: Path) -> Margins:
    """The margins of the weights that learning ended with."""
    data, answers = model._read(path, None)
    corpus = model._corpus(data, answers)
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


def tested(model: Any, path: Path) -> Row:
    """Corrections, the largest margin found, and the bound of the theorem with it."""
    large = hasattr(model.update, "alpha")
    greedy = type(model)(**model.get_params()).set_params(queue=1).fit(path)
    found = {"beam": measured(model, path), "greedy": measured(greedy, path)}
    gammas = {name: one.projected if large else one.plain for name, one in found.items()}
    separator = max(gammas, key=lambda name: gammas[name])
    gamma, radius = gammas[separator], found[separator].radius
    bound = None
    if gamma > 0.0:
        bound = theorem4(gamma, model.update.alpha) if large else theorem1(radius, gamma)
    assert model.training_ is not None
    lengths = model._read(path, None)[0].lengths
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
Learning goes on until an epoch has no error. A margin is over all decisions on the good paths: for
Theorem 1 of Delta as it is, for Theorem 4 of Delta / max(1, ||Delta||). R is the longest Delta. The
theorems speak of the largest margin that any weights have. Those that a beam ends with may have
none: it is enough for them that the good path stays within the beam. So weights are also learned
greedily, until no error is left, and the larger margin of the two counts. A beam compares whole
paths, so that the margin of decisions is not all that the proof needs (Xu & Fern 2007); the bound
is the theorems' as they stand."""


def section(results: list[Row]) -> str:
    """The figures of each theorem; the paper's check below."""
    head = ["row", "seed", "sentences", "words", "epochs", "no error left", "corrections", "R"]
    head += ["margin of its own weights", "largest margin", "of weights learned by"]
    head += ["bound", "below it"]
    lines = []
    for row in results:
        bound = row["bound"]
        below = bound is not None and row["corrections"] <= bound
        lines.append(
            [
                row["row"],
                str(row["seed"]),
                f"{row['sentences']:,}",
                f"{row['words']:,}",
                str(row["epochs"]),
                "yes" if row["converged"] else "no",
                f"{row['corrections']:,}",
                f"{row['radius']:.2f}",
                f"{row['own_margin']:.5f}",
                f"{row['margin']:.5f}",
                row["separator"],
                "-" if bound is None else f"{bound:,.0f}",
                "yes" if below else "no",
            ]
        )
    theirs = (
        f"The paper's check of Theorem 4: {PAPER['corrections']:,} corrections, margin "
        f"{PAPER['margin']}, bound {PAPER['bound']:,}."
    )
    return f"{table(head, lines, left=1)}\n\n{theirs}"


def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
    """Write theorem4.md; the file."""
    plan = Plan("theorem4", "Theorems 1 and 4 on data", ROWS, NOTES)
    return saved(folder / "theorem4.md", document(plan, results, section))


def tagger() -> Any:
    """The estimator: the weights that learning ended with, not averaged, in double precision."""
    return joint.tagger(average=False, dtype="float64")


EXPERIMENT = Experiment(
    name="theorem4",
    rows=ROWS,
    estimator=tagger,
    tested=tested,
    report=write,
    shown={"corrections": 0, "margin": 5, "train_s": 1},
    features=("rich",),
    sentences=SENTENCES,
    seeds=1,
)
