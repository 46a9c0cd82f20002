"""Plain column files labelled batch by batch, by compiled code from bytes to bytes.

The bytes and the errors are those of the general code in ``laso.cli.tag``, which goes on where this
code finds something that it does not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from laso.cli.examples import roles_for
from laso.data.formats import ColumnRoles, Format
from laso.data.lines import Resumed
from laso.data.table import locating
from laso.engine.machine import default_threads
from laso.errors import BadData
from laso.features.column_text import Batch, Batches, Reader, is_plain, written
from laso.features.value_tables import NewValues, is_numbered, known_values
from laso.tasks.sequences import SequenceTask

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

AHEAD = 2  # batches in memory for each thread


class ColumnFile:
    """A column file to label with a model.

    Parameters
    ----------
    model : SearchEstimator
        The model.
    file : binary file
        The file, of which nothing is read yet.
    form : Format
        Its format.
    trained : ColumnRoles
        The roles of the columns in training.
    tokens : int
        The number of tokens of a batch, at least.
    """

    def __init__(
        self,
        model: SearchEstimator,
        file: IO[bytes],
        form: Format,
        trained: ColumnRoles,
        tokens: int,
    ) -> None:
        self.model, self.form, self.trained = model, form, trained
        self.task: Any = model.task_
        self.batches = Batches(file, form, tokens)
        self.roles: ColumnRoles | None = None
        self.first = 0  # the line of the first token
        self.rest: Resumed | None = None
        self._free: list[Reader] = []

    def texts(self) -> Iterator[bytes | memoryview]:
        """Yield the labelled batches; ``rest`` is what the general code must read then."""
        if self.batches.is_short:
            self.rest = self.batches.left([])
            return
        waiting: deque[tuple[Batch, Future[Any] | None]] = deque()
        threads = default_threads() if self.model.threads is None else int(self.model.threads)
        pool = ThreadPoolExecutor(threads) if threads > 1 else None
        try:
            for batch in self.batches:
                if self.roles is None and not self._begin(batch):
                    self._stop([batch])
                    return
                waiting.append((batch, pool.submit(self._labelled, batch) if pool else None))
                while len(waiting) > (AHEAD * threads if pool else 0):
                    text = self._next(waiting)
                    if text is None:
                        return
                    yield text
            while waiting:
                text = self._next(waiting)
                if text is None:
                    return
                yield text
        finally:
            if pool is not None:
                pool.shutdown(cancel_futures=True)

    def _next(self, waiting: deque[tuple[Batch, Future[Any] | None]]) -> memoryview | None:
        """Return the text of the first batch; None if the general code must go on with it."""
        batch, future = waiting[0]
        text: memoryview | None = self._labelled(batch) if future is None else future.result()
        if text is None:
            self._stop([batch for batch, _ in waiting])
        waiting.popleft()
        return text

    def _stop(self, batches: list[Batch]) -> None:
        """Leave these batches and all that follows to the general code."""
        width = 0 if self.roles is None else self.roles.width
        self.rest = self.batches.left(batches, width, self.first)

    def _begin(self, batch: Batch) -> bool:
        """Find the roles of the columns; False if the general code must read the file."""
        block = self.batches.first_block(batch)
        if block is None:
            return False
        try:
            roles = roles_for(block, self.trained, self.form)
        except BadData:  # the general code raises it, after what is before
            return False
        inputs = [block.names.index(name) for name in roles.inputs]
        if len(set(inputs)) != len(self.task.encoder_.names):
            return False
        self.roles, self.first = roles, block.line_numbers[0]
        self.columns = np.full(len(block.names), -1, np.int64)
        for column in self.task.encoder_.vocabularies:
            self.columns[inputs[column]] = column
        return True

    def _labelled(self, batch: Batch) -> memoryview | None:
        """Return the text of a batch with labels; None if the general code must read it."""
        assert self.roles is not None
        try:
            reader = self._free.pop()
        except IndexError:
            values = NewValues(known_values(self.task.encoder_))
            reader = Reader(values, self.form, self.columns, self.batches.name)
        sentences = reader.items(batch)
        self._free.append(reader)
        if sentences is None:
            return None
        inputs, lines = sentences
        if not len(inputs):
            return written(lines, inputs.lengths, (), form=self.form)
        with locating(inputs):
            dataset = self.task.encode(inputs)
        steps, ends, _ = self.model.decoder(dataset).decode(dataset)
        codes, outputs = self.task.coded_outputs(inputs, steps, ends)
        return written(lines, codes, outputs, form=self.form)


def is_possible(model: SearchEstimator, form: Format) -> bool:
    """Return whether compiled code may label files of a format."""
    task = model.task_
    return (
        is_plain(form)
        and isinstance(task, SequenceTask)
        and is_numbered(task.encoder_)
        and not task.has_vectors  # an encoder reads the words
        and all(_is_text(label) for label in task.classes)
    )


def _is_text(label: str) -> bool:
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True
