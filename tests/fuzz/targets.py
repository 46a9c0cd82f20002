"""What is attacked: the readers of model files, templates and corpora, and of Python objects."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from laso import LasoError, load_model
from laso.crfsuite import Tagger as CRFSuiteTagger
from laso.data.coreference import read_coreference, write_coreference
from laso.data.reading import read
from laso.engine import thresholds
from laso.engine.native.dispatch import Kernels
from laso.features import parse_templates
from laso.features.other_tools import read_crfpp, read_wapiti
from laso.features.reading import read_table
from laso.tasks.clustering import templates as clustering_templates
from laso.tasks.clustering.coreference import mentions_of
from laso.tasks.clustering.files import read_documents
from laso.tasks.parsing import templates as parsing_templates
from laso.tasks.parsing.task import ParsingTask
from laso.updates import Lbfgs
from tests.fuzz.mutants import model_mutant, text_mutant
from tests.fuzz.objects import new_draws, use_objects

CORPUS = Path(__file__).parent / "corpus"
ITEMS = [["Ann Lee", "Bo Day", "A. Lee"], ["Jo", "Jo"], []]


class NeedsCompiling(Exception):
    """A model whose settings need kernels that no seed has needed, which takes many seconds."""


def without_compiler() -> None:
    """Let kernels that are not in the cache end a mutant instead of being compiled."""

    def refused(self: Any, name: str, *_: Any) -> Any:
        raise NeedsCompiling(name)

    kernels: Any = Kernels
    kernels._compile = refused


class Lost(Exception):
    """A model that was loaded and saved does not load again as it was."""


@dataclass(frozen=True)
class Target:
    """A reader, with the files to begin with and the way to change them."""

    name: str
    ends: tuple[str, ...]
    mutant: Callable[[bytes, Random], bytes]
    run: Callable[[bytes, Path], None]

    def seeds(self) -> list[bytes]:
        """Return the files of the corpus that belong to this target."""
        files = sorted(p for p in CORPUS.rglob("*") if p.name.endswith(self.ends))
        return [path.read_bytes() for path in files]


def inputs_for(model: Any) -> list[Any]:
    """Return sentences, or documents, of the kind that a model was trained on."""
    if model.task_.name == "clustering":
        return [[{"name": name, "kind": name[0]} for name in x] for x in ITEMS]
    names = len(model.task_.encoder_.names)
    words = [["the", "kettle", "boiled"], ["odd", "dogs"], []]
    if model.task_.encoder_.width >= 0:
        import numpy as np

        return [np.ones((2, min(model.task_.encoder_.width, 1000)))]
    if not names:
        return [[{"w": word, "n": 2.0} for word in sentence] for sentence in words]
    return [[(word,) * names for word in sentence] for sentence in words]


def use_model(data: bytes, folder: Path) -> None:
    """Load a model, call what models do, save it, and load it again."""
    path = folder / "model"
    path.write_bytes(data)
    model = load_model(path)
    X = inputs_for(model)
    outputs = model.predict(X)
    singles = [model.predict_single(x) for x in X]
    if _plain(outputs) != singles:
        raise Lost("one input alone is labelled otherwise than among others")
    is_plain = b'\\"compressed\\":false' in data
    if is_plain and _plain(load_model(path, mmap=True).predict(X)) != singles:
        raise Lost("the mapped file labels otherwise than the one that was read")
    model.predict_nbest(X, 2)
    model.predict_confidence(X)
    if str(model.queue) == "exact()":
        model.predict_marginals(X)
    again = folder / "again"
    model.save(again)
    if _plain(load_model(again).predict(X)) != _plain(outputs):
        raise Lost("the model predicts other labels after it was saved")
    rule = model.update_rule(model.task_)
    if model.training_ is not None and not isinstance(rule, Lbfgs):
        labels = list(model.classes_)
        gold = [_gold(model, labels, len(x)) for x in X]
        model.partial_fit(X, gold)
        model.save(again, training=True)
        load_model(again)


def _gold(model: Any, labels: list[str], n: int) -> list[Any]:
    if model.task_.name == "parsing":
        arc = min(model.task_.encoder_.arc_labels, default=None)
        return [(int(i > 0), arc) for i in range(n)]
    if model.task_.name == "clustering":
        return [i % 2 for i in range(n)]
    if model.task_.name == "chunking":
        return ["O"] * n
    if model.task_.name == "joint":
        layers = model.task_.encoder_.of_layer
        return [tuple(layers[name][0] for name in model.task_.layers)] * n
    return [labels[i % len(labels)] for i in range(n)]


def _plain(outputs: Any) -> Any:
    return outputs.tolist() if hasattr(outputs, "tolist") else outputs


def use_tagger(data: bytes, folder: Path) -> None:
    """Open a model as programs for python-crfsuite do, and call what they call."""
    path = folder / "model"
    path.write_bytes(data)
    tagger = CRFSuiteTagger()
    tagger.open_inmemory(data)
    tagger.open(path)
    X = inputs_for(tagger.model)
    for x in X[:2]:
        labels = tagger.tag(x)
        if str(tagger.model.queue) == "exact()":
            tagger.probability(labels)
            tagger.marginal(tagger.labels()[0], 0)
    tagger.info()
    tagger.dump(folder / "dump")


@cache
def parser() -> Any:
    """The parser of the corpus."""
    return load_model(CORPUS / "parser.laso")


def use_trees(data: bytes, folder: Path) -> None:
    """Read trees to learn from, and the sentences of them to parse."""
    path = folder / "trees.conllu"
    path.write_bytes(data)
    errors = []
    for call in (
        lambda: _learnable(path),
        lambda: parser().predict(path),
        lambda: parser().score(path),
        lambda: parser().snapshot().partial_fit(path),
    ):
        try:
            call()
        except LasoError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _learnable(path: Path) -> None:
    task = ParsingTask()
    inputs, outputs = task.read(path, None)
    task.observe([(inputs, outputs)])
    task.encode(inputs, outputs)


def use_parser_templates(data: bytes, folder: Path) -> None:
    """Read a text as templates of configurations."""
    parsed = parsing_templates.parse_templates(data.decode("utf-8", "replace"))
    if parsing_templates.parse_templates(map(str, parsed)) != parsed:
        raise Lost("the templates are others after they were written")


def use_cluster_templates(data: bytes, folder: Path) -> None:
    """Read a text as templates of clusters."""
    parsed = clustering_templates.parse_templates(data.decode("utf-8", "replace"))
    if clustering_templates.parse_templates(map(str, parsed)) != parsed:
        raise Lost("the templates are others after they were written")


@cache
def clusterer() -> Any:
    """The clusterer of the corpus."""
    return load_model(CORPUS / "clusterer.laso")


def use_items(data: bytes, folder: Path) -> None:
    """Read items to learn from, and put them into clusters."""
    path = folder / "items.jsonl"
    path.write_bytes(data)
    documents, ids = read_documents(str(path), labelled=True)
    clusterer().predict(documents)
    clusterer().snapshot().partial_fit(documents, ids)


def use_mentions(data: bytes, folder: Path) -> None:
    """Read texts with mentions, look at these, write the texts and read them again."""
    for text, ids in read_coreference(io.StringIO(data.decode("utf-8", "replace"))):
        mentions_of(text)
        [(again, others)] = read_coreference(io.StringIO(write_coreference(text, ids)))
        if (again.sentences, again.mentions, others) != (text.sentences, text.mentions, ids):
            raise Lost("the text is another one after it was written")


def use_templates(data: bytes, folder: Path) -> None:
    """Read a text as templates of all three kinds."""
    path = folder / "templates"
    path.write_bytes(data)
    for reader in (_own, read_crfpp, read_wapiti):
        try:
            reader(path)
        except LasoError:
            if reader is read_wapiti:
                raise


def _own(path: Path) -> None:
    parse_templates(path.read_bytes().decode("utf-8", "replace"))


def of_format(kind: str) -> Callable[[bytes, Path], None]:
    """Return the target of the reader of a format."""

    def use(data: bytes, folder: Path) -> None:
        errors = []
        for reader in (
            lambda: list(read(io.BytesIO(data), format=kind)),
            lambda: read_table(io.BytesIO(data), format=kind),
        ):
            try:
                with patch.object(thresholds, "SHORT_FILE", 0):
                    reader()
            except LasoError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    return use


TARGETS = {
    target.name: target
    for target in (
        Target("model", (".laso",), model_mutant, use_model),
        Target("templates", (".tpl",), text_mutant, use_templates),
        Target("columns", (".txt",), text_mutant, of_format("columns")),
        Target("conllu", (".conllu",), text_mutant, of_format("conllu")),
        Target("jsonl", (".jsonl",), text_mutant, of_format("jsonl")),
        Target("trees", (".conllu",), text_mutant, use_trees),
        Target("parser templates", (".ptpl",), text_mutant, use_parser_templates),
        Target("cluster templates", (".ctpl",), text_mutant, use_cluster_templates),
        Target("items", (".items",), text_mutant, use_items),
        Target("mentions", (".conll",), text_mutant, use_mentions),
        Target("crfsuite", ("crf.laso",), model_mutant, use_tagger),
        Target("objects", (".objects",), new_draws, use_objects),
    )
}


def outcome(target: Target, data: bytes, folder: Path) -> tuple[str, str]:
    """Run a target on a file: "ok", "error", "memory" or "foreign", and what was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target.run(data, folder)
        except LasoError as error:
            return "error", f"{type(error).__name__}: {error}"[:300]
        except NeedsCompiling as error:
            return "compile", str(error)
        except MemoryError as error:
            return "memory", repr(error)[:300]
        except Lost as error:
            return "lost", str(error)
        except Exception as error:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = (
                ""
                if place is None
                else (f"{os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}")
            )
            return "foreign", f"{type(error).__name__} at {where}: {error}"[:300]
    return "ok", ""
