"""What the page shows and does, as plain data: answers, searches, explanations, and lessons.

Everything is asked of a model by its public methods, so that all tasks work alike.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laso.errors import BadData, LasoError, quoted
from laso.learn import delayed, early, max_violation, restart, standard
from laso.locks import own_lock
from laso.params import is_whole
from laso.pictures.answers import answer
from laso.pictures.page import figure, page, paragraph
from laso.pictures.search import drawn, rounds_of
from laso.pictures.waterfall import waterfalls
from laso.serve.inputs import Example, read_text
from laso.serve.steering import ARCS, CLUSTERS, SPANS, WIDEST, Steering
from laso.serve.watching import Watched

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

VERSION = 1  # of the JSON
STRATEGIES = {"restart": restart, "early": early, "delayed": delayed}
STRATEGIES |= {"standard": standard, "max_violation": max_violation}
ALTERNATIVES = 5
PRUNED = 3  # dropped hypotheses of a round that are shown
COLUMNS = 24  # rounds in one picture
TRIES = 20  # widths of a beam
FEATURES = 12  # of a waterfall
MOST_TEXTS = 64  # texts that are kept as they were read
MOST_LESSONS = 200  # that can be undone
MOST_LABELS = 2000  # that the page offers

Json = dict[str, Any]


class NotReady(LasoError):
    """The model is still being trained."""


class Workbench:
    """A model, what it is shown on, and what it was taught; several people may use it at once.

    Parameters
    ----------
    model : estimator, default=None
        The model; None: it is still being trained.
    examples : sequence of Example, default=()
        The examples of the files that the command line names.
    task : str, default=None
        The name of a task of the user's own, as module:Class.
    folder : path, default=None
        Where models may be saved; None: they are downloaded only.
    other : estimator, default=None
        A second model, to compare with.
    """

    def __init__(
        self,
        model: SearchEstimator | None = None,
        *,
        examples: Sequence[Example] = (),
        task: str | None = None,
        folder: Path | None = None,
        other: SearchEstimator | None = None,
    ) -> None:
        self.models = [] if model is None else [model]  # the last one is the present one
        self.examples = list(examples)
        self.task, self.folder, self.other = task, folder, other
        self.lessons: list[tuple[Example, Any]] = []
        self.watched = Watched()
        self._texts: OrderedDict[str, list[Example]] = OrderedDict()
        self._biased: tuple[Any, Any, SearchEstimator] | None = None
        self._teaching = own_lock()

    @property
    def model(self) -> SearchEstimator:
        """The present model."""
        if not self.models:
            raise NotReady("the model is still being trained: try again in a few seconds")
        return self.models[-1]

    @property
    def kind(self) -> str:
        """What is known or banned of outputs: spans, arcs or clusters."""
        from laso.tasks import displays

        shows = getattr(type(self.model.task_), "display", None)
        return {displays.tree: ARCS, displays.clusters: CLUSTERS}.get(shows, SPANS)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ what there is

    def about(self) -> Json:
        """Return what the model is, and which examples there are."""
        model = self.model
        return {
            "estimator": type(model).__name__,
            "task": model.task_.name,
            "kind": self.kind,
            "labels": self._labels(),
            "biased": [str(label) for label in model.classes_] if self._can_bias() else [],
            "queue": repr(model.search_queue(model.task_)),
            "strategies": list(STRATEGIES),
            "strategy": repr(model.strategy),
            "examples": [" ".join(each.words)[:80] for each in self.examples],
            "lessons": len(self.lessons),
            "other": self.other is not None,
            "saves": self.folder is not None,
        }

    def _labels(self) -> list[str]:
        """Return the labels that a person may choose for a part of the output."""
        from laso.tasks import displays

        task: Any = self.model.task_
        labels = [str(label) for label in self.model.classes_]
        if getattr(type(task), "display", None) is displays.layers:
            of = ([n[len(o) + 1 :] for n in labels if n.startswith(f"{o}=")] for o in task.layers)
            return ["/".join(each) for each in islice(product(*of), MOST_LABELS)]
        if self.kind == ARCS:
            labels = [label.partition(" ")[2] for label in labels]
        chunks = {label[2:] for label in labels if label[:2] in ("B-", "I-", "S-", "E-")}
        return sorted({label for label in (*labels, *chunks) if label})[:MOST_LABELS]

    def _can_bias(self) -> bool:
        return bool(self.model.task_.bias_keys())

    def example(self, request: Json) -> tuple[Example, Json]:
        """Return the example that a request names: one of the files, or a sentence of a text."""
        if "item" in request:
            number, examples = request["item"], self.examples
        else:
            number, examples = request.get("sentence", 0), self._read(_text_of(request))
        if not is_whole(number, 0, len(examples) - 1):
            raise BadData(f"found the number {quoted(number)}, expected below {len(examples)}")
        return examples[number], {"sentence": number, "sentences": len(examples)}

    def _read(self, text: str) -> list[Example]:
        examples = self._texts.get(text)
        if examples is None:  # another thread may read it, too
            examples = self._texts[text] = read_text(self.model, text.encode(), task=self.task)
            while len(self._texts) > MOST_TEXTS:
                self._texts.popitem(last=False)
        return examples

    def steered(self, model: SearchEstimator, steering: Steering) -> SearchEstimator:
        """Return a model with a steering; the last one with a bias is kept."""
        if not steering.bias:
            return steering.model(model)
        known, bias = self._biased, dict(steering.bias)
        if known is None or known[0] is not model or known[1] != bias:
            known = self._biased = (model, bias, model.biased(bias))
        return Steering(steering.width).model(known[2])

    # ------------------------------------------------------------------ looking

    def predict(self, request: Json) -> Json:
        """Return the outputs of inputs, or of the sentences of a text."""
        if "text" in request:
            inputs = [each.x for each in self._read(_text_of(request))]
        else:
            inputs = _as_inputs(request.get("inputs"))
        if len(inputs) == 1:
            return {"outputs": [self.model.predict_single(inputs[0])]}
        return {"outputs": self.model.predict(inputs)}

    def look(self, request: Json) -> Json:
        """Return the answer for a sentence, its alternatives, and the search that led to it."""
        example, place = self.example(request)
        steering = Steering.of(request.get("steering"))
        model = self.steered(self.model, steering)
        parts = steering.parts(self.kind, len(example.words), model.task_)
        search, output = self._search(model, example, parts)
        (sure,) = model.predict_confidence([example.x])
        shown = self._shown(model, example, output, sure.parts)
        ranked = model.predict_nbest([example.x], ALTERNATIVES)[0]
        first = request.get("round", 0)
        from_round = max(0, min(int(first), len(search["rounds"]) - COLUMNS))
        return {
            **place,
            "words": example.words,
            "output": output,
            "answer": shown,
            "probability": None if output != sure.output else sure.probability,
            "alternatives": [
                {"score": score, "output": y, "answer": self._shown(model, example, y, sure.parts)}
                for score, y in ranked
            ],
            "lessons": len(self.lessons),
            "gold_output": example.gold,
            "gold": self._gold(model, example),
            "search": search,
            "from": from_round,
            "columns": COLUMNS,
            "picture": drawn(search, first=from_round, columns=COLUMNS, alone=False),
        }

    def rescue(self, request: Json) -> Json:
        """Return a width of the beam that keeps the gold path where it fell off, by trying."""
        example, _ = self.example(request)
        steering = Steering.of(request.get("steering"))
        parts = steering.parts(self.kind, len(example.words), self.model.task_)
        width = steering.width
        for _ in range(TRIES):
            model = self.steered(self.model, replace(steering, width=width))
            search, _ = self._search(model, example, parts)
            fell = search["fell"]
            if fell is None or fell["round"] > request.get("round", 0):
                return {"width": width, "right": search["right"]}
            width = max(fell["rank"], (width or 0) + 1)
            if width > WIDEST:
                break
        return {"width": None, "right": False}

    def _search(self, model: SearchEstimator, example: Example, parts: Json) -> tuple[Json, Any]:
        """Return the rounds of a search, and its output."""
        try:
            events: Any = model.trace(example.x, example.gold, **parts, pruned=PRUNED)
        except (LasoError, ValueError):  # the gold output is none, or cannot be reached
            if example.gold is None:
                raise
            events = model.trace(example.x, **parts, pruned=PRUNED)  # gold labels are not known
        if parts and events.output is None:
            raise BadData(
                "no output that the search keeps fits what is pinned and forbidden; a wider beam "
                "keeps more"
            )
        output = events.output if parts else model.predict_single(example.x)
        return rounds_of(events, example.words), output

    def _shown(self, model: SearchEstimator, example: Example, y: Any, parts: Any) -> str:
        """Return an output as HTML; parts of which the probability is known show it."""
        decisions = [(part.label, part.start, part.end) for part in parts]
        display = model.task_.display(example.x, y, decisions)._asdict()
        places = [(start, end) for spans in display["layers"].values() for _, start, end in spans]
        places += [(i, i + 1) for i in range(len(example.words))]
        sure = {}
        for start, end in dict.fromkeys(places):
            inside = [p.probability for p in parts if start <= p.start and p.end <= end]
            if inside:
                sure[start, end] = min(inside)
        return answer(display, example.words, sure)

    def _gold(self, model: SearchEstimator, example: Example) -> str | None:
        """Return the gold output as HTML; None if there is none, or none of this task."""
        try:
            return None if example.gold is None else self._shown(model, example, example.gold, ())
        except ValueError:
            return None

    def explain(self, request: Json) -> Json:
        """Return the waterfalls of a step, given the path to it, and of its runner-up."""
        example, _ = self.example(request)
        path = request.get("path")
        if not isinstance(path, list) or not all(
            isinstance(step, list) and [*map(type, step)] == [int, int] for step in path
        ):
            raise BadData(f"found the path {quoted(path)}, expected pairs of numbers")
        model = self.steered(self.model, Steering.of(request.get("steering")))
        shown = model.explain(
            example.x, features=FEATURES, path=[(group, label) for group, label in path]
        )
        (decision,) = shown["decisions"]
        return {"decision": decision, "pictures": waterfalls(decision, alone=False)}

    # ------------------------------------------------------------------ teaching

    def teach(self, request: Json) -> Json:
        """Learn one example by one call of ``partial_fit``, and say what has changed."""
        example, _ = self.example(request)
        strategy = request.get("strategy", "restart")
        if strategy not in STRATEGIES:
            raise BadData(f"found the strategy {quoted(strategy)}, expected {list(STRATEGIES)}")
        with self._teaching:
            model = self.model
            y = self._lesson(request, example)
            before = model.predict_single(example.x)
            taught = copy(model)
            if taught.training_ is None:
                taught.reopen()
            usual, taught.strategy = taught.strategy, STRATEGIES[strategy]
            taught.partial_fit([example.x], [y])
            taught.strategy = usual
            after = taught.predict_single(example.x)
            self.models = [*self.models, taught][-MOST_LESSONS:]
            self.lessons.append((example, y))
        return {
            "before": self._shown(model, example, before, ()),
            "after": self._shown(taught, example, after, ()),
            "learned": after == y,
            **taught.changes_since(model, data=[example.x]),
            "lessons": len(self.lessons),
        }

    def _lesson(self, request: Json, example: Example) -> Any:
        """Return the output to learn: the one given, else what the steered search finds."""
        if request.get("output") is not None:
            return _with_tuples(request["output"])
        steering = Steering.of(request.get("steering"))
        model = self.steered(self.model, steering)
        parts = steering.parts(self.kind, len(example.words), model.task_)
        return self._search(model, example, parts)[1]

    def undo(self, request: Json) -> Json:
        """Take back the last lesson."""
        with self._teaching:
            if len(self.models) < 2:
                raise BadData("found no lesson to undo, expected at least one")
            self.models = self.models[:-1]
            self.lessons.pop()
        return {"lessons": len(self.lessons)}

    def save(self, request: Json) -> Json:
        """Save the model under a new name, in the folder that the command line names."""
        name = request.get("name")
        if self.folder is None:
            raise BadData("found no folder to save in, expected laso serve --save-in FOLDER")
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".laso"):
            raise BadData(f"found the name {quoted(name)}, expected one such as better.laso")
        if (self.folder / name).exists():
            raise BadData(f"found a file {quoted(name)}, expected a new name")
        return {"name": name, "bytes": self.model.save(self.folder / name, training=True)}

    def model_file(self) -> bytes:
        """Return the model as a file."""
        from laso.files import estimator as stored
        from laso.files.container import file_bytes

        return file_bytes(*stored.packed_model(self.model.snapshot(), None, training=True))

    def corrections(self) -> str:
        """Return what was taught, as training data in the format that it came in."""
        return "".join(each.with_output(self.model, y) for each, y in self.lessons)

    # ------------------------------------------------------------------ comparing and exporting

    def compare(self, request: Json) -> Json:
        """Return where two models or two settings differ on examples, by falling confidence."""
        examples = self._read(_text_of(request)) if "text" in request else self.examples
        if not examples:
            raise BadData("found no example to compare on, expected a file or a text")
        first = self.steered(self.model, Steering.of(request.get("first")))
        base = self.other if request.get("other") and self.other is not None else self.model
        second = self.steered(base, Steering.of(request.get("second")))
        inputs = [each.x for each in examples]
        pairs = [model.predict_confidence(inputs) for model in (first, second)]
        rows = []
        for i, (example, *both) in enumerate(zip(examples, *pairs, strict=True)):
            if both[0].output != both[1].output:
                views = zip((first, second), both, strict=True)
                shown = [self._shown(m, example, c.output, c.parts) for m, c in views]
                told: Json = {"number": i, "first": shown[0], "second": shown[1]}
                told["gold"] = self._gold(first, example)
                told["probabilities"] = [each.probability for each in both]
                rows.append(told)
        rows.sort(key=lambda row: -max(row["probabilities"]))
        return {"examples": len(examples), "different": rows}

    def export(self, request: Json) -> Json:
        """Return what is on the screen as one self-contained page, or the search as SVG."""
        shown = self.look(request)
        search = shown["search"]
        if request.get("form") == "svg":
            return {"name": "search.svg", "content": drawn(search)}
        parts = [
            f'<div class="answer">{shown["answer"]}</div>',
            figure(drawn(search)),
            paragraph(search["verdict"]),
        ]
        if request.get("path"):
            pictures = self.explain(request)["decision"]
            parts += [figure(svg) for svg in waterfalls(pictures)]
        return {"name": "search.html", "content": page(" ".join(shown["words"])[:80], parts)}


def _text_of(request: Json) -> str:
    text = request.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadData(f"found {quoted(text)}, expected a text")
    return text


def _as_inputs(inputs: Any) -> list[Any]:
    """Return inputs of JSON as an estimator takes them."""
    if not isinstance(inputs, list) or not inputs:
        raise BadData(f"found {quoted(inputs)}, expected inputs or a text")
    return [_with_tuples(x) for x in inputs]


def _with_tuples(value: Any) -> Any:
    """Return an input or output of JSON with tuples for lists: columns or labels of a token."""
    if isinstance(value, list):
        return [tuple(each) if isinstance(each, list) else each for each in value]
    return value
