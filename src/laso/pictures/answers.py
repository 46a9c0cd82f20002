"""An output as HTML: coloured spans of words in layers, arcs above the words, or clusters."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from laso.pictures.marks import cut, hue, svg, text

LETTER, APART, LEVEL = 7.6, 26, 26  # of the words below arcs, and of the arcs
LABELLED = 46  # the least width of a word below an arc

Shown = Mapping[str, Any]
Sure = Mapping[tuple[int, int], float]


def answer(shown: Shown, words: Sequence[str], sure: Sure | None = None) -> str:
    """Return an output as HTML.

    Parameters
    ----------
    shown : mapping
        What ``Task.display`` returns, as a dict.
    words : sequence of str
        The words of the input.
    sure : mapping, default=None
        How probable the parts of the output are, by their first item and end; shown by intensity.

    Examples
    --------
    >>> print(answer({"layers": {"": [("NP", 1, 2)]}}, ["see", "me"]))
    <p><span class="word" data-start="0" data-end="1">see</span> <span class="span hue5 unsure" \
data-start="1" data-end="2" data-label="NP" title="NP">me<b>NP</b></span></p>
    """
    sure = {} if sure is None else sure
    if shown.get("arcs"):
        return arcs(shown["arcs"], words, sure)
    if shown.get("clusters"):
        return _clusters(shown["clusters"], words, sure)
    layers = shown.get("layers") or {}
    parts = [_layer(name, spans, words, sure) for name, spans in layers.items()]
    if shown.get("text"):
        parts.append(f"<pre>{html.escape(shown['text'])}</pre>")
    return "\n".join(parts)


def _layer(name: str, spans: Sequence[Any], words: Sequence[str], sure: Sure) -> str:
    head = f'<span class="layer">{html.escape(name)}</span>' if name else ""
    parts, at = [], 0
    for label, start, end in sorted(spans, key=lambda span: span[1:]):
        parts += [_word(words, i) for i in range(at, start)]
        parts.append(_span(label, (start, end), " ".join(words[start:end]), sure))
        at = max(at, end)
    parts += [_word(words, i) for i in range(at, len(words))]
    return f"<p>{head}{' '.join(parts)}</p>"


def _word(words: Sequence[str], i: int) -> str:
    return f'<span class="word" data-start="{i}" data-end="{i + 1}">{html.escape(words[i])}</span>'


def _span(label: str, place: tuple[int, int], content: str, sure: Sure) -> str:
    start, end = place
    probability = sure.get(place)
    told = label if probability is None else f"{label}, probability {probability:.2f}"
    level = "unsure" if probability is None else f"sure{min(9, int(10 * probability))}"
    colour = "" if label == "O" else f"hue{hue(label)} "
    return (
        f'<span class="span {colour}{level}" data-start="{start}" data-end="{end}" '
        f'data-label="{html.escape(label)}" title="{html.escape(told)}">'
        f"{html.escape(content)}<b>{html.escape(label)}</b></span>"
    )


def _clusters(numbers: Sequence[int], words: Sequence[str], sure: Sure) -> str:
    """Items with the number of their cluster; one that is alone has no colour."""
    parts = []
    for i, number in enumerate(numbers):
        alone = list(numbers).count(number) == 1
        span = _span(f"{number + 1}", (i, i + 1), words[i], sure)
        colour = "" if alone else f"hue{number % 8} "
        old = f"hue{hue(str(number + 1))} "
        parts.append(span.replace(old, colour, 1))
    return f"<p>{' '.join(parts)}</p>"


def arcs(heads: Sequence[Any], words: Sequence[str], sure: Sure) -> str:
    """Return a tree as SVG: an arc from each head (from 1; 0 is the root) to its word."""
    widths = [max(LABELLED, LETTER * len(word)) for word in words]
    lefts = [20 + sum(widths[:i]) + APART * i for i in range(len(words))]
    middles = [left + width / 2 for left, width in zip(lefts, widths, strict=True)]
    levels = _levels([head for head, _ in heads])
    high = 34 + LEVEL * (max(levels, default=0) + 1)
    parts = []
    for i, (head, label) in enumerate(heads):
        y = high - LEVEL * levels[i] - 20
        x2 = middles[i]
        x1 = x2 if head == 0 else middles[head - 1]
        shift = 0 if head == 0 else (8 if x1 < x2 else -8)
        course = f"M{x1 + shift:g} {high}V{y:g}H{x2 - shift / 2:g}V{high - 3}"
        if head == 0:
            course = f"M{x2:g} 12V{high - 3}"
        probability = sure.get((i, i + 1))
        of = "the root" if head == 0 else f"{label} of {words[head - 1]}"
        told = f"{words[i]}: {of}" + ("" if probability is None else f", {probability:.2f}")
        faint = "" if probability is None else f' opacity="{0.35 + 0.65 * probability:.2f}"'
        parts.append(
            f'<g class="arc hue{hue(str(label))}" role="button" tabindex="0" data-start="{i}" '
            f'data-head="{head}" data-label="{html.escape(str(label))}" '
            f'aria-label="{html.escape(told)}"><path{faint} d="{course}"/>'
            f'<path{faint} d="M{x2 - shift / 2 - 4:g} {high - 9}l4 6l4 -6"/>'
            + text((x1 + x2) / 2, 10 if head == 0 else y - 4, str(label), size=11, end="middle")
            + "</g>"
        )
    for i, word in enumerate(words):
        parts.append(text(middles[i], high + 18, word, "strong", end="middle"))
    width = lefts[-1] + widths[-1] + 20 if words else 60
    title = f"The tree of: {cut(' '.join(words), 900)}"
    return svg(width, high + 30, title, parts, alone=False)


def _levels(heads: Sequence[int]) -> list[int]:
    """The height of each arc: above all those that it spans."""
    spans = [
        (i, i) if head == 0 else (min(i, head - 1), max(i, head - 1))
        for i, head in enumerate(heads)
    ]
    levels = [0] * len(heads)
    done: list[int] = []
    for i in sorted(range(len(spans)), key=lambda i: spans[i][1] - spans[i][0]):
        first, last = spans[i]
        if heads[i]:
            below = [levels[j] for j in done if spans[j][0] < last and first < spans[j][1]]
            levels[i] = max(below, default=0) + 1
            done.append(i)
    return levels
