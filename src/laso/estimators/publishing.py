"""Learning beside predicting: a model changes at once, and calls see the old one or the new one.

Learning works on a draft, a copy that nothing else sees, and publishes what it has learned in one
step. A call that predicts begins with a snapshot of the attributes. What is published is never
changed afterwards, only replaced, so the snapshot stays what it is. Methods that learn take turns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from laso.locks import Lock, own_lock
from laso.params import Estimator

P = ParamSpec("P")
R = TypeVar("R")
Model = TypeVar("Model", bound="Published")

LOCK, DRAFT, SNAPSHOT, PREPARED = "_lock", "_draft", "_is_snapshot", "_prepared"
TRANSIENT = frozenset({LOCK, DRAFT, SNAPSHOT, PREPARED, "_tagger"})
"""Attributes of one object that copies, files and pickles do not have."""


class Published(Estimator):
    """Base class of the estimators that may learn in one thread and predict in others."""

    def snapshot(self) -> Self:
        """Return the model as it is now, which later learning does not change."""
        attributes = vars(self)
        if SNAPSHOT in attributes:
            return self
        attributes.setdefault(PREPARED, {})
        snapshot = object.__new__(type(self))
        snapshot.__dict__ = {**attributes, SNAPSHOT: True}  # all attributes in one step
        return snapshot

    @property
    def prepared(self) -> dict[Any, Any]:
        """What predictions keep for later ones; it is empty again when something was learned."""
        prepared: dict[Any, Any] = vars(self).setdefault(PREPARED, {})
        return prepared

    @property
    def draft(self) -> Self:
        """What learns at present; without any, the model itself."""
        draft: Self = vars(self).get(DRAFT, self)
        return draft

    @contextmanager
    def learning(self) -> Iterator[Self]:
        """Yield a draft to learn with; what it learned is published if there was no error.

        Another thread that learns waits until the block ends. An error leaves the model as it was.
        """
        lock: Lock = vars(self).setdefault(LOCK, own_lock())
        with lock:
            before = {**vars(self)}
            draft = object.__new__(type(self))
            draft.__dict__ = {name: v for name, v in before.items() if name not in TRANSIENT}
            vars(self)[DRAFT] = draft
            try:
                yield draft
                learned = {
                    name: value
                    for name, value in vars(draft).items()
                    if name not in TRANSIENT and before.get(name, before) is not value
                }
                # All in one step: ``before`` still has what is replaced, so that nothing is freed.
                vars(self).update({**learned, PREPARED: {}})
            finally:
                vars(self).pop(DRAFT, None)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes that copies and pickles have."""
        return {name: value for name, value in {**vars(self)}.items() if name not in TRANSIENT}


def consistent(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Let a method see one model from its beginning to its end, whatever is learned meanwhile."""

    @functools.wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(self.snapshot(), *args, **kwargs)

    return call
