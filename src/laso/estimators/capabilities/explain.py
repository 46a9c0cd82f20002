"""Why an input gets its output: each decision, its features, and where its runner-up was lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine.lattice.exact import ExactMachine
from laso.engine.layout import Dataset, Input
from laso.engine.machine import all_of
from laso.engine.reference import Operator, State, input_of, output_of
from laso.errors import BadData
from laso.estimators.capabilities.scored_reference import Walk
from laso.problem import UNKNOWN
from laso.tasks.base import Task
from laso.trace import trace_search
from laso.vectors import Linear

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

SHOWN = 10
SCORE = {"score": 1.0}  # the weights of a walk, whose only feature is the score

Explanation = dict[str, Any]


def explained(
    model: Predictor,
    x: Any,
    *,
    features: int = SHOWN,
    words: Sequence[str] = (),
    path: Sequence[Operator] | None = None,
) -> Explanation:
    """The decisions that led to the output of one input, each with its runner-up.

    That is the alternative which the search kept longest; where it kept none, the one of the best
    score among those about as many items. Of a given ``path`` the last decision only is explained.
    """
    model.require("weights_")
    inputs = model.task_.read_inputs([x])
    dataset = model.task_.arrays(inputs)
    walk, encoded = Walk(model, dataset), input_of(dataset, 0)
    if path is not None:
        return _last_explained(walk, encoded, path, list(words or model.task_.words(x)), features)
    engine = model.engine(dataset)
    steps, ends, scores = engine.decode(dataset, all_of(dataset), model.weights_)
    path = [tuple(step) for step in steps.tolist()]
    exactly = isinstance(engine, ExactMachine)
    fates: list[dict[Operator, Explanation]]
    fates = [{} for _ in path] if exactly else _fates(walk, encoded, path)
    decisions = []
    state, tokens = walk.initial(encoded), list(words or model.task_.words(x))
    for operator, kept in zip(path, fates, strict=True):
        other = _runner_up(walk, encoded, state, operator, kept)
        known = None if exactly else kept
        decisions.append(
            _with_other(walk, encoded, state, (operator, other), known, features, tokens)
        )
        state = walk.apply(encoded, state, operator)
    return {
        "tokens": tokens,
        "output": model.task_.decode_all(inputs, steps, ends)[0],
        "score": float(scores[0]),
        "decisions": decisions,
    }


def _last_explained(
    walk: Walk, x: Input, path: Sequence[Operator], tokens: list[str], features: int
) -> Explanation:
    """The last decision of a path, beside the best alternative, whose features are told too."""
    state = walk.initial(x)
    score = 0.0
    for operator in path:
        if operator not in list(walk.operators(x, state)):
            raise BadData(f"found the step {operator}, expected one that is possible there")
        before, state = state, walk.apply(x, state, operator)
        score += walk.step_score(x, before, operator)
    if not path:
        raise BadData("found a path of no steps, expected at least one")
    other = _runner_up(walk, x, before, path[-1], {})
    decision = _with_other(walk, x, before, (path[-1], other), None, features, tokens)
    if other is not None:
        told = _decision(walk, x, before, other, features)
        decision["runner_up"] |= {name: told[name] for name in ("features", "more_features")}
    return {"tokens": tokens, "score": score, "decisions": [decision]}


def traced(
    model: Predictor,
    x: Any,
    y: Any = None,
    *,
    known: Any = None,
    banned: Any = None,
    pruned: int = 0,
) -> list[Explanation]:
    """The events of the search for one input, each step with the name that the task gives it."""
    from laso.estimators.capabilities.forced import restricted

    model.require("weights_")
    task = model.task_
    dataset, gold = task.arrays(task.read_inputs([x])), UNKNOWN
    if y is not None:  # without new values, which training alone may number
        gold = output_of(encoded_gold(task, x, y), 0)
    if known is None and banned is None:
        walk = Walk(model, dataset)
    else:
        walk = restricted(model, x, known, banned)
    start = Linear(dict(SCORE))
    events = trace_search(walk, input_of(dataset, 0), start, walk.queue(), y=gold, pruned=pruned)
    for event in events:
        for node in nodes_of(event):
            operator = node["operator"]
            node["step"] = None if operator is None else task.describe(*operator).name
            node["position"] = node["state"].position
    if pruned:
        _tell_texts(task, x, events)
    return events


def traced_output(model: Predictor, x: Any, events: Sequence[Explanation]) -> Any:
    """Return the output of a search, given its events; None if it reached no goal."""
    dequeued = [event for event in events if event["event"] == "dequeue"]
    if not dequeued or not dequeued[-1]["goal"]:
        return None
    nodes = {node["node"]: node for event in dequeued for node in nodes_of(event)}
    path: list[Operator] = []
    node = dequeued[-1]
    while node["parent"] is not None:
        path.insert(0, node["operator"])
        node = nodes[node["parent"]]
    steps = np.array(path, np.int32).reshape(-1, 2)
    task = model.task_
    return task.decode_all(task.read_inputs([x]), steps, np.array([len(path)]))[0]


def nodes_of(event: Explanation) -> Sequence[Explanation]:
    """Return the nodes that an event of a search tells of."""
    return [event, *event["queue"]] if event["event"] == "dequeue" else event["nodes"]


def encoded_gold(task: Task, x: Any, y: Any) -> Dataset:
    """Return one example as arrays; the task stays as it is, so that others may use it."""
    return task.copied().encode(*task.read([x], [y]))


def _tell_texts(task: Task, x: Any, events: Sequence[Explanation]) -> None:
    """Add what each step says, and the items that it is about."""
    words = task.words(x)
    for event in events:
        for node in nodes_of(event):
            if node["operator"] is None:
                continue
            row, operator = node["state"].before, node["operator"]
            length = task.describe(*operator).length
            _, first, end = task.step_items(row, operator, node["position"] - length)
            node["items"] = (first, end)
            node["text"] = task.step_text(row, operator, words)


def _decision(walk: Walk, x: Input, state: State, chosen: Operator, most: int) -> Explanation:
    label = walk.task.describe(*chosen).name
    _, first, end = walk.task.step_items(state.row, chosen, state.position)
    n = end - first
    weighed: list[dict[str, Any]] = []
    of_vectors: dict[int, float] = {}
    for (key, of), value in walk.reference.features(x, state, chosen).items():
        weight = walk.weight(key, of)
        number = walk.reference.vector_weights.get(key)
        if number is not None:
            of_vectors[number] = of_vectors.get(number, 0.0) + weight * value
        elif weight:
            name = walk.feature_name(key, x.items[first : first + n])
            weighed.append({"name": name, "weight": weight, "value": value})
    for number, score in of_vectors.items():  # all dimensions of a vector as one feature
        name = walk.task.describe_vector(number)
        weighed.append({"name": name, "weight": score, "value": 1.0})
    weighed.sort(key=lambda each: -abs(each["weight"] * each["value"]))
    return {
        "first": first,
        "tokens": n,
        "label": label,
        "score": walk.step_score(x, state, chosen),
        "features": weighed[:most],
        "more_features": max(0, len(weighed) - most),
        "runner_up": None,
        "margin": None,
    }


def _with_other(
    walk: Walk,
    x: Input,
    state: State,
    steps: tuple[Operator, Operator | None],
    kept: dict[Operator, Explanation] | None,
    features: int,
    tokens: Sequence[str],
) -> Explanation:
    """The decision for a step, with another step beside it, if there is one."""
    operator, other = steps
    decision = _decision(walk, x, state, operator, features)
    if other is not None:
        _compare(decision, walk, x, state, other, kept)
    for what, step in ((decision, operator), (decision["runner_up"], other)):
        text = None if step is None else walk.task.step_text(state.row, step, tokens)
        if text is not None:
            what["text"] = text
    return decision


def _runner_up(
    walk: Walk, x: Input, state: State, chosen: Operator, kept: dict[Operator, Explanation]
) -> Operator | None:
    """The alternative that the queue kept longest, else the best one about as many items."""
    if kept:
        return max(kept, key=lambda op: (kept[op]["after"], -(kept[op]["behind"] or 0.0)))
    describe = walk.task.describe
    n = describe(*chosen).length
    others = (op for op in walk.operators(x, state) if op != chosen)
    alike = [op for op in others if describe(*op).length == n]
    return max(alike, key=lambda op: walk.step_score(x, state, op), default=None)


def _compare(
    decision: Explanation,
    walk: Walk,
    x: Input,
    state: State,
    other: Operator,
    kept: dict[Operator, Explanation] | None,
) -> None:
    """Add the runner-up, the margin, and where it was lost."""
    name, length = walk.task.describe(*other)
    score = walk.step_score(x, state, other)
    at_once = {"when": "at once", "after": None, "behind": None}
    lost = None if kept is None else kept.get(other, at_once)
    decision["runner_up"] = {"label": name, "tokens": length, "score": score, "lost": lost}
    if length == decision["tokens"]:
        decision["margin"] = decision["score"] - score


def _fates(walk: Walk, x: Input, path: Sequence[Operator]) -> list[dict[Operator, Explanation]]:
    """For each decision, where those alternatives were lost that the queue has held."""
    events = trace_search(walk, x, Linear(dict(SCORE)), walk.queue())
    nodes: dict[int, Explanation] = {}
    for event in events:
        for node in (event, *event["queue"]):
            nodes.setdefault(node["node"], node)
    depths, last, reached = {0: 0}, 0, {0: 0.0}  # the path: its nodes, its score by items covered
    children = {(node["parent"], node["operator"]): number for number, node in nodes.items()}
    for depth, operator in enumerate(path, start=1):
        last = children.get((last, operator), -1)
        if last >= 0:
            depths[last] = depth
            reached[_covered(nodes[last])] = nodes[last]["g"]
    fates: list[dict[Operator, Explanation]] = [{} for _ in path]
    left: dict[
        int, tuple[int, Operator]
    ] = {}  # where a node's line left the path, and by which step
    for number in sorted(nodes):  # parents first
        if number in depths:
            continue
        node = nodes[number]
        parent = node["parent"]
        left[number] = (depths[parent], node["operator"]) if parent in depths else left[parent]
        depth, operator = left[number]
        if depth >= len(path):
            continue
        after = _covered(node)
        behind = reached[after] - node["g"] if after in reached else None
        known = fates[depth].get(operator)
        if known is None or _rank(after, behind) > _rank(known["after"], known["behind"]):
            when = "never" if after >= len(x.items) else "later"
            fates[depth][operator] = {"when": when, "after": after, "behind": behind}
    return fates


def _rank(after: int, behind: float | None) -> tuple[int, float]:
    return after, -np.inf if behind is None else -behind


def _covered(node: Explanation) -> int:
    return int(node["state"].position)
