"""Drive exact search: decoding, n-best lists, marginals, and learning.

    machine = ExactMachine(Tagging)
    training = machine.fit(dataset, Training(machine.new_table(n_labels)), Plan(epochs=10))
    steps, ends, scores = machine.decode(test, all_of(test), training.best)

With ``ExactMachine(Tagging, adagrad())`` the same maximises the conditional likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine import option_kinds as kinds
from laso.engine.checking.own_problems import LEARNING
from laso.engine.epochs import InTurn, Plan, Training, train
from laso.engine.lattice import layout as la
from laso.engine.lattice.chain_decoding import chain_probabilities, decode_chains
from laso.engine.lattice.layout import Ascent, Paths, Posteriors
from laso.engine.lattice.maximisation import Callback, Climber, Score, climb, maximise
from laso.engine.lattice.objective import Evaluator, in_threads
from laso.engine.lattice.space import (
    SMALLER,
    Space,
    fixed_gradient,
    grow,
    new_gradient,
    new_lattice,
)
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import Machine, longer, mapped, new_table, parts, prepared, sizes
from laso.engine.memory_limit import new_arrays
from laso.engine.native import Kernels, compiled
from laso.engine.option_kinds import Options
from laso.engine.options import options_for, own_key
from laso.engine.problem import CompiledProblem, is_factored
from laso.engine.weights.row_layouts import densified, n_labels
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
        """Return score and operators of the paths of the i-th given input."""
        first = int(self.counts[:i].sum())
        scored = []
        for path in range(first, first + int(self.counts[i])):
            begin = int(self.ends[path - 1]) if path else 0
            steps = [(int(g), int(label)) for g, label in self.steps[begin : self.ends[path]]]
            scored.append((float(self.scores[path]), steps))
        return scored


@dataclass(frozen=True)
class Marginals:
    """The posterior probability of every step: one entry for each edge of the lattices."""

    start: Array  # the key before the step
    key: Array  # the key after it
    group: Array
    label: Array
    source: Array  # the node before the step
    target: Array  # the node after it
    probability: Array
    ends: Array  # where the edges of each input end
    log_z: Array  # of each input


@dataclass(frozen=True)
class ExactMachine:
    """Exact search for one problem, and learning with it.

    ``rule`` is the update after an error (perceptron, ALMA, passive-aggressive). It compares the
    best good path with the best bad one. If ``expected``, it compares the expectation over good
    paths with that over the whole lattice (the paper's LaSO with an infinite beam); then only the
    features of good paths have weights, unless ``unseen``. The rules adagrad(), sgd() and lbfgs()
    maximise the likelihood instead.
    """

    problem: type[CompiledProblem]
    rule: Rule = field(default_factory=perceptron)
    expected: bool = False
    unseen: bool = False

    def __post_init__(self) -> None:
        if self.problem.signature is CompiledProblem.signature:
            raise ValueError(
                f"{self.problem.__name__} has no signature: exact search must know which states "
                "have the same future, so write the static method signature"
            )
        if is_factored(self.problem):
            raise ValueError(
                f"{self.problem.__name__} has factors, which exact search does not support: "
                "expected a beam"
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
        return options._replace(
            strategy=int(kinds.EXPECTED if self.unseen else kinds.EXPECTED_GOLD)
        )

    def new_table(
        self, n_labels: int, *, dtype: Any = np.float32, hash_bits: int = 0
    ) -> WeightTable:
        """Return an empty weight table to learn with this machine's rule."""
        margin = self.options.margin
        return new_table(n_labels, margin=margin, dtype=dtype, hash_bits=hash_bits)

    def new_run(
        self, dataset: Dataset, order: Array, table: WeightTable, *, lists: int = 2
    ) -> Space:
        """Return working space for the largest of the given inputs."""
        table = densified(table)
        table.mark.fill(-1)  # an interruption may have left something
        run = Machine(self.problem, self.options).new_run(dataset, order, table)
        return Space(
            table=table,
            run=run,
            lattice=new_lattice(run, lists=lists, nodes=1 << 10, edges=1 << 13),
            gradient=new_gradient(run, 1 << 10),
            squares=np.zeros((0, 0), table.v.dtype),
            clocks=np.zeros(0),
            clock=np.zeros(1),
        )

    def decode(
        self, dataset: Dataset, order: Array, table: WeightTable, *, threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """Return the operators (group, label) of the best paths, their ends, and the scores."""
        best = self.nbest(dataset, order, table, 1, threads=threads)
        return best.steps, best.ends, best.scores

    def nbest(
        self, dataset: Dataset, order: Array, table: WeightTable, n: int, *, threads: int = 1
    ) -> NBest:
        """Return the n best paths of each given input, or all where there are fewer."""
        if n < 1:
            raise ValueError(f"n must be at least 1, found {n}")
        orders = parts(order, threads)
        by_part = mapped(lambda part: self._nbest(dataset, part, table, n), orders)
        shifts = np.cumsum([0, *(len(one.steps) for one in by_part)])
        return NBest(
            np.concatenate([one.steps for one in by_part]),
            np.concatenate([one.ends + s for one, s in zip(by_part, shifts[:-1], strict=True)]),
            np.concatenate([one.scores for one in by_part]),
            np.concatenate([one.counts for one in by_part]),
        )

    def _nbest(self, dataset: Dataset, order: Array, table: WeightTable, n: int) -> NBest:
        space = self.new_run(dataset, order, table, lists=max(len(la.PathSide), n))
        n_steps = n * int(sizes(dataset, order).sum()) + 16
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "steps": ((n_steps, len(at.StepColumn)), np.int32),
            "ends": ((n * len(order),), np.int64),
            "scores": ((n * len(order),), np.float64),
            "counts": ((len(order),), np.int64),
            "heads": ((n, len(la.HeadColumn)), np.int64),
            "used": ((len(la.Used),), np.int64),
        }
        paths = Paths(**new_arrays(shapes, f"{n} paths of each of {len(order)} inputs", SMALLER))

        def grow() -> None:
            nonlocal paths
            paths = paths._replace(steps=longer(paths.steps, 2 * len(paths.steps)))

        if n == 1 and self.promises_chains(dataset, order):
            decode_chains(self, dataset, order, space, paths)
        else:
            self.drive("best_many", dataset, order, space, lambda _: paths, grow)
        n_steps, n_paths = paths.used[la.STEPS_USED], paths.used[la.PATHS_USED]
        return NBest(
            paths.steps[:n_steps], paths.ends[:n_paths], paths.scores[:n_paths], paths.counts
        )

    def marginals(self, dataset: Dataset, order: Array, table: WeightTable) -> Marginals:
        """Return the probability of every step, by forward-backward."""
        space = self.new_run(dataset, order, table)
        posteriors = Posteriors(
            edges=np.zeros((1 << 10, len(la.PosteriorColumn)), np.int32),
            probabilities=np.zeros(1 << 10),
            ends=np.zeros(len(order), np.int64),
            logs=np.zeros(len(order)),
            used=np.zeros(len(la.Used), np.int64),
        )

        def grow() -> None:
            nonlocal posteriors
            n = 2 * len(posteriors.edges)
            posteriors = posteriors._replace(
                edges=longer(posteriors.edges, n), probabilities=longer(posteriors.probabilities, n)
            )

        self.drive("marginals_many", dataset, order, space, lambda _: posteriors, grow)
        used = int(posteriors.used[la.STEPS_USED])
        edges = posteriors.edges[:used]
        return Marginals(
            start=edges[:, la.KEY_BEFORE],
            key=edges[:, la.KEY_AFTER],
            group=edges[:, la.POSTERIOR_GROUP],
            label=edges[:, la.POSTERIOR_LABEL],
            source=edges[:, la.NODE_BEFORE],
            target=edges[:, la.NODE_AFTER],
            probability=posteriors.probabilities[:used],
            ends=posteriors.ends,
            log_z=posteriors.logs,
        )

    def label_probabilities(
        self, dataset: Dataset, order: Array, table: WeightTable, *, threads: int = 1
    ) -> Array:
        """Return the probability of each label at each item of the inputs, end to end.

        The problem's key must be the number of labelled items, as in tagging.
        """
        few = max(threads, 1 + len(order) // 256)  # so that few edges are kept at a time
        orders = np.array_split(order, few)
        by_part: list[Array] = []
        for first in range(0, few, threads):
            by_part += mapped(
                lambda part: self._label_probabilities(dataset, part, table),
                orders[first : first + threads],
            )
        return np.concatenate(by_part)

    def _label_probabilities(self, dataset: Dataset, order: Array, table: WeightTable) -> Array:
        if self.promises_chains(dataset, order):
            return chain_probabilities(self, dataset, order, table)
        return self.summed_marginals(dataset, order, table)

    def promises_chains(self, dataset: Dataset, order: Array) -> bool:
        """Return whether the problem promises that the lattices of given inputs are chains."""
        limits = Machine(self.problem, self.options).largest(dataset, order)
        return bool(limits[at.FORM] == at.CHAIN)

    def summed_marginals(self, dataset: Dataset, order: Array, table: WeightTable) -> Array:
        """Return the probability of each label at each item, from those of the steps."""
        marginals = self.marginals(dataset, order, table)
        lengths = sizes(dataset, order)
        offsets = np.cumsum(lengths) - lengths
        counts = np.diff(marginals.ends, prepend=0)
        items = np.repeat(offsets, counts) + marginals.start
        result = np.zeros((int(lengths.sum()), n_labels(table)))
        np.add.at(result, (items, marginals.label), marginals.probability)
        return result

    def log_likelihood(self, dataset: Dataset, order: Array, table: WeightTable) -> Array:
        """Return log p(y | x) of each given example, the sum over its good paths."""
        space = self.new_run(dataset, order, table)
        return self.likelihood(dataset, order, space, la.VALUE_ONLY)

    def slope(self, dataset: Dataset, order: Array, table: WeightTable) -> tuple[Array, Array]:
        """Return log p(y | x) of each example, and the gradient of their sum by table rows."""
        space = self.new_run(dataset, order, table)
        table = space.table  # with dense rows
        space.gradient = fixed_gradient(space.run, int(table.ints[at.ROWS]))
        try:
            table.mark[:] = np.arange(len(table.mark))
            logs = self.likelihood(dataset, order, space, la.FIXED_ROWS)
        finally:
            table.mark.fill(-1)
        return logs, space.gradient.values

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, space: Space
    ) -> tuple[WeightTable, Space, int]:
        """Learn from the given examples in turn; return table, space (grown) and errors."""
        space.table = table
        wrong = self.drive("learn_exact_many", dataset, order, space, lambda _: space.gradient)
        return space.table, space, wrong

    def fit(
        self,
        dataset: Dataset,
        training: Training,
        plan: Plan,
        *,
        evaluator: Evaluator | None = None,
        score: Score | None = None,
        progress: Callback | None = None,
    ) -> Training:
        """Train by this machine's rule to the end of the plan (see ``passes.train``).

        Only ``lbfgs()``, whose epochs are iterations, uses ``evaluator``; None: one thread.
        """
        rule = self.rule
        if isinstance(rule, Lbfgs):
            return maximise(
                self,
                rule,
                dataset,
                training,
                plan,
                evaluator=evaluator or in_threads(1),
                score=score,
                progress=progress,
            )
        if isinstance(rule, Climb):
            return climb(self, rule, dataset, training, plan, score=score, progress=progress)
        return train(InTurn(self), dataset, training, plan, score=score, progress=progress)

    def likelihood(
        self,
        dataset: Dataset,
        order: Array,
        space: Space,
        mode: int,
        climber: Climber | None = None,
        *,
        part: int = la.ALL_FEATURES,
    ) -> Array:
        """Call the kernel of the likelihood; return log p(y | x) of each example.

        ``part`` restricts the gradient to the features in blocks, or outside them.
        """
        logs = np.zeros(len(order))
        support = int(la.NO_NEW if mode == la.FIXED_ROWS else la.ON_ALL_PATHS)
        how: tuple[int, int, int, int, int, float, float, float]
        how = (support, int(part), 0, 0, 1, 1.0, 1.0, 1.0)
        if climber is not None:
            rule = climber.rule
            how = (
                int(la.ON_GOOD_PATHS if rule.support == "rows" else la.ON_ALL_PATHS),
                int(part),
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
            return Ascent(int(mode), *how, *arrays, logs[done:])

        self.drive("likelihood_many", dataset, order, space, ascent)
        return logs

    def drive(
        self,
        name: str,
        dataset: Dataset,
        order: Array,
        space: Space,
        last: Callable[[int], Any],
        more: Callable[[], None] | None = None,
    ) -> int:
        """Call an entry point until all inputs are done, growing what it asks for.

        ``last`` makes the last argument, given how many inputs are done; ``more`` makes room for
        results. Returns the number of errors.
        """
        options = self.options
        if name in LEARNING:
            Machine(self.problem, options).check(dataset, order, space.table, learning=True)
        done = wrong = 0
        while done < len(order):
            space.table = prepared(space.table, options)
            n, *errors, status = self.kernels(
                name,
                dataset,
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
            elif status == at.STOPPED:
                break
            elif status != at.DONE:
                grow(space, status, self.problem, dataset, int(order[done]))
        return wrong
