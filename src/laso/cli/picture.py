"""One beam search as a picture: an SVG for the documents, and a page of HTML for ``laso demo``.

Both draw the dict that ``laso.cli.demo.search_of`` returns. Colours are never the only difference:
the predicted path is solid, the gold path is dashed.
"""

from __future__ import annotations

import html
from typing import Any

WIDTH, HEIGHT = 124, 40  # of a box
ACROSS, DOWN = 152, 54  # from one box to the next
LEFT, TOP = 84, 52  # of the first box
LETTER = 6.9  # the average width of a letter at this size, at most
PREDICTED, GOLD, OTHER = "#C44E00", "#0063A3", "#9a9a9a"

Search = dict[str, Any]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>laso: one beam search</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: {width}px; margin: 2em auto;
       padding: 0 1em; color: #222; background: white }}
h1 {{ font-size: 1.4em }}
p, dl {{ max-width: 46em }}
figure {{ margin: 1.5em 0; overflow-x: auto }}
svg {{ width: 100%; min-width: 700px; height: auto }}
dt {{ font-weight: bold }}
dd {{ margin: 0 0 .6em 0; font-family: ui-monospace, monospace }}
</style>
</head>
<body>
<h1>One search: chunking a sentence with a beam of {beam}</h1>
<p>The search reads the sentence from left to right and covers it with chunks: noun phrases (NP),
verb phrases (VP) and others; O is a word outside all chunks. A column shows the hypotheses that
end with its word, the best first, at most {beam} of them; all others are dropped. A box shows the
last chunk of a hypothesis and the score of all its chunks. A line leads to it from the hypothesis
that it extends.</p>
<figure>
{svg}</figure>
<dl>
<dt>Predicted: the best hypothesis at the last word</dt><dd>{predicted}</dd>
<dt>Gold: the annotation of the corpus</dt><dd>{gold}</dd>
</dl>
<p>{verdict}</p>
</body>
</html>
"""


def page(search: Search) -> str:
    """Return a self-contained HTML page that shows and explains a search."""
    words = search["words"]
    return PAGE.format(
        width=max(900, _size(search)[0]),
        beam=search["beam"],
        svg=drawn(search),
        predicted=html.escape(bracketed(words, search["predicted"])),
        gold=html.escape(bracketed(words, search["gold"])),
        verdict=html.escape(verdict(search)),
    )


def verdict(search: Search) -> str:
    """Return a sentence that says how the gold path fared."""
    words = search["words"]
    behind = [row for row in search["rounds"] if row["gold"] and row["rank"] != 1]
    if not behind:
        return "The gold path has the best score wherever one of its chunks ends."
    first = behind[0]
    where = f"After “{words[first['covered'] - 1]}” the gold path"
    state = (
        "is no longer in the beam"
        if first["rank"] is None
        else f"has only the {_ordinal(first['rank'])} score"
    )
    last = search["rounds"][-1]
    if last["rank"] == 1:
        return f"{where} {state}. The beam keeps it, and at the last word it is the best again."
    if last["rank"] is None:
        return f"{where} {state}. It cannot come back: the prediction is wrong."
    return (
        f"{where} {state}. At the last word it is {_ordinal(last['rank'])}, so the prediction is "
        "wrong: such an error in training would change the weights."
    )


def bracketed(words: list[str], chunks: Any) -> str:
    """Return the words with chunks in brackets; words outside stand alone."""
    texts = []
    for label, start, end in chunks:
        text = " ".join(words[start:end])
        texts.append(text if label == "O" else f"[{label} {text}]")
    return " ".join(texts)


# --------------------------------------------------------------------------- SVG


def drawn(search: Search) -> str:
    """Return the search as SVG: a column for each word, the beam from the best down."""
    rounds = search["rounds"]
    width, height = _size(search)
    places = {0: (-1, 0)}  # of each node: column and rank
    for column, row in enumerate(rounds):
        places |= {node["node"]: (column, rank) for rank, node in enumerate(row["beam"])}
    chosen = _ancestors(rounds)
    parts = [_rank_names(search)]
    for row in rounds:
        parts += [_line(places, node, chosen) for node in row["beam"]]
    parts.append(_start())
    for column, row in enumerate(rounds):
        parts.append(_word(search["words"], row, column))
        for rank, node in enumerate(row["beam"]):
            parts.append(_box(node, search["words"], column, rank, node["node"] in chosen))
        parts.append(_gold_rank(row, column, _bottom(search)))
    parts.append(_legend(_bottom(search) + 34))
    title = f"The beam search for: {' '.join(search['words'])}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="13">\n<title>{html.escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _size(search: Search) -> tuple[int, int]:
    columns = max(len(search["rounds"]), 4.2)  # the legend needs that much
    return int(LEFT + ACROSS * columns), _bottom(search) + 64


def _bottom(search: Search) -> int:
    return TOP + DOWN * max(len(row["beam"]) for row in search["rounds"])


def _ancestors(rounds: list[dict[str, Any]]) -> set[int]:
    """The nodes of the predicted path: the best of the last round, and those it extends."""
    parents = {node["node"]: node["parent"] for row in rounds for node in row["beam"]}
    path = [rounds[-1]["beam"][0]["node"]]
    while path[-1] in parents:
        path.append(parents[path[-1]])
    return set(path)


def _corner(column: int, rank: int) -> tuple[int, int]:
    return LEFT + column * ACROSS, TOP + rank * DOWN


def _rank_names(search: Search) -> str:
    widest = max(len(row["beam"]) for row in search["rounds"])
    names = [_text(8, _corner(0, r)[1] + 25, _ordinal(r + 1), "#666") for r in range(1, widest)]
    return "\n".join([*names, _text(8, _bottom(search) + 12, "gold path:", GOLD)])


def _start() -> str:
    x, y = 8, TOP + 6
    return _frame(x, y, 52, 28, OTHER, "white") + _text(x + 10, y + 19, "start")


def _line(places: dict[int, tuple[int, int]], node: dict[str, Any], chosen: set[int]) -> str:
    """The line from a hypothesis to one that extends it; two lines if both paths take it."""
    styles = []
    if node["node"] in chosen:
        styles.append((PREDICTED, 3, "", 0))
    if node["good"]:
        styles.append((GOLD, 3, ' stroke-dasharray="7 4"', 6 if styles else 0))
    return "\n".join(
        f'<path d="{_course(places[node["parent"]], places[node["node"]], by)}" '
        f'fill="none" stroke="{colour}" stroke-width="{thick}"{dash}/>'
        for colour, thick, dash, by in styles or [("#c8c8c8", 1, "", 0)]
    )


def _course(start: tuple[int, int], end: tuple[int, int], by: int) -> str:
    """The course of a line; over columns that a longer chunk skips, it runs above their boxes."""
    (x1, y1), (x2, y2) = _corner(*start), _corner(*end)
    x1, y1 = (60, TOP + 20) if start[0] < 0 else (x1 + WIDTH, y1 + HEIGHT // 2)
    y1, y2 = y1 + by, y2 + HEIGHT // 2 + by
    course = f"M{x1} {y1}"
    if end[0] - start[0] > 1:
        above = y2 - HEIGHT // 2 - 10
        x, over = _corner(start[0] + 1, 0)[0], _corner(end[0] - 1, 0)[0] + WIDTH
        course += f" C{x1 + 14} {y1} {x - 14} {above} {x} {above} L{over} {above}"
        x1, y1 = over, above
    return f"{course} C{x1 + 16} {y1} {x2 - 16} {y2} {x2} {y2}"


def _word(words: list[str], row: dict[str, Any], column: int) -> str:
    x, _ = _corner(column, 0)
    return _text(x, 24, _cut(words[row["covered"] - 1], WIDTH), weight="bold", size=15)


def _box(node: dict[str, Any], words: list[str], column: int, rank: int, chosen: bool) -> str:
    x, y = _corner(column, rank)
    label, start, end = node["chunks"][-1]
    good = node["good"]
    colour = PREDICTED if chosen else GOLD if good else OTHER
    dash = good and not chosen
    weight = "bold" if chosen or good else "normal"
    fill = "#ddeefa" if good else "#fff1e6" if chosen else "#f7f7f7"
    score = f"{node['score']:z.1f}"
    return "\n".join(
        [
            _frame(
                x, y, WIDTH, HEIGHT, colour, fill, thick=2.5 if chosen or good else 1, dash=dash
            ),
            _text(x + 7, y + 16, _cut(label, WIDTH - 18 - len(score) * LETTER), weight=weight),
            f'<text x="{x + WIDTH - 7}" y="{y + 16}" text-anchor="end" fill="#444">{score}</text>',
            _text(x + 7, y + 33, _cut(" ".join(words[start:end]), WIDTH - 10), "#333"),
        ]
    )


def _gold_rank(row: dict[str, Any], column: int, y: int) -> str:
    """Where the gold path is in the beam of a word."""
    x, _ = _corner(column, 0)
    text = "inside a chunk" if not row["gold"] else "dropped"
    if row["gold"] and row["rank"] is not None:
        text = _ordinal(row["rank"])
    weight = "bold" if row["gold"] and row["rank"] != 1 else "normal"
    return _text(x + 7, y + 12, text, GOLD, weight=weight)


def _legend(y: int) -> str:
    entries = [
        (PREDICTED, "#fff1e6", False, 2.5, "predicted path"),
        (GOLD, "#ddeefa", True, 2.5, "gold path"),
        (PREDICTED, "#ddeefa", False, 2.5, "both"),
        (OTHER, "#f7f7f7", False, 1.0, "another hypothesis"),
    ]
    parts, x = [], LEFT
    for colour, fill, dash, thick, text in entries:
        parts.append(_frame(x, y, 28, 18, colour, fill, thick=thick, dash=dash))
        parts.append(_text(x + 36, y + 14, text))
        x += 152
    return "\n".join(parts)


def _frame(
    x: int,
    y: int,
    width: int,
    height: int,
    colour: str,
    fill: str,
    *,
    thick: float = 1,
    dash: bool = False,
) -> str:
    dashes = ' stroke-dasharray="7 4"' if dash else ""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" '
        f'stroke="{colour}" stroke-width="{thick}"{dashes}/>'
    )


def _text(
    x: int, y: int, text: str, colour: str = "#111", *, weight: str = "normal", size: int = 13
) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{colour}" font-weight="{weight}" font-size="{size}">'
        f"{html.escape(text)}</text>"
    )


def _cut(text: str, width: float) -> str:
    """Return the text, shortened to fit."""
    letters = int(width / LETTER)
    return text if len(text) <= letters else text[: letters - 1] + "…"


def _ordinal(n: int) -> str:
    return {1: "best", 2: "2nd best", 3: "3rd best"}.get(n, f"{n}th best")
