"""The task of ``Clusterer``: which items of a document belong together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from types import NoneType
from typing import Any, ClassVar, Self

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.encoder import pack_strings, sentence_starts, unpack_strings
from laso.features.keys import string_keys
from laso.features.templates import BIAS, Template
from laso.params import check_parameters, is_whole
from laso.queues import MakeQueue, beam
from laso.tasks import displays
from laso.tasks.base import Decision, Step, Task
from laso.tasks.batches import Operator
from laso.tasks.clustering.candidates import Block, Choose
from laso.tasks.clustering.comparisons import CATEGORY, NUMBER, TEXT
from laso.tasks.clustering.components import Components, components_of
from laso.tasks.clustering.encoder import (
    MOST_OUTCOMES,
    Candidates,
    ClusteringEncoder,
    Comparer,
    gold_numbers,
)
from laso.tasks.clustering.fields import Document, check_kind, kinds_of, plain
from laso.tasks.clustering.files import read_documents
from laso.tasks.clustering.problem import NEW, PLACED, Clustering, members_of
from laso.tasks.clustering.templates import (
    POSITION,
    RECENT,
    check_columns,
    default_templates,
    parse_templates,
)
from laso.tasks.sequences import check_strings

MOST_WINDOW = 1 << 20
STATE = ("fields", "outcomes", "functions")  # in files
FUNCTIONS = ("candidates", "blocking")  # parameters that may be functions, or have some
SHOWN_MEMBERS = 8  # of a cluster, in explanations


class ClusteringTask(Task):
    """Puts the items of a document into clusters, one by one.

    The parameters are those of ``laso.Clusterer``.
    """

    name = "clustering"
    problem = Clustering
    labels = ("join", "new")
    default_window: ClassVar[int] = 500
    encoder_: ClusteringEncoder
    display = displays.clusters

    def __init__(
        self,
        *,
        fields: Mapping[str, str] | Sequence[str] | None = None,
        features: str | Sequence[str | Template] | None = None,
        comparisons: Mapping[str, Comparer] | None = None,
        window: int | None = None,
        blocking: Sequence[Block] = (),
        candidates: Choose | None = None,
        different: str | None = None,
    ) -> None:
        self.fields = fields
        self.features = features
        self.comparisons = comparisons
        self.window = self.default_window if window is None else window
        self.blocking = blocking
        self.candidates = candidates
        self.different = different

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        check_parameters(
            self,
            [
                ("window", is_whole(self.window, 1, MOST_WINDOW), "from 1 to 2 ** 20"),
                ("fields", self.fields is None or _are(self.fields, str), "a list or a mapping"),
                (
                    "blocking",
                    _are(self.blocking, str, Callable),
                    "a list of fields and of functions of an item",
                ),
                (
                    "candidates",
                    self.candidates is None or callable(self.candidates),
                    "a function of the items",
                ),
                ("different", isinstance(self.different, (str, NoneType)), "the name of a field"),
                (
                    "comparisons",
                    self.comparisons is None or _are_functions(self.comparisons),
                    "functions of two items by their names, of letters, digits and _",
                ),
            ],
        )
        if self.features is not None:
            parse_templates(self.features)

    def default_queue(self) -> MakeQueue:
        """Return a beam of 5."""
        return beam(5)

    # ------------------------------------------------------------------ reading

    def documents(self, X: Iterable[Any]) -> list[Document]:
        """Return inputs as documents of items."""
        return [Document(as_items(x, i), i) for i, x in enumerate(X, start=1)]

    def read_inputs(self, X: Any) -> list[Document]:
        """Return the documents of what the user passed to ``predict``."""
        return self.documents(super().read_inputs(X))

    def gold_outputs(self, inputs: Sequence[Document], outputs: Sequence[Any]) -> list[list[Any]]:
        """Return the ids of items by first appearance; None where they are not known."""
        return [known_by_appearance(y) for y in outputs]

    def read(self, X: Any, y: Any) -> tuple[list[Document], list[Any]]:
        """Return documents and the ids of their items."""
        inputs, outputs = super().read(X, y)
        for i, (document, ids) in enumerate(zip(inputs, outputs, strict=True), start=1):
            if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
                raise BadData(f"found {quoted(ids)}, expected an id for each item", sentence=i)
            outputs[i - 1] = ids = checked_ids(ids, i)
            if len(ids) != len(document):
                found = f"found {len(ids)} ids for {len(document)} items"
                raise BadData(found, sentence=i)
        if not any(map(len, inputs)):
            raise BadData("found no item to learn from, expected at least one")
        return inputs, outputs

    # ------------------------------------------------------------------ learning from data

    def observe(self, parts: Iterable[tuple[Any, Any]], *, classes: Sequence[str] = ()) -> None:
        """Learn which fields there are, and their kinds."""
        first = next(iter(parts), None)
        if hasattr(self, "encoder_"):
            return
        if first is None:
            raise BadData("found no document to learn from, expected at least one")
        documents, _ = first
        kinds = {POSITION: NUMBER, **self._kinds(documents)}
        names = dict.fromkeys([*kinds, *(name for d in documents for name in d.columns)])
        of_parameters = [("different", self.different)]
        of_parameters += [("blocking", b) for b in self.blocking if isinstance(b, str)]
        for parameter, name in of_parameters:
            if name is not None and name not in names:
                raise BadData(
                    f"found no field {quoted(name)}, which {parameter} names; expected one of "
                    f"{listed(names)}"
                )
        self._begin(kinds)

    def _kinds(self, documents: Sequence[Document]) -> dict[str, str]:
        """Return the kind of each field."""
        return kinds_of(documents, self.fields)

    def _begin(self, kinds: Mapping[str, str], templates: Sequence[str] | None = None) -> None:
        own = list(self.comparisons or ())
        if clash := set(own) & set(kinds):
            raise BadData(f"found {quoted(min(clash))} as a field and as a comparison")
        if templates is None:
            given = self.default_features(kinds, own) if self.features is None else self.features
        else:
            given = templates
        parsed = parse_templates(given)
        check_columns(parsed, kinds, own)
        self.encoder_ = ClusteringEncoder(
            kinds,
            parsed,
            self.make_candidates(),
            dict(self.comparisons or {}),
            self.different,
        )

    def make_candidates(self) -> Candidates:
        """Return which items are compared."""
        return Candidates(self.window, self.blocking, self.candidates)

    def default_features(self, kinds: Mapping[str, str], own: Sequence[str]) -> Sequence[str]:
        """Return the templates for fields of these kinds if the user names none."""
        return default_templates(kinds, own)

    # ------------------------------------------------------------------ encoding and decoding

    def encode(self, inputs: Any, outputs: Any = None) -> Dataset:
        """Return documents as arrays; with outputs, to learn from."""
        return self.encoder_.dataset(inputs, outputs)

    def components(self, dataset: Dataset) -> Components | None:
        """Return the components of documents; None if they are searched as a whole.

        They are if candidates are the items just before, or if a template counts all items between.
        """
        candidates = self.encoder_.candidates
        keyed = candidates.choose is not None or (candidates.blocking and not candidates.nearest)
        counted = any(a.column == RECENT for t in self.encoder_.templates for a in t.atoms)
        return components_of(dataset) if keyed and not counted else None

    def item_labels(self, document: Document) -> Sequence[Any]:
        """Return what items are called in pairs: their numbers."""
        return range(len(document))

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift the places of candidates in the pool by ``offset``."""
        items = items.copy()
        items[:, 0] += offset
        return items

    def joint_constants(self, longest: int, most: int) -> Array:
        """Return the problem's constants, which are the same for all data."""
        return self.encoder_.spec

    def decode(self, x: Any, steps: Sequence[Operator]) -> list[int]:
        """Return the number of each item's cluster, by first appearance."""
        return clusters_of(steps)

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> float:
        """Return the CoNLL average: the mean F of MUC, B-cubed and CEAF-e."""
        from laso.metrics.partitions import partition_scores

        return partition_scores(gold, predicted).conll / 100

    def known_gold(self, inputs: Any, known: Any) -> Dataset | None:
        """Return one input with the ids of some of its items; None: ``known`` has links."""
        if any(isinstance(each, tuple) for each in known):
            return None
        known = checked_ids(known)
        if len(known) != len(inputs[0]):
            raise BadData(f"found {len(known)} known ids for {len(inputs[0])} items")
        self.encoder_.check_apart(inputs[0], known)
        dataset = self.encode(inputs)
        counts, others = self.encoder_.candidates.of(inputs[0])
        y = gold_numbers(known, counts, others)
        return dataset._replace(outputs=y, output_starts=sentence_starts(np.array([len(y)])))

    # ------------------------------------------------------------------ names of steps

    def describe(self, group: int, label: int) -> Step:
        """Return "new", or the last candidate of the cluster that is joined."""
        return Step("new" if label == NEW else f"join {group}")

    def step_items(
        self, state: Sequence[int], operator: Operator, position: int
    ) -> tuple[Sequence[Any], int, int]:
        """Return the members of the cluster, by which a step may be known or banned; or "new"."""
        group, label = operator
        names = ["new"] if label == NEW else [str(m) for m in members_of(state, group)]
        return names, position, position + 1

    def longest_step(self, name: str) -> int:
        """Return 1 for the number of an item and for "new", 0 for anything else."""
        return int(name == "new" or name.isdecimal())

    def path_decisions(self, steps: Sequence[Operator]) -> list[Decision | None]:
        """Return for each item the first item of its cluster, or "new"."""
        return list(self._decided(first_members(steps)))

    def decisions(self, y: Any) -> set[tuple[str, int, int]] | None:
        """Return the same of a gold output."""
        first: dict[Any, int] = {}
        firsts = [first.setdefault(each, i) for i, each in enumerate(y)]
        known = [i for i, each in enumerate(y) if each is not None]
        decided = list(self._decided(firsts))
        return {decided[i] for i in known}

    @staticmethod
    def _decided(firsts: Sequence[int]) -> Iterator[Decision]:
        return (("new" if f == i else str(f), i, i + 1) for i, f in enumerate(firsts))

    def words(self, x: Any) -> list[str]:
        """Return a text for each item: its first field with text, else all of its values."""
        document = x if isinstance(x, Document) else self.documents([x])[0]
        kinds = self.encoder_.kinds
        texts = [name for name in document.columns if kinds.get(name) in (TEXT, CATEGORY)][:1]
        rows = zip(*(document.columns[name] for name in texts or document.columns), strict=True)
        return [" ".join(str(v) for v in row if v is not None) or "?" for row in rows]

    def step_text(
        self, state: Sequence[int], operator: Operator, words: Sequence[str]
    ) -> str | None:
        """Return which items are in the cluster that an item joins."""
        item, (group, label) = state[PLACED], operator
        if label == NEW:
            return f"{words[item]} begins a cluster"
        members = members_of(state, group)
        shown = ", ".join(words[m] for m in reversed(members[:SHOWN_MEMBERS]))
        more = "..., " if len(members) > SHOWN_MEMBERS else ""
        return f"{words[item]} joins {more}{shown}"

    def describe_feature(self, numbers: Sequence[int], items: Array) -> str | None:
        """Return the template with the outcomes and values of its atoms."""
        return self.encoder_.feature_name(numbers)

    def feature_names(self, keys: Array) -> dict[int, str]:
        """Return the names of templates without atoms."""
        return {int(string_keys([BIAS])[0]): BIAS}

    def bias_keys(self) -> Sequence[int]:
        """Return the feature key of ``bias``, if it is a template."""
        templates = map(str, self.encoder_.templates)
        return [int(string_keys([BIAS])[0])] if BIAS in templates else []

    # ------------------------------------------------------------------ files

    def evaluation(self, gold: Sequence[Any], predicted: Sequence[Any]) -> Any:
        """Return MUC, B-cubed, CEAF and the other scores of partitions."""
        from laso.metrics.partitions import partition_scores

        return partition_scores(gold, predicted)

    def read_file(self, path: str, *, labelled: bool) -> tuple[list[Any], list[Any] | None]:
        """Return the documents of JSON lines, and the ids of their items if they are labelled."""
        documents, ids = read_documents(path, labelled=labelled)
        return documents, ids

    def write_output(self, x: Any, y: Any) -> str:
        """Return a document and the ids of its items as a line of JSON."""
        items = x.items if isinstance(x, Document) else list(x)
        return json.dumps({"items": items, "clusters": y}, ensure_ascii=False, default=str)

    def state(self) -> dict[str, Any]:
        """Return the kinds of fields, the outcomes of comparisons, and which else are functions."""
        encoder = self.encoder_
        functions = [name for name in FUNCTIONS if self._has_function(name)]
        return {"fields": {**encoder.kinds}, "outcomes": encoder.outcomes, "functions": functions}

    def _has_function(self, name: str) -> bool:
        value = getattr(self, name)
        return callable(value) or (isinstance(value, Sequence) and any(map(callable, value)))

    def copied(self) -> Self:
        """Return a copy that may learn more while this one predicts in other threads."""
        copied = copy(self)
        copied.encoder_ = self.encoder_.copied()
        return copied

    def pack(self, keys: Array | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return fields, templates and outcomes, and the values that have numbers."""
        encoder = self.encoder_
        tensors = {
            f"values.{i}": pack_strings(list(encoder.values[name]))
            for i, name in enumerate(encoder.columns)
        }
        header = {
            "labels": list(self.classes),
            "templates": [str(template) for template in encoder.templates],
            "state": self.state(),
        }
        return header, tensors

    def unpack(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Take over what ``pack`` returned, from a file that may hold anything."""
        if header["labels"] != list(self.classes):
            raise BadModel(f"found {quoted(header['labels'])}, expected {listed(self.classes)}")
        state = header["state"]
        if not (isinstance(state, dict) and {*STATE} <= state.keys()):
            raise BadModel(f"found the state {quoted(state)}, expected {listed(STATE)}")
        kinds, outcomes = state["fields"], state["outcomes"]
        if not isinstance(kinds, dict) or not all(isinstance(k, str) for k in kinds.values()):
            raise BadModel(f"found the fields {quoted(kinds)}, expected a table of kinds")
        for name, kind in kinds.items():
            check_kind(name, kind)
        if not isinstance(outcomes, dict) or not all(
            len(check_strings(each)) <= MOST_OUTCOMES for each in outcomes.values()
        ):
            raise BadModel(f"found the outcomes {quoted(outcomes)}, expected lists of text")
        if missing := set(outcomes) - set(self.comparisons or ()):
            raise _without(f"the comparison {quoted(min(missing))}", "comparisons={...}")
        for name in check_strings(state["functions"]):
            if name not in FUNCTIONS:
                raise BadModel(f"found {quoted(name)}, expected {listed(FUNCTIONS)}")
            if not self._has_function(name):
                raise _without(f"{name} by a function", f"{name}=...")
        self._begin(kinds, check_strings(header["templates"]))
        self.encoder_.outcomes = {name: list(each) for name, each in outcomes.items()}
        for i, name in enumerate(self.encoder_.columns):
            values = unpack_strings(tensors[f"values.{i}"])
            self.encoder_.values[name] = {value: n for n, value in enumerate(values)}


def _without(what: str, given: str) -> BadModel:
    """Return the error for a model of a function that is not beside its file."""
    return BadModel(
        f"found a model with {what}, a function that files never have; expected it beside the "
        f"file, as in load_model(path, task=ClusteringTask({given}))"
    )


def _are(values: Any, *kinds: Any) -> bool:
    """Return whether values are a list, or the names of a mapping, of these kinds."""
    is_list = isinstance(values, (Mapping, Sequence)) and not isinstance(values, (str, bytes))
    return is_list and all(isinstance(value, kinds) for value in values)


def _are_functions(values: Any) -> bool:
    """Return whether values are functions by names that templates can have."""
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and name.isascii() and name.isidentifier() and callable(function)
        for name, function in values.items()
    )


def as_items(x: Any, number: int) -> list[Any]:
    """Return the items of an input."""
    if hasattr(x, "to_dict") and hasattr(x, "columns"):
        return list(x.to_dict("records"))
    if isinstance(x, (str, bytes, Mapping)) or not isinstance(x, Iterable):
        raise BadData(f"found {quoted(x)}, expected a list of items", sentence=number)
    return list(x)


def checked_ids(ids: Iterable[Any], number: int | None = None) -> list[Any]:
    """Return the ids of items, None where one is missing; raise BadData if one is no id."""
    result = [plain(each) for each in ids]
    for i, each in enumerate(result, start=1):
        try:
            hash(each)
        except TypeError:
            raise BadData(
                f"found {quoted(each)} as an id, expected text or a number",
                sentence=number,
                token=i,
            ) from None
    return result


def first_members(steps: Sequence[Operator]) -> list[int]:
    """Return the first item of each item's cluster, given the steps that place them."""
    firsts: list[int] = []
    for item, (group, label) in enumerate(steps):
        firsts.append(item if label == NEW else firsts[group])
    return firsts


def clusters_of(steps: Sequence[Operator]) -> list[int]:
    """Return the number of each item's cluster, by first appearance.

    Examples
    --------
    >>> clusters_of([(0, 1), (1, 1), (0, 0), (1, 0)])
    [0, 1, 0, 1]
    """
    return by_appearance(first_members(steps))


def by_appearance(ids: Iterable[Any]) -> list[int]:
    """Return ids as numbers, in the order in which they occur first.

    Examples
    --------
    >>> by_appearance("abac")
    [0, 1, 0, 2]
    """
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in ids]


def known_by_appearance(ids: Sequence[Any]) -> list[int | None]:
    """Return ids as numbers like ``by_appearance``; None stays None."""
    numbers = iter(by_appearance(each for each in ids if each is not None))
    return [None if each is None else next(numbers) for each in ids]
