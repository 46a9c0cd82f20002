"""The trainer of python-crfsuite, and the sequences that it learns from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from laso.crfsuite.crf import CRF
from laso.crfsuite.log import TrainingLog
from laso.crfsuite.parameters import Parameter, algorithm_named, parameters_of
from laso.errors import BadData, quoted
from laso.features.inputs import token_features


class CRFSuiteError(Exception):
    """An error of the training; laso raises more specific ones."""


class ItemSequence:
    """The features of a sequence as dicts of numbers.

    Parameters
    ----------
    pyseq : iterable of tokens
        A token is a dict, or any other iterable of feature names. A value may be a number, a truth
        value, a string, or a dict or a list of these.

    Examples
    --------
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}, "spam": "egg"}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0, 'spam:egg': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        if isinstance(pyseq, (str, bytes)) or not hasattr(pyseq, "__iter__"):
            raise BadData(f"found {quoted(pyseq)}, expected a list of tokens")
        is_ready = isinstance(pyseq, ItemSequence)
        self._items = list(pyseq) if is_ready else [token_features(token) for token in pyseq]

    def items(self) -> list[dict[str, float]]:
        """Return the features of each token with their values."""
        return [dict(item) for item in self._items]

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


class Trainer(TrainingLog):
    """Collects sequences with their labels, and trains a CRF on them.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        The training algorithm, lbfgs if None.
    params : dict, default=None
        Parameters of the algorithm, by CRFsuite's names.
    verbose : bool, default=True
        Print the log, by the methods ``on_...``.

    Examples
    --------
    >>> trainer = Trainer("lbfgs", {"c2": 0.1}, verbose=False)
    >>> trainer.append([{"w": "the"}, {"w": "cat"}], ["DET", "NOUN"])
    >>> trainer.get("c2")
    0.1
    """

    _algorithm: str
    _given: dict[str, Any]
    _groups: dict[int, list[tuple[ItemSequence, list[str]]]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make a trainer with all defaults, which subclasses rely on without our ``__init__``."""
        trainer = super().__new__(cls)
        trainer._algorithm, trainer._given, trainer._groups = "lbfgs", {}, {}
        return trainer

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        self.set_params(params or {})
        self.verbose = verbose

    # ------------------------------------------------------------------ parameters

    def select(self, algorithm: str, type: str = "crf1d") -> None:  # noqa: A002
        """Choose the training algorithm; its parameters have their defaults then."""
        if type != "crf1d":
            raise ValueError(f"type must be 'crf1d', found {quoted(type)}")
        self._algorithm, self._given = algorithm_named(algorithm), {}

    def params(self) -> list[str]:
        """Return the names of the algorithm's parameters."""
        return list(parameters_of(self._algorithm))

    def _parameter(self, name: str) -> Parameter:
        known, algorithm = parameters_of(self._algorithm), self._algorithm
        if name not in known:
            has = ", ".join(known)
            raise ValueError(f"{algorithm} has no parameter {quoted(name)}; it has {has}")
        return known[name]

    def set(self, name: str, value: Any) -> None:
        """Set a parameter; a number may be given as text."""
        self._given[name] = self._parameter(name).cast(value)

    def get(self, name: str) -> Any:
        """Return the value of a parameter."""
        return self._given.get(name, self._parameter(name).defaults[self._algorithm])

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """Return all parameters."""
        return {name: self.get(name) for name in self.params()}

    def help(self, name: str) -> str:
        """Return the description of a parameter."""
        return self._parameter(name).description

    # ------------------------------------------------------------------ data

    def append(self, xseq: Iterable[Any], yseq: Iterable[str | bytes], group: int = 0) -> None:
        """Add a sequence and its labels; ``train`` can hold out a group."""
        items = ItemSequence(xseq)
        labels = [y.decode("utf-8") if isinstance(y, bytes) else y for y in yseq]
        if len(items) != len(labels):
            raise ValueError(f"found {len(labels)} labels, expected {len(items)}, one a token")
        self._groups.setdefault(group, []).append((items, labels))

    def clear(self) -> None:
        """Remove all sequences."""
        self._groups.clear()

    # ------------------------------------------------------------------ training

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train, and write the model to a file.

        Parameters
        ----------
        model : path
            The file; nothing is written if it is empty.
        holdout : int, default=-1
            The group that is not learned from: the log has its scores; -1 for none.
        """
        pairs = [
            pair for group, members in self._groups.items() if group != holdout for pair in members
        ]
        held = self._groups.get(holdout, [])
        if not any(len(items) for items, _ in pairs):
            warnings.warn("found no token to learn from: there is no model", stacklevel=2)
            return
        given = {self._parameter(name).field: value for name, value in self._given.items()}
        crf = CRF(self._algorithm, model_filename=model or None, **given)
        X, y = (list(members) for members in zip(*pairs, strict=True))
        dev = [list(members) for members in zip(*held, strict=True)]
        self.holdout = holdout
        crf.fit(X, y, *dev, log=self)
