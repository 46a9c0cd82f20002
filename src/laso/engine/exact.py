"""Drive the lattice: exact decoding, n-best lists, marginals, and learning with exact search.

    machine = ExactMachine(Tagging)
    training = machine.fit(corpus, Training(machine.new_table(n_labels)), Plan(epochs=10))
    steps, ends, scores = machine.decode(test, all_of(test), training.best)

With ``ExactMachine(Tagging, adagrad())`` the same climbs the conditional likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laso.engine import lattice as la
from laso.engine import layout as at
from laso.engine.lattice import Ascent, Paths, Shares
from laso.engine.layout import Array, Corpus, Options, Table
from laso.engine.likelihood import Climber, Progress, Score, climb, maximise
from laso.engine.machine import Machine, longer, mapped, new_table, parts, sizes
from laso.engine.native import Kernels, compiled
from laso.engine.options import options_for, own_key
from laso.engine.passes import Plan, Training, train
from laso.engine.problem import CompiledProblem, is_factored
from laso.engine.space import (
    Space,
    fixed_gradient,
    grow,
    new_gradient,
    new_lattice,
)
from laso.learn import standard
from laso.queues import beam
from laso.training import Rule
from laso.updates import Climb, Lbfgs, Likelihood, perceptron


@dataclass(frozen=True)
class NBest:
    """The best paths of each input, best first."""

    steps: Array  # (group, label), end to end
    ends: Array  # where each path ends
    scores: Array  # of each path
    counts: Array  # the number of paths of each input

    def of(self, i: int) -> list[tuple[float, list[tuple[int, int]]]]:
        """Score and operators of the paths of the i-th input asked for."""
        first = int(self.counts[:i].sum())
        found = []
        for path in range(first, first + int(self.counts[i])):
            begin = int(self.ends[path - 1]) if path else 0
            steps = [(int(g), int(label)) for g, label in self.steps[begin : self.ends[path]]]
            found.append((float(self.scores[path]), steps))
        return found


@dataclass(frozen=True)
class Marginals:
    """The probability of every step of every input: one entry for each edge of the lattices."""

    start: Array  # the key before the step
    key: Array  # the key after it
    group: Array
    label: Array
    probability: Array
    ends: Array  # where the edges of each input end
    log_z: Array  # of each input


@dataclass(frozen=True)
class ExactMachine:
    """Exact search for one problem, and learning with it.

    ``rule`` is the update after an error (perceptron, ALMA, passive-aggressive). It compares the
    best good path with the best bad one, or, if ``expected``, the expectation over good paths with
    that over the whole lattice (the paper's LaSO with an infinite beam), with weights for the
    features seen on good paths, unless ``unseen`` ones have some too. Or it climbs the likelihood:
    adagrad(), sgd(), lbfgs().
    """

    problem: type[CompiledProblem]
    rule: Rule = field(default_factory=perceptron)
    expected: bool = False
    unseen: bool = False

    def __post_init__(self) -> None:
        if self.problem.signature is CompiledProblem.signature:
            raise ValueError(
                f"{self.problem.__name__} has no signature: exact search must know which states "
                "have the same future"
            )
        if is_factored(self.problem):
            raise ValueError(
                f"{self.problem.__name__} makes several decisions in a step: exact search has no "
                "part for that, expected a beam"
            )

    @property
    def kernels(self) -> Kernels:
        """The entry points."""
        return compiled(self.problem, exact=True)

    @property
    def options(self) -> Options:
        """Queue, update and strategy as numbers."""
        keyed = self.problem.key is not CompiledProblem.key
        queue = beam(1, key=own_key) if keyed else beam(1)
        rule = self.rule
        if isinstance(rule, Likelihood):
            rule = perceptron(by_loss=rule.by_loss)
        options = options_for(self.problem, queue, rule, standard)
        if not self.expected:
            return options
        return options._replace(strategy=la.EXPECTED if self.unseen else la.EXPECTED_SEEN)

    def new_table(self, n_labels: int, *, dtype: Any = np.float32, hash_bits: int = 0) -> Table:
        """An empty weight table to learn with this machine's rule."""
        margin = self.options.margin
        return new_table(n_labels, margin=margin, dtype=dtype, hash_bits=hash_bits)

    def new_run(self, corpus: Corpus, order: Array, table: Table, *, lists: int = 2) -> Space:
        """Working space for the largest of the inputs named."""
        table.mark.fill(-1)  # an interruption may have left something
        run = Machine(self.problem, self.options).new_run(corpus, order, table)
        return Space(
            table,
            run,
            new_lattice(run, lists, 1 << 10, 1 << 13),
            new_gradient(run, 1 << 10),
            np.zeros((0, 0), table.v.dtype),
            np.zeros(0),
            np.zeros(1),
        )

    def decode(
        self, corpus: Corpus, order: Array, table: Table, *, threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The operators (group, label) of the best paths, where each ends, and the scores."""
        found = self.nbest(corpus, order, table, 1, threads=threads)
        return found.steps, found.ends, found.scores

    def nbest(
        self, corpus: Corpus, order: Array, table: Table, n: int, *, threads: int = 1
    ) -> NBest:
        """The n best paths of each input named, or all where there are fewer."""
        if n < 1:
            raise ValueError(f"n must be at least 1, found {n}")
        some = parts(order, threads)
        found = mapped(lambda part: self._nbest(corpus, part, table, n), some)
        shifts = np.cumsum([0, *(len(one.steps) for one in found)])
        return NBest(
            np.concatenate([one.steps for one in found]),
            np.concatenate([one.ends + s for one, s in zip(found, shifts[:-1], strict=True)]),
            np.concatenate([one.scores for one in found]),
            np.concatenate([one.counts for one in found]),
        )

    def _nbest(self, corpus: Corpus, order: Array, table: Table, n: int) -> NBest:
        space = self.new_run(corpus, order, table, lists=max(2, n))
        paths = Paths(
            np.zeros((n * int(sizes(corpus, order).sum()) + 16, 2), np.int32),
            np.zeros(n * len(order), np.int64),
            np.zeros(n * len(order)),
            np.zeros(len(order), np.int64),
            np.zeros((n, 2), np.int64),
            np.zeros(3, np.int64),
        )

        def grow() -> None:
            nonlocal paths
            paths = paths._replace(steps=longer(paths.steps, 2 * len(paths.steps)))

        self._drive("best_many", corpus, order, space, lambda _: paths, grow)
        n_steps, n_paths, _ = paths.used
        return NBest(
            paths.steps[:n_steps], paths.ends[:n_paths], paths.scores[:n_paths], paths.counts
        )

    def marginals(self, corpus: Corpus, order: Array, table: Table) -> Marginals:
        """The probability of every step, paths weighted by exp(their score): forward-backward."""
        space = self.new_run(corpus, order, table)
        shares = Shares(
            np.zeros((1 << 10, 4), np.int32),
            np.zeros(1 << 10),
            np.zeros(len(order), np.int64),
            np.zeros(len(order)),
            np.zeros(3, np.int64),
        )

        def grow() -> None:
            nonlocal shares
            n = 2 * len(shares.shares)
            shares = shares._replace(edges=longer(shares.edges, n), shares=longer(shares.shares, n))

        self._drive("marginals_many", corpus, order, space, lambda _: shares, grow)
        used = int(shares.used[la.STEPS_USED])
        start, key, group, label = shares.edges[:used].T
        probability = shares.shares[:used]
        return Marginals(start, key, group, label, probability, shares.ends, shares.logs)

    def label_probabilities(
        self, corpus: Corpus, order: Array, table: Table, *, threads: int = 1
    ) -> Array:
        """For taggers: the probability of each label at each item of the inputs, end to end.

        The key of the problem must be the number of items labelled.
        """
        few = max(threads, 1 + len(order) // 256)  # so that few edges are kept at a time
        some = np.array_split(order, few)
        found: list[Array] = []
        for first in range(0, few, threads):
            found += mapped(
                lambda part: self._label_probabilities(corpus, part, table),
                some[first : first + threads],
            )
        return np.concatenate(found)

    def _label_probabilities(self, corpus: Corpus, order: Array, table: Table) -> Array:
        found = self.marginals(corpus, order, table)
        lengths = sizes(corpus, order)
        offsets = np.cumsum(lengths) - lengths
        counts = np.diff(found.ends, prepend=0)
        items = np.repeat(offsets, counts) + found.start
        result = np.zeros((int(lengths.sum()), table.v.shape[1]))
        np.add.at(result, (items, found.label), found.probability)
        return result

    def log_likelihood(self, corpus: Corpus, order: Array, table: Table) -> Array:
        """log p(y | x) of each example named, all good paths together."""
        space = self.new_run(corpus, order, table)
        return self.likelihood(corpus, order, space, la.VALUE)

    def slope(self, corpus: Corpus, order: Array, table: Table) -> tuple[Array, Array]:
        """log p(y | x) of each example, and the gradient of their sum by the rows of the table."""
        space = self.new_run(corpus, order, table)
        space.gradient = fixed_gradient(space.run, int(table.ints[at.ROWS]))
        try:
            table.mark[:] = np.arange(len(table.mark))
            logs = self.likelihood(corpus, order, space, la.FIXED)
        finally:
            table.mark.fill(-1)
        return logs, space.gradient.values

    def learn(
        self, corpus: Corpus, order: Array, table: Table, space: Space
    ) -> tuple[Table, Space, int]:
        """Learn from the examples named, in turn; the table as grown, and the errors."""
        space.table = table
        wrong = self._drive("learn_exact_many", corpus, order, space, lambda _: space.gradient)
        return space.table, space, wrong

    def fit(
        self,
        corpus: Corpus,
        training: Training,
        plan: Plan,
        *,
        threads: int = 1,
        score: Score | None = None,
        progress: Progress | None = None,
    ) -> Training:
        """``passes.train`` with this machine, by its rule to the end of the plan.

        ``threads`` are for ``lbfgs()``, whose epochs are iterations.
        """
        rule = self.rule
        if isinstance(rule, Lbfgs):
            return maximise(
                self, rule, corpus, training, plan, threads=threads, score=score, progress=progress
            )
        if isinstance(rule, Climb):
            return climb(self, rule, corpus, training, plan, score=score, progress=progress)
        return train(self, corpus, training, plan, score=score, progress=progress)

    def likelihood(
        self,
        corpus: Corpus,
        order: Array,
        space: Space,
        mode: int,
        climber: Climber | None = None,
    ) -> Array:
        """Call the kernel of the likelihood: log p(y | x) of each example."""
        logs = np.zeros(len(order))
        support = la.KNOWN if mode == la.FIXED else la.ALL
        how: tuple[int, int, int, int, float, float, float] = (support, 0, 0, 1, 1.0, 1.0, 1.0)
        if climber is not None:
            rule = climber.rule
            how = (
                la.SEEN if rule.support == "rows" else la.ALL,
                int(climber.adaptive),
                int(climber.average),
                rule.batch,
                float(rule.rate),
                rule.prior(climber.examples),
                float(climber.first),
            )

        def ascent(done: int) -> Ascent:
            # A kernel may ask for more room, and what is asked for is then another array.
            arrays = space.gradient, space.squares, space.clocks, space.clock
            return Ascent(mode, *how, *arrays, logs[done:])

        self._drive("likelihood_many", corpus, order, space, ascent)
        return logs

    def _drive(
        self,
        name: str,
        corpus: Corpus,
        order: Array,
        space: Space,
        last: Callable[[int], Any],
        more: Callable[[], None] | None = None,
    ) -> int:
        """Call an entry point until all inputs are done, growing what it asks for; the errors.

        ``last`` makes the last argument, given how many inputs are done; ``more`` makes room for
        results.
        """
        options = self.options
        done = wrong = 0
        while done < len(order):
            n, *errors, status = self.kernels(
                name,
                corpus,
                order[done:],
                space.table,
                space.run,
                options,
                space.lattice,
                last(done),
            )
            done += n
            wrong += sum(errors)
            if status == at.MORE_ENTRIES and more is not None:
                more()
            elif status != at.DONE:
                grow(space, status, f"{self.problem.__name__}, input {int(order[done])}")
        return wrong
