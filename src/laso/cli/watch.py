"""``laso train --watch``: the page of ``laso serve``, on which a training shows itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laso.cli.examples import Examples
from laso.data.table import Columns, split_sentences, value_list

if TYPE_CHECKING:
    from laso.cli.job import Job
    from laso.estimators import SearchEstimator
    from laso.serve.server import PageServer

SHOWN = 100  # examples to choose from


class Watch:
    """A page that shows a training; it opens before anything is learned.

    Parameters
    ----------
    browser : bool, default=True
        Whether to open it in a browser.
    """

    def __init__(self, *, browser: bool = True) -> None:
        from laso.cli.serve import show
        from laso.serve.server import PageServer
        from laso.serve.workbench import Workbench

        self.bench = Workbench()
        self.bench.watched.begin("reading")
        self.server: PageServer = PageServer(self.bench)
        self.server.start()
        show(self.server.address, browser=browser, err=True)

    def after_epoch(self, job: Job, model: SearchEstimator) -> Any:
        """Return what ``fit`` calls after each epoch."""
        pairs = examples_of(job.dev or job.train)
        self.bench.watched.begin("compiling and learning")
        return self.bench.watched.after_epoch(model, lambda: pairs)

    def end(self, job: Job, model: SearchEstimator) -> None:
        """Show the model that was learned."""
        from laso.serve.inputs import Example

        pairs = examples_of(job.dev or job.train)
        self.bench.examples = [Example(x, list(model.task_.words(x)), y) for x, y in pairs]
        self.bench.models = [model]
        self.bench.watched.end(f"trained for {model.n_iter_} epochs")

    def stay(self) -> None:
        """Serve the page until Ctrl-C."""
        try:
            self.server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.server.close()


def examples_of(data: Examples) -> list[tuple[Any, Any]]:
    """Return the first inputs and gold outputs of files, one by one."""
    some = data.first(min(SHOWN, len(data)))
    inputs = some.inputs
    if isinstance(inputs, Columns):
        columns = [value_list(column) for column in inputs.columns]
        tokens = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        inputs = split_sentences(tokens, inputs.lengths)
    return list(zip(inputs, some.outputs, strict=True))
