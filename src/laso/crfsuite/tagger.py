"""The tagger of python-crfsuite over a model: labels, probabilities, and all weights."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Self

from laso.data.table import Data
from laso.engine.lattice.exact import ExactMachine
from laso.engine.machine import all_of
from laso.errors import BadModel, listed, quoted
from laso.estimators.products.tagger import Tagger as Estimator
from laso.features.inputs import read_labels
from laso.files import estimator as stored
from laso.files.atomic import write_text


@dataclass
class ParsedDump:
    """What is in a model: sizes, the number of each label and attribute as text, all weights."""

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text that ``Tagger.dump`` writes."""
        for title, lines in (
            ("FILEHEADER", (f"{name}: {value}" for name, value in self.header.items())),
            ("LABELS", (f"{number:>5}: {name}" for name, number in self.labels.items())),
            ("ATTRIBUTES", (f"{number:>5}: {name}" for name, number in self.attributes.items())),
            ("TRANSITIONS", _weights(1, self.transitions)),
            ("STATE_FEATURES", _weights(0, self.state_features)),
        ):
            yield f"{title} = {{"
            yield from (f"  {line}" for line in lines)
            yield from ("}", "")


def _weights(kind: int, weights: dict[tuple[str, str], float]) -> Iterator[str]:
    return (f"({kind}) {a} --> {b}: {weight:f}" for (a, b), weight in weights.items())


class Tagger:
    """Labels one sequence at a time, with the calls of python-crfsuite's ``Tagger``.

    Parameters
    ----------
    model : laso.Tagger, default=None
        The model, if it is not opened from a file.

    Examples
    --------
    >>> import laso
    >>> from laso.crfsuite import Tagger
    >>> tagger = Tagger(laso.Tagger().fit([[["w=a"], ["w=dog"]]], [["DET", "NOUN"]]))
    >>> tagger.tag([["w=a"], ["w=dog"]])
    ['DET', 'NOUN']
    """

    def __init__(self, model: Estimator | None = None) -> None:
        self._model = model
        self._weights = None if model is None else model.weights_
        self._data: Data | None = None
        self._marginals: list[dict[str, float]] | None = None

    @property
    def model(self) -> Estimator:
        """The model; without one ValueError is raised."""
        if self._model is None:
            raise ValueError("The tagger is not opened")
        return self._model

    def is_of(self, model: Estimator) -> bool:
        """Return whether this is the tagger of a model with the weights that it has now."""
        return self._weights is model.weights_

    # ------------------------------------------------------------------ opening

    def open(self, name: str | os.PathLike[str]) -> closing[Self]:
        """Open a model file; ``with`` closes it."""
        return self._open(stored.load(name), name)

    def open_inmemory(self, value: bytes) -> closing[Self]:
        """Open the bytes of a model file; ``with`` closes them."""
        return self._open(stored.from_bytes(value), "the model in memory")

    def _open(self, model: Any, name: str | os.PathLike[str]) -> closing[Self]:
        if not isinstance(model, Estimator):
            raise BadModel(f"{os.fspath(name)} cannot be opened: found a {type(model).__name__}")
        self.close()
        self._model = model
        return closing(self)

    def close(self) -> None:
        """Forget the model."""
        self._model = self._weights = self._data = self._marginals = None

    # ------------------------------------------------------------------ labelling

    def set(self, xseq: Any) -> None:
        """Set the sequence of later calls."""
        self._data = self.model.task_.read_inputs([xseq])
        self._marginals = None

    def _sequence(self) -> Data:
        if self._data is None:
            raise ValueError("there is no sequence: call set or tag first")
        return self._data

    def tag(self, xseq: Any = None) -> list[str]:
        """Return the labels of a sequence; None: of the one that is set."""
        if xseq is not None:
            self.set(xseq)
        model, data = self.model, self._sequence()
        labels: list[str] = model.decode(data, model.task_.encode(data))[0]
        return labels

    def probability(self, yseq: Sequence[str]) -> float:
        """Return the probability of a label sequence for the sequence that is set."""
        model, data = self.model, self._sequence()
        task = model.task_
        gold = task.gold_numbers(data, read_labels([list(yseq)], data.lengths))
        dataset = task.encoder_.dataset(data, gold)
        engine = model.engine(dataset)
        if not isinstance(engine, ExactMachine):
            raise ValueError(f"probability needs exact search, found {quoted(model.queue)}")
        return math.exp(engine.log_likelihood(dataset, all_of(dataset), model.weights_)[0])

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label at a position of the sequence that is set."""
        if self._marginals is None:
            self._marginals = self.model.predict_marginals(self._sequence())[0]
        if not 0 <= pos < len(self._marginals):
            raise ValueError(f"found the position {pos}, expected 0 to {len(self._marginals) - 1}")
        if y not in self._marginals[pos]:
            raise ValueError(
                f"found the label {quoted(y)}, expected one of {listed(self.labels())}"
            )
        return self._marginals[pos][y]

    # ------------------------------------------------------------------ the model

    def labels(self) -> list[str]:
        """Return the labels."""
        return list(self.model.task_.classes)

    def info(self) -> ParsedDump:
        """Return all weights and what else is in the model."""
        if self._model is None:
            raise RuntimeError("The tagger is not opened")
        model, labels = self._model, self.labels()
        state, transitions = model.state_features_, model.transition_features_
        attributes = list(dict.fromkeys(name for name, _ in state))
        header = {
            "magic": "laso",
            "size": str(model.file_size()),
            "type": "FOMC",
            "version": "100",
            "num_features": str(len(state) + len(transitions)),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(attributes)),
        }
        return ParsedDump(header, _numbers(labels), _numbers(attributes), transitions, state)

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write all weights as text, to a file or to the standard output."""
        text = "".join(f"{line}\n" for line in self.info().lines())
        if filename is None:
            sys.stdout.write(text)
        else:
            write_text(filename, text, errors="surrogateescape")


def _numbers(names: Sequence[str]) -> dict[str, str]:
    return {name: str(i) for i, name in enumerate(names)}
