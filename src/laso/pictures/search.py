"""A search as rounds of hypotheses, and its picture: kept ones, dropped ones, and the gold path.

``rounds_of`` makes plain data of the events of ``trace(..., pruned=3)``; ``drawn`` draws it.
Colours are never the only difference: the predicted path is solid, the gold path is dashed.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from laso.pictures.marks import cut, frame, ordinal, svg, text

WIDTH, HEIGHT = 124, 40  # of a card
ACROSS, DOWN = 152, 54  # from one card to the next
LEFT, TOP = 84, 52  # of the first card
GAP = 26  # around the line between kept and dropped hypotheses
SHOWN = 10  # kept hypotheses of a round that have a card

Search = dict[str, Any]


def rounds_of(events: Sequence[dict[str, Any]], words: Sequence[str]) -> Search:
    """Return the rounds of a search, given its events and the words of its input.

    Parameters
    ----------
    events : list of dict
        The events that ``trace(x, y, pruned=3)`` of an estimator returns.
    words : sequence of str
        The words of the input.

    Returns
    -------
    dict
        As the reference of ``laso serve`` says: ``words``, ``rounds``, ``predicted``, ``fell``,
        ``verdict``.
    """
    rounds: dict[Any, Search] = {}
    nodes: dict[int, Search] = {}
    for event in events:
        if event["event"] == "dequeue":
            for node in (event, *event["queue"]):
                nodes.setdefault(node["node"], node)
    for node in nodes.values():
        if node["parent"] is not None:
            rounds.setdefault(node["round"], {"kept": [], "pruned": [], "made": 0})
            rounds[node["round"]]["kept"].append(node)
    for event in events:
        if event["event"] == "prune":
            told = rounds.setdefault(event["round"], {"kept": [], "pruned": [], "made": 0})
            told["pruned"], told["made"] = event["nodes"], event["made"]
    dequeued = [event for event in events if event["event"] == "dequeue"]
    last = dequeued[-1] if dequeued and dequeued[-1]["goal"] else None
    predicted = _ancestors(last, nodes)
    columns = []
    for key in sorted(rounds):
        told = rounds[key]
        kept = sorted(told["kept"], key=lambda node: -node["score"])
        ranks = {node["node"]: rank for rank, node in enumerate(kept, start=1)}
        cards = [
            n for n in kept if ranks[n["node"]] <= SHOWN or n["node"] in predicted or n["good"]
        ]
        columns.append(
            {
                "made": told["made"],
                "kept": [_card(n, nodes, words, ranks[n["node"]]) for n in cards],
                "hidden": len(kept) - len(cards),
                "pruned": [_card(n, nodes, words, n["rank"]) for n in told["pruned"]],
                "gold": next((ranks[n["node"]] for n in kept if n["good"]), None),
                "positions": sorted({n["position"] for n in (*kept, *told["pruned"])}),
            }
        )
    _name(columns, words)
    search: Search = {
        "words": list(words),
        "rounds": columns,
        "predicted": predicted,
        "known": bool(nodes) and next(iter(nodes.values()))["good"] is not None,
        "right": None if last is None else last["good"],
        "score": None if last is None else last["score"],
    }
    search["fell"] = _fell(search)
    search["verdict"] = verdict(search)
    return search


def _ancestors(node: Search | None, nodes: dict[int, Search]) -> list[int]:
    """The numbers of a node and of those before it, the first last."""
    path: list[int] = []
    while node is not None and node["parent"] is not None:
        path.append(node["node"])
        node = nodes.get(node["parent"])
    return path


def _card(
    node: Search, nodes: dict[int, Search], words: Sequence[str], rank: int
) -> dict[str, Any]:
    parent = nodes.get(node["parent"])
    first, end = node["items"]
    return {
        "node": node["node"],
        "parent": node["parent"],
        "operator": [int(number) for number in node["operator"]],
        "label": node["step"],
        "text": node["text"] or " ".join(words[first:end]),
        "items": [int(first), int(end)],
        "score": float(node["score"]),
        "added": float(node["g"] - (0.0 if parent is None else parent["g"])),
        "rank": rank,
        "good": node["good"],
        "goal": node["goal"],
    }


def _name(columns: list[Search], words: Sequence[str]) -> None:
    """Call rounds by the word that they reach, or by their number where they reach several."""
    reached = [column.pop("positions") for column in columns]
    by_word = all(len(each) == 1 and 0 < each[0] <= len(words) for each in reached)
    by_word = by_word and len({each[0] for each in reached}) == len(reached)
    for number, (column, each) in enumerate(zip(columns, reached, strict=True), start=1):
        column["title"] = words[each[0] - 1] if by_word else f"step {number}"


def _fell(search: Search) -> dict[str, Any] | None:
    """Where the gold path left the queue for good, and what would have kept it; else None."""
    if not search["known"] or search["right"]:
        return None
    columns = search["rounds"]
    kept = [i for i, column in enumerate(columns) if column["gold"] is not None]
    after = max(kept, default=-1)
    for i, column in enumerate(columns):
        lost = next((node for node in column["pruned"] if node["good"]), None)
        if i <= after or lost is None:
            continue
        worst = min((node["score"] for node in column["kept"]), default=lost["score"])
        return {"round": i, "rank": lost["rank"], "behind": worst - lost["score"]}
    return None


def verdict(search: Search) -> str | None:
    """Return a sentence that says how the gold path fared; None if it is not known."""
    if not search["known"]:
        return None
    fell, columns = search["fell"], search["rounds"]
    if fell is not None:
        return (
            f"After “{columns[fell['round']]['title']}” the gold path is no longer in the queue. "
            f"It cannot come back: the prediction is wrong. There it is {ordinal(fell['rank'])}, "
            f"{fell['behind']:.1f} behind the last hypothesis that was kept."
        )
    behind = [column for column in columns if (column["gold"] or 1) != 1]
    if not behind:
        return "The gold path has the best score wherever one of its steps ends."
    where = f"After “{behind[0]['title']}” the gold path has only the "
    where += f"{ordinal(behind[0]['gold'])} score."
    if search["right"]:
        return f"{where} The queue keeps it, and at the end it is the best again."
    rank = columns[-1]["gold"]
    place = "not the best" if rank is None else ordinal(rank)
    return (
        f"{where} At the end it is {place}, so the prediction is wrong: such an error in training "
        "would change the weights."
    )


# --------------------------------------------------------------------------- SVG


def drawn(search: Search, *, first: int = 0, columns: int | None = None, alone: bool = True) -> str:
    """Return the search as SVG: a column for each round, kept hypotheses above dropped ones.

    ``first`` and ``columns`` choose some rounds of a long search. A picture that stands ``alone``
    has its style inside.
    """
    rounds = search["rounds"][first : None if columns is None else first + columns]
    rows = max((len(column["kept"]) for column in rounds), default=1)
    below = max((len(column["pruned"]) for column in rounds), default=0)
    line = TOP + rows * DOWN
    bottom = line + (GAP + below * DOWN if below else 0)
    places: dict[int, tuple[float, float]] = {}
    for i, column in enumerate(rounds):
        for rank, node in enumerate(column["kept"]):
            places[node["node"]] = (LEFT + i * ACROSS, TOP + rank * DOWN)
        for rank, node in enumerate(column["pruned"]):
            places[node["node"]] = (LEFT + i * ACROSS, line + GAP + rank * DOWN)
    width = LEFT + ACROSS * max(len(rounds), 4.2)  # the legend needs that much
    parts = [_margin(search, rows, line, bottom, width, below > 0)]
    chosen = set(search["predicted"])
    cards = []
    for i, column in enumerate(rounds):
        edges = [_edge(places, node, first, chosen) for node in _nodes(column)]
        boxes = [_box(places[n["node"]], n, chosen, n["rank"]) for n in _nodes(column)]
        heading = _heading(search, column, first + i, LEFT + i * ACROSS, bottom)
        parts.append(f'<g data-edges="{first + i}">{"".join(edges)}</g>')
        cards.append(f'<g data-round="{first + i}">{heading}{"".join(boxes)}</g>')
    if not first:
        cards.insert(0, frame(8, TOP + 6, 52, 28, "card") + text(18, TOP + 25, "start"))
    title = f"The search for: {cut(' '.join(search['words']), 900)}"
    legend = _legend(bottom + 34, search["known"])
    return svg(width, bottom + 64, title, [*parts, *cards, legend], alone=alone)


def _nodes(column: Search) -> list[Search]:
    return [*column["kept"], *column["pruned"]]


def _margin(
    search: Search, rows: int, line: float, bottom: float, width: float, pruned: bool
) -> str:
    parts = [text(8, TOP + r * DOWN + 25, ordinal(r + 1), "quiet") for r in range(1, rows)]
    if pruned:
        y = line + 4
        parts.append(f'<path class="cut" d="M8 {y:g}H{width - 8:g}"/>')
        parts.append(text(8, y + 16, "dropped:", "quiet"))
    if search["known"]:
        parts.append(text(8, bottom + 12, "gold path:", "of-gold"))
    return "\n".join(parts)


def _heading(search: Search, column: Search, number: int, x: float, bottom: float) -> str:
    parts = [text(x, 22, cut(column["title"], WIDTH - 10), "strong", size=15)]
    more = column["hidden"]
    made = f"{column['made']} made" + (f", {more} more kept" if more else "")
    if column["made"]:
        parts.append(text(x, 37, made, "quiet", size=11))
    if search["known"]:
        fell = search["fell"] is not None and search["fell"]["round"] == number
        rank = column["gold"]
        gone = search["fell"] is not None and number > search["fell"]["round"]
        told = (
            ordinal(rank) if rank else "dropped here" if fell else "" if gone else "inside a step"
        )
        kind = "of-gold strong" if fell or (rank or 1) != 1 else "of-gold"
        parts.append(text(x + 7, bottom + 12, told, kind))
    return "\n".join(parts)


def _edge(
    places: dict[int, tuple[float, float]], node: Search, first: int, chosen: set[int]
) -> str:
    """The line from a hypothesis to one that extends it; two lines if both paths take it."""
    start = places.get(node["parent"])
    if start is None and (node["parent"] or first):
        return ""
    kinds = [
        kind for kind, on in (("predicted", node["node"] in chosen), ("gold", node["good"])) if on
    ]
    end = places[node["node"]]
    courses = enumerate(kinds or ["other"])
    return "".join(
        f'<path class="edge {kind}" d="{_course(start, end, 6 * i)}"/>' for i, kind in courses
    )


def _course(start: tuple[float, float] | None, end: tuple[float, float], by: float) -> str:
    """The course of a line; over columns that a longer step skips, it runs above their cards."""
    x2, y2 = end
    x1, y1 = (60.0, TOP + 20.0) if start is None else (start[0] + WIDTH, start[1] + HEIGHT // 2)
    y1, y2 = y1 + by, y2 + HEIGHT // 2 + by
    course = f"M{x1:g} {y1:g}"
    if x2 - x1 > ACROSS:
        above = y2 - HEIGHT // 2 - 10
        x, over = x1 + ACROSS - WIDTH, x2 - (ACROSS - WIDTH)
        course += f" C{x1 + 14:g} {y1:g} {x - 14:g} {above:g} {x:g} {above:g} L{over:g} {above:g}"
        x1, y1 = over, above
    return f"{course} C{x1 + 16:g} {y1:g} {x2 - 16:g} {y2:g} {x2:g} {y2:g}"


def _box(place: tuple[float, float], node: Search, chosen: set[int], rank: int) -> str:
    x, y = place
    both = ("predicted", node["node"] in chosen), ("gold", node["good"])
    kinds = " ".join(kind for kind, on in both if on)
    score = f"{node['score']:z.1f}"
    label = cut(node["label"], WIDTH - 18 - len(score) * 7)
    words = cut(node["text"], WIDTH - 10)
    told = f"{label} {score} {words}, {ordinal(rank)}"  # what is seen comes first
    told += "".join(f", on the {kind} path" for kind in kinds.split())
    strong = "strong" if kinds else ""
    return "\n".join(
        [
            f'<g class="node" data-node="{node["node"]}" role="button" tabindex="-1" '
            f'aria-label="{html.escape(told)}">',
            frame(x, y, WIDTH, HEIGHT, f"card {kinds}".strip()),
            text(x + 7, y + 16, label, strong),
            text(x + WIDTH - 7, y + 16, score, "quiet", end="end"),
            text(x + 7, y + 33, words),
            "</g>",
        ]
    )


def _legend(y: float, known: bool) -> str:
    entries = [("predicted", "predicted path"), ("", "another hypothesis")]
    if known:
        entries[1:1] = [("gold", "gold path"), ("predicted gold", "both")]
    parts, x = [], LEFT
    for kind, name in entries:
        parts.append(frame(x, y, 28, 18, f"card {kind}".strip()))
        parts.append(text(x + 36, y + 14, name))
        x += 152
    return "\n".join(parts)
