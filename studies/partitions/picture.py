"""A short story with the clusters that a model of LitBank's first fold finds in it, as a picture.

The story is the project's own; its mentions are in brackets, after the number of their entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from laso.data.coreference import Mention, Text, in_order
from studies import measure as files
from studies.measure import Row, load

STORY = """\
[1 Miss Ogden ] kept [2 the only bakery in [3 Larkhill ] ] .
Daily [4 [1 her ] nephew Tom ] took bread to [5 the old mill ] , where [6 Captain Reed ] lived .
“ [4 You ] are late , ” said [6 the captain ] .
“ [4 I ] had to help [1 my aunt ] , ” answered [4 the boy ] , and [4 he ] put the basket down .
[6 The old man ] laughed .
“ Tell [1 her ] that [6 I ] forgive [7 you both ] . ”
When [4 Tom ] came back to [2 the shop ] , [1 Miss Ogden ] was waiting for [4 him ] .
“ Did [6 he ] pay ? ” [1 she ] asked .
“ [6 He ] paid [1 you ] a compliment , ” said [4 Tom ] .
"""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d00")
GREY = "#888888"
LETTER, LINE, MARGIN, DEPTH = 9.0, 52, 20, 7


def parsed(story: str) -> tuple[Text, list[str]]:
    """Return a text in brackets, and the entities of its mentions.

    Examples
    --------
    >>> text, entities = parsed("[1 [2 his ] dog ] barked .")
    >>> text.sentences, entities
    ([['his', 'dog', 'barked', '.']], ['1', '2'])
    """
    text, entities = Text([]), dict[Mention, str]()
    for s, line in enumerate(story.splitlines()):
        words, open_ = list[str](), list[tuple[str, int]]()
        for part in line.split():
            if part.startswith("["):
                open_.append((part[1:], len(words)))
            elif part == "]":
                entity, first = open_.pop()
                entities[Mention(s, first, len(words) - 1)] = entity
            else:
                words.append(part)
        text.sentences.append(words)
    text.mentions = in_order(entities)
    return text, [entities[mention] for mention in text.mentions]


def find(job: Row) -> Row:
    """Learn from the training part of the first fold, and find the clusters of the story."""
    from laso import Clusterer
    from studies.partitions.litbank import read_fold

    model = Clusterer(preset="coreference").fit(*read_fold(0, typed=False)["train"])
    return {"clusters": model.predict([parsed(STORY)[0]])[0]}


def write(path: Path) -> list[Path]:
    """Draw the clusters that were found, beside their file."""
    found = load(path)
    return [files.write(path.with_suffix(".svg"), drawn(found["clusters"]))] if found else []


def drawn(clusters: Sequence[int]) -> str:
    """Return the story as SVG: mentions of one cluster have lines of one colour and one number."""
    text, gold = parsed(STORY)
    sizes = Counter(clusters)
    numbers = {c: n for n, c in enumerate((c for c in sizes if sizes[c] > 1), start=1)}
    wrong = _differ(gold, clusters)
    widths = [sum(len(word) + 1 for word in words) for words in text.sentences]
    width, height = 2 * MARGIN + LETTER * max(widths), MARGIN + LINE * len(widths) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="monospace" font-size="15" role="img">',
        "<title>Clusters of mentions that a model of LitBank finds in a short story</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for s, words in enumerate(text.sentences):
        starts = [0]
        for word in words:
            starts.append(starts[-1] + len(word) + 1)
        y = MARGIN + 14 + LINE * s
        for word, at in zip(words, starts, strict=False):
            parts.append(_text(MARGIN + LETTER * at, y, word, LETTER * len(word)))
        inside = [
            (mention, cluster, differs)
            for mention, cluster, differs in zip(text.mentions, clusters, wrong, strict=True)
            if mention.sentence == s
        ]
        for mention, cluster, differs in inside:
            held = sum(m.first >= mention.first and m.last <= mention.last for m, _, _ in inside)
            begin = MARGIN + LETTER * starts[mention.first]
            end = MARGIN + LETTER * (starts[mention.last + 1] - 1)
            parts += _line(begin, end, y + DEPTH * held, cluster, numbers, differs)
    parts.append(_text(MARGIN, height - 8, "dotted: not in the cluster of its entity", None, 11))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, width: float | None, size: int = 15) -> str:
    fitted = "" if width is None else f' textLength="{width:.0f}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{fitted}>{escape(text)}</text>'


def _line(
    begin: float, end: float, y: float, cluster: int, numbers: dict[int, int], differs: bool
) -> list[str]:
    number = numbers.get(cluster)
    colour = GREY if number is None else COLOURS[(number - 1) % len(COLOURS)]
    dots = ' stroke-dasharray="2 3"' if differs else ""
    line = f'<path d="M{begin:.1f} {y:.1f}H{end:.1f}" stroke="{colour}" stroke-width="3"{dots}/>'
    if number is None:
        return [line]
    label = f'<text x="{end:.1f}" y="{y + 10:.1f}" font-size="10" fill="{colour}">{number}</text>'
    return [line, label]


def _differ(gold: Sequence[Any], clusters: Sequence[int]) -> list[bool]:
    """Return for each mention whether its cluster is not the one aligned with its entity.

    An entity is aligned with the cluster that has most of its mentions, the largest first.
    """
    both = Counter(zip(gold, clusters, strict=True))
    cluster_of: dict[Any, int] = {}
    for (entity, cluster), _ in both.most_common():
        if entity not in cluster_of and cluster not in cluster_of.values():
            cluster_of[entity] = cluster
    return [cluster_of.get(g) != c for g, c in zip(gold, clusters, strict=True)]
