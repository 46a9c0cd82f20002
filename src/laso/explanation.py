"""Why a model answers as it does: what it is, what it weighs, and each decision of a search.

inspected(model)              what the model is, and the top features of each label
explained(model, sentence)    for each decision the features with their weights, the runner-up,
                              the margin, and where in the search the runner-up was lost
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Corpus, Input
from laso.engine.machine import all_of
from laso.engine.reference import Operator, Reference, State, input_of
from laso.estimators.base import SequenceEstimator, is_weighted
from laso.estimators.storage import described_parameters
from laso.features.inputs import read_input
from laso.features.names import Namer, recorded
from laso.model_file import stored_rows
from laso.trace import trace_search
from laso.vectors import Linear

SHOWN = 10

Explanation = dict[str, Any]


class Steps:
    """The steps of a model through one sentence, uncompiled: their features and their scores."""

    def __init__(self, model: SequenceEstimator, weighted: bool) -> None:
        table = model.weights_
        problem, self.origins = recorded(model._problem(weighted))
        self.model = model
        self.problem = Reference(problem, table.v.shape[1])
        self.mask = (1 << int(table.ints[at.BITS])) - 1 if table.ints[at.BITS] else -1
        keys, rows = stored_rows(table)
        self._rows = dict(zip(keys.tolist(), rows.tolist(), strict=True))
        self._scores: dict[Any, Array | None] = {}
        self.namer = Namer(model.encoder_)

    def weight(self, key: int, label: int) -> float:
        """The weight of a feature for a label."""
        row = self._rows.get(key & self.mask)
        return 0.0 if row is None else float(self.model.weights_.v[row, label])

    def score(self, x: Input, state: State, operator: Operator) -> float:
        """What a step adds to the score."""
        group, label = operator
        place = (state.row, group)
        if place not in self._scores:
            self._scores[place] = self._all_scores(x, state, group)
        scores = self._scores[place]
        if scores is not None:
            return float(scores[label])
        found = self.problem.features(x, state, operator)
        return sum(self.weight(key, of) * value for (key, of), value in found.items())

    def _all_scores(self, x: Input, state: State, group: int) -> Array | None:
        """The scores of all labels of a group at once; None where features differ by label."""
        found = self.problem.features(x, state, (group, 0))
        last = self.problem.n_labels - 1
        same = {(key, last): value for (key, _), value in found.items()}
        if same != self.problem.features(x, state, (group, last)):
            return None
        scores = np.zeros(last + 1)
        for (key, _), value in found.items():
            row = self._rows.get(key & self.mask)
            if row is not None:
                scores += value * self.model.weights_.v[row]
        return scores


class Scored(Reference):
    """The problem with one feature: the score of the step."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(steps.problem.problem, steps.problem.n_labels)
        self.steps = steps

    def features(self, x: Input, state: State, operator: Operator) -> dict[Any, float]:
        """Its only feature."""
        return {"score": self.steps.score(x, state, operator)}


def explained(
    model: SequenceEstimator, sentence: Any, *, features: int = SHOWN, words: Sequence[str] = ()
) -> Explanation:
    """The decisions that led to the answer for one sentence, each with its runner-up.

    That is the alternative which the search kept longest; where it kept none, the one of the best
    score among those about as many tokens.
    """
    model._must_have("weights_")
    data = model._inputs(read_input([sentence]))
    weighted = is_weighted(data)
    corpus = model._corpus(data, None)
    machine = model._machine(weighted)
    steps, ends, scores = machine.decode(corpus, all_of(corpus), model.weights_)
    known = Steps(model, weighted)
    x = input_of(corpus, 0)
    path = [tuple(step) for step in steps.tolist()]
    exactly = isinstance(machine, ExactMachine)
    fates: list[dict[Operator, Explanation]]
    fates = [{} for _ in path] if exactly else _fates(known, x, path)
    decisions = []
    state = known.problem.initial(x)
    for operator, kept in zip(path, fates, strict=True):
        decision = _decision(known, x, state, operator, features)
        _compare(decision, known, x, state, operator, kept, exactly)
        decisions.append(decision)
        state = known.problem.apply(x, state, operator)
    return {
        "tokens": list(words or _words(sentence)),
        "answer": model._found(steps, ends)[0],
        "score": float(scores[0]),
        "decisions": decisions,
    }


def _decision(steps: Steps, x: Input, state: State, chosen: Operator, most: int) -> Explanation:
    label, n = steps.model._step(*chosen)
    first = int(state.row[0])
    weighed: list[dict[str, Any]] = []
    for (key, of), value in steps.problem.features(x, state, chosen).items():
        weight = steps.weight(key, of)
        if weight:
            name = steps.namer.name(key, steps.origins, x.items[first : first + n])
            weighed.append({"name": name, "weight": weight, "value": value})
    weighed.sort(key=lambda each: -abs(each["weight"] * each["value"]))
    return {
        "first": first,
        "tokens": n,
        "label": label,
        "score": steps.score(x, state, chosen),
        "features": weighed[:most],
        "more_features": max(0, len(weighed) - most),
        "runner_up": None,
        "margin": None,
    }


def _compare(
    decision: Explanation,
    steps: Steps,
    x: Input,
    state: State,
    chosen: Operator,
    kept: dict[Operator, Explanation],
    exactly: bool,
) -> None:
    """Add the runner-up, the margin, and what became of it."""
    others = [op for op in steps.problem.operators(x, state) if op != chosen]
    alike = [op for op in others if steps.model._step(*op)[1] == decision["tokens"]]
    if kept:
        best = max(kept, key=lambda op: (kept[op]["after"], -(kept[op]["behind"] or 0.0)))
    elif alike:
        best = max(alike, key=lambda op: steps.score(x, state, op))
    else:
        return
    name, length = steps.model._step(*best)
    score = steps.score(x, state, best)
    lost = None if exactly else kept.get(best, {"when": "at once", "after": None, "behind": None})
    decision["runner_up"] = {"label": name, "tokens": length, "score": score, "lost": lost}
    if length == decision["tokens"]:
        decision["margin"] = decision["score"] - score


# --------------------------------------------------------------------------- the search


def _fates(steps: Steps, x: Input, path: Sequence[Operator]) -> list[dict[Operator, Explanation]]:
    """For each decision, what became of those alternatives that the queue has held."""
    model = steps.model
    queue = model._beam(model.queue) if isinstance(model.queue, int) else model.queue
    events = trace_search(Scored(steps), x, Linear({"score": 1.0}), queue)
    nodes: dict[int, Explanation] = {}
    for event in events:
        for node in (event, *event["queue"]):
            nodes.setdefault(node["node"], node)
    numbers, reached = [0], {0: 0.0}  # the nodes of the path, and its score by tokens covered
    children = {(node["parent"], node["operator"]): number for number, node in nodes.items()}
    for operator in path:
        numbers.append(children.get((numbers[-1], operator), -1))
        if numbers[-1] >= 0:
            reached[_covered(nodes[numbers[-1]])] = nodes[numbers[-1]]["g"]
    fates: list[dict[Operator, Explanation]] = [{} for _ in path]
    for number, node in nodes.items():
        line = [number]  # from the node up to where it left the path
        while line[-1] not in numbers:
            line.append(nodes[line[-1]]["parent"])
        depth = numbers.index(line[-1])
        if len(line) < 2 or depth >= len(path):
            continue
        after = _covered(node)
        behind = reached[after] - node["g"] if after in reached else None
        operator = nodes[line[-2]]["operator"]
        known = fates[depth].get(operator)
        if known is None or _rank(after, behind) > _rank(known["after"], known["behind"]):
            when = "never" if after >= len(x.items) else "later"
            fates[depth][operator] = {"when": when, "after": after, "behind": behind}
    return fates


def _rank(after: int, behind: float | None) -> tuple[int, float]:
    return after, -np.inf if behind is None else -behind


def _covered(node: Explanation) -> int:
    return int(node["state"].row[0])


# --------------------------------------------------------------------------- what a model weighs


def inspected(model: SequenceEstimator, *, features: int = SHOWN, data: Any = None) -> Explanation:
    """What a model is, and for each label the features with the largest and smallest weights.

    With ``data``, features that only sentences can name, such as pairs of words, are named too.
    """
    model._must_have("weights_")
    table = model.weights_
    keys, rows = stored_rows(table)
    names = Namer(model.encoder_).of_keys(keys) if not table.ints[at.BITS] else {}
    if data is not None:
        names |= _seen(model, data)
    named = np.array([key in names for key in keys.tolist()], bool)
    texts = [names[key] for key in keys[named].tolist()]
    v = table.v[rows[named]]
    labels = {}
    for column, label in enumerate(model.encoder_.labels):
        order = np.argsort(-v[:, column], kind="stable")
        top = [i for i in order[:features].tolist() if v[i, column] > 0]
        low = [i for i in order[::-1][:features].tolist() if v[i, column] < 0]
        labels[label] = {
            "for": [[texts[i], float(v[i, column])] for i in top],
            "against": [[texts[i], float(v[i, column])] for i in low],
        }
    size = model.size_
    return {
        "task": model.task,
        "estimator": type(model).__name__,
        "labels": list(model.encoder_.labels),
        "columns": list(model.encoder_.names),
        "templates": [str(template) for template in model.encoder_.templates],
        "parameters": described_parameters(model),
        "facts": model.facts_,
        "epochs": model.n_iter_,
        "best_epoch": model.best_epoch_,
        "scores": model.scores_,
        "interrupted": model.interrupted_,
        "notes": model.notes_,
        "size": {"features": size.features, "weights": size.weights, "bytes": size.bytes},
        "named": int(named.sum()),
        "top": labels,
    }


def _seen(model: SequenceEstimator, data: Any) -> dict[int, str]:
    """The names of the features on the paths that the model takes through some sentences."""
    read = model._inputs(read_input(data))
    weighted = is_weighted(read)
    corpus: Corpus = model._corpus(read, None)
    machine = model._machine(weighted)
    steps, ends, _ = machine.decode(corpus, all_of(corpus), model.weights_)
    known = Steps(model, weighted)
    names: dict[int, str] = {}
    first = 0
    for i, end in enumerate(ends.tolist()):
        x = input_of(corpus, i)
        state = known.problem.initial(x)
        for operator in steps[first:end].tolist():
            for key, _ in known.problem.features(x, state, tuple(operator)):
                names[key & known.mask] = known.namer.name(key, known.origins)
            state = known.problem.apply(x, state, tuple(operator))
        first = end
        known.origins.clear()
    return names


# --------------------------------------------------------------------------- text and HTML


def as_text(shown: Explanation) -> str:
    """``inspected`` or ``explained`` for people."""
    return _model_text(shown) if "top" in shown else _sentence_text(shown)


def _model_text(shown: Explanation) -> str:
    size = shown["size"]
    lines = [
        f"{shown['estimator']} ({shown['task']}), {len(shown['labels'])} labels, "
        f"{size['features']} features, {size['weights']} weights",
        f"columns: {', '.join(shown['columns']) or 'features of the tokens'}",
        f"templates: {len(shown['templates'])}, as {', '.join(shown['templates'][:3])}",
        f"{shown['epochs']} epochs, of which the weights of epoch {shown['best_epoch']} are kept",
    ]
    if shown["scores"]:
        lines.append(f"best held-out score {max(shown['scores']):.4f}")
    for name, value in shown["notes"].items():
        lines.append(f"{name}: {value}")
    lines.append(f"{shown['named']} of the {size['features']} features can be named; the top ones:")
    for label, some in shown["top"].items():
        lines.append(f"{label}")
        lines += [f"  {weight:+9.3f}  {name}" for name, weight in (*some["for"], *some["against"])]
    return "\n".join(lines)


def _sentence_text(shown: Explanation) -> str:
    tokens = shown["tokens"]
    lines = [f"{' '.join(map(str, tokens))}", f"answer: {' '.join(map(str, shown['answer']))}"]
    for decision in shown["decisions"]:
        first, n = decision["first"], decision["tokens"]
        words = " ".join(map(str, tokens[first : first + n]))
        lines.append(f"{words}: {decision['label']}  {decision['score']:+.3f}")
        lines += [
            f"  {each['weight'] * each['value']:+9.3f}  {each['name']}"
            for each in decision["features"]
        ]
        if decision["more_features"]:
            lines.append(f"             and {decision['more_features']} more")
        other = decision["runner_up"]
        if other is not None:
            span = f" over {other['tokens']} tokens" if other["tokens"] != n else ""
            margin = "" if decision["margin"] is None else f", margin {decision['margin']:.3f}"
            fate = _fate(other["lost"], tokens)
            lines.append(f"  next best: {other['label']}{span} {other['score']:+.3f}{margin}{fate}")
    return "\n".join(lines)


def _fate(lost: Explanation | None, tokens: Sequence[Any]) -> str:
    if lost is None:
        return ""
    if lost["when"] == "at once":
        return "; it never entered the queue"
    behind = "" if lost["behind"] is None else f", {lost['behind']:.3f} behind"
    if lost["when"] == "never":
        return f"; a path through it was kept to the end{behind}"
    return f"; its last path was lost after {str(tokens[lost['after'] - 1])!r}{behind}"


def as_html(shown: Explanation) -> str:
    """``inspected`` as a page of its own."""
    rows = []
    for label, some in shown["top"].items():
        cells = "".join(
            f"<tr><td>{weight:+.3f}</td><td>{html.escape(name)}</td></tr>"
            for name, weight in (*some["for"], *some["against"])
        )
        rows.append(f"<h2>{html.escape(label)}</h2>\n<table>{cells}</table>")
    head = html.escape(_model_text({**shown, "top": {}}))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>laso model</title>\n'
        "<style>body{font-family:sans-serif;margin:2em}td{padding:0 1em 0 0}"
        "td:first-child{text-align:right;font-variant-numeric:tabular-nums}</style></head>\n"
        f"<body><h1>{html.escape(shown['estimator'])}</h1><pre>{head}</pre>\n"
        + "\n".join(rows)
        + "\n</body></html>\n"
    )


def _words(sentence: Any) -> list[str]:
    words = []
    for i, token in enumerate(sentence):
        first = token[0] if isinstance(token, tuple) and token else token
        words.append(first if isinstance(first, str) else f"[{i + 1}]")
    return words
