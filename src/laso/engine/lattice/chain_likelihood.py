"""The likelihood of problems whose lattices are chains, such as taggers with label[-1].

All that does not depend on the weights is computed once: which weights each position has, the
transition matrices, and the features of gold paths. ``lattice.chain`` does the rest. It calls no
method of a problem, so it is compiled once, for ``CompiledProblem`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from laso.engine import layout as at
from laso.engine.lattice import chain_layout as lc
from laso.engine.lattice.chain_decoding import check_pairs
from laso.engine.lattice.chain_layout import Chain, ChainWork
from laso.engine.lattice.space import Space, grow
from laso.engine.layout import Array, Dataset
from laso.engine.machine import longer, sizes
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
    check_pairs(labels, lc.MOST_MATRICES)
    return Chain(
        starts=np.zeros(inputs + 1, np.int64),
        matrices=np.zeros(positions, np.int32),
        golds=np.zeros(positions, np.int32),
        good=np.zeros((positions, labels), np.int8),
        ends=np.zeros(positions, np.int64),
        rows=np.zeros(16 * positions, np.int32),
        values=np.zeros(16 * positions),
        context_ends=np.zeros(contexts, np.int64),
        context_rows=np.zeros(4 * contexts, np.int32),
        context_values=np.zeros(4 * contexts),
        allowed=np.zeros((lc.MOST_MATRICES, labels, labels), np.int8),
        hashes=np.zeros(lc.MOST_MATRICES, np.int64),
        slots=np.zeros(labels, np.int64),
        used=np.zeros(len(lc.ChainUsed), np.int64),
    )


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
    check_pairs(width, 4 * 8 * matrices[0])
    work = ChainWork(
        weights=np.zeros(len(chosen)),
        labels=labels_of,
        spans=spans,
        context_spans=context_spans,
        scores=np.zeros(matrices),
        factors=np.zeros(matrices),
        transposed=np.zeros(matrices),
        expected=np.zeros(matrices),
        tops=np.zeros(matrices[0]),
        states=np.zeros((longest, width)),
        masked=np.zeros((longest, width)),
        alphas=np.zeros((longest, width)),
        rows=np.zeros((len(lc.ChainRow), width)),
        scales=np.zeros(longest),
        gradient=np.zeros(len(chosen)),
        logs=np.zeros(len(chain.starts) - 1),
    )
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
