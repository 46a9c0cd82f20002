"""The likelihood of problems whose lattices are chains, such as taggers with label[-1].

All that does not depend on the weights is computed once: which weights each position has, the
transition matrices, and the features of gold paths. ``lattice.chain`` does the rest. It calls no
method of a problem, so it is compiled once, for ``CompiledProblem`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.lattice import chain_layout as lc
from laso.engine.lattice.chain_decoding import pairs_of
from laso.engine.lattice.chain_layout import Chain, ChainWork
from laso.engine.lattice.space import SMALLER, Space, grow
from laso.engine.layout import Array, Dataset
from laso.engine.machine import longer, sizes
from laso.engine.memory_limit import new_arrays
from laso.engine.native import compiled
from laso.engine.problem import CompiledProblem

if TYPE_CHECKING:
    from laso.engine.lattice.exact import ExactMachine

PER_POSITION = ("matrices", "golds", "good", "ends")
PER_FEATURE = ("rows", "values")
PER_CONTEXT_FEATURE = ("context_rows", "context_values")


def chain_of(machine: ExactMachine, dataset: Dataset, order: Array, space: Space) -> Chain | None:
    """Return the chains of some examples; None if a lattice is none, or costs change the scores."""
    if machine.options.by_loss:
        return None
    done, items = 0, int(sizes(dataset, order).sum())
    chain = _new_chain(len(order), space.table.v.shape[1], items)
    while done < len(order):
        n, status = machine.kernels(
            "write_chains",
            dataset,
            order[done:],
            space.table,
            space.run,
            machine.options,
            space.lattice,
            chain,
        )
        done += n
        if status == at.NO_CHAIN:
            return None
        if status == at.MORE_ENTRIES:
            fields = (*PER_POSITION, *PER_FEATURE, *PER_CONTEXT_FEATURE)
            arrays = {name: getattr(chain, name) for name in fields}
            chain = chain._replace(**{name: longer(a, 2 * len(a)) for name, a in arrays.items()})
        elif status != at.DONE:
            grow(space, status, machine.problem, dataset, int(order[done]))
    return chain


def _new_chain(inputs: int, labels: int, items: int) -> Chain:
    positions, contexts = max(16, items), lc.MOST_MATRICES * labels
    long, int32, real = np.int64, np.int32, np.float64
    shapes: dict[str, tuple[tuple[int, ...], Any]] = {
        "starts": ((inputs + 1,), long),
        "matrices": ((positions,), int32),
        "golds": ((positions,), int32),
        "good": ((positions, labels), np.int8),
        "ends": ((positions,), long),
        "rows": ((16 * positions,), int32),
        "values": ((16 * positions,), real),
        "context_ends": ((contexts,), long),
        "context_rows": ((4 * contexts,), int32),
        "context_values": ((4 * contexts,), real),
        "allowed": ((lc.MOST_MATRICES, labels, labels), np.int8),
        "hashes": ((lc.MOST_MATRICES,), long),
        "slots": ((labels,), long),
        "used": ((len(lc.ChainUsed),), long),
    }
    return Chain(**new_arrays(shapes, pairs_of(labels), SMALLER))


@dataclass
class ChainLikelihood:
    """The log-likelihood of examples that are chains, and its gradient, by variable weights."""

    chain: Chain
    work: ChainWork
    observed: Array  # the features of the gold paths of examples with only one

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Return log p(y | x) of each example, NaN where it must be computed otherwise; gradient.

        The gradient is that of the examples whose log p is a number.
        """
        work = self.work._replace(weights=theta)
        work.gradient.fill(0.0)
        order = np.arange(len(work.logs))
        compiled(CompiledProblem, exact=True)("chain_likelihoods", order, self.chain, work)
        return work.logs.copy(), self.observed + work.gradient


def chain_likelihood(chain: Chain, rows: int, chosen: Array) -> ChainLikelihood:
    """Return the likelihood as a function of the weights with the flat numbers ``chosen``."""
    labels = len(chain.slots)
    firsts = np.searchsorted(chosen, labels * np.arange(rows + 1)).astype(np.int32)
    chain, spans = _with_long_spans_first(chain, firsts)
    contexts = chain.context_rows[: chain.used[lc.CONTEXT_FEATURES]]
    context_spans = np.stack([firsts[contexts], firsts[contexts + 1]], axis=1)
    labels_of = (chosen % labels).astype(np.int32)
    width = -(-labels // lc.LANES) * lc.LANES
    longest = max(1, int(np.diff(chain.starts).max(initial=1)))
    matrices = (max(1, int(chain.used[lc.MATRICES])), width, width)
    shapes: dict[str, tuple[int, ...]] = {
        "weights": (len(chosen),),
        **dict.fromkeys(("scores", "factors", "transposed", "expected"), matrices),
        "tops": matrices[:1],
        **dict.fromkeys(("states", "masked", "alphas"), (longest, width)),
        "rows": (len(lc.ChainRow), width),
        "scales": (longest,),
        "gradient": (len(chosen),),
        "logs": (len(chain.starts) - 1,),
    }
    kinds = {name: (shape, np.float64) for name, shape in shapes.items()}
    arrays = new_arrays(kinds, pairs_of(labels), SMALLER)
    work = ChainWork(labels=labels_of, spans=spans, context_spans=context_spans, **arrays)
    order = np.arange(len(work.logs))
    compiled(CompiledProblem, exact=True)("gold_features", order, chain, work)
    return ChainLikelihood(chain, work, work.gradient.copy())


def _with_long_spans_first(chain: Chain, firsts: Array) -> tuple[Chain, Array]:
    """Return the variables of the features; those of a position in the order of their number.

    So the number is mostly that of the feature before, which the processor predicts right.
    """
    n, labels = int(chain.used[lc.POSITIONS]), len(chain.slots)
    rows = chain.rows[: chain.used[lc.POSITION_FEATURES]]
    spans = np.stack([firsts[rows], firsts[rows + 1]], axis=1)
    positions = np.repeat(np.arange(n), np.diff(chain.ends[:n], prepend=0))
    shortness = labels - (spans[:, 1] - spans[:, 0])
    order = np.argsort(positions * (labels + 1) + shortness, kind="stable")
    return chain._replace(rows=rows[:0], values=chain.values[order]), spans[order]
