"""Signals: what has been learned is saved at Ctrl-C, and no temporary file stays behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator


class Ended(BaseException):
    """A signal that ends the command, after it has removed its temporary files."""


@contextmanager
def ending() -> Iterator[None]:
    """End as by SIGTERM or SIGHUP, but leave with statements first, which remove files."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    ours = [n for n in numbers if is_main and signal.getsignal(n) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    except Ended as ended:
        (number,) = ended.args
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: Any) -> None:
    raise Ended(number)


class Interrupts:
    """Holds Ctrl-C back, inside a with statement, from the end of training to the end of the block.

    Training itself ends at the first Ctrl-C. A further one, while the weights are averaged and
    saved, would cost the model; it is only noted in ``held``.
    """

    def __init__(self) -> None:
        self.held = False
        self.model: SearchEstimator | None = None  # the one that is trained
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: Any) -> None:
        if self.model is None or not is_trained(self.model):
            raise KeyboardInterrupt
        self.held = True


def is_trained(model: SearchEstimator) -> bool:
    """Whether the training of a model is over: finished, converged or interrupted."""
    from laso.engine.epochs import Plan
    from laso.estimators.learning.fitting import most_epochs

    training = getattr(model.draft, "training_", None)
    if training is None:
        return False
    plan = Plan(epochs=most_epochs(model), patience=model.patience)
    return training.interrupted or plan.is_over(training)
