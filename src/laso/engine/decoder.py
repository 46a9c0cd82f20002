"""Weights with all that is prepared of them to decode: what answers every prediction.

One input alone is decoded in arrays that are kept, since most of the time of a short call goes into
making arrays and describing them to compiled code. For many inputs there are weights with which
decoding is faster, as soon as so many were decoded that making them pays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine import thresholds
from laso.engine.checking.own_problems import is_needed
from laso.engine.lattice import layout as la
from laso.engine.lattice.chain_decoding import new_chain_search
from laso.engine.lattice.exact import ExactMachine
from laso.engine.lattice.layout import Paths
from laso.engine.lattice.space import new_lattice
from laso.engine.layout import Array, Dataset, Out, WeightTable
from laso.engine.machine import Machine, all_of, check_nodes, longer, new_run
from laso.engine.native import compiled
from laso.engine.native.calls import Prepared
from laso.engine.native.dispatch import work_of
from laso.engine.native.waiting import entered, in_main_thread, results_of
from laso.engine.problem import is_foreign
from laso.engine.weights.bloom import filtered
from laso.engine.weights.packed_rows import faster
from laso.engine.weights.row_layouts import densified, largest_of
from laso.engine.workspace import KeptCaps
from laso.locks import cached_property

ITEMS, POOL, VALUES, SPEC, VECTORS = 0, 2, 3, 4, 8  # arrays that differ between calls
N_ARRAYS = len(Dataset._fields)

Found = tuple[Array, Array, Array]


class Decoder:
    """Decodes inputs of one problem with the same weights; several threads may call it.

    Parameters
    ----------
    machine : Machine or ExactMachine
        The engine, with its queue.
    table : WeightTable
        The weights, which must not change.
    """

    def __init__(self, machine: Machine | ExactMachine, table: WeightTable) -> None:
        self.machine, self.table = machine, table
        self.is_exact = isinstance(machine, ExactMachine)
        self._faster, self._items = table, 0  # for many inputs; the items decoded so far
        self._free: list[_Space] = []  # each thread takes one, or makes one
        self._caps = KeptCaps()

    @cached_property
    def single_table(self) -> WeightTable:
        """The weights for one input; the lattice has dense rows only."""
        return densified(self.table) if self.is_exact else self.table

    @cached_property
    def largest_weight(self) -> float:
        """The largest absolute weight, relative to the largest number of its type."""
        return largest_of(self.table)

    def table_for(self, items: int) -> WeightTable:
        """Return the weights for so many items more: with those before they may pay for others."""
        self._items += items
        prepare = filtered if self.is_exact else faster
        self._faster = prepare(self.machine.problem, self._faster, self._items)
        return self._faster

    def decode(self, dataset: Dataset, *, threads: int = 1) -> Found:
        """Return the predicted steps (group, label) of the inputs, their ends, the scores."""
        paths: Found | None = None
        if len(dataset.starts) == 2:
            paths = self._with_space(_Space.decode, dataset)
        if paths is None:
            table, order = self.table_for(len(dataset.items)), all_of(dataset)
            kept = {"kept": self._caps} if isinstance(self.machine, Machine) else {}
            paths = self.machine.decode(dataset, order, table, threads=threads, **kept)
        return paths

    def label_probabilities(self, dataset: Dataset, *, threads: int = 1) -> Array:
        """Return the probability of each label at each item, with exact search."""
        assert isinstance(self.machine, ExactMachine)
        probabilities: Array | None = None
        if len(dataset.starts) == 2:
            probabilities = self._with_space(_Space.label_probabilities, dataset)
        if probabilities is None:
            order = all_of(dataset)
            probabilities = self.machine.label_probabilities(
                dataset, order, self.table, threads=threads
            )
        return probabilities

    def _with_space(self, method: Callable[[_Space, Dataset], Any], dataset: Dataset) -> Any:
        """Call a method of a space that is large enough; it returns None if that cannot be."""
        try:
            space = self._free.pop()
        except IndexError:
            space = _Space(self.machine, self.single_table, dataset)
        try:
            kept, result = space, method(space, dataset)
            while result is None and space.is_too_small:
                space = _Space(self.machine, self.single_table, dataset, space)
                kept = space if space.is_small else kept
                result = method(space, dataset)
        except IndexError:  # a method of a user's own leaves an array; the machine names it
            return None
        if kept.is_small:
            self._free.append(kept)
        return result


class KeptDecoder:
    """Decodes one input at a time, whose arrays stay where they are; one thread may use it.

    The limits of an input must follow from the number of its items and from the constants.

    Parameters
    ----------
    decoder : Decoder
        What would decode many inputs.
    dataset : Dataset
        The arrays: ``items`` and ``pool`` have room for the largest input.
    """

    def __init__(self, decoder: Decoder, dataset: Dataset) -> None:
        self.machine, self.table, self.dataset = decoder.machine, decoder.single_table, dataset
        self.decoder = decoder
        self._space: _Space | None = None
        self._call: Prepared | None = None
        self._spec: Array | None = None
        self._most = 0  # items for which there is room
        self._is_usable = True

    def labels(self, n: int, pool: int, spec: Array) -> list[int] | None:
        """Return the label of each step for n items and their pool; None: other code must."""
        if n > thresholds.KEPT_STEPS or not self._is_usable:
            return None
        if n > self._most or spec is not self._spec:
            self._make_space(n, spec)
        while (space := self._space) is not None and (call := self._call) is not None:
            call.resize(ITEMS, n)
            call.resize(POOL, pool)
            space.starts[1] = n
            if space.has_found(call):
                labels: list[int] = space.paths.steps[: space.paths.ends[0], at.STEP_LABEL].tolist()
                return labels
            if not space.is_too_small:
                return None
            self._make_space(n, spec)
        return None

    def _make_space(self, n: int, spec: Array) -> None:
        """Make a space for n items or more, if it is small enough to be kept."""
        dataset, before = self.dataset, self._space
        max_items = max(self._most, min(len(dataset.items), 2 * n + 32, thresholds.KEPT_STEPS))
        self._space, self._spec, self._most = None, spec, 0
        starts = np.array([0, max_items], np.int64)
        dataset = dataset._replace(items=dataset.items[:max_items], starts=starts, spec=spec)
        space = _Space(self.machine, self.table, dataset, before)
        self._call = call = space.call
        if (
            call is not None
            and space.is_small
            and not space.is_checked
            and space.takes(dataset, call)
        ):
            self._space, self._most = space, max_items
        else:
            self._is_usable = False


class _Space:
    """The arrays for inputs within some limits, and the prepared calls."""

    def __init__(
        self,
        machine: Machine | ExactMachine,
        table: WeightTable,
        dataset: Dataset,
        before: _Space | None = None,
    ) -> None:
        problem, options = machine.problem, machine.options
        self.kernels, self.table = machine.kernels, table
        self.machine = Machine(problem, options)
        self.order, self.starts = np.zeros(1, np.int64), dataset.starts.copy()
        nothing = np.zeros(0, np.int32)
        one_input = dataset._replace(starts=self.starts, outputs=nothing, output_starts=self.starts)
        self.limits = self.machine.largest(one_input, self.order)
        self.room = 1  # times the usual number of nodes and edges
        if before is not None:
            self.limits, self.room = np.maximum(self.limits, before.limits), before.room
        self.bounds, self.is_too_small = self.limits.tolist(), False
        self.run = new_run(self.limits, table, problem, width=options.width, what="input 1")
        large = self.room * self.run.states.nbytes > thresholds.KEPT_BYTES
        self.is_small = self.bounds[at.STEPS] <= thresholds.KEPT_STEPS and not large
        self.is_chain = isinstance(machine, ExactMachine) and self.bounds[at.FORM] == at.CHAIN
        self.is_checked = is_needed(problem)
        work = work_of(self.run, self.bounds[at.STEPS], exact=isinstance(machine, ExactMachine))
        self.is_short = work < thresholds.SHORT_WORK and not is_foreign(problem)
        self.most = np.ones(len(at.Limit), np.int64)
        self.largest: Prepared | None = compiled(problem).prepared(
            "largest", one_input, self.order, self.most, np.zeros(len(at.Limit), np.int64)
        )
        self.summing: Prepared | None = None
        self._prepare(one_input, exact=isinstance(machine, ExactMachine))

    def _prepare(self, own: Dataset, *, exact: bool) -> None:
        """Make the arrays of the results, and prepare the call that decodes."""
        table, run, options, n = self.table, self.run, self.machine.options, self.bounds[at.STEPS]
        room = self.room
        given = (own, self.order, table, run)
        self.paths = paths = Paths(
            steps=np.zeros((n + 16, len(at.StepColumn)), np.int32),
            ends=np.zeros(1, np.int64),
            scores=np.zeros(1),
            counts=np.zeros(1, np.int64),
            heads=np.zeros((1, len(la.HeadColumn)), np.int64),
            used=np.zeros(len(la.Used), np.int64),
        )
        self.call: Prepared | None
        if not exact:
            nodes = room * len(run.ints)
            check_nodes(nodes, run.states.shape[1], "input 1")
            states, ints, reals = (longer(a, nodes) for a in (run.states, run.ints, run.reals))
            given = (*given[:-1], run._replace(states=states, ints=ints, reals=reals))
            results = (paths.steps, Out(paths.ends, paths.scores))
            self.call = self.kernels.prepared("decode_many", *given, options, *results)
        elif self.is_chain:
            work = new_chain_search(run, table, n)
            self.probabilities = np.zeros((n, table.v.shape[1]))
            self.call = self.kernels.prepared("best_chains", *given, work, paths)
            self.summed = (*given, work, self.probabilities)
        else:
            lattice = new_lattice(run, lists=len(la.PathSide), nodes=room << 10, edges=room << 13)
            self.call = self.kernels.prepared("best_many", *given, options, lattice, paths)

    def decode(self, dataset: Dataset) -> Found | None:
        """Return steps, end and score of an input; None if the machine must find them."""
        call, paths = self.call, self.paths
        if call is None or not self.takes(dataset, call) or not self.has_found(call):
            return None
        return paths.steps[: paths.ends[0]].copy(), paths.ends.copy(), paths.scores.copy()

    def has_found(self, call: Prepared) -> bool:
        """Decode the input that is in place; False if there was not enough room, or a fault."""
        self.paths.used.fill(0)
        status = self._status_of(call)
        if status == at.DONE:
            return True
        self.is_too_small = (
            status in (at.MORE_NODES, at.MORE_EDGES) and self.room < thresholds.MOST_GROWTH
        )
        self.room *= 4
        return False

    def _status_of(self, call: Prepared) -> int:
        """Make a call, which Ctrl-C can end, and return its status."""
        if self.is_short or not in_main_thread():
            return call()[1]
        ((_, status),) = results_of([lambda: entered(call, self.run.meta)])
        if status == at.STOPPED:
            raise KeyboardInterrupt
        return int(status)

    def label_probabilities(self, dataset: Dataset) -> Array | None:
        """Return the probability of each label at each item; None if the machine must find it."""
        call = self.call
        if call is None or not self.is_chain or not self.takes(dataset, call):
            return None
        if self.summing is None:
            self.summing = self.kernels.prepared("chain_probabilities", *self.summed)
        if self.summing is None:
            return None
        self.summing.copy_from(call, N_ARRAYS)
        status = self._status_of(self.summing)
        return self.probabilities[: self.starts[1]].copy() if status == at.DONE else None

    def takes(self, dataset: Dataset, call: Prepared) -> bool:
        """Put an input in the place of the one before; False if it is too large or of other form.

        ``is_too_small`` tells whether it is too large.
        """
        self.is_too_small = False
        largest = self.largest
        if largest is None or not (
            call.replace(ITEMS, dataset.items)
            and call.replace(POOL, dataset.pool)
            and call.replace(VALUES, dataset.values)
            and call.replace(SPEC, dataset.spec)
            and call.replace(VECTORS, dataset.vectors)
        ):
            return False
        self.starts[1] = dataset.starts[1]
        if self.is_checked:
            self.machine.check(dataset, all_of(dataset), self.table, learning=False)
        largest.copy_from(call, N_ARRAYS)
        self.most.fill(1)
        results_of([largest]) if self.is_checked and in_main_thread() else largest()
        self.is_too_small = any(map(int.__gt__, self.most.tolist(), self.bounds))
        return not self.is_too_small
